"""The options of the command line that cut a plan, for a replay."""

from __future__ import annotations

import argparse

from jepsen.sim.quorum.plan import Cuts


def add_cuts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--blows", type=_numbers, help="profile quorum: only these strikes, e.g. 3,7; or none")
    parser.add_argument("--operations", type=int, help="profile quorum: at most so many operations of clients")
    parser.add_argument("--voters", type=int, choices=range(1, 6), help="profile quorum: so many voters")
    parser.add_argument("--brokers", type=int, choices=range(4), help="profile quorum: so many brokers")


def cuts_of(options: argparse.Namespace) -> Cuts:
    return Cuts(blows=options.blows, operations=options.operations, voters=options.voters, brokers=options.brokers)


def _numbers(text: str) -> tuple[int, ...]:
    """Raises ValueError."""
    return () if text == "none" else tuple(int(number) for number in text.split(","))
