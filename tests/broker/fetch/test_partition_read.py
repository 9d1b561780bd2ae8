"""The short cut for checking a position agrees with the fetch rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.ids import Epoch, Offset
from quorumlog.messages.fetch import FetchPartition
from quorumlog_broker.fetch.partition_read import position_fault
from quorumlog_storage.log.log import Log
from quorumlog_storage.rules.epochs import EpochStart, LeaderEpochCache
from quorumlog_storage.rules.fetch_rule import Records, fetch_answer
from tests.parts import few


@dataclass
class Positions:
    """What the check of a position reads of a log."""

    start_offset: Offset
    end_offset: Offset
    epochs: LeaderEpochCache

    @property
    def last_epoch(self) -> Epoch:
        return self.epochs.last_epoch


@st.composite
def logs(draw: st.DrawFn) -> Positions:
    starts = draw(st.lists(st.integers(0, 12), max_size=4, unique=True).map(sorted))
    numbers = draw(st.lists(st.integers(0, 6), min_size=len(starts), max_size=len(starts), unique=True).map(sorted))
    epochs = LeaderEpochCache(EpochStart(*entry) for entry in zip(numbers, starts, strict=True))
    end_offset = draw(st.integers(max(starts, default=0), 14))
    return Positions(draw(st.integers(0, end_offset)), end_offset, epochs)


@settings(max_examples=few(300))
@given(logs(), st.integers(0, 15), st.integers(-1, 7))
def test_a_position_has_the_fault_that_the_fetch_rule_finds(log: Positions, offset: Offset, epoch: Epoch) -> None:
    wanted = FetchPartition(index=0, fetch_offset=offset, last_fetched_epoch=epoch, max_bytes=1)
    ruled = fetch_answer(
        log_start=log.start_offset,
        log_end=log.end_offset,
        epochs=log.epochs,
        fetch_offset=offset,
        last_fetched_epoch=epoch,
    )
    assert position_fault(cast(Log, log), wanted) == (None if isinstance(ruled, Records) else ruled)
