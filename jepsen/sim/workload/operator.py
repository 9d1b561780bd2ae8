"""What an operator does at once where partitions move between brokers: reassignments, throttles, brokers forgotten."""

from __future__ import annotations

import random
from collections.abc import Callable

from jepsen.sim.cluster import SimCluster
from jepsen.sim.workload.forgetting import ForgettingChore
from jepsen.sim.workload.reassignments import ReassignmentChore
from jepsen.sim.workload.throttles import ThrottleChore
from jepsen.sim.workload.topics import Topic
from quorumlog.client.admin import AsyncAdmin
from quorumlog.nursery import Nursery


class Operator:
    """Chores with one beginning and one end. Each has randomness and clients of its own."""

    def __init__(
        self,
        cluster: SimCluster,
        rng: Callable[[str], random.Random],
        admin: Callable[[str], Callable[[], AsyncAdmin]],
        on_crash: Callable[[str, BaseException], None],
    ) -> None:
        """rng, admin: by the name of a chore."""
        self._chores: dict[str, ReassignmentChore | ThrottleChore | ForgettingChore] = {
            "reassignments": ReassignmentChore(rng("reassignments"), admin("reassignments")),
            "throttles": ThrottleChore(rng("throttles"), admin("throttles")),
            "forgetting": ForgettingChore(cluster, rng("forgetting"), admin("forgetting")),
        }
        self._on_crash = on_crash

    @property
    def stopping(self) -> bool:
        return all(chore.stopping for chore in self._chores.values())

    @stopping.setter
    def stopping(self, stopping: bool) -> None:
        for chore in self._chores.values():
            chore.stopping = stopping

    @property
    def counts(self) -> dict[str, int]:
        return {name: count for chore in self._chores.values() for name, count in chore.counts.items()}

    async def run(self, topics: Callable[[], list[Topic]]) -> None:
        """Until `stopping`, and until each chore has ended."""
        nursery = Nursery(self._on_crash)
        tasks = [nursery.start(chore.run(topics), name) for name, chore in self._chores.items()]
        for task in tasks:
            await task
