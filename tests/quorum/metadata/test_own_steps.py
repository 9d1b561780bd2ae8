"""Steps that no delivery takes: one in each turn of the loop, and nothing is published before they are done."""

from __future__ import annotations

from collections.abc import Callable

from metadata_samples import uuid
from test_metadata_loader import metadata_batch

from quorumlog.messages.metadata_records import NoOpRecord, TopicRecord
from quorumlog.slices import Sliced
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.loader import MetadataLoader


class Turns:
    """The loop's next turns."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []
        self.steps: list[str] = []

    def turn(self) -> None:
        due, self.due = self.due, []
        for call in due:
            call()

    def listener(self, name: str, count: int) -> Callable[[Delta, Image], Sliced[None]]:
        def apply(_delta: Delta, image: Image) -> Sliced[None]:
            for number in range(count):
                self.steps.append(f"{name}{image.offset}.{number}")
                yield
            self.steps.append(f"{name}{image.offset} done")

        return apply


def loaded(turns: Turns) -> MetadataLoader:
    loader = MetadataLoader(later=lambda call: turns.due.append(call))
    loader.on_high_watermark(0)
    for _ in loader.on_committed(metadata_batch(0, [TopicRecord(name="t", topic_id=uuid(1))]), 1):
        pass
    return loader


def test_a_late_listener_takes_one_step_in_each_turn() -> None:
    turns = Turns()
    loader = loaded(turns)
    loader.subscribe(turns.listener("a", 2))
    assert turns.steps == ["a1.0"]
    turns.turn()
    assert turns.steps == ["a1.0", "a1.1"]
    turns.turn()
    assert turns.steps == ["a1.0", "a1.1", "a1 done"] and not turns.due


def test_a_late_listener_is_given_nothing_else_before_its_last_step() -> None:
    turns = Turns()
    loader = loaded(turns)
    loader.subscribe(turns.listener("a", 3))
    steps = loader.on_committed(metadata_batch(1, [NoOpRecord()]), 2)
    next(steps)
    assert loader.image.offset == 1 and "a2.0" not in turns.steps
    turns.turn()  # both the driver and the loop take steps
    for _ in steps:
        pass
    turns.turn()
    assert turns.steps == ["a1.0", "a1.1", "a1.2", "a1 done", "a2.0", "a2.1", "a2.2", "a2 done"]


def test_the_first_image_that_a_high_watermark_makes_public_is_applied_in_turns() -> None:
    turns = Turns()
    loader = MetadataLoader(later=lambda call: turns.due.append(call))
    loader.subscribe(turns.listener("a", 2))
    loader.subscribe(turns.listener("b", 1))
    for _ in loader.on_committed(metadata_batch(0, [NoOpRecord()]), 1):
        pass
    loader.on_high_watermark(1)
    assert loader.image.offset == 1 and turns.steps == ["a1.0"]
    for _ in range(3):
        turns.turn()
    assert turns.steps == ["a1.0", "a1.1", "a1 done", "b1.0", "b1 done"] and not turns.due


def test_who_waits_for_an_offset_hears_of_it_when_the_last_listener_has_applied_it() -> None:
    turns = Turns()
    loader = loaded(turns)
    loader.subscribe(turns.listener("a", 1))
    waiting = loader.wait_for_offset(1, 1_000)
    assert not _has_ended(waiting)
    turns.turn()
    assert _has_ended(loader.wait_for_offset(1, 1_000))


def _has_ended(waiting: object) -> bool:
    """Whether the answer is there at once."""
    try:
        waiting.send(None)  # type: ignore[attr-defined]
    except StopIteration as end:
        return bool(end.value)
    except RuntimeError:  # it would wait, and there is no loop
        return False
    return False
