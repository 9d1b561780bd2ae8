"""When the node excludes its image from the garbage collector's full collections."""

from __future__ import annotations

import gc

from quorumlog_server.process.freezing import MIN_CHANGES, SETTLE_TICKS, Freezer, freeze_survivors


class Growth:
    """An image that the test lets grow; counts the freezes."""

    def __init__(self) -> None:
        self.changes = 0
        self.freezes = 0
        self.freezer = Freezer(lambda: self.changes, self._freeze)

    def tick(self, changes: int = 0, times: int = 1) -> int:
        """Returns how many freezes these ticks made."""
        before = self.freezes
        for _ in range(times):
            self.changes += changes
            self.freezer.tick()
        return self.freezes - before

    def _freeze(self) -> None:
        self.freezes += 1


def test_an_image_that_does_not_grow_is_never_frozen() -> None:
    assert Growth().tick(times=10 * SETTLE_TICKS) == 0


def test_a_thousand_changes_freeze_the_image_however_they_come() -> None:
    growth = Growth()
    assert growth.tick(MIN_CHANGES - 1) == 0 and growth.tick(1) == 1
    assert growth.tick(MIN_CHANGES // 10, times=10) == 1
    assert growth.tick(MIN_CHANGES, times=5) == 5


def test_a_series_of_freezes_ends_with_one_for_what_was_made_of_the_image() -> None:
    growth = Growth()
    growth.tick(MIN_CHANGES)
    assert growth.tick(times=SETTLE_TICKS - 1) == 0 and growth.tick() == 1
    assert growth.tick(times=10 * SETTLE_TICKS) == 0, "once is enough"
    growth.tick(MIN_CHANGES)
    growth.tick(times=SETTLE_TICKS // 2)
    growth.tick(MIN_CHANGES)
    assert growth.tick(times=SETTLE_TICKS - 1) == 0, "the series went on"


def test_what_is_frozen_is_freed_by_its_references_alone() -> None:
    freed: list[str] = []

    class Entry:
        def __del__(self) -> None:
            freed.append("entry")

    holder = [Entry()]
    before = gc.get_freeze_count()
    freeze_survivors()
    try:
        assert gc.get_freeze_count() > before
        holder.clear()
        assert freed == ["entry"]
    finally:
        gc.unfreeze()
