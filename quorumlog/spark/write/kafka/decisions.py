"""A group's decision, as the record of the topic holds it: key the group, value JSON. Pure.

Compaction keeps the last record of a group only, so it holds all that a later start needs.

Transactional ids of a group. Pure.

`quorumlog-spark-sink:<group>:<sequence>:<run>:<token>` is an attempt's, `quorumlog-spark-driver:<group>` the driver's.
A group's name is written so that it holds no ":", which ends the prefix: the ids of `a` are never those of `a-b`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from quorumlog.client.errors import QuorumlogError
from quorumlog.spark.write.sending.delivery import Written

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


VERSION = 1
MAX_SUPERSEDED = 64  # runs that a group remembers
MAX_GIVEN_UP = 64  # batches of a group; the oldest one is forgotten
NOTHING = -1  # sequence before the first batch


class BadDecision(QuorumlogError):
    """A record of the topic is none, or newer software wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A transaction that a decision commits. written: of one that is decided, at least one place."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    written: tuple[Written, ...]


class GivenUp(NamedTuple):
    """run: as `run_tag` says it."""

    run: str
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """superseded: runs that decide nothing more, the oldest first. totals: of the batch, by name. children: in the
    order in which they end; the first one decides for all. ended: nothing of it is open; children is empty then.
    before, before_totals: the decision that this one follows, for a batch whose transactions all abort. dropped:
    attempts of the next batch that an abort has given up, so that no decision names them. given_up: batches that their
    run has aborted, the oldest first: none of their tasks goes on."""

    kind: int
    location: str
    run: str
    superseded: tuple[str, ...] = ()
    sequence: int
    totals: Mapping[str, int]
    children: tuple[Child, ...] = ()
    ended: bool = False
    before: int = NOTHING
    before_totals: Mapping[str, int]
    dropped: tuple[str, ...] = ()
    given_up: tuple[GivenUp, ...] = ()

    def as_ended(self) -> Decision:
        return replace(self, ended=True, children=())

    def as_void(self) -> Decision:
        """What holds if all its transactions have aborted: the batch before is the last one. Which run is the current
        one stays."""
        return replace(self, sequence=self.before, totals=self.before_totals, ended=True, children=(), before=NOTHING)


def encode_decision(decision: Decision) -> bytes:
    fields = {
        "version": VERSION,
        "kind": decision.kind,
        "location": decision.location,
        "run": decision.run,
        "superseded": list(decision.superseded),
        "sequence": decision.sequence,
        "totals": dict(decision.totals),
        "children": [_child_fields(child) for child in decision.children],
        "ended": decision.ended,
        "before": decision.before,
        "before_totals": dict(decision.before_totals),
        "dropped": list(decision.dropped),
        "given_up": [[one.run, one.sequence] for one in decision.given_up],
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_decision(value: bytes) -> Decision:
    """Raises BadDecision."""
    try:
        fields = json.loads(value)
        version = _number(fields["version"])
        if version > VERSION:
            raise BadDecision(f"version {version} of a decision was written by newer software; upgrade this job")
        return Decision(
            kind=_number(fields["kind"]),
            location=_text(fields["location"]),
            run=_text(fields["run"]),
            superseded=tuple([_text(one) for one in fields["superseded"]]),
            sequence=_number(fields["sequence"]),
            totals=_totals(fields["totals"]),
            children=tuple([_child(one) for one in fields["children"]]),
            ended=_flag(fields["ended"]),
            before=_number(fields["before"]),
            before_totals=_totals(fields["before_totals"]),
            dropped=tuple([_text(one) for one in fields["dropped"]]),
            given_up=tuple([GivenUp(_text(run), _number(number)) for run, number in fields.get("given_up", ())]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadDecision(f"a record is no decision: {error!r}") from error


def _child_fields(child: Child) -> dict[str, Any]:
    return {
        "id": child.transactional_id,
        "producer": child.producer_id,
        "epoch": child.producer_epoch,
        "written": [[one.topic, one.partition, one.first, one.last] for one in child.written],
    }


def _child(fields: Any) -> Child:
    return Child(
        transactional_id=_text(fields["id"]),
        producer_id=_number(fields["producer"]),
        producer_epoch=_number(fields["epoch"]),
        written=tuple(
            [
                Written(topic=_text(topic), partition=_number(partition), first=_number(first), last=_number(last))
                for topic, partition, first, last in fields["written"]
            ]
        ),
    )


def _totals(fields: Any) -> dict[str, int]:
    return {_text(name): _number(value) for name, value in fields.items()}


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is not true or false")
    return value
