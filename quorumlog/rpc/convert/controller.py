"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/controller.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.controller import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartition,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    AssignReplicasToDirectoriesRequest,
    AssignReplicasToDirectoriesResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    DamagedPartition,
    DirectoryAssignment,
    DirectoryAssignmentResult,
    EnvelopeRequest,
    EnvelopeResponse,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    IsrMember,
    ProbeRequest,
    ProbeResponse,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
    RegisterControllerRequest,
    RegisterControllerResponse,
    ReplicaLogInfo,
    ReplicaLogQuery,
)
from quorumlog.rpc.convert.common import fill_Endpoint, fill_FeatureRange, read_Endpoint, read_FeatureRange
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import controller_pb2 as pb


def fill_RegisterBrokerRequest(m: RegisterBrokerRequest, p: pb.RegisterBrokerRequest) -> None:
    p.broker_id = m.broker_id
    p.cluster_id = m.cluster_id
    p.incarnation_id = m.incarnation_id
    for x_endpoints in m.endpoints:
        fill_Endpoint(x_endpoints, p.endpoints.add())
    p.log_directories.extend(m.log_directories)
    if m.rack is not None:
        p.rack = m.rack
    p.previous_broker_epoch = m.previous_broker_epoch
    for x_features in m.features:
        fill_FeatureRange(x_features, p.features.add())
    for x_damaged_partitions in m.damaged_partitions:
        fill_DamagedPartition(x_damaged_partitions, p.damaged_partitions.add())
    p.cordoned_directories.extend(m.cordoned_directories)


def read_RegisterBrokerRequest(p: pb.RegisterBrokerRequest) -> RegisterBrokerRequest:
    return RegisterBrokerRequest(
        broker_id=p.broker_id,
        cluster_id=p.cluster_id,
        incarnation_id=p.incarnation_id,
        endpoints=tuple([read_Endpoint(x) for x in p.endpoints]),
        log_directories=tuple(p.log_directories[:]),
        rack=p.rack if p.HasField("rack") else None,
        previous_broker_epoch=p.previous_broker_epoch,
        features=tuple([read_FeatureRange(x) for x in p.features]),
        damaged_partitions=tuple([read_DamagedPartition(x) for x in p.damaged_partitions]),
        cordoned_directories=tuple(p.cordoned_directories[:]),
    )


def encode_RegisterBrokerRequest(m: RegisterBrokerRequest) -> bytes:
    p = pb.RegisterBrokerRequest()
    fill_RegisterBrokerRequest(m, p)
    return p.SerializeToString()


def decode_RegisterBrokerRequest(data: Buffer) -> RegisterBrokerRequest:
    return read_RegisterBrokerRequest(parse(pb.RegisterBrokerRequest, data))


def fill_DamagedPartition(m: DamagedPartition, p: pb.DamagedPartition) -> None:
    p.topic_id = m.topic_id
    p.index = m.index


def read_DamagedPartition(p: pb.DamagedPartition) -> DamagedPartition:
    return DamagedPartition(
        topic_id=p.topic_id,
        index=p.index,
    )


def encode_DamagedPartition(m: DamagedPartition) -> bytes:
    p = pb.DamagedPartition()
    fill_DamagedPartition(m, p)
    return p.SerializeToString()


def decode_DamagedPartition(data: Buffer) -> DamagedPartition:
    return read_DamagedPartition(parse(pb.DamagedPartition, data))


def fill_RegisterBrokerResponse(m: RegisterBrokerResponse, p: pb.RegisterBrokerResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.broker_epoch = m.broker_epoch


def read_RegisterBrokerResponse(p: pb.RegisterBrokerResponse) -> RegisterBrokerResponse:
    return RegisterBrokerResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        broker_epoch=p.broker_epoch,
    )


def encode_RegisterBrokerResponse(m: RegisterBrokerResponse) -> bytes:
    p = pb.RegisterBrokerResponse()
    fill_RegisterBrokerResponse(m, p)
    return p.SerializeToString()


def decode_RegisterBrokerResponse(data: Buffer) -> RegisterBrokerResponse:
    return read_RegisterBrokerResponse(parse(pb.RegisterBrokerResponse, data))


def fill_BrokerHeartbeatRequest(m: BrokerHeartbeatRequest, p: pb.BrokerHeartbeatRequest) -> None:
    p.broker_id = m.broker_id
    p.broker_epoch = m.broker_epoch
    p.current_metadata_offset = m.current_metadata_offset
    p.want_fence = m.want_fence
    p.want_shutdown = m.want_shutdown
    p.offline_directories.extend(m.offline_directories)
    p.incarnation_id = m.incarnation_id
    p.at_rest = m.at_rest
    p.deletions_done_before = m.deletions_done_before
    p.cordoned_directories.extend(m.cordoned_directories)
    p.tells_cordoned = m.tells_cordoned


def read_BrokerHeartbeatRequest(p: pb.BrokerHeartbeatRequest) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(
        broker_id=p.broker_id,
        broker_epoch=p.broker_epoch,
        current_metadata_offset=p.current_metadata_offset,
        want_fence=p.want_fence,
        want_shutdown=p.want_shutdown,
        offline_directories=tuple(p.offline_directories[:]),
        incarnation_id=p.incarnation_id,
        at_rest=p.at_rest,
        deletions_done_before=p.deletions_done_before,
        cordoned_directories=tuple(p.cordoned_directories[:]),
        tells_cordoned=p.tells_cordoned,
    )


def encode_BrokerHeartbeatRequest(m: BrokerHeartbeatRequest) -> bytes:
    p = pb.BrokerHeartbeatRequest()
    fill_BrokerHeartbeatRequest(m, p)
    return p.SerializeToString()


def decode_BrokerHeartbeatRequest(data: Buffer) -> BrokerHeartbeatRequest:
    return read_BrokerHeartbeatRequest(parse(pb.BrokerHeartbeatRequest, data))


def fill_BrokerHeartbeatResponse(m: BrokerHeartbeatResponse, p: pb.BrokerHeartbeatResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.is_caught_up = m.is_caught_up
    p.is_fenced = m.is_fenced
    p.should_shutdown = m.should_shutdown
    p.session_timeout_ms = m.session_timeout_ms


def read_BrokerHeartbeatResponse(p: pb.BrokerHeartbeatResponse) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        is_caught_up=p.is_caught_up,
        is_fenced=p.is_fenced,
        should_shutdown=p.should_shutdown,
        session_timeout_ms=p.session_timeout_ms,
    )


def encode_BrokerHeartbeatResponse(m: BrokerHeartbeatResponse) -> bytes:
    p = pb.BrokerHeartbeatResponse()
    fill_BrokerHeartbeatResponse(m, p)
    return p.SerializeToString()


def decode_BrokerHeartbeatResponse(data: Buffer) -> BrokerHeartbeatResponse:
    return read_BrokerHeartbeatResponse(parse(pb.BrokerHeartbeatResponse, data))


def fill_AlterPartitionRequest(m: AlterPartitionRequest, p: pb.AlterPartitionRequest) -> None:
    p.broker_id = m.broker_id
    p.broker_epoch = m.broker_epoch
    for x_partitions in m.partitions:
        fill_AlterPartition(x_partitions, p.partitions.add())
    p.metadata_end = m.metadata_end


def read_AlterPartitionRequest(p: pb.AlterPartitionRequest) -> AlterPartitionRequest:
    return AlterPartitionRequest(
        broker_id=p.broker_id,
        broker_epoch=p.broker_epoch,
        partitions=tuple([read_AlterPartition(x) for x in p.partitions]),
        metadata_end=p.metadata_end,
    )


def encode_AlterPartitionRequest(m: AlterPartitionRequest) -> bytes:
    p = pb.AlterPartitionRequest()
    fill_AlterPartitionRequest(m, p)
    return p.SerializeToString()


def decode_AlterPartitionRequest(data: Buffer) -> AlterPartitionRequest:
    return read_AlterPartitionRequest(parse(pb.AlterPartitionRequest, data))


def fill_AlterPartition(m: AlterPartition, p: pb.AlterPartition) -> None:
    p.topic_id = m.topic_id
    p.index = m.index
    p.leader_epoch = m.leader_epoch
    p.partition_epoch = m.partition_epoch
    for x_new_isr in m.new_isr:
        fill_IsrMember(x_new_isr, p.new_isr.add())
    p.leader_recovery_state = m.leader_recovery_state


def read_AlterPartition(p: pb.AlterPartition) -> AlterPartition:
    return AlterPartition(
        topic_id=p.topic_id,
        index=p.index,
        leader_epoch=p.leader_epoch,
        partition_epoch=p.partition_epoch,
        new_isr=tuple([read_IsrMember(x) for x in p.new_isr]),
        leader_recovery_state=p.leader_recovery_state,
    )


def encode_AlterPartition(m: AlterPartition) -> bytes:
    p = pb.AlterPartition()
    fill_AlterPartition(m, p)
    return p.SerializeToString()


def decode_AlterPartition(data: Buffer) -> AlterPartition:
    return read_AlterPartition(parse(pb.AlterPartition, data))


def fill_IsrMember(m: IsrMember, p: pb.IsrMember) -> None:
    p.broker_id = m.broker_id
    p.broker_epoch = m.broker_epoch


def read_IsrMember(p: pb.IsrMember) -> IsrMember:
    return IsrMember(
        broker_id=p.broker_id,
        broker_epoch=p.broker_epoch,
    )


def encode_IsrMember(m: IsrMember) -> bytes:
    p = pb.IsrMember()
    fill_IsrMember(m, p)
    return p.SerializeToString()


def decode_IsrMember(data: Buffer) -> IsrMember:
    return read_IsrMember(parse(pb.IsrMember, data))


def fill_AlterPartitionResponse(m: AlterPartitionResponse, p: pb.AlterPartitionResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_partitions in m.partitions:
        fill_AlterPartitionResult(x_partitions, p.partitions.add())


def read_AlterPartitionResponse(p: pb.AlterPartitionResponse) -> AlterPartitionResponse:
    return AlterPartitionResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        partitions=tuple([read_AlterPartitionResult(x) for x in p.partitions]),
    )


def encode_AlterPartitionResponse(m: AlterPartitionResponse) -> bytes:
    p = pb.AlterPartitionResponse()
    fill_AlterPartitionResponse(m, p)
    return p.SerializeToString()


def decode_AlterPartitionResponse(data: Buffer) -> AlterPartitionResponse:
    return read_AlterPartitionResponse(parse(pb.AlterPartitionResponse, data))


def fill_AlterPartitionResult(m: AlterPartitionResult, p: pb.AlterPartitionResult) -> None:
    p.topic_id = m.topic_id
    p.index = m.index
    p.error_code = m.error_code
    p.leader_id = m.leader_id
    p.leader_epoch = m.leader_epoch
    p.partition_epoch = m.partition_epoch
    p.isr.extend(m.isr)
    p.leader_recovery_state = m.leader_recovery_state


def read_AlterPartitionResult(p: pb.AlterPartitionResult) -> AlterPartitionResult:
    return AlterPartitionResult(
        topic_id=p.topic_id,
        index=p.index,
        error_code=p.error_code,
        leader_id=p.leader_id,
        leader_epoch=p.leader_epoch,
        partition_epoch=p.partition_epoch,
        isr=tuple(p.isr[:]),
        leader_recovery_state=p.leader_recovery_state,
    )


def encode_AlterPartitionResult(m: AlterPartitionResult) -> bytes:
    p = pb.AlterPartitionResult()
    fill_AlterPartitionResult(m, p)
    return p.SerializeToString()


def decode_AlterPartitionResult(data: Buffer) -> AlterPartitionResult:
    return read_AlterPartitionResult(parse(pb.AlterPartitionResult, data))


def fill_AssignReplicasToDirectoriesRequest(
    m: AssignReplicasToDirectoriesRequest, p: pb.AssignReplicasToDirectoriesRequest
) -> None:
    p.broker_id = m.broker_id
    p.broker_epoch = m.broker_epoch
    for x_assignments in m.assignments:
        fill_DirectoryAssignment(x_assignments, p.assignments.add())


def read_AssignReplicasToDirectoriesRequest(
    p: pb.AssignReplicasToDirectoriesRequest,
) -> AssignReplicasToDirectoriesRequest:
    return AssignReplicasToDirectoriesRequest(
        broker_id=p.broker_id,
        broker_epoch=p.broker_epoch,
        assignments=tuple([read_DirectoryAssignment(x) for x in p.assignments]),
    )


def encode_AssignReplicasToDirectoriesRequest(m: AssignReplicasToDirectoriesRequest) -> bytes:
    p = pb.AssignReplicasToDirectoriesRequest()
    fill_AssignReplicasToDirectoriesRequest(m, p)
    return p.SerializeToString()


def decode_AssignReplicasToDirectoriesRequest(data: Buffer) -> AssignReplicasToDirectoriesRequest:
    return read_AssignReplicasToDirectoriesRequest(parse(pb.AssignReplicasToDirectoriesRequest, data))


def fill_DirectoryAssignment(m: DirectoryAssignment, p: pb.DirectoryAssignment) -> None:
    p.topic_id = m.topic_id
    p.index = m.index
    p.directory_id = m.directory_id
    p.keeps_log = m.keeps_log


def read_DirectoryAssignment(p: pb.DirectoryAssignment) -> DirectoryAssignment:
    return DirectoryAssignment(
        topic_id=p.topic_id,
        index=p.index,
        directory_id=p.directory_id,
        keeps_log=p.keeps_log,
    )


def encode_DirectoryAssignment(m: DirectoryAssignment) -> bytes:
    p = pb.DirectoryAssignment()
    fill_DirectoryAssignment(m, p)
    return p.SerializeToString()


def decode_DirectoryAssignment(data: Buffer) -> DirectoryAssignment:
    return read_DirectoryAssignment(parse(pb.DirectoryAssignment, data))


def fill_AssignReplicasToDirectoriesResponse(
    m: AssignReplicasToDirectoriesResponse, p: pb.AssignReplicasToDirectoriesResponse
) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_results in m.results:
        fill_DirectoryAssignmentResult(x_results, p.results.add())


def read_AssignReplicasToDirectoriesResponse(
    p: pb.AssignReplicasToDirectoriesResponse,
) -> AssignReplicasToDirectoriesResponse:
    return AssignReplicasToDirectoriesResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        results=tuple([read_DirectoryAssignmentResult(x) for x in p.results]),
    )


def encode_AssignReplicasToDirectoriesResponse(m: AssignReplicasToDirectoriesResponse) -> bytes:
    p = pb.AssignReplicasToDirectoriesResponse()
    fill_AssignReplicasToDirectoriesResponse(m, p)
    return p.SerializeToString()


def decode_AssignReplicasToDirectoriesResponse(data: Buffer) -> AssignReplicasToDirectoriesResponse:
    return read_AssignReplicasToDirectoriesResponse(parse(pb.AssignReplicasToDirectoriesResponse, data))


def fill_DirectoryAssignmentResult(m: DirectoryAssignmentResult, p: pb.DirectoryAssignmentResult) -> None:
    p.topic_id = m.topic_id
    p.index = m.index
    p.error_code = m.error_code


def read_DirectoryAssignmentResult(p: pb.DirectoryAssignmentResult) -> DirectoryAssignmentResult:
    return DirectoryAssignmentResult(
        topic_id=p.topic_id,
        index=p.index,
        error_code=p.error_code,
    )


def encode_DirectoryAssignmentResult(m: DirectoryAssignmentResult) -> bytes:
    p = pb.DirectoryAssignmentResult()
    fill_DirectoryAssignmentResult(m, p)
    return p.SerializeToString()


def decode_DirectoryAssignmentResult(data: Buffer) -> DirectoryAssignmentResult:
    return read_DirectoryAssignmentResult(parse(pb.DirectoryAssignmentResult, data))


def fill_AllocateProducerIdsRequest(m: AllocateProducerIdsRequest, p: pb.AllocateProducerIdsRequest) -> None:
    p.broker_id = m.broker_id
    p.broker_epoch = m.broker_epoch


def read_AllocateProducerIdsRequest(p: pb.AllocateProducerIdsRequest) -> AllocateProducerIdsRequest:
    return AllocateProducerIdsRequest(
        broker_id=p.broker_id,
        broker_epoch=p.broker_epoch,
    )


def encode_AllocateProducerIdsRequest(m: AllocateProducerIdsRequest) -> bytes:
    p = pb.AllocateProducerIdsRequest()
    fill_AllocateProducerIdsRequest(m, p)
    return p.SerializeToString()


def decode_AllocateProducerIdsRequest(data: Buffer) -> AllocateProducerIdsRequest:
    return read_AllocateProducerIdsRequest(parse(pb.AllocateProducerIdsRequest, data))


def fill_AllocateProducerIdsResponse(m: AllocateProducerIdsResponse, p: pb.AllocateProducerIdsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.first_producer_id = m.first_producer_id
    p.count = m.count


def read_AllocateProducerIdsResponse(p: pb.AllocateProducerIdsResponse) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        first_producer_id=p.first_producer_id,
        count=p.count,
    )


def encode_AllocateProducerIdsResponse(m: AllocateProducerIdsResponse) -> bytes:
    p = pb.AllocateProducerIdsResponse()
    fill_AllocateProducerIdsResponse(m, p)
    return p.SerializeToString()


def decode_AllocateProducerIdsResponse(data: Buffer) -> AllocateProducerIdsResponse:
    return read_AllocateProducerIdsResponse(parse(pb.AllocateProducerIdsResponse, data))


def fill_RegisterControllerRequest(m: RegisterControllerRequest, p: pb.RegisterControllerRequest) -> None:
    p.controller_id = m.controller_id
    p.cluster_id = m.cluster_id
    p.incarnation_id = m.incarnation_id
    for x_endpoints in m.endpoints:
        fill_Endpoint(x_endpoints, p.endpoints.add())
    for x_features in m.features:
        fill_FeatureRange(x_features, p.features.add())


def read_RegisterControllerRequest(p: pb.RegisterControllerRequest) -> RegisterControllerRequest:
    return RegisterControllerRequest(
        controller_id=p.controller_id,
        cluster_id=p.cluster_id,
        incarnation_id=p.incarnation_id,
        endpoints=tuple([read_Endpoint(x) for x in p.endpoints]),
        features=tuple([read_FeatureRange(x) for x in p.features]),
    )


def encode_RegisterControllerRequest(m: RegisterControllerRequest) -> bytes:
    p = pb.RegisterControllerRequest()
    fill_RegisterControllerRequest(m, p)
    return p.SerializeToString()


def decode_RegisterControllerRequest(data: Buffer) -> RegisterControllerRequest:
    return read_RegisterControllerRequest(parse(pb.RegisterControllerRequest, data))


def fill_RegisterControllerResponse(m: RegisterControllerResponse, p: pb.RegisterControllerResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_RegisterControllerResponse(p: pb.RegisterControllerResponse) -> RegisterControllerResponse:
    return RegisterControllerResponse(
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_RegisterControllerResponse(m: RegisterControllerResponse) -> bytes:
    p = pb.RegisterControllerResponse()
    fill_RegisterControllerResponse(m, p)
    return p.SerializeToString()


def decode_RegisterControllerResponse(data: Buffer) -> RegisterControllerResponse:
    return read_RegisterControllerResponse(parse(pb.RegisterControllerResponse, data))


def fill_ProbeRequest(m: ProbeRequest, p: pb.ProbeRequest) -> None:
    pass


def read_ProbeRequest(p: pb.ProbeRequest) -> ProbeRequest:
    return ProbeRequest()


def encode_ProbeRequest(m: ProbeRequest) -> bytes:
    p = pb.ProbeRequest()
    fill_ProbeRequest(m, p)
    return p.SerializeToString()


def decode_ProbeRequest(data: Buffer) -> ProbeRequest:
    return read_ProbeRequest(parse(pb.ProbeRequest, data))


def fill_ProbeResponse(m: ProbeResponse, p: pb.ProbeResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.node_id = m.node_id
    p.incarnation_id = m.incarnation_id
    p.directory_id = m.directory_id
    p.is_controller = m.is_controller
    p.min_kraft_version = m.min_kraft_version
    p.max_kraft_version = m.max_kraft_version


def read_ProbeResponse(p: pb.ProbeResponse) -> ProbeResponse:
    return ProbeResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        node_id=p.node_id,
        incarnation_id=p.incarnation_id,
        directory_id=p.directory_id,
        is_controller=p.is_controller,
        min_kraft_version=p.min_kraft_version,
        max_kraft_version=p.max_kraft_version,
    )


def encode_ProbeResponse(m: ProbeResponse) -> bytes:
    p = pb.ProbeResponse()
    fill_ProbeResponse(m, p)
    return p.SerializeToString()


def decode_ProbeResponse(data: Buffer) -> ProbeResponse:
    return read_ProbeResponse(parse(pb.ProbeResponse, data))


def fill_GetReplicaLogInfoRequest(m: GetReplicaLogInfoRequest, p: pb.GetReplicaLogInfoRequest) -> None:
    p.broker_id = m.broker_id
    for x_partitions in m.partitions:
        fill_ReplicaLogQuery(x_partitions, p.partitions.add())


def read_GetReplicaLogInfoRequest(p: pb.GetReplicaLogInfoRequest) -> GetReplicaLogInfoRequest:
    return GetReplicaLogInfoRequest(
        broker_id=p.broker_id,
        partitions=tuple([read_ReplicaLogQuery(x) for x in p.partitions]),
    )


def encode_GetReplicaLogInfoRequest(m: GetReplicaLogInfoRequest) -> bytes:
    p = pb.GetReplicaLogInfoRequest()
    fill_GetReplicaLogInfoRequest(m, p)
    return p.SerializeToString()


def decode_GetReplicaLogInfoRequest(data: Buffer) -> GetReplicaLogInfoRequest:
    return read_GetReplicaLogInfoRequest(parse(pb.GetReplicaLogInfoRequest, data))


def fill_ReplicaLogQuery(m: ReplicaLogQuery, p: pb.ReplicaLogQuery) -> None:
    p.topic_id = m.topic_id
    p.index = m.index
    p.leader_epoch = m.leader_epoch


def read_ReplicaLogQuery(p: pb.ReplicaLogQuery) -> ReplicaLogQuery:
    return ReplicaLogQuery(
        topic_id=p.topic_id,
        index=p.index,
        leader_epoch=p.leader_epoch,
    )


def encode_ReplicaLogQuery(m: ReplicaLogQuery) -> bytes:
    p = pb.ReplicaLogQuery()
    fill_ReplicaLogQuery(m, p)
    return p.SerializeToString()


def decode_ReplicaLogQuery(data: Buffer) -> ReplicaLogQuery:
    return read_ReplicaLogQuery(parse(pb.ReplicaLogQuery, data))


def fill_GetReplicaLogInfoResponse(m: GetReplicaLogInfoResponse, p: pb.GetReplicaLogInfoResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.broker_epoch = m.broker_epoch
    for x_partitions in m.partitions:
        fill_ReplicaLogInfo(x_partitions, p.partitions.add())


def read_GetReplicaLogInfoResponse(p: pb.GetReplicaLogInfoResponse) -> GetReplicaLogInfoResponse:
    return GetReplicaLogInfoResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        broker_epoch=p.broker_epoch,
        partitions=tuple([read_ReplicaLogInfo(x) for x in p.partitions]),
    )


def encode_GetReplicaLogInfoResponse(m: GetReplicaLogInfoResponse) -> bytes:
    p = pb.GetReplicaLogInfoResponse()
    fill_GetReplicaLogInfoResponse(m, p)
    return p.SerializeToString()


def decode_GetReplicaLogInfoResponse(data: Buffer) -> GetReplicaLogInfoResponse:
    return read_GetReplicaLogInfoResponse(parse(pb.GetReplicaLogInfoResponse, data))


def fill_ReplicaLogInfo(m: ReplicaLogInfo, p: pb.ReplicaLogInfo) -> None:
    p.topic_id = m.topic_id
    p.index = m.index
    p.error_code = m.error_code
    p.last_written_leader_epoch = m.last_written_leader_epoch
    p.log_end_offset = m.log_end_offset


def read_ReplicaLogInfo(p: pb.ReplicaLogInfo) -> ReplicaLogInfo:
    return ReplicaLogInfo(
        topic_id=p.topic_id,
        index=p.index,
        error_code=p.error_code,
        last_written_leader_epoch=p.last_written_leader_epoch,
        log_end_offset=p.log_end_offset,
    )


def encode_ReplicaLogInfo(m: ReplicaLogInfo) -> bytes:
    p = pb.ReplicaLogInfo()
    fill_ReplicaLogInfo(m, p)
    return p.SerializeToString()


def decode_ReplicaLogInfo(data: Buffer) -> ReplicaLogInfo:
    return read_ReplicaLogInfo(parse(pb.ReplicaLogInfo, data))


def fill_EnvelopeRequest(m: EnvelopeRequest, p: pb.EnvelopeRequest) -> None:
    p.principal_type = m.principal_type
    p.principal_name = m.principal_name
    p.client_host = m.client_host
    p.client_id = m.client_id
    p.method = m.method
    p.request = m.request


def read_EnvelopeRequest(p: pb.EnvelopeRequest) -> EnvelopeRequest:
    return EnvelopeRequest(
        principal_type=p.principal_type,
        principal_name=p.principal_name,
        client_host=p.client_host,
        client_id=p.client_id,
        method=p.method,
        request=p.request,
    )


def encode_EnvelopeRequest(m: EnvelopeRequest) -> bytes:
    p = pb.EnvelopeRequest()
    fill_EnvelopeRequest(m, p)
    return p.SerializeToString()


def decode_EnvelopeRequest(data: Buffer) -> EnvelopeRequest:
    return read_EnvelopeRequest(parse(pb.EnvelopeRequest, data))


def fill_EnvelopeResponse(m: EnvelopeResponse, p: pb.EnvelopeResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.response = m.response
    p.metadata_end = m.metadata_end


def read_EnvelopeResponse(p: pb.EnvelopeResponse) -> EnvelopeResponse:
    return EnvelopeResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        response=p.response,
        metadata_end=p.metadata_end,
    )


def encode_EnvelopeResponse(m: EnvelopeResponse) -> bytes:
    p = pb.EnvelopeResponse()
    fill_EnvelopeResponse(m, p)
    return p.SerializeToString()


def decode_EnvelopeResponse(data: Buffer) -> EnvelopeResponse:
    return read_EnvelopeResponse(parse(pb.EnvelopeResponse, data))
