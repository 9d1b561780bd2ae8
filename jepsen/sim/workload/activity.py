"""What clients or an operator do beside the producers and readers of every run: empty hooks, in the order of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from jepsen.checkers.findings import Finding
from quorumlog.nursery import Nursery

if TYPE_CHECKING:
    from jepsen.sim.simulation import Phases
    from jepsen.sim.truth.topics import Topic
    from jepsen.sim.workload.workload import Workload


class Activity:
    def start(self) -> None:
        """The machines have started."""

    def start_beside(self, nursery: Nursery) -> None:
        """On the loop of the producers, before them."""

    def strikes_begin(self) -> None:
        """The cluster is healthy."""

    def before_healing(self) -> None:
        """End what a cluster could not become healthy beside; everything else goes on."""

    def stop(self) -> None:
        """The cluster is healthy again."""

    @property
    def idle(self) -> bool:
        """All has ended since `stop`."""
        return True

    def read_all(self, phases: Phases) -> None:
        """See that all is served again, and read what there is."""

    def before_settling(self) -> None:
        """Next, what is under way in the cluster must come to its end."""

    def check(self) -> list[Finding]:
        """All replicas are equal, and nothing is under way any more."""
        return []

    def exercised_enough(self, seconds: int) -> bool:
        """A run of so many seconds with less proves nothing."""
        return True

    @property
    def counts(self) -> Mapping[str, int]:
        """For the report."""
        return {}


class Aside(Activity):
    """Clients on a host of their own."""

    def __init__(self, clients: Workload, host: str) -> None:
        self.loop = clients.make_loop(host)
        self._nursery = Nursery(clients.crashed)

    def start(self) -> None:
        self.loop.create_task(self._start())

    async def _start(self) -> None:
        self._nursery.start(self.run(self._nursery), self.loop.node)

    async def run(self, nursery: Nursery) -> None:
        """nursery: for all that runs until `stop`."""
        raise NotImplementedError

    @property
    def idle(self) -> bool:
        return not len(self._nursery)


class Chore(Protocol):
    """counts: acknowledged requests."""

    stopping: bool

    @property
    def counts(self) -> Mapping[str, int]: ...

    async def run(self, topics: Callable[[], list[Topic]]) -> Any:
        """Until `stopping`. topics: those that exist now."""
        ...


class Operates(Activity):
    """An operator does a chore all the time."""

    def __init__(self, clients: Workload, chore: Chore) -> None:
        self._clients, self._chore = clients, chore

    def start_beside(self, nursery: Nursery) -> None:
        nursery.start(self._chore.run(lambda: self._clients.open_topics), "chore")

    def stop(self) -> None:
        self._chore.stopping = True

    @property
    def counts(self) -> Mapping[str, int]:
        return self._chore.counts
