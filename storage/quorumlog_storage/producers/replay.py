"""Reads the producer state, and what transactions have become, back from the batches of a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from quorumlog.ids import Offset
from quorumlog.records.batch import NO_PRODUCER
from quorumlog_storage.producers.marker import marker_in
from quorumlog_storage.producers.producer_state import ProducerStates
from quorumlog_storage.producers.transactions import NEVER, EndedTransaction
from quorumlog_storage.segment.log_file import CorruptBatch
from quorumlog_storage.segment.segment import Segment
from quorumlog_storage.segment.transaction_index import AbortedTransaction


def follow(segment: Segment, start: Offset, end: Offset, states: ProducerStates) -> Iterator[EndedTransaction]:
    """Note every batch of a segment from `start` on that begins before `end`; the transactions that ended there.

    Raises CorruptBatch where a batch is unreadable, DiskError.
    """
    for position, header in segment.log.walk(segment.find(start, segment.size), segment.size):
        if header.base_offset >= end:
            return
        marker = None
        if header.is_control and header.producer_id != NO_PRODUCER:
            marker = marker_in(segment.log.read(position, header.size))
        ended = states.note(header, marker)
        if ended is not None:
            yield ended


def replay(segment: Segment, start: Offset, states: ProducerStates) -> list[EndedTransaction]:
    """`follow` to the end of a segment.

    Where a batch is unreadable, the rest of the segment is left out: reading the log reports it.
    """
    found: list[EndedTransaction] = []
    try:
        for ended in follow(segment, start, NEVER, states):
            found.append(ended)
    except CorruptBatch:
        pass
    return found


def replay_all(
    segments: Sequence[Segment], start: Offset, end_offset: Offset, states: ProducerStates
) -> list[EndedTransaction]:
    """`replay` of [start, end_offset), which are offsets at which a batch begins."""
    ended: list[EndedTransaction] = []
    for number, segment in enumerate(segments):
        if segment.base_offset >= end_offset:
            break
        is_last = number == len(segments) - 1
        if (end_offset if is_last else segments[number + 1].base_offset) > start:
            ended += replay(segment, start, states)
    return ended


def aborted(ended: Iterable[EndedTransaction]) -> list[AbortedTransaction]:
    return [AbortedTransaction(*end[:4]) for end in ended if not end.committed]
