"""`python -m jepsen transactions`. Exit code 0: VALID; 1: an anomaly; 2: not carried out, or exercised too little."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

COUNT, CLIENTS, STRIKE_EVERY = 10_000, 128, 1_000
DEFAULT_REPORT = Path("out/transactions")
COULD_NOT_RUN = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--count", type=int, default=COUNT, help=f"transactions that are committed or aborted (default {COUNT:,})"
    )
    parser.add_argument("--clients", type=int, default=CLIENTS, help=f"transactional ids (default {CLIENTS})")
    parser.add_argument("--seed", type=int, default=1, help="decides what is struck, and what clients do (default 1)")
    parser.add_argument(
        "--every", type=int, default=STRIKE_EVERY, metavar="N",
        help=f"transactions between two faults of nodes (default {STRIKE_EVERY:,})",
    )  # fmt: skip
    parser.add_argument("--report", type=Path, default=DEFAULT_REPORT, metavar="DIR", help="folder of the report")


def transactions(options: argparse.Namespace) -> int:
    """The exit code."""
    from jepsen.live.transactions.run import REPORT, Options, carry_out
    from quorumlog.testing.layout import LayoutError
    from quorumlog.testing.nodes import NodeEnded
    from quorumlog.testing.ports import NoFreePorts
    from quorumlog.testing.waiting import TimedOut

    chosen = Options(count=options.count, clients=options.clients, seed=options.seed, every=options.every)
    try:
        outcome = carry_out(chosen, options.report, lambda text: print(text, flush=True))
    except (LayoutError, NodeEnded, NoFreePorts, TimedOut, TimeoutError, RuntimeError) as error:
        print(f"the run could not be carried out: {error!r}", file=sys.stderr)
        return COULD_NOT_RUN
    for finding in outcome.findings[:20]:
        print(f"  {finding}")
    for name, count in outcome.counts.items():
        print(f"  {count:>10,} {name}")
    for line in (*outcome.by_target, *(f"{one}{'' if one.is_met else ': TOO LITTLE'}" for one in outcome.minimums)):
        print(f"  {line}")
    print(f"seed {chosen.seed}: {outcome.verdict}   {outcome.ended:,} transactions, {len(outcome.strikes)} faults, "
          f"{outcome.anomalies} anomalies, {outcome.took_s:.0f} s, {outcome.rate:.0f} transactions/s")  # fmt: skip
    print(f"report: {options.report / REPORT}")
    return {"VALID": 0, "INVALID": 1}.get(outcome.verdict, COULD_NOT_RUN)
