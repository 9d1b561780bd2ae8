"""What is to be done with a future log: while it is filled, and where a start finds it. Pure.

While it is filled: how a future log becomes equal to its source: the next step, from both logs' spans and epochs.

A future log copies from its source as a follower does from its leader, by the one fetch rule
(quorumlog_storage/rules/fetch_rule.py, KIP-101 and KIP-279). So a source that was truncated by a leader change, or lost
a part that was not synced, cuts its copy where the two parted, also after a restart.

- What the future log holds before the source's start was deleted there. Where it ends at or before that start, nothing
  of it is needed: it restarts at the source's start.
- A source that starts before its copy was itself copied anew. A log never starts earlier than before: start over.

What a start makes of a future log that it finds (`fate_of`):

| the log itself is | mark | the mark's source directory | some directory is offline | the future log |
|---|---|---|---|---|
| found | any | any | any | goes on being filled: the source wins |
| not found | yes | online | any | is promoted: its source has left after it was complete |
| not found | no, or yes | not online | yes | waits, and the replica is offline: its source may be there |
| not found | no | - | no | is set aside: nobody knows what it lacks |
| not found | yes | not one of ours any more | no | likewise |

Kafka promotes a future log that has no current one if the controller's assignment names its directory (KAFKA-16082).
The assignment is committed before the last records are copied, so it cannot say whether any are missing.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import NamedTuple

from quorumlog.ids import Offset, Uuid
from quorumlog_storage.directory.mark import PromotionMark
from quorumlog_storage.log.log import Log
from quorumlog_storage.rules.epochs import LeaderEpochCache
from quorumlog_storage.rules.fetch_rule import Diverging, Records, fetch_answer, truncation_point


class Fate(Enum):
    CONTINUE = "continue"
    PROMOTE = "promote"
    WAIT = "wait"
    SET_ASIDE = "set aside"


def fate_of(*, current_is_found: bool, mark: PromotionMark | None, online: Collection[Uuid], any_offline: bool) -> Fate:
    """online: ids of the directories that were listed. any_offline: another one of `log.dirs` was not."""
    if current_is_found:
        return Fate.CONTINUE
    if mark is not None and mark.source in online:
        return Fate.PROMOTE
    return Fate.WAIT if any_offline else Fate.SET_ASIDE


class Span(NamedTuple):
    """Of one log. end: exclusive."""

    start: Offset
    end: Offset
    epochs: LeaderEpochCache


class StartOver(NamedTuple):
    """Nothing of the future log is of use: delete it, and make another one that starts at `offset`."""

    offset: Offset


class Restart(NamedTuple):
    """Remove all records and go on at `offset`, which is not before the future log's start."""

    offset: Offset


class Cut(NamedTuple):
    """Remove the records at and after `offset`."""

    offset: Offset


class RaiseStart(NamedTuple):
    """Delete the records before `offset`."""

    offset: Offset


class Read(NamedTuple):
    """Append what the source holds from `offset` on."""

    offset: Offset


class CaughtUp(NamedTuple):
    """Both hold the same records."""


Step = StartOver | Restart | Cut | RaiseStart | Read | CaughtUp


def span_of(log: Log) -> Span:
    """On any thread. The epochs are taken first: records of a later view may have later ones, never the reverse."""
    epochs = LeaderEpochCache(log.epochs.entries)
    view = log.view
    return Span(view.start_offset, view.end_offset, epochs)


def next_step(source: Span, future: Span) -> Step:
    """What the future log needs next."""
    if future.start > source.start:
        return StartOver(source.start)
    if future.end < source.start or (future.start < future.end == source.start):
        return Restart(source.start)
    answer = fetch_answer(
        log_start=source.start,
        log_end=source.end,
        epochs=source.epochs,
        fetch_offset=future.end,
        last_fetched_epoch=future.epochs.last_epoch,
    )
    if isinstance(answer, Diverging):
        point = truncation_point(future.epochs, future.end, answer)
        return Cut(point) if source.start < point < future.end else Restart(source.start)
    if not isinstance(answer, Records):
        return Restart(source.start)
    if future.start < source.start:
        return RaiseStart(source.start)
    return Read(future.end) if future.end < source.end else CaughtUp()
