"""What an admin client asks about the cluster as a whole: its brokers, its quorum, the levels of its features."""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.client.cluster.link import Link, check
from quorumlog.client.cluster.retried_change import RetriedChange
from quorumlog.client.options import CommonOptions
from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, BrokerEpoch, NodeId, Uuid
from quorumlog.messages.admin import (
    DescribeFeaturesRequest,
    DescribeFeaturesResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    FeatureUpdate,
    LogDirDescription,
    UpdateFeaturesRequest,
)
from quorumlog.messages.brokers import UnregisterBrokerRequest, UnregisterBrokerResponse
from quorumlog.messages.cluster import DescribeClusterRequest, DescribeClusterResponse
from quorumlog.messages.common import Endpoint
from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
    TransferLeadershipRequest,
    TransferLeadershipResponse,
)

VOTER_MARGIN_MS = 5_000  # added to the time that the leader has, for the way
REMOVE_VOTER_MS = 15_000


class ClusterAdmin:
    """A part of `AsyncAdmin`, which makes the link."""

    options: CommonOptions
    _link: Link

    async def describe_cluster(
        self, *, include_fenced_brokers: bool = True, include_partition_counts: bool = False
    ) -> DescribeClusterResponse:
        request = DescribeClusterRequest(
            include_fenced_brokers=include_fenced_brokers, include_partition_counts=include_partition_counts
        )
        response: DescribeClusterResponse = await self._link.call_any(request)
        check(response)
        return response

    async def describe_broker_log_dirs(
        self, node_id: NodeId, timeout_ms: int | None = None
    ) -> tuple[LogDirDescription, ...]:
        """Of one broker that is not fenced. timeout_ms: None: request.timeout.ms. Raises RpcError, RequestFailed."""
        await self._link.refresh([])
        response: DescribeLogDirsResponse = await self._link.call_node(node_id, DescribeLogDirsRequest(), timeout_ms)
        check(response)
        return response.directories

    async def unregister_broker(self, broker_id: NodeId, broker_epoch: BrokerEpoch = -1) -> None:
        """Let the cluster forget a broker that is gone for good. A running one registers again.

        broker_epoch: of the registration that is meant; -1: whichever there is.
        Raises RequestFailed: BROKER_ID_NOT_REGISTERED; STALE_BROKER_EPOCH if it has registered since.
        """
        request = UnregisterBrokerRequest(broker_id=broker_id, broker_epoch=broker_epoch)
        in_doubt = False  # an earlier try may have been carried out

        def doubt() -> None:
            nonlocal in_doubt
            in_doubt = True

        async def ask() -> None:
            response: UnregisterBrokerResponse = await self._link.call_any(
                request, self.options.request_timeout_ms, doubt
            )
            if response.error_code == ErrorCode.REQUEST_TIMED_OUT:
                doubt()
            if not (in_doubt and response.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED):
                check(response)

        await self._link.until(ask, self.options.default_api_timeout_ms)

    async def describe_quorum(self, timeout_ms: int | None = None) -> DescribeQuorumResponse:
        """timeout_ms: None: default.api.timeout.ms."""
        patience_ms = timeout_ms or self.options.default_api_timeout_ms

        async def ask() -> DescribeQuorumResponse:
            response: DescribeQuorumResponse = await self._link.call_any(DescribeQuorumRequest(), patience_ms)
            check(response)
            return response

        found: DescribeQuorumResponse = await self._link.until(ask, patience_ms)
        return found

    async def add_voter(
        self, node_id: NodeId, directory_id: Uuid, endpoints: Sequence[Endpoint], timeout_ms: int
    ) -> None:
        """Make a controller a voter. endpoints: one of them with the name of the internal listener.

        timeout_ms: how long the leader may wait until the node has copied the log. Raises RequestFailed.
        """
        request = AddRaftVoterRequest(
            timeout_ms=timeout_ms, voter_id=node_id, voter_directory_id=directory_id, listeners=tuple(endpoints)
        )
        check(await self._link.call_any(request, timeout_ms + VOTER_MARGIN_MS))

    async def remove_voter(self, node_id: NodeId, directory_id: Uuid) -> None:
        """Raises RequestFailed."""
        request = RemoveRaftVoterRequest(voter_id=node_id, voter_directory_id=directory_id)
        check(await self._link.call_any(request, REMOVE_VOTER_MS))

    async def transfer_leadership(self, to_node_id: NodeId = NO_NODE) -> TransferLeadershipResponse:
        """Hand the leadership of the quorum over to this voter; NO_NODE: to the one that is ready first.

        The response names who leads then. Raises RequestFailed: VOTER_NOT_FOUND; REQUEST_TIMED_OUT if the voter had
        not caught up, and the old leader goes on; PREFERRED_LEADER_NOT_AVAILABLE if another voter was elected.
        """
        response: TransferLeadershipResponse = await self._link.call_any(
            TransferLeadershipRequest(to_node_id=to_node_id)
        )
        check(response)
        return response

    async def describe_features(self) -> DescribeFeaturesResponse:
        """The levels in force, and which levels each node supports."""
        response: DescribeFeaturesResponse = await self._link.call_any(DescribeFeaturesRequest())
        check(response)
        return response

    async def update_features(self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False) -> None:
        """Carry out all updates or none. An update that was carried out already is no error, so a retry does no harm.

        Raises RequestFailed: INVALID_UPDATE_VERSION, INVALID_REQUEST.
        """
        request = UpdateFeaturesRequest(
            updates=tuple(updates), timeout_ms=self.options.request_timeout_ms, validate_only=validate_only
        )
        await RetriedChange(self._link, request).carry_out()
