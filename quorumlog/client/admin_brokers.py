"""What an admin client asks about brokers as members of the cluster."""

from __future__ import annotations

from quorumlog.client.link import Link, check
from quorumlog.client.options import CommonOptions
from quorumlog.errors import ErrorCode
from quorumlog.ids import BrokerEpoch, NodeId
from quorumlog.messages.admin import DescribeLogDirsRequest, DescribeLogDirsResponse, LogDirDescription
from quorumlog.messages.brokers import UnregisterBrokerRequest, UnregisterBrokerResponse
from quorumlog.messages.cluster import DescribeClusterRequest, DescribeClusterResponse


class BrokerAdmin:
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
