"""`python -m jepsen drill`: its options, its exit codes, and what it prints.

Exit code 0: each fault was named in time by each watcher, nothing else was, and the healthy minutes were silent; 1:
not; 2: it could not be carried out.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from jepsen.drill.faults import EIGHT, Fault
from jepsen.drill.healthy import Health, healthy
from jepsen.drill.load import Load
from jepsen.drill.more_faults import BY_NAME, MORE
from jepsen.drill.report import failures, report
from jepsen.drill.run import Drill, Outcome, with_drill
from jepsen.drill.sights import WATCHERS
from jepsen.drill.watchers import NoPrometheus
from jepsen.drill.world import DrillCluster
from jepsen.live import interrupt
from quorumlog.testing.layout import LayoutError
from quorumlog.testing.nodes import NodeEnded
from quorumlog.testing.waiting import TimedOut

COULD_NOT_RUN = 2
MINUTES = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--faults", type=_faults, default=None, metavar="NAME,...",
        help=f"of {', '.join(BY_NAME)} (default: the first {len(EIGHT)}, and one of the others by the seed)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, help="draws the order, and the fault beside the eight")
    parser.add_argument("--healthy", action="store_true", help="no fault: healthy minutes, which must raise nothing")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of --healthy (default 30)")
    parser.add_argument(
        "--without", type=_watchers, default=(), metavar="NAME,...", help=f"of {', '.join(WATCHERS)}: not these"
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the table there, too")


def _faults(text: str) -> tuple[Fault, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in BY_NAME]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(BY_NAME)}")
    if not names:
        raise argparse.ArgumentTypeError("name at least one fault")
    return tuple(BY_NAME[name] for name in dict.fromkeys(names))


def _watchers(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if unknown := [name for name in names if name not in WATCHERS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(WATCHERS)}")
    if set(names) == set(WATCHERS):
        raise argparse.ArgumentTypeError("somebody has to watch")
    return names


def drawn(seed: int) -> tuple[Fault, ...]:
    """The eight in a drawn order, and one more."""
    rng = random.Random(seed)
    faults = [*EIGHT, rng.choice(MORE)]
    rng.shuffle(faults)
    return tuple(faults)


def drill(options: argparse.Namespace) -> int:
    """The exit code."""
    watched = tuple(one for one in WATCHERS if one not in options.without)
    outcomes: list[Outcome] = []
    health: list[Health] = []
    done: Counter[str] = Counter()

    def work(made: Drill, cluster: DrillCluster, load: Load, now_s: Callable[[], float]) -> None:
        if options.healthy:
            health.append(healthy(made, cluster, load, options.minutes, now_s))
        else:
            outcomes.extend(made.strike_all(options.faults or drawn(options.seed), now_s))
        done.update(load.done)

    interrupt.listen()
    began_load = os.getloadavg()[0]
    try:
        with tempfile.TemporaryDirectory(prefix="quorumlog-drill-") as folder:
            with_drill(Path(folder), watched, lambda text: print(text, flush=True), work)
    except (NoPrometheus, TimedOut, LayoutError, NodeEnded) as error:
        print(f"the drill could not be carried out: {error}", file=sys.stderr)
        return COULD_NOT_RUN
    except KeyboardInterrupt:
        print("the drill was interrupted", file=sys.stderr)
        return COULD_NOT_RUN
    busy = f"{began_load:.1f} before it, {os.getloadavg()[0]:.1f} at its end, on {os.cpu_count()} processors"
    text = report(options.seed, watched, outcomes, health[0] if health else None, done, busy)
    print(text, end="")
    if options.report is not None:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(text)
    return 1 if failures(outcomes, health[0] if health else None) else 0
