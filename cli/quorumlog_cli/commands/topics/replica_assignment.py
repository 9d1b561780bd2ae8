"""The option --replica-assignment of `quorumlog topic`: which brokers hold each partition, as kafka-topics takes it."""

from __future__ import annotations

from typing import Annotated

import typer

from quorumlog_cli.terminal.errors import CliError, Exit

AssignmentOption = Annotated[
    str | None,
    typer.Option(
        "--replica-assignment",
        metavar="B:B,B:B,…",
        help="The brokers of each new partition, the preferred leader first: 1:2:3,2:3:1 is two partitions.",
    ),
]


def parse_assignment(text: str | None) -> tuple[tuple[int, ...], ...] | None:
    """Broker ids by partition; None: the controller places the replicas. Raises CliError.

    What only the controller knows (brokers that do not exist, numbers of replicas that differ) it says itself.
    """
    if text is None:
        return None
    partitions = tuple(tuple(_broker_id(text, word) for word in part.split(":")) for part in text.split(","))
    for index, brokers in enumerate(partitions):
        if len(set(brokers)) < len(brokers):
            raise _bad(text, f"partition {index} of it names a broker twice")
    return partitions


def _broker_id(text: str, word: str) -> int:
    if not (word.strip().isascii() and word.strip().isdigit()):
        raise _bad(text, f"{word!r} is not a broker id")
    return int(word)


def _bad(text: str, why: str) -> CliError:
    return CliError(Exit.USAGE, f"--replica-assignment {text!r}: {why}; expected e.g. 1:2:3,2:3:1 for two partitions")
