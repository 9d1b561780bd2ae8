"""What an operator does at once where partitions move between brokers.

Reassignments, throttles, brokers that are forgotten and come back, brokers that are replaced by others.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from jepsen.sim.cluster import SimCluster
from jepsen.sim.truth.topics import Topic
from jepsen.sim.workload.operator.forgetting import ForgettingChore
from jepsen.sim.workload.operator.reassignments import ReassignmentChore
from jepsen.sim.workload.operator.replacements import ReplacementChore
from jepsen.sim.workload.operator.throttles import ThrottleChore
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
        replacements = ReplacementChore(cluster, rng("replacements"), admin("replacements"))
        targets = lambda: replacements.targets  # noqa: E731
        self._chores: dict[str, ReassignmentChore | ThrottleChore | ForgettingChore | ReplacementChore] = {
            "reassignments": ReassignmentChore(rng("reassignments"), admin("reassignments"), targets),
            "throttles": ThrottleChore(rng("throttles"), admin("throttles"), targets),
            "forgetting": ForgettingChore(cluster, rng("forgetting"), admin("forgetting"), targets),
            "replacements": replacements,
        }
        self._on_crash = on_crash

    @property
    def stopping(self) -> bool:
        return all(chore.stopping for chore in self._chores.values())

    @stopping.setter
    def stopping(self, stopping: bool) -> None:
        for chore in self._chores.values():
            chore.stopping = stopping

    def end_throttles(self) -> None:
        """Lift them all, while everything else goes on."""
        self._chores["throttles"].stopping = True

    @property
    def counts(self) -> dict[str, int]:
        return {name: count for chore in self._chores.values() for name, count in chore.counts.items()}

    async def run(self, topics: Callable[[], list[Topic]]) -> None:
        """Until `stopping`, and until each chore has ended."""
        nursery = Nursery(self._on_crash)
        tasks = [nursery.start(chore.run(topics), name) for name, chore in self._chores.items()]
        for task in tasks:
            await task
