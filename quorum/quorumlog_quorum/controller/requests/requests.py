"""Every request that a controller serves, and what holds for it. A new one is a file with its operation and a row here.

Limits of an atomic operation, whose records are one batch: 10,000 partitions a request (POLICY_VIOLATION), 8 MiB
of records (RECORD_LIST_TOO_LARGE). Nothing is written if a limit is exceeded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from quorumlog.ids import NodeId
from quorumlog.messages.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from quorumlog.messages.brokers import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from quorumlog.messages.cluster import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from quorumlog.messages.controller import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirectoriesRequest,
    AssignReplicasToDirectoriesResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
    RegisterControllerRequest,
    RegisterControllerResponse,
)
from quorumlog.messages.credentials import AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse
from quorumlog.messages.imports import (
    BeginImportRequest,
    BeginImportResponse,
    FinishImportRequest,
    FinishImportResponse,
)
from quorumlog.messages.quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from quorumlog.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from quorumlog.slices import Sliced
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.controller.engine.operation import ACL_LANE, CONFIG_LANE, Lane, broker_lane, in_one_slice
from quorumlog_quorum.controller.requests.acls import create_acls, delete_acls
from quorumlog_quorum.controller.requests.alter_configs import alter_configs
from quorumlog_quorum.controller.requests.alter_partition import alter_partitions
from quorumlog_quorum.controller.requests.alter_quotas import alter_quotas
from quorumlog_quorum.controller.requests.alter_reassignments import alter_reassignments
from quorumlog_quorum.controller.requests.alter_scram import alter_scram
from quorumlog_quorum.controller.requests.assign_directories import assign_directories
from quorumlog_quorum.controller.requests.create_partitions import create_partitions
from quorumlog_quorum.controller.requests.create_topics import create_topics
from quorumlog_quorum.controller.requests.delete_topics import delete_topics
from quorumlog_quorum.controller.requests.elect_leaders import elect_leaders
from quorumlog_quorum.controller.requests.heartbeat import heartbeat
from quorumlog_quorum.controller.requests.imports import begin_import, finish_import
from quorumlog_quorum.controller.requests.list_reassignments import list_reassignments
from quorumlog_quorum.controller.requests.producer_ids import allocate_producer_ids
from quorumlog_quorum.controller.requests.register_broker import register_broker
from quorumlog_quorum.controller.requests.register_controller import register_controller
from quorumlog_quorum.controller.requests.unregister_broker import unregister_broker
from quorumlog_quorum.controller.requests.update_features import update_features


class Asker(Enum):
    BROKER = "a broker, for itself: `broker_id` is the node that sends it"
    CONTROLLER = "a controller, for itself: `controller_id` is the node that sends it"
    CLIENT = "a client, through any broker"


class Deadline(Enum):
    """How long the caller waits for the answer. The operation goes on after that."""

    COMMIT = "as long as the controller waits for a commit"
    REQUESTED = "`timeout_ms` of the request, if it is above 0; else as for COMMIT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What holds for requests of one type.

    perform: with `atomic`, a function of the draft and the request that returns the response, and all its records are
    one batch; else a generator of slices that does. Both raise ApiError only before their first record.
    retry_safe: what an answer says when leadership is lost before the commit. True: repeating the request does no harm,
    so the caller is told NOT_CONTROLLER and asks the next controller. False: REQUEST_TIMED_OUT, the outcome is unknown.
    lane: of the request's operation, see operation_queue.py.
    needs_confirmation: whether a response that wrote no record says something that may be false by now, because
    another controller is active already. Such a response waits until the leadership is confirmed (confirmed_reads.py).
    """

    request: type
    response: type
    perform: Callable[[Draft, Any], Any]
    atomic: bool
    asker: Asker
    retry_safe: bool
    deadline: Deadline = Deadline.COMMIT
    lane: Callable[[Any], Lane | None] = lambda _request: None
    needs_confirmation: Callable[[Any], bool] = lambda _response: True

    def speaker(self, request: Any) -> NodeId | None:
        """The node that this request speaks for; None: for none."""
        if self.asker is Asker.CLIENT:
            return None
        return NodeId(request.broker_id if self.asker is Asker.BROKER else request.controller_id)

    def slices(self, request: Any) -> Callable[[Draft], Sliced[Any]]:
        perform = self.perform
        if self.atomic:
            return in_one_slice(lambda draft: perform(draft, request))
        return lambda draft: perform(draft, request)


def _lane_of_broker(request: Any) -> Lane:
    """Of the broker that the request names."""
    return broker_lane(request.broker_id)


_TABLE = (
    Rule(
        request=RegisterBrokerRequest,
        response=RegisterBrokerResponse,
        perform=register_broker,
        atomic=False,
        asker=Asker.BROKER,
        retry_safe=True,
        lane=_lane_of_broker,
    ),
    Rule(
        request=BrokerHeartbeatRequest,
        response=BrokerHeartbeatResponse,
        perform=heartbeat,
        atomic=False,
        asker=Asker.BROKER,
        retry_safe=True,
        lane=_lane_of_broker,
        needs_confirmation=lambda response: response.should_shutdown,  # any other one lets a broker go on as it is
    ),
    Rule(
        request=AlterPartitionRequest,
        response=AlterPartitionResponse,
        perform=alter_partitions,
        atomic=False,
        asker=Asker.BROKER,
        retry_safe=True,
        lane=_lane_of_broker,
    ),
    Rule(
        request=AssignReplicasToDirectoriesRequest,
        response=AssignReplicasToDirectoriesResponse,
        perform=assign_directories,
        atomic=False,
        asker=Asker.BROKER,
        retry_safe=True,
        lane=_lane_of_broker,
    ),
    Rule(
        request=AllocateProducerIdsRequest,
        response=AllocateProducerIdsResponse,
        perform=allocate_producer_ids,
        atomic=True,
        asker=Asker.BROKER,
        retry_safe=True,
    ),
    Rule(
        request=CreateTopicsRequest,
        response=CreateTopicsResponse,
        perform=create_topics,
        atomic=False,  # its records are one batch; what is made before it and after it is cut
        asker=Asker.CLIENT,
        retry_safe=False,
        deadline=Deadline.REQUESTED,
    ),
    Rule(
        request=DeleteTopicsRequest,
        response=DeleteTopicsResponse,
        perform=delete_topics,
        atomic=True,
        asker=Asker.CLIENT,
        retry_safe=False,
        deadline=Deadline.REQUESTED,
    ),
    Rule(
        request=CreatePartitionsRequest,
        response=CreatePartitionsResponse,
        perform=create_partitions,
        atomic=True,
        asker=Asker.CLIENT,
        retry_safe=False,
        deadline=Deadline.REQUESTED,
    ),
    Rule(
        request=IncrementalAlterConfigsRequest,
        response=IncrementalAlterConfigsResponse,
        perform=alter_configs,
        atomic=False,
        asker=Asker.CLIENT,
        retry_safe=False,
        lane=lambda _request: CONFIG_LANE,
    ),
    Rule(
        request=RegisterControllerRequest,
        response=RegisterControllerResponse,
        perform=register_controller,
        atomic=True,
        asker=Asker.CONTROLLER,
        retry_safe=True,
    ),
    Rule(
        request=UpdateFeaturesRequest,
        response=UpdateFeaturesResponse,
        perform=update_features,
        atomic=True,
        asker=Asker.CLIENT,
        retry_safe=False,
        deadline=Deadline.REQUESTED,
    ),
    Rule(
        request=UnregisterBrokerRequest,
        response=UnregisterBrokerResponse,
        perform=unregister_broker,
        atomic=False,
        asker=Asker.CLIENT,
        retry_safe=False,  # the broker may have registered again
        lane=_lane_of_broker,
    ),
    Rule(
        request=AlterPartitionReassignmentsRequest,
        response=AlterPartitionReassignmentsResponse,
        perform=alter_reassignments,
        atomic=False,
        asker=Asker.CLIENT,
        retry_safe=False,
        deadline=Deadline.REQUESTED,
    ),
    Rule(
        request=ListPartitionReassignmentsRequest,
        response=ListPartitionReassignmentsResponse,
        perform=list_reassignments,
        atomic=False,
        asker=Asker.CLIENT,
        retry_safe=True,
        deadline=Deadline.REQUESTED,
    ),
    Rule(
        request=ElectLeadersRequest,
        response=ElectLeadersResponse,
        perform=elect_leaders,
        atomic=False,
        asker=Asker.CLIENT,
        retry_safe=False,
        deadline=Deadline.REQUESTED,
    ),
    Rule(
        request=AlterUserScramCredentialsRequest,
        response=AlterUserScramCredentialsResponse,
        perform=alter_scram,
        atomic=True,
        asker=Asker.CLIENT,
        retry_safe=False,  # another client may have changed the user since
    ),
    Rule(
        request=AlterClientQuotasRequest,
        response=AlterClientQuotasResponse,
        perform=alter_quotas,
        atomic=True,
        asker=Asker.CLIENT,
        retry_safe=False,
    ),
    Rule(
        request=CreateAclsRequest,
        response=CreateAclsResponse,
        perform=create_acls,
        atomic=False,  # its records are one batch, which is made before in slices
        asker=Asker.CLIENT,
        retry_safe=True,  # the second one finds what the first one made
        lane=lambda _request: ACL_LANE,
    ),
    Rule(
        request=DeleteAclsRequest,
        response=DeleteAclsResponse,
        perform=delete_acls,
        atomic=False,  # likewise
        asker=Asker.CLIENT,
        retry_safe=False,
        lane=lambda _request: ACL_LANE,
    ),
    Rule(
        request=BeginImportRequest,
        response=BeginImportResponse,
        perform=begin_import,
        atomic=True,
        asker=Asker.CLIENT,
        retry_safe=True,  # the second one finds what the first one made
        deadline=Deadline.REQUESTED,
    ),
    Rule(
        request=FinishImportRequest,
        response=FinishImportResponse,
        perform=finish_import,
        atomic=True,
        asker=Asker.CLIENT,
        retry_safe=True,
        deadline=Deadline.REQUESTED,
    ),
)

RULES: Mapping[type, Rule] = {rule.request: rule for rule in _TABLE}
