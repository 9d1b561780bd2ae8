"""Reads the producer state, and what transactions have become, back from the batches of a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quorumlog.ids import Offset
from quorumlog.records.batch import NO_PRODUCER
from quorumlog_storage.indexes.transaction_index import AbortedTransaction
from quorumlog_storage.log_file import CorruptBatch
from quorumlog_storage.producer_state import ProducerStates
from quorumlog_storage.producers.marker import marker_in
from quorumlog_storage.producers.transactions import EndedTransaction
from quorumlog_storage.segment import Segment


def replay(segment: Segment, start: Offset, states: ProducerStates) -> list[EndedTransaction]:
    """Note every batch of a segment from `start` on. The transactions that ended there.

    Where a batch is unreadable, the rest of the segment is left out: reading the log reports it.
    """
    ended: list[EndedTransaction] = []
    try:
        for position, header in segment.log.walk(segment.find(start, segment.size), segment.size):
            marker = None
            if header.is_control and header.producer_id != NO_PRODUCER:
                marker = marker_in(segment.log.read(position, header.size))
            end = states.note(header, marker)
            if end is not None:
                ended.append(end)
    except CorruptBatch:
        pass
    return ended


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
