"""The workloads of a start that opens logs beside the writer, as a broker does.

A job of its own loads each log that is there: it recovers it, and lets go what lies before its start. The writer takes
the log over, while other logs are still being loaded. What an earlier process had in memory only is synced at the end
of that turn. A topic may be deleted meanwhile: then the loaded log is given up, and its directory leaves.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from jepsen.crash.check import check_log
from jepsen.crash.instant_worker import InstantWorker
from jepsen.crash.process import Process, config_of
from jepsen.crash.workloads.retention import STEP_BYTES
from jepsen.crash.world import UNIQUE, World
from quorumlog.ids import Offset
from quorumlog_storage.directory.log_checkpoints import checkpoint_logs
from quorumlog_storage.directory.partition_directories import FoundPartitions
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.names import DELETE
from quorumlog_storage.log.log import Log
from quorumlog_storage.writer.writer import CallJob, Outcome

SUCCESSOR = 4  # the number of the id that a topic has after its deletion


def open_beside(world: World) -> None:
    """Both logs are loaded before the writer has either; the first one serves while the second one is taken over."""
    process = world.process
    process.open_directory()
    found = process.call(lambda: process.find(world.known))
    loaded = {topic: _loaded(process, world, topic) for topic in world.known if _is_there(world, found, topic)}
    for topic in world.known:
        _take_over(process, world, topic, loaded.get(topic))
        world.append({topic: 1})
    process.open_metadata()


def open_and_checkpoint(topic: str, neighbour: str) -> Callable[[World], None]:
    """What a load lets go is durable: the checkpoint drops the noted start before anything is freed."""

    def change(world: World) -> None:
        open_beside(world)
        world.checkpoint({topic: world.log(topic).end_offset, neighbour: 2})
        world.append({neighbour: 1})
        world.free_retired(STEP_BYTES)

    return change


def open_in_one_turn(world: World) -> None:
    """The writer takes both logs over, and notes their recovery points, before the turn syncs what they hold."""
    process = world.process
    process.open_directory()
    found = process.call(lambda: process.find(world.known))
    loaded = {topic: _loaded(process, world, topic) for topic in world.known if _is_there(world, found, topic)}
    jobs = [_taking_over(process, world, topic, log) for topic, log in loaded.items()]
    process.turn([*jobs, CallJob(lambda: checkpoint_logs(process.partitions, process.logs.values()))])
    for topic, log in loaded.items():
        world.expected[topic].seen(log.start_offset, check_log(log, world.expected[topic]))
    for topic in world.known:
        if topic not in loaded:
            _take_over(process, world, topic, None)
    process.open_metadata()


def open_and_delete(topic: str) -> Callable[[World], None]:
    """The topic is deleted, and made anew, while its log is being loaded."""

    def change(world: World) -> None:
        process = world.process
        process.open_directory()
        found = process.call(lambda: process.find(world.known))
        loaded = {one: _loaded(process, world, one) for one in world.known if _is_there(world, found, one)}
        world.know(topic, SUCCESSOR)
        loaded.pop(topic).give_up()
        name = process.call(lambda: process.partitions.move_away((topic, 0), UNIQUE, DELETE))
        for one in world.known:
            _take_over(process, world, one, loaded.get(one))
        process.open_metadata()
        world.append(dict.fromkeys(world.known, 1))
        world.free(name, step_bytes=300)

    return change


def left_noted(topic: str, offset: Offset) -> Callable[[World, random.Random], None]:
    """The new start is noted and synced, and the process ended before any segment before it was retired."""

    def prepare(world: World, _: random.Random) -> None:
        world.note_expired(topic, offset)
        world.end(None)

    return prepare


def _is_there(world: World, found: FoundPartitions, topic: str) -> bool:
    return (world.known[topic], 0) in found.partitions


def _loaded(process: Process, world: World, topic: str) -> Log:
    """Raises what the job raises."""
    topic_id, told = world.known[topic], list[Outcome]()
    config = config_of(topic)
    work = lambda: PartitionLog.load(process.partitions, (topic, 0), topic_id, config, defers_sync=True)  # noqa: E731
    process.noted[topic] = process.partitions.recovery_points.get((topic, 0))
    InstantWorker(process.writer).beside(work, told.append)
    if told[0].error is not None:
        raise told[0].error
    log: Log = told[0].value
    return log


def _take_over(process: Process, world: World, topic: str, log: Log | None) -> None:
    """In a turn of the writer. log: None for one that was not there."""
    if log is not None:
        process.turn([_taking_over(process, world, topic, log)])
        return
    partition, topic_id = (topic, 0), world.known[topic]
    process.logs[topic] = process.call(
        lambda: PartitionLog.open_or_create(process.partitions, partition, topic_id, config_of(topic))
    )


def _taking_over(process: Process, world: World, topic: str, log: Log) -> CallJob:
    def adopt() -> None:
        process.logs[topic] = PartitionLog.adopt(process.partitions, (topic, 0), world.known[topic], log)

    return CallJob(adopt, (log,))
