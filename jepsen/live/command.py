"""`python -m jepsen live`: its options, its exit codes, and what it prints.

Exit code 0: VALID; 1: a promise was broken; 2: the run could not be carried out, or exercised too little.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from jepsen.live import interrupt
from jepsen.live.plan import Kind
from jepsen.live.scenarios.catalogue import SCENARIOS, step_names
from jepsen.live.scenarios.namespace import enter_namespace

if TYPE_CHECKING:
    from jepsen.live.run import Options, Outcome

COULD_NOT_RUN = 2
MOST_NODES = 9
DEFAULT_REPORT = Path("out/live")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = ",".join(kind.value for kind in Kind)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long faults strike (default 1)")
    parser.add_argument(
        "--seed", type=int, default=1, help="decides which faults strike, and in which order (default 1)"
    )
    parser.add_argument("--nodes", type=int, default=3, choices=range(3, MOST_NODES + 1), help="nodes (default 3)")
    parser.add_argument(
        "--faults", type=_kinds, default=tuple(Kind), metavar="KIND,...", help=f"of {names} (default all)"
    )
    parser.add_argument("--rate", type=float, default=400.0, help="records a second, of all producers (default 400)")
    parser.add_argument("--report", type=Path, default=DEFAULT_REPORT, metavar="DIR", help="folder of the report")
    parser.add_argument("--keep", action="store_true", help="keep the nodes' directories and logs, also of a valid run")
    parser.add_argument(
        "--scenario", choices=sorted(SCENARIOS), metavar="NAME",
        help="its strikes, each once, in place of drawn ones: " + "; ".join(
            f"{name}: {one.summary} ({', '.join(step_names(one))})" for name, one in SCENARIOS.items()
        ),
    )  # fmt: skip
    parser.add_argument("--steps", type=_names, default=(), metavar="STEP,...", help="only these of the scenario")
    parser.add_argument("--edge-only", action="store_true", help="strike disks only by the test's own Disk edge")


def _kinds(text: str) -> tuple[Kind, ...]:
    known = {kind.value: kind for kind in Kind}
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in known]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
    if not names:
        raise argparse.ArgumentTypeError("name at least one kind")
    return tuple(known[name] for name in dict.fromkeys(names))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _refusal(options: argparse.Namespace) -> str:
    """Why these options do not go together; empty if they do."""
    if not options.scenario:
        return "--steps names steps of a --scenario" if options.steps else ""
    known = step_names(SCENARIOS[options.scenario])
    unknown = [name for name in options.steps if name not in known]
    return f"--steps: {unknown[0]!r} is none of {', '.join(known)}" if unknown else ""


def live(options: argparse.Namespace) -> int:
    """The exit code."""
    if refusal := _refusal(options):
        print(refusal, file=sys.stderr)
        return COULD_NOT_RUN
    try:
        import confluent_kafka  # noqa: F401  # the test extra brings it
    except ImportError:
        print("jepsen live needs librdkafka's Python client: pip install 'quorumlog[test]'", file=sys.stderr)
        return COULD_NOT_RUN
    from jepsen.live.run import Options

    if options.scenario and SCENARIOS[options.scenario].needs_mounts and not options.edge_only:
        enter_namespace(sys.argv[1:])
    interrupt.listen()
    chosen = Options(
        seed=options.seed,
        minutes=options.minutes,
        nodes=options.nodes,
        kinds=options.faults,
        rate=options.rate,
        keep=options.keep,
        edge_only=options.edge_only,
        scenario=options.scenario or "",
        steps=options.steps,
    )
    return carry_out(chosen, options.report)


def carry_out(options: Options, folder: Path) -> int:
    """Run, write the report into `folder`, print the verdict. Returns the exit code."""
    from jepsen.live.disks.strace import AttachFailed
    from jepsen.live.disks.volume import MountFailed
    from jepsen.live.report.report import write_report
    from jepsen.live.run import LiveRun
    from quorumlog.testing.layout import LayoutError
    from quorumlog.testing.nodes import NodeEnded
    from quorumlog.testing.ports import NoFreePorts
    from quorumlog.testing.waiting import TimedOut

    try:
        outcome = LiveRun(options, _say).carry_out()
    except (AttachFailed, MountFailed, LayoutError, NodeEnded, NoFreePorts, TimedOut) as error:
        print(f"the run could not be carried out: {error}", file=sys.stderr)
        return COULD_NOT_RUN
    except KeyboardInterrupt:
        print("interrupted before there was anything to judge", file=sys.stderr)
        return COULD_NOT_RUN
    page = write_report(outcome, folder)
    for line in closing_lines(outcome):
        print(line)
    print(f"report: {page}")
    return outcome.exit_code


def closing_lines(outcome: Outcome) -> list[str]:
    lines = [f"  {finding}" for finding in outcome.findings[:20]]
    lines += [f"  too little: {minimum}" for minimum in outcome.minimums if not minimum.is_met]
    counts = f"{outcome.acknowledged:,} records acknowledged, {len(outcome.strikes)} strikes"
    longest = max((pause.longest_ms for pause in outcome.pauses), default=0)
    name = outcome.options.scenario or f"seed {outcome.options.seed}"
    lines += [f"  skipped: {kind}: {why}" for kind, why in outcome.skipped.items()]
    head = f"{name}: {outcome.verdict}   {counts}, longest pause {longest / 1000:.1f} s"
    return [head, *lines]


def _say(text: str) -> None:
    print(text, flush=True)
