"""An operator of the virtual year who moves replicas between the log directories, and takes some moves back."""

from __future__ import annotations

import random
from collections.abc import Sequence

from jepsen.sim.time.scheduler import NS_PER_MS
from jepsen.soak.year.machine import PATHS, Machine, Process
from jepsen.soak.year.model import PartitionModel, require
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.settings.moves import UNLIMITED_BYTES_PER_S

SLOW_BYTES_PER_S = 1.0  # the broker pauses for a minute (quorumlog_storage/cleaning/throttle.py) before the exchange
MIDDLE_NS_MAX = 60 * NS_PER_MS  # of a move at full speed, from its copy to its end
CANCELLED_AFTER_NS_MAX = 70_000 * NS_PER_MS


class Mover:
    """asked, cancelled: moves that the broker has begun, and those that were under way and taken back.

    met: moves that were under way when a process ended, in whatever way. ended, failed: of processes that have ended.
    """

    def __init__(self, machine: Machine, rng: random.Random) -> None:
        self._machine, self._rng = machine, rng
        self.asked = self.cancelled = self.met = self.ended = self.failed = 0

    def begin(self, model: PartitionModel) -> None:
        """To any other directory, at any speed. While a directory is offline, the broker refuses it."""
        process = self._machine.running
        moves = process.plane.moves
        here = path_of(process, model)
        moves.set_rate(self._rng.choice((UNLIMITED_BYTES_PER_S, SLOW_BYTES_PER_S)))
        target = self._rng.choice([path for path in PATHS if path != here])
        try:
            process.run(moves.alter(model.topic, model.index, target))
        except ApiError as refused:
            is_expected = refused.code == ErrorCode.KAFKA_STORAGE_ERROR and len(process.online) < len(PATHS)
            require(is_expected, "move-refused", f"{model.name} from {here} to {target}: {refused}")
            return
        self.asked += 1

    def begin_some(self, models: Sequence[PartitionModel]) -> None:
        """And stop somewhere in their middle."""
        for model in self._rng.sample(models, min(len(models), self._rng.randrange(1, 4))):
            self.begin(model)
        self._machine.scheduler.run_for(self._rng.randrange(MIDDLE_NS_MAX))

    def take_back(self, model: PartitionModel) -> None:
        """Begin a move, and cancel it after a while, if it is still under way."""
        process, scheduler = self._machine.running, self._machine.scheduler
        self.begin(model)
        process.plane.moves.set_rate(SLOW_BYTES_PER_S)
        scheduler.run_for(self._rng.randrange(CANCELLED_AFTER_NS_MAX))
        moves = process.plane.moves
        if (model.topic, model.index) in {(one.topic, one.index) for one in moves.under_way()}:
            failed = moves.failed
            process.run(moves.alter(model.topic, model.index, path_of(process, model)))
            self.cancelled += moves.failed - failed  # an exchange cannot be stopped

    def process_ends(self) -> None:
        """Called before it does."""
        moves = self._machine.running.plane.moves
        self.met += len(moves.under_way())
        self.ended += moves.ended
        self.failed += moves.failed


def path_of(process: Process, model: PartitionModel) -> str:
    """Of the log directory in which a replica lies; "" where that is not known."""
    queue = process.plane.registry.find(model.topic_id, model.index).queue
    return "" if queue is None else str(queue.directory.path)
