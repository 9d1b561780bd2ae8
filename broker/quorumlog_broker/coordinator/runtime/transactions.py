"""Transactions of one broker, put together: as a coordinator of ids, and as a leader of partitions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from quorumlog.clock import Clock
from quorumlog.configs.live import VERIFICATION
from quorumlog.ids import NodeId
from quorumlog.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    WriteTxnMarkersRequest,
)
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Transport
from quorumlog.settings.transactions import TransactionConfig, VerificationConfig
from quorumlog.turn import Turn
from quorumlog_broker.coordinator.runtime.add_partitions import add_partitions_to_transactions
from quorumlog_broker.coordinator.runtime.commit_gate import CommitGate
from quorumlog_broker.coordinator.runtime.coordinator import Caller
from quorumlog_broker.coordinator.runtime.group_coordinators import GroupCoordinators
from quorumlog_broker.coordinator.runtime.joint_children import JointChildren
from quorumlog_broker.coordinator.runtime.listed_transactions import list_transactions
from quorumlog_broker.coordinator.runtime.open_timeouts import OpenTimeouts
from quorumlog_broker.coordinator.runtime.peers import Peers
from quorumlog_broker.coordinator.runtime.transaction_coordinators import TransactionCoordinators
from quorumlog_broker.coordinator.runtime.verified_appends import VerifiedAppends
from quorumlog_broker.coordinator.runtime.verifier import Verifier
from quorumlog_broker.produce.end_markers import EndMarkers
from quorumlog_broker.produce.own_appends import OwnAppends
from quorumlog_broker.produce.produce_path import ProducePath
from quorumlog_broker.produce.transactional import EndTransaction
from quorumlog_broker.replicas.own_settings import own_setting
from quorumlog_quorum.metadata.image import Image

MARKER_TIMEOUT_MS = 2_000  # that a marker waits for the in-sync replicas, and with it others of the same leader


class Transactions:
    """coordinators: of the transactional ids. verifier, appends: of a leader. markers: that this leader writes.
    commits: the gate of what the coordinators are asked to commit. peers: the other brokers. children: of joint
    transactions, as all coordinators know them. open_timeouts: of those that are open here for long.
    """

    def __init__(
        self,
        *,
        node_id: NodeId,
        config: TransactionConfig,
        verification: VerificationConfig,
        image: Callable[[], Image],
        internal_listener: str,
        transport: Transport,
        produce_path: ProducePath,
        own_appends: OwnAppends,
        groups: GroupCoordinators,
        new_producer_id: Callable[[], int | None],
        clock: Clock,
        turn: Turn,
        nursery: Nursery,
    ) -> None:
        self._node_id, self._groups, self.verification, self._image = node_id, groups, verification, image
        self.markers = EndMarkers(produce_path, self._end_in_groups, timeout_ms=MARKER_TIMEOUT_MS)
        self.peers = Peers(
            node_id,
            {
                AddPartitionsToTxnRequest: self._add_partitions,
                WriteTxnMarkersRequest: self.markers.write,
                ListTransactionsRequest: self._list,
            },
            image=image,
            internal_listener=internal_listener,
            transport=transport,
            nursery=nursery,
        )
        self.coordinators = TransactionCoordinators(
            node_id=node_id,
            config=config,
            image=image,
            appends=own_appends,
            peers=self.peers,
            new_producer_id=new_producer_id,
            clock=clock,
            turn=turn,
            nursery=nursery,
        )
        self.commits = CommitGate(clock, turn)
        self.children = JointChildren(self.peers, image)
        self.open_timeouts = OpenTimeouts(self.children, config, image=image, clock=clock, nursery=nursery)
        self.verifier = Verifier(
            self.coordinators.leader_for,
            self.peers,
            max_waiting=verification.max_waiting,
            turn=turn,
            nursery=nursery,
        )
        self.appends = VerifiedAppends(
            produce_path,
            self.verifier,
            verification,
            verifies=lambda: self.verifies,
            clock=clock,
            turn=turn,
            nursery=nursery,
        )

    async def close(self) -> None:
        """Close the connections to other brokers."""
        self.open_timeouts.close()
        await self.peers.close()

    @property
    def verifies(self) -> bool:
        """A leader asks about producers that add their partitions themselves; can be changed while the broker runs."""
        return bool(own_setting(self._image(), self._node_id, VERIFICATION, self.verification.enable))

    @property
    def _caller(self) -> Caller:
        return Caller(f"broker-{self._node_id}", "")

    async def _add_partitions(self, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        return await add_partitions_to_transactions(self.coordinators, self._caller, request)

    async def _list(self, request: ListTransactionsRequest) -> ListTransactionsResponse:
        """Of this broker itself, which asks for no pattern."""
        assert not request.transactional_id_pattern
        return await list_transactions(self.coordinators, request)

    def _end_in_groups(self, index: int, ending: EndTransaction) -> Awaitable[object]:
        coordinator = self._groups.at(index, f"partition {index} of the groups")
        return coordinator.end_transaction(self._caller, ending)
