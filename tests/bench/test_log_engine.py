"""The log engine's bench: both sides move the same bytes, and a small run gives every row."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.log import log_engine
from bench.log.log_engine import BATCHES_PER_TURN, append, make_batch, read, recover, written_log
from tests.rules import rule


def test_both_sides_of_each_row_move_the_same_bytes(tmp_path: Path) -> None:
    batch = make_batch(1024)
    for number in (0, 1):
        pair = append(tmp_path, batch, 2, number, durable=False)
        assert pair.size == 2 * BATCHES_PER_TURN * len(batch)
        assert pair.ours_s > 0 and pair.bare_s > 0
    path = written_log(tmp_path, batch, 3)
    assert read(path).size == recover(path, 0).size == 3 * BATCHES_PER_TURN * len(batch)


@rule("storage 1.32")
def test_an_object_per_record_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = log_engine.allocated_in_a_turn(tmp_path, 1024)
    assert log_engine.allocated_in_a_turn(tmp_path, 100) <= few * log_engine.ALLOCATED_GOAL
    queued = log_engine._queued

    def with_objects(batch: bytes, end_offset: int) -> list[object]:
        made = list(queued(batch, end_offset))
        kept.extend(object() for batches in made for one in batches for _ in range(one.record_count))
        return made  # type: ignore[return-value]

    kept: list[object] = []
    monkeypatch.setattr(log_engine, "_queued", with_objects)
    assert log_engine.allocated_in_a_turn(tmp_path, 100) > few * log_engine.ALLOCATED_GOAL
