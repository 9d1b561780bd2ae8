"""`python -m jepsen controller-loop`. Exit code 0: VALID; 1: a promise was broken; 2: it could not be carried out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

DEFAULT_REPORT = Path("out/controller-loop")
COULD_NOT_RUN = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=int, default=100, help="faults, kill -9 and SIGSTOP in turn (default 100)")
    parser.add_argument("--report", type=Path, default=DEFAULT_REPORT, metavar="DIR", help="folder of the report")


def controller_loop(options: argparse.Namespace) -> int:
    """The exit code."""
    from jepsen.live.controllers.run import REPORT, carry_out
    from quorumlog.testing.layout import LayoutError
    from quorumlog.testing.nodes import NodeEnded
    from quorumlog.testing.ports import NoFreePorts
    from quorumlog.testing.waiting import TimedOut

    try:
        outcome = carry_out(options.count, options.report, lambda text: print(text, flush=True))
    except (LayoutError, NodeEnded, NoFreePorts, TimedOut, TimeoutError, RuntimeError) as error:
        print(f"the run could not be carried out: {error!r}", file=sys.stderr)
        return COULD_NOT_RUN
    for finding in outcome.findings[:20]:
        print(f"  {finding}")
    verdict = "VALID" if outcome.valid else "INVALID"
    print(f"{verdict}   {len(outcome.strikes)} faults, {outcome.acknowledged:,} changes acknowledged, "
          f"{outcome.unknown} of unknown outcome, {outcome.took_s:.0f} s")  # fmt: skip
    print(f"report: {options.report / REPORT}")
    return 0 if outcome.valid else 1
