"""The coordinators of one kind on this broker: one for each partition of their topic that it leads.

Requests that wait a moment for something that is about to happen on this broker.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.histogram import Histogram
from quorumlog.ids import Epoch, NodeId
from quorumlog.nursery import Nursery
from quorumlog.turn import Signal, Turn
from quorumlog_broker.coordinator.counts import CoordinatorCounts
from quorumlog_broker.coordinator.placement import partition_of
from quorumlog_broker.coordinator.runtime.coordinator import Coordinator, Node, State
from quorumlog_broker.partition.events import HighWatermarkMoved
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.produce.own_appends import OwnAppends
from quorumlog_broker.replicas.own_settings import is_all_kept
from quorumlog_broker.replicas.replica import Replica
from quorumlog_quorum.metadata.image import Image


class Waiting:
    """Whoever waits is woken by the next `wake`, or at its time-out, and looks again."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._timers: dict[Signal, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._timers)

    def until_woken(self, timeout_ms: int) -> Signal:
        signal = Signal()
        timer = asyncio.get_running_loop().call_later(timeout_ms / 1000, self._end, signal)
        self._timers[signal] = timer
        return signal

    def wake(self) -> None:
        timers, self._timers = self._timers, {}
        for signal, timer in timers.items():
            timer.cancel()
            signal.fire(self._turn)

    def _end(self, signal: Signal) -> None:
        self._timers.pop(signal, None)
        signal.fire(self._turn)


MAX_WAITING_FOR_LOADS = 10_000  # requests of a broker; others are sent away at once
LOAD_WAIT_MS = 1_000  # that a request waits for its coordinator's load, before it is sent away

AnyCoordinator = TypeVar("AnyCoordinator", bound=Coordinator[Any])


class Coordinators(ABC, Generic[AnyCoordinator]):
    """A `LeadershipListener`. image: the newest metadata of this broker.

    TOPIC: of their logs. NAMED: what a name is.
    """

    TOPIC: ClassVar[str]
    NAMED: ClassVar[str]

    def __init__(
        self,
        *,
        node_id: NodeId,
        image: Callable[[], Image],
        appends: OwnAppends,
        clock: Clock,
        turn: Turn,
        nursery: Nursery,
    ) -> None:
        self._node_id, self._image, self._clock = node_id, image, clock
        self._led: dict[PartitionKey, AnyCoordinator] = {}
        self._waiting = Waiting(turn)  # for coordinators that load
        self.told: Callable[[str, str, str], None] = lambda _kind, _subject, _text: None  # of events; the broker's
        self._node = Node(
            appends=appends,
            clock=clock,
            turn=turn,
            nursery=nursery,
            on_settled=self._waiting.wake,
            tell=self._tell_event,
            keeps_all=lambda: is_all_kept(image(), node_id),
        )

    @abstractmethod
    def _make(self, replica: Replica, leader_epoch: Epoch) -> AnyCoordinator: ...

    def _tell_event(self, kind: str, subject: str, text: str) -> None:
        self.told(kind, subject, text)

    # --- leadership ---

    def elected(self, replica: Replica, leader_epoch: Epoch) -> None:
        if replica.topic == self.TOPIC:
            self._led[replica.key] = self._make(replica, leader_epoch)

    def resigned(self, replica: Replica, _leader_epoch: Epoch) -> None:
        coordinator = self._led.pop(replica.key, None)
        if coordinator is not None:
            coordinator.close()
            self._waiting.wake()

    def high_watermark_moved(self, replica: Replica, to: HighWatermarkMoved) -> None:
        coordinator = self._led.get(replica.key)
        if coordinator is not None:
            coordinator.high_watermark_moved(to.high_watermark)

    @property
    def counts(self) -> CoordinatorCounts:
        return self._node.counts

    @property
    def loads(self) -> Histogram:
        """How long it took to load a log that this broker leads."""
        return self._node.loads

    # --- calls ---

    @property
    def all(self) -> tuple[AnyCoordinator, ...]:
        """In the order of election."""
        return tuple(self._led.values())

    @property
    def all_by_index(self) -> tuple[tuple[int, AnyCoordinator], ...]:
        """Each behind its partition."""
        return tuple([(index, coordinator) for (_, index), coordinator in self._led.items()])

    async def until_loaded(self, name: str) -> None:
        """Return once the coordinator of the name does not load any more, or is not here, or after LOAD_WAIT_MS.

        librdkafka asks again only after 3 s. Most loads are shorter than that by far. At once if too many wait already:
        a call then raises COORDINATOR_LOAD_IN_PROGRESS.
        """
        deadline_ms = self._clock.now_ms() + LOAD_WAIT_MS
        while self._loads(name) and (left_ms := deadline_ms - self._clock.now_ms()) > 0:
            if len(self._waiting) >= MAX_WAITING_FOR_LOADS:
                return
            await self._waiting.until_woken(left_ms)

    def _loads(self, name: str) -> bool:
        try:
            return self.of(name).state is State.LOADING
        except ApiError as error:
            return error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def index_of(self, name: str) -> int:
        """The partition that has the name. Raises ApiError: NOT_COORDINATOR where there is no such topic;
        COORDINATOR_LOAD_IN_PROGRESS where no metadata has come yet."""
        topic = self._read_image().topic(self.TOPIC)
        if topic is None:
            raise ApiError(ErrorCode.NOT_COORDINATOR, f"this broker's metadata has no {self.TOPIC} yet")
        return partition_of(name, len(topic.partitions))

    def check_all_taken_up(self) -> None:
        """Raises ApiError(COORDINATOR_LOAD_IN_PROGRESS) unless `all` has every partition that this broker leads."""
        topic = self._read_image().topic(self.TOPIC)
        for index, partition in {} if topic is None else topic.partitions.items():
            if partition.leader == self._node_id:
                self.at(index, f"{self.TOPIC}-{index}")

    def _read_image(self) -> Image:
        image = self._image()
        if image.offset <= 0:
            text = f"broker {self._node_id} is still reading the metadata log"
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, text)
        return image

    def of(self, name: str) -> AnyCoordinator:
        """The coordinator of this name, in any state.

        Raises ApiError: NOT_COORDINATOR if it is not here; COORDINATOR_LOAD_IN_PROGRESS if this broker leads the
        partition by its metadata, and has not taken it up yet.
        """
        return self.at(self.index_of(name), f"{self.NAMED} {name}")

    def at(self, index: int, what: str) -> AnyCoordinator:
        """The coordinator of a partition. Raises ApiError as `of`."""
        topic = self._image().topic(self.TOPIC)
        coordinator = None if topic is None else self._led.get((topic.id, index))
        if coordinator is not None:
            return coordinator
        if topic is not None and index in topic.partitions and topic.partitions[index].leader == self._node_id:
            text = f"this broker is about to lead {self.TOPIC}-{index}; try again soon"
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, text)
        raise ApiError(ErrorCode.NOT_COORDINATOR, f"this broker does not coordinate {what}")
