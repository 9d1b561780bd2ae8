"""The consumer protocol of one core: its parts, put together."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
)
from quorumlog.settings.groups import GroupConfig
from quorumlog.slices import Pace, Sliced
from quorumlog_broker.coordinator.group_turn import GROUP_UNITS, Call, Turn
from quorumlog_broker.coordinator.groups.consumer.classic_members import ClassicMembers
from quorumlog_broker.coordinator.groups.consumer.describe import described
from quorumlog_broker.coordinator.groups.consumer.heartbeat import Heartbeats
from quorumlog_broker.coordinator.groups.consumer.long_work import LongWork
from quorumlog_broker.coordinator.groups.consumer.sessions import Sessions
from quorumlog_broker.coordinator.groups.consumer.settings import Cluster, Settings
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroups
from quorumlog_broker.coordinator.groups.consumer.subscriptions import Subscriptions
from quorumlog_broker.coordinator.groups.consumer.targets import Targets
from quorumlog_broker.coordinator.turn import Sees


class ConsumerProtocol:
    """groups: durable. Everything else follows from it, or is lost when the leadership moves."""

    def __init__(self, turn: Turn, config: GroupConfig, new_uuid: Callable[[], str]) -> None:
        self._turn = turn
        self.settings = Settings(config)
        self.groups = ConsumerGroups()
        self._work = LongWork()
        self.targets = Targets(turn, self.settings, self.groups, self._work)
        self.subscriptions = Subscriptions(turn, self.settings, self.groups, self.targets, self._work)
        self.sessions = Sessions(turn, self.settings, self.groups, self.targets)
        self.heartbeats = Heartbeats(turn, self.settings, self.groups, self.targets, self.sessions, new_uuid)
        self.classic_members = ClassicMembers(turn, self.settings, self.heartbeats, self.sessions, new_uuid)

    def use(self, cluster: Cluster) -> None:
        self.settings.cluster = cluster

    def load(self) -> Sliced[None]:
        """In steps."""
        pace = Pace()
        for group_id in self.groups.ids():
            if pace.is_over(GROUP_UNITS):
                yield
            yield from self.sessions.load(self.groups[group_id], pace)

    def heartbeat(self, call: Call, request: ConsumerGroupHeartbeatRequest) -> None:
        """Answered when all that the group has written is committed: a failover could undo it until then."""
        try:
            response = self.heartbeats.heartbeat(call, request)
        except ApiError as error:
            response = refused(request, error)
        else:
            self._resolve(request.group_id, call.sees)
        self._turn.answer_read(request.group_id, call.number, response)

    def _resolve(self, group_id: str, sees: Sees) -> None:
        group = self.groups.get(group_id)
        if group is not None:
            self.subscriptions.wanted(group, sees)

    def describe(self, call: Call, group_id: str) -> Sliced[None]:
        """Of one moment: see `described`."""
        group = self.groups.get(group_id)
        if group is None:
            found = DescribedConsumerGroup(
                group_id=group_id,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=f"group {group_id} does not exist, or is not a consumer group",
            )
        else:
            found = yield from described(group, self.settings.cluster, self.settings.assignors)
        self._turn.answer_read(group_id, call.number, found)

    @property
    def has_work(self) -> bool:
        return bool(self._work)

    def work(self) -> None:
        self._work.run_slice()


def refused(request: ConsumerGroupHeartbeatRequest, error: ApiError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=error.code, error_message=error.message, member_id=request.member_id or None
    )
