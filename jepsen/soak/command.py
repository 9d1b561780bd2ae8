"""`python -m jepsen soak`: its options, its exit codes, and what it prints.

Exit code 0: everything held and stayed bounded; 1: not; 2: bad usage, or too little happened to prove anything.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from jepsen.soak.cluster.run import run_day
from jepsen.soak.outcome import Outcome
from jepsen.soak.page import page
from jepsen.soak.processes.run import run_minutes
from jepsen.soak.year.run import run_year

DEFAULT_REPORT = Path("out/soak")
EXIT_TOO_LITTLE = 2
DAYS_DEFAULT, HOURS_DEFAULT = 365.0, 24.0
LENGTH_MAX = 3_650.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--virtual-days",
        type=_length,
        metavar="DAYS",
        help=f"log directories on virtual time, without quorum and network (default {DAYS_DEFAULT:g})",
    )
    length.add_argument(
        "--virtual-hours", type=_length, metavar="HOURS", help=f"of --cluster (default {HOURS_DEFAULT:g})"
    )
    length.add_argument("--minutes", type=_length, metavar="MINUTES", help="real processes with short settings")
    parser.add_argument("--cluster", action="store_true", help="a whole simulated cluster on virtual time")
    parser.add_argument("--seed", type=int, default=1, help="decides everything that happens (default 1)")
    parser.add_argument("--report", type=Path, default=DEFAULT_REPORT, metavar="DIR", help="folder of the curves")


def soak(options: argparse.Namespace) -> int:
    """The exit code."""
    if options.cluster and (options.virtual_days is not None or options.minutes is not None):
        print("--cluster soaks for --virtual-hours, not for --virtual-days or --minutes")
        return EXIT_TOO_LITTLE
    if options.virtual_hours is not None and not options.cluster:
        print("--virtual-hours is the length of --cluster; log directories soak for --virtual-days")
        return EXIT_TOO_LITTLE
    if options.cluster:
        outcome = run_day(options.seed, options.virtual_hours or HOURS_DEFAULT, _say)
        return report(outcome, " of a simulated cluster", options.report / "cluster.html")
    if options.minutes is not None:
        outcome = run_minutes(options.seed, options.minutes, _say)
        return report(outcome, "", options.report / "processes.html")
    outcome = run_year(options.seed, options.virtual_days or DAYS_DEFAULT, _say)
    return report(outcome, " of log directories", options.report / "year.html")


def report(outcome: Outcome, what: str, file: Path, say: Callable[[str], None] = print) -> int:
    """Write the curves, tell how it went. The exit code."""
    file.parent.mkdir(parents=True, exist_ok=True)
    title = f"quorumlog, {outcome.length}{what}, seed {outcome.seed}"
    file.write_text(page(title, outcome.verdict, outcome.findings, outcome.counts, outcome.gauges))
    for line in outcome.lines:
        say(line)
    say(f"curves: {file}")
    return 1 if outcome.findings else EXIT_TOO_LITTLE if outcome.lacking else 0


def _say(line: str) -> None:
    print(line, flush=True)


def _length(text: str) -> float:
    try:
        length = float(text)
    except ValueError:
        length = 0.0
    if not 0 < length <= LENGTH_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0 and at most {LENGTH_MAX:g}")
    return length
