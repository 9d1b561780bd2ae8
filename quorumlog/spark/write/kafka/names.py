"""Transactional ids of a group. Pure.

`quorumlog-spark-sink:<group>:<sequence>:<run>:<token>` is an attempt's, `quorumlog-spark-driver:<group>` the driver's.
A group's name is written so that it holds no ":", which ends the prefix: the ids of `a` are never those of `a-b`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote, unquote

DELIMITER = ":"
ATTEMPTS = "quorumlog-spark-sink" + DELIMITER
DRIVERS = "quorumlog-spark-driver" + DELIMITER
RUN_CHARACTERS = 16  # of a run's hash: two runs of a group never have the same


class AttemptName(NamedTuple):
    """run: as `run_tag` says it."""

    group: str
    sequence: int
    run: str


def driver_id(group: str) -> str:
    return DRIVERS + _quoted(group)


def prefix_of(group: str) -> str:
    """Of the group's attempts, and of no other group's."""
    return ATTEMPTS + _quoted(group) + DELIMITER


def run_tag(run: str) -> str:
    return hashlib.sha256(run.encode()).hexdigest()[:RUN_CHARACTERS]


def attempt_id(group: str, sequence: int, run: str, token: bytes) -> str:
    return DELIMITER.join((prefix_of(group) + str(sequence), run_tag(run), token.hex()))


def read_attempt(transactional_id: str) -> AttemptName | None:
    """None: it is not an attempt's."""
    parts = transactional_id.split(DELIMITER)
    if len(parts) != 5 or parts[0] + DELIMITER != ATTEMPTS:
        return None
    _, group, sequence, run, _ = parts
    if not (sequence.isascii() and sequence.isdigit()):
        return None
    return AttemptName(unquote(group), int(sequence), run)


def to_fence(open_ids: Iterable[str], group: str, sequence: int, decided: Iterable[str]) -> list[str]:
    """Of these ids, attempts of the group up to this sequence that no decision names. It is decided and all its
    transactions have ended, so whatever else is open will never be decided, whoever began it."""
    named = frozenset(decided)
    prefix = prefix_of(group)
    return [
        one
        for one in open_ids
        if one.startswith(prefix) and (name := read_attempt(one)) and name.sequence <= sequence and one not in named
    ]


def to_drop(open_ids: Iterable[str], group: str, sequence: int, run: str) -> list[str]:
    """Of these ids, attempts of the group below this sequence, and this run's own ones at it. The sequence is not
    decided: another run's attempts of it may be in a decision that comes between."""
    prefix, tag = prefix_of(group), run_tag(run)
    return [
        one
        for one in open_ids
        if one.startswith(prefix)
        and (name := read_attempt(one))
        and (name.sequence < sequence or (name.sequence == sequence and name.run == tag))
    ]


def _quoted(group: str) -> str:
    return quote(group, safe="/")
