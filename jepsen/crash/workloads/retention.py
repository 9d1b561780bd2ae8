"""The workloads of retention: a pass over a log, the freeing of what left, and a start that finds some of it."""

from __future__ import annotations

import random
from collections.abc import Callable

from jepsen.crash.world import World
from quorumlog.ids import Offset
from quorumlog_storage.segment.retired import Freeing

STEP_BYTES = 100  # less than a segment


def expire_below(topic: str, neighbour: str, offset: Offset) -> Callable[[World], None]:
    """Retention, the freeing of what it retired, appends in between, and a checkpoint that removes the noted start."""

    def change(world: World) -> None:
        end = world.log(topic).end_offset
        world.expire(topic, offset)
        world.append({topic: 1})
        world.free_retired(STEP_BYTES)
        world.checkpoint({topic: end, neighbour: 2})
        world.append({topic: 1})

    return change


def free_what_was_cut(topic: str, offset: Offset) -> Callable[[World], None]:
    """A truncation, new records under the old names, and the old files freed after that."""

    def change(world: World) -> None:
        world.truncate(topic, offset)
        world.epoch += 1
        world.append({topic: 5}, batches_a_job=5)
        world.free_retired(STEP_BYTES)
        world.append({topic: 1})

    return change


def left_retired(topic: str, offset: Offset) -> Callable[[World, random.Random], None]:
    """A process that ended in the middle of the freeing."""

    def prepare(world: World, rng: random.Random) -> None:
        world.expire(topic, offset)
        freeing = Freeing(world.process.disk, world.process.partitions.retired.take())
        freeing.free(STEP_BYTES)
        world.end(rng if rng.random() < 0.5 else None)

    return prepare


def start_and_free(world: World) -> None:
    world.open()
    world.free_retired(2 * STEP_BYTES)


def left_noted(topic: str, offset: Offset) -> Callable[[World, random.Random], None]:
    """The new start is noted, and the process ended before any segment before it was retired."""

    def prepare(world: World, rng: random.Random) -> None:
        world.note_expired(topic, offset)
        world.end(rng if rng.random() < 0.5 else None)

    return prepare


def start_above(topic: str, neighbour: str) -> Callable[[World], None]:
    """A start that finds whole segments before the log's start; and a checkpoint that removes the noted start."""

    def change(world: World) -> None:
        start_and_free(world)
        world.append({topic: 1})
        world.checkpoint({topic: world.log(topic).end_offset, neighbour: 2})
        world.append({topic: 1})

    return change
