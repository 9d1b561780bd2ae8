"""`python -m jepsen pipeline`. Exit code 0: VALID; 1: INVALID; 2: not carried out, or exercised too little."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from jepsen.live import interrupt
from jepsen.pipeline.cells import chosen
from jepsen.pipeline.history import Shape

MINUTES, RATE = 10.0, 100.0
DEFAULT_REPORT = Path("out/pipeline")
COULD_NOT_RUN = 2
EXIT_CODES = {"VALID": 0, "INVALID": 1}
EXAMPLES = """examples:
  ./dev pipeline --minutes 10                        as many kills as fit into ten minutes
  ./dev pipeline --kills 300 --minutes 120 --seed 7  300 kills, drawn by seed 7; too little if they take longer
  ./dev pipeline --kills 20 --shape aggregate        the stream counts by key
  ./dev pipeline --matrix                            each target at each place of a batch, with a table at the end
  ./dev pipeline --matrix --cells driver/record,leader/markers/stop
  ./dev pipeline --kills 20 --kafka localhost:9092   into an Apache Kafka that runs there; its nodes are left alone
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help=f"how long kills come at most (default {MINUTES:g})"
    )
    parser.add_argument("--kills", type=int, default=0, help="how many there are to be (default: as many as fit)")
    parser.add_argument("--seed", type=int, default=1, help="decides what is struck, and when (default 1)")
    parser.add_argument(
        "--shape", choices=[one.value for one in Shape], help="of the stream (default: map if the seed is odd)"
    )
    parser.add_argument("--rate", type=float, default=RATE, help=f"source records a second (default {RATE:g})")
    parser.add_argument(
        "--matrix", action="store_true", help="each target at each place of a batch, in place of drawn kills"
    )
    parser.add_argument(
        "--cells", type=_names, default=(), metavar="CELL,...", help="of the matrix, only those that begin so"
    )
    parser.add_argument("--kafka", default="", metavar="SERVERS", help="an Apache Kafka in place of nodes of ours")
    parser.add_argument("--report", type=Path, default=DEFAULT_REPORT, metavar="DIR", help="folder of the report")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _refusal(options: argparse.Namespace) -> str:
    """Why these options do not go together; empty if they do."""
    if not options.matrix:
        return "--cells names cells of the --matrix" if options.cells else ""
    if options.kafka:
        return "the --matrix holds nodes of ours at places, which an Apache Kafka does not let"
    try:
        chosen(options.cells)
    except ValueError as error:
        return f"--cells: {error}"
    return ""


def shape_of(options: argparse.Namespace) -> Shape:
    if options.shape:
        return Shape(options.shape)
    return Shape.MAP if options.seed % 2 else Shape.AGGREGATE


def pipeline(options: argparse.Namespace) -> int:
    """The exit code."""
    from quorumlog.spark.session.java import NoJava
    from quorumlog.testing.layout import LayoutError
    from quorumlog.testing.nodes import NodeEnded
    from quorumlog.testing.ports import NoFreePorts
    from quorumlog.testing.waiting import TimedOut

    if refusal := _refusal(options):
        print(refusal, file=sys.stderr)
        return COULD_NOT_RUN
    try:
        import pyspark  # noqa: F401  # the test extra brings it
    except ImportError:
        print("jepsen pipeline needs Spark: pip install 'quorumlog[test]'", file=sys.stderr)
        return COULD_NOT_RUN
    interrupt.listen()
    try:
        return _play(options) if options.matrix else _carry_out(options)
    except (LayoutError, NodeEnded, NoFreePorts, NoJava, TimedOut) as error:
        print(f"the run could not be carried out: {error}", file=sys.stderr)
        return COULD_NOT_RUN
    except KeyboardInterrupt:
        print("interrupted before there was anything to judge", file=sys.stderr)
        return COULD_NOT_RUN


def _carry_out(options: argparse.Namespace) -> int:
    from jepsen.pipeline.report import REPORT
    from jepsen.pipeline.run import Options, carry_out

    wanted = Options(
        minutes=options.minutes,
        kills=options.kills,
        seed=options.seed,
        shape=shape_of(options),
        per_second=options.rate,
        kafka=options.kafka,
    )
    outcome = carry_out(wanted, options.report, lambda text: print(text, flush=True))
    for finding in outcome.findings[:20]:
        print(f"  {finding}")
    for name, count in outcome.counts.items():
        print(f"  {count:>10,} {name}")
    for line in (*outcome.by_target, *(f"{one}{'' if one.is_met else ': TOO LITTLE'}" for one in outcome.minimums)):
        print(f"  {line}")
    lost, twice, torn = (outcome.number.get(f"pipeline-{name}", 0) for name in ("lost", "twice", "torn"))
    print(
        f"seed {wanted.seed}, {wanted.shape.value}: {outcome.verdict}   {len(outcome.strikes)} kills, lost {lost}, "
        f"twice {twice}, torn {torn}, {outcome.took_s:.0f} s"
    )
    print(f"report: {options.report / REPORT}")
    return EXIT_CODES.get(outcome.verdict, COULD_NOT_RUN)


def _play(options: argparse.Namespace) -> int:
    from jepsen.pipeline.matrix import play
    from jepsen.pipeline.report import REPORT

    outcome = play(chosen(options.cells), options.seed, options.report, lambda text: print(text, flush=True))
    for line in (*map(str, outcome.findings[:20]), *outcome.table()):
        print(f"  {line}")
    print(
        f"matrix: {outcome.verdict}   {outcome.reached} of {len(outcome.wanted)} cells reached, {outcome.took_s:.0f} s"
    )
    print(f"report: {options.report / REPORT}")
    return EXIT_CODES.get(outcome.verdict, COULD_NOT_RUN)
