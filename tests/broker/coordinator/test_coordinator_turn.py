"""The turn of a coordinator's core, against a model: the names of all records that are not committed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quorumlog.records.coordinator import GROUP_TYPES
from quorumlog_broker.coordinator.group_turn import Turn

NAMES = ("a", "b", "c")


@given(st.lists(st.sampled_from(NAMES) | st.integers(0, 5), max_size=40))
def test_a_name_is_pending_until_its_last_record_is_committed(steps: list[str | int]) -> None:
    """A name: a record of it is written. A number: the high watermark rises by it, as far as there are records."""
    turn = Turn(GROUP_TYPES, 0, lambda _offset, _writes, _said: None)
    written: list[str] = []
    read: list[str] = []
    for step in steps:
        if isinstance(step, str):
            turn.append(step, b"k", b"v")
            written.append(step)
            turn.answer_read(step, len(read), step)
            read.append(step)
        else:
            turn.committed(min(turn.high_watermark + step, turn.next_offset))
        for name in NAMES:
            assert turn.is_pending(name) == (name in written[turn.high_watermark :])
    turn.committed(turn.next_offset)
    assert [answer.response for answer in turn.answers] == read
    assert not any(turn.is_pending(name) for name in NAMES)
