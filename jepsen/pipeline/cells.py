"""The matrix of histories: who dies, where the batch is then, what else goes wrong with it, and whether it is a replay.

A cell is named TARGET/PLACE/WAY, with `/replay` where the batch was decided before and Spark runs it again because its
file in `commits` was deleted. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from jepsen.pipeline.places import BOTH, IN_TASKS, RAISES_AFTER, RAISES_BEFORE, STOP, Place
from jepsen.pipeline.targets import Target

KILLED = (Target.DRIVER, Target.EXECUTOR, Target.LEADER, Target.COORDINATOR, Target.CONTROLLER)


class Way(Enum):
    RAISES = "raises"  # the commit of the batch raises
    STOP = "stop"  # query.stop(), before the kill
    BOTH = "both"  # commit and abort of the batch run at once


IMPOSSIBLE: dict[Place, str] = {  # of replays
    Place.FIRST_SEND: "a task of a decided batch gets no attempt, counts its rows and sends none",
    Place.RECORD: "a batch that is decided gets no second record",
    Place.MARKERS: "a batch that is decided has its markers, or its first decision sends them",
}


class Cell(NamedTuple):
    target: Target
    place: Place
    way: Way
    replay: bool = False

    def __str__(self) -> str:
        words = [self.target.value, self.place.value, self.way.value, *(["replay"] if self.replay else [])]
        return "/".join(words)

    @property
    def impossible(self) -> str:
        """Why nothing can come to it; empty: it can."""
        return IMPOSSIBLE.get(self.place, "") if self.replay else ""

    @property
    def order(self) -> str:
        """What is told to the driver's processes. Before the decision the commit raises without one."""
        if self.way is Way.STOP:
            return STOP
        if self.way is Way.BOTH:
            return BOTH
        return RAISES_BEFORE if self.place in (*IN_TASKS, Place.COMMIT) else RAISES_AFTER


def cells() -> list[Cell]:
    """All, also the impossible ones. Those of one target stand together."""
    return [
        Cell(target, place, way, replay)
        for target in KILLED
        for replay in (False, True)
        for place in Place
        for way in Way
    ]


def chosen(names: Sequence[str]) -> list[Cell]:
    """Possible cells whose names begin with one of these, word by word; all, if there is none. Raises ValueError for a
    name that begins no cell's, or only impossible ones'."""
    possible = [cell for cell in cells() if not cell.impossible]
    if not names:
        return possible
    for name in names:
        if not any(_begins(cell, name) for cell in possible):
            why = [cell.impossible for cell in cells() if _begins(cell, name)]
            raise ValueError(f"{name}: " + (why[0] if why else f"no such cell; one is {possible[0]}"))
    return [cell for cell in possible if any(_begins(cell, name) for name in names)]


def _begins(cell: Cell, name: str) -> bool:
    words = name.split("/")
    whole = str(cell).split("/")
    return whole[: len(words)] == words and (len(words) < 3 or len(words) == len(whole))
