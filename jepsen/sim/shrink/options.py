"""The options of the command line that cut a run, and the command that replays one."""

from __future__ import annotations

import argparse

from jepsen.sim.cuts import Cuts
from jepsen.sim.job import QUORUM
from jepsen.sim.profiles.plan import EXTRAS


def add_cuts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--blows", type=_numbers, help="only these strikes, e.g. 3,7; or none")
    parser.add_argument(
        "--extras",
        type=_extras,
        help=f"only these of what the profile adds to plain clients, or none; not for quorum: {', '.join(EXTRAS)}",
    )
    parser.add_argument("--operations", type=int, help="profile quorum: at most so many operations of clients")
    parser.add_argument("--voters", type=int, choices=range(1, 6), help="profile quorum: so many voters")
    parser.add_argument("--brokers", type=int, choices=range(4), help="profile quorum: so many brokers")


def cuts_of(options: argparse.Namespace) -> Cuts:
    return Cuts(
        blows=options.blows,
        extras=options.extras,
        operations=options.operations,
        voters=options.voters,
        brokers=options.brokers,
    )


def unfit(cuts: Cuts, profile: str) -> str:
    """Why this profile cannot be cut so; "" if it can."""
    if profile == QUORUM:
        return "" if cuts.extras is None else "the profile quorum has no --extras"
    is_of_quorum = any(value is not None for value in (cuts.operations, cuts.voters, cuts.brokers))
    return "--operations, --voters and --brokers are for --profile quorum" if is_of_quorum else ""


def replay(seed: int, profile: str, seconds: int, cuts: str = "") -> str:
    """cuts: as `Cuts.options`."""
    of_profile = "" if profile == "swarm" else f" --profile {profile}"
    return f"./dev sim --seed {seed}{of_profile} --seconds {seconds}{cuts}"


def _numbers(text: str) -> tuple[int, ...]:
    """Raises ValueError."""
    return () if text == "none" else tuple(int(number) for number in text.split(","))


def _extras(text: str) -> tuple[str, ...]:
    """Raises ValueError."""
    names = () if text == "none" else tuple(text.split(","))
    if not set(names) <= set(EXTRAS):
        raise ValueError(text)
    return names
