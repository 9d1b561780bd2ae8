"""Which producers are children of joint transactions. A partition's leader does not know; their coordinators do.

So a leader asks every broker that leads a partition of `__transaction_state`, and takes no silence for an answer: each
partition has to be named as one that was looked at. One that moves from a broker that is asked later to one that was
asked before would otherwise be seen by neither.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.transactions import ListedTransaction, ListTransactionsRequest, ListTransactionsResponse
from quorumlog.rpc.transport import RpcError
from quorumlog.topic_name import TRANSACTION_STATE
from quorumlog_broker.coordinator.runtime.all_leaders import NoLeader, leaders_of
from quorumlog_broker.coordinator.runtime.peers import Peers
from quorumlog_quorum.metadata.features import JOINT_ENDS
from quorumlog_quorum.metadata.image import Image


def joint_may_be_used(image: Image) -> bool:
    """The cluster may have children that are open or ending: at level 0 there are none, since the coordinators were
    asked before it fell (decision 113)."""
    return image.joint_version >= JOINT_ENDS and image.topic(TRANSACTION_STATE) is not None


class JointChildren:
    """image: the newest metadata of this broker, which leads a partition and so has some."""

    def __init__(self, peers: Peers, image: Callable[[], Image]) -> None:
        self._peers, self._image = peers, image

    async def among(self, producer_ids: Collection[int]) -> dict[int, ListedTransaction]:
        """Those of these producers that an id of a joint group has now, in any state, by producer id.

        Asks nobody where no joint group can be. Raises ApiError(COORDINATOR_NOT_AVAILABLE) unless every coordinator
        has said what it knows.
        """
        image = self._image()
        if not producer_ids or not joint_may_be_used(image):
            return {}
        request = ListTransactionsRequest(producer_id_filters=tuple(sorted(producer_ids)))
        found: dict[int, ListedTransaction] = {}
        topic = image.topic(TRANSACTION_STATE)
        missing = set() if topic is None else set(topic.partitions)
        for broker in _leaders(image):
            response = await self._ask(broker, request)
            missing.difference_update(response.partitions)
            found.update((one.producer_id, one) for one in response.transactions if one.joint_group)
        if missing:
            raise _unknown(f"no broker has looked at {TRANSACTION_STATE}-{min(missing)}")
        return found

    async def _ask(self, broker: NodeId, request: ListTransactionsRequest) -> ListTransactionsResponse:
        try:
            response: ListTransactionsResponse = await self._peers.call(broker, request)
        except (ApiError, RpcError) as error:
            raise _unknown(f"broker {broker} did not say so: {error}") from error
        return response


def _leaders(image: Image) -> list[NodeId]:
    """Raises ApiError(COORDINATOR_NOT_AVAILABLE)."""
    try:
        return leaders_of(image, TRANSACTION_STATE)
    except NoLeader as error:
        raise _unknown(str(error)) from error


def _unknown(why: str) -> ApiError:
    text = f"it is not known whether the transaction is a part of a joint one: {why}; try again soon"
    return ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, text)
