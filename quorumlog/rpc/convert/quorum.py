"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/quorum.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    PreferredCandidate,
    QuorumFetchRequest,
    QuorumFetchResponse,
    QuorumNode,
    QuorumReplica,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    TransferLeadershipRequest,
    TransferLeadershipResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    VoterChange,
    VoteRequest,
    VoteResponse,
)
from quorumlog.rpc.convert.common import (
    fill_Endpoint,
    fill_EpochEndOffset,
    fill_NodeEndpoint,
    fill_SnapshotId,
    read_Endpoint,
    read_EpochEndOffset,
    read_NodeEndpoint,
    read_SnapshotId,
)
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import quorum_pb2 as pb


def fill_VoteRequest(m: VoteRequest, p: pb.VoteRequest) -> None:
    p.epoch = m.epoch
    p.candidate_id = m.candidate_id
    p.candidate_directory_id = m.candidate_directory_id
    p.voter_id = m.voter_id
    p.voter_directory_id = m.voter_directory_id
    p.last_epoch = m.last_epoch
    p.last_epoch_end_offset = m.last_epoch_end_offset
    p.pre_vote = m.pre_vote


def read_VoteRequest(p: pb.VoteRequest) -> VoteRequest:
    return VoteRequest(
        epoch=p.epoch,
        candidate_id=p.candidate_id,
        candidate_directory_id=p.candidate_directory_id,
        voter_id=p.voter_id,
        voter_directory_id=p.voter_directory_id,
        last_epoch=p.last_epoch,
        last_epoch_end_offset=p.last_epoch_end_offset,
        pre_vote=p.pre_vote,
    )


def encode_VoteRequest(m: VoteRequest) -> bytes:
    p = pb.VoteRequest()
    fill_VoteRequest(m, p)
    return p.SerializeToString()


def decode_VoteRequest(data: Buffer) -> VoteRequest:
    return read_VoteRequest(parse(pb.VoteRequest, data))


def fill_VoteResponse(m: VoteResponse, p: pb.VoteResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.leader_id = m.leader_id
    p.leader_epoch = m.leader_epoch
    p.vote_granted = m.vote_granted
    for x_node_endpoints in m.node_endpoints:
        fill_NodeEndpoint(x_node_endpoints, p.node_endpoints.add())


def read_VoteResponse(p: pb.VoteResponse) -> VoteResponse:
    return VoteResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        leader_id=p.leader_id,
        leader_epoch=p.leader_epoch,
        vote_granted=p.vote_granted,
        node_endpoints=tuple([read_NodeEndpoint(x) for x in p.node_endpoints]),
    )


def encode_VoteResponse(m: VoteResponse) -> bytes:
    p = pb.VoteResponse()
    fill_VoteResponse(m, p)
    return p.SerializeToString()


def decode_VoteResponse(data: Buffer) -> VoteResponse:
    return read_VoteResponse(parse(pb.VoteResponse, data))


def fill_BeginQuorumEpochRequest(m: BeginQuorumEpochRequest, p: pb.BeginQuorumEpochRequest) -> None:
    p.leader_id = m.leader_id
    p.leader_epoch = m.leader_epoch
    p.voter_id = m.voter_id
    p.voter_directory_id = m.voter_directory_id
    for x_leader_endpoints in m.leader_endpoints:
        fill_Endpoint(x_leader_endpoints, p.leader_endpoints.add())


def read_BeginQuorumEpochRequest(p: pb.BeginQuorumEpochRequest) -> BeginQuorumEpochRequest:
    return BeginQuorumEpochRequest(
        leader_id=p.leader_id,
        leader_epoch=p.leader_epoch,
        voter_id=p.voter_id,
        voter_directory_id=p.voter_directory_id,
        leader_endpoints=tuple([read_Endpoint(x) for x in p.leader_endpoints]),
    )


def encode_BeginQuorumEpochRequest(m: BeginQuorumEpochRequest) -> bytes:
    p = pb.BeginQuorumEpochRequest()
    fill_BeginQuorumEpochRequest(m, p)
    return p.SerializeToString()


def decode_BeginQuorumEpochRequest(data: Buffer) -> BeginQuorumEpochRequest:
    return read_BeginQuorumEpochRequest(parse(pb.BeginQuorumEpochRequest, data))


def fill_BeginQuorumEpochResponse(m: BeginQuorumEpochResponse, p: pb.BeginQuorumEpochResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.leader_id = m.leader_id
    p.leader_epoch = m.leader_epoch


def read_BeginQuorumEpochResponse(p: pb.BeginQuorumEpochResponse) -> BeginQuorumEpochResponse:
    return BeginQuorumEpochResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        leader_id=p.leader_id,
        leader_epoch=p.leader_epoch,
    )


def encode_BeginQuorumEpochResponse(m: BeginQuorumEpochResponse) -> bytes:
    p = pb.BeginQuorumEpochResponse()
    fill_BeginQuorumEpochResponse(m, p)
    return p.SerializeToString()


def decode_BeginQuorumEpochResponse(data: Buffer) -> BeginQuorumEpochResponse:
    return read_BeginQuorumEpochResponse(parse(pb.BeginQuorumEpochResponse, data))


def fill_EndQuorumEpochRequest(m: EndQuorumEpochRequest, p: pb.EndQuorumEpochRequest) -> None:
    p.leader_id = m.leader_id
    p.leader_epoch = m.leader_epoch
    for x_preferred_candidates in m.preferred_candidates:
        fill_PreferredCandidate(x_preferred_candidates, p.preferred_candidates.add())
    for x_leader_endpoints in m.leader_endpoints:
        fill_Endpoint(x_leader_endpoints, p.leader_endpoints.add())


def read_EndQuorumEpochRequest(p: pb.EndQuorumEpochRequest) -> EndQuorumEpochRequest:
    return EndQuorumEpochRequest(
        leader_id=p.leader_id,
        leader_epoch=p.leader_epoch,
        preferred_candidates=tuple([read_PreferredCandidate(x) for x in p.preferred_candidates]),
        leader_endpoints=tuple([read_Endpoint(x) for x in p.leader_endpoints]),
    )


def encode_EndQuorumEpochRequest(m: EndQuorumEpochRequest) -> bytes:
    p = pb.EndQuorumEpochRequest()
    fill_EndQuorumEpochRequest(m, p)
    return p.SerializeToString()


def decode_EndQuorumEpochRequest(data: Buffer) -> EndQuorumEpochRequest:
    return read_EndQuorumEpochRequest(parse(pb.EndQuorumEpochRequest, data))


def fill_PreferredCandidate(m: PreferredCandidate, p: pb.PreferredCandidate) -> None:
    p.node_id = m.node_id
    p.directory_id = m.directory_id


def read_PreferredCandidate(p: pb.PreferredCandidate) -> PreferredCandidate:
    return PreferredCandidate(
        node_id=p.node_id,
        directory_id=p.directory_id,
    )


def encode_PreferredCandidate(m: PreferredCandidate) -> bytes:
    p = pb.PreferredCandidate()
    fill_PreferredCandidate(m, p)
    return p.SerializeToString()


def decode_PreferredCandidate(data: Buffer) -> PreferredCandidate:
    return read_PreferredCandidate(parse(pb.PreferredCandidate, data))


def fill_EndQuorumEpochResponse(m: EndQuorumEpochResponse, p: pb.EndQuorumEpochResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.leader_id = m.leader_id
    p.leader_epoch = m.leader_epoch


def read_EndQuorumEpochResponse(p: pb.EndQuorumEpochResponse) -> EndQuorumEpochResponse:
    return EndQuorumEpochResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        leader_id=p.leader_id,
        leader_epoch=p.leader_epoch,
    )


def encode_EndQuorumEpochResponse(m: EndQuorumEpochResponse) -> bytes:
    p = pb.EndQuorumEpochResponse()
    fill_EndQuorumEpochResponse(m, p)
    return p.SerializeToString()


def decode_EndQuorumEpochResponse(data: Buffer) -> EndQuorumEpochResponse:
    return read_EndQuorumEpochResponse(parse(pb.EndQuorumEpochResponse, data))


def fill_QuorumFetchRequest(m: QuorumFetchRequest, p: pb.QuorumFetchRequest) -> None:
    p.replica_id = m.replica_id
    p.replica_directory_id = m.replica_directory_id
    p.current_leader_epoch = m.current_leader_epoch
    p.fetch_offset = m.fetch_offset
    p.last_fetched_epoch = m.last_fetched_epoch
    p.max_wait_ms = m.max_wait_ms
    p.max_bytes = m.max_bytes
    p.high_watermark = m.high_watermark
    p.read_round = m.read_round


def read_QuorumFetchRequest(p: pb.QuorumFetchRequest) -> QuorumFetchRequest:
    return QuorumFetchRequest(
        replica_id=p.replica_id,
        replica_directory_id=p.replica_directory_id,
        current_leader_epoch=p.current_leader_epoch,
        fetch_offset=p.fetch_offset,
        last_fetched_epoch=p.last_fetched_epoch,
        max_wait_ms=p.max_wait_ms,
        max_bytes=p.max_bytes,
        high_watermark=p.high_watermark,
        read_round=p.read_round,
    )


def encode_QuorumFetchRequest(m: QuorumFetchRequest) -> bytes:
    p = pb.QuorumFetchRequest()
    fill_QuorumFetchRequest(m, p)
    return p.SerializeToString()


def decode_QuorumFetchRequest(data: Buffer) -> QuorumFetchRequest:
    return read_QuorumFetchRequest(parse(pb.QuorumFetchRequest, data))


def fill_QuorumFetchResponse(m: QuorumFetchResponse, p: pb.QuorumFetchResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.leader_id = m.leader_id
    p.leader_epoch = m.leader_epoch
    p.high_watermark = m.high_watermark
    p.log_start_offset = m.log_start_offset
    if m.diverging_epoch is not None:
        p.diverging_epoch.SetInParent()
        fill_EpochEndOffset(m.diverging_epoch, p.diverging_epoch)
    if m.snapshot_id is not None:
        p.snapshot_id.SetInParent()
        fill_SnapshotId(m.snapshot_id, p.snapshot_id)
    p.records = m.records if type(m.records) is bytes else bytes(m.records)
    for x_node_endpoints in m.node_endpoints:
        fill_NodeEndpoint(x_node_endpoints, p.node_endpoints.add())
    p.read_round = m.read_round


def read_QuorumFetchResponse(p: pb.QuorumFetchResponse) -> QuorumFetchResponse:
    return QuorumFetchResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        leader_id=p.leader_id,
        leader_epoch=p.leader_epoch,
        high_watermark=p.high_watermark,
        log_start_offset=p.log_start_offset,
        diverging_epoch=read_EpochEndOffset(p.diverging_epoch) if p.HasField("diverging_epoch") else None,
        snapshot_id=read_SnapshotId(p.snapshot_id) if p.HasField("snapshot_id") else None,
        records=p.records,
        node_endpoints=tuple([read_NodeEndpoint(x) for x in p.node_endpoints]),
        read_round=p.read_round,
    )


def encode_QuorumFetchResponse(m: QuorumFetchResponse) -> bytes:
    p = pb.QuorumFetchResponse()
    fill_QuorumFetchResponse(m, p)
    return p.SerializeToString()


def decode_QuorumFetchResponse(data: Buffer) -> QuorumFetchResponse:
    return read_QuorumFetchResponse(parse(pb.QuorumFetchResponse, data))


def fill_TransferLeadershipRequest(m: TransferLeadershipRequest, p: pb.TransferLeadershipRequest) -> None:
    p.to_node_id = m.to_node_id


def read_TransferLeadershipRequest(p: pb.TransferLeadershipRequest) -> TransferLeadershipRequest:
    return TransferLeadershipRequest(
        to_node_id=p.to_node_id,
    )


def encode_TransferLeadershipRequest(m: TransferLeadershipRequest) -> bytes:
    p = pb.TransferLeadershipRequest()
    fill_TransferLeadershipRequest(m, p)
    return p.SerializeToString()


def decode_TransferLeadershipRequest(data: Buffer) -> TransferLeadershipRequest:
    return read_TransferLeadershipRequest(parse(pb.TransferLeadershipRequest, data))


def fill_TransferLeadershipResponse(m: TransferLeadershipResponse, p: pb.TransferLeadershipResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.leader_id = m.leader_id
    p.leader_epoch = m.leader_epoch


def read_TransferLeadershipResponse(p: pb.TransferLeadershipResponse) -> TransferLeadershipResponse:
    return TransferLeadershipResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        leader_id=p.leader_id,
        leader_epoch=p.leader_epoch,
    )


def encode_TransferLeadershipResponse(m: TransferLeadershipResponse) -> bytes:
    p = pb.TransferLeadershipResponse()
    fill_TransferLeadershipResponse(m, p)
    return p.SerializeToString()


def decode_TransferLeadershipResponse(data: Buffer) -> TransferLeadershipResponse:
    return read_TransferLeadershipResponse(parse(pb.TransferLeadershipResponse, data))


def fill_AddRaftVoterRequest(m: AddRaftVoterRequest, p: pb.AddRaftVoterRequest) -> None:
    p.cluster_id = m.cluster_id
    p.timeout_ms = m.timeout_ms
    p.voter_id = m.voter_id
    p.voter_directory_id = m.voter_directory_id
    for x_listeners in m.listeners:
        fill_Endpoint(x_listeners, p.listeners.add())
    p.ack_when_committed = m.ack_when_committed


def read_AddRaftVoterRequest(p: pb.AddRaftVoterRequest) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(
        cluster_id=p.cluster_id,
        timeout_ms=p.timeout_ms,
        voter_id=p.voter_id,
        voter_directory_id=p.voter_directory_id,
        listeners=tuple([read_Endpoint(x) for x in p.listeners]),
        ack_when_committed=p.ack_when_committed,
    )


def encode_AddRaftVoterRequest(m: AddRaftVoterRequest) -> bytes:
    p = pb.AddRaftVoterRequest()
    fill_AddRaftVoterRequest(m, p)
    return p.SerializeToString()


def decode_AddRaftVoterRequest(data: Buffer) -> AddRaftVoterRequest:
    return read_AddRaftVoterRequest(parse(pb.AddRaftVoterRequest, data))


def fill_AddRaftVoterResponse(m: AddRaftVoterResponse, p: pb.AddRaftVoterResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.leader_id = m.leader_id
    p.leader_epoch = m.leader_epoch


def read_AddRaftVoterResponse(p: pb.AddRaftVoterResponse) -> AddRaftVoterResponse:
    return AddRaftVoterResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        leader_id=p.leader_id,
        leader_epoch=p.leader_epoch,
    )


def encode_AddRaftVoterResponse(m: AddRaftVoterResponse) -> bytes:
    p = pb.AddRaftVoterResponse()
    fill_AddRaftVoterResponse(m, p)
    return p.SerializeToString()


def decode_AddRaftVoterResponse(data: Buffer) -> AddRaftVoterResponse:
    return read_AddRaftVoterResponse(parse(pb.AddRaftVoterResponse, data))


def fill_RemoveRaftVoterRequest(m: RemoveRaftVoterRequest, p: pb.RemoveRaftVoterRequest) -> None:
    p.cluster_id = m.cluster_id
    p.voter_id = m.voter_id
    p.voter_directory_id = m.voter_directory_id


def read_RemoveRaftVoterRequest(p: pb.RemoveRaftVoterRequest) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(
        cluster_id=p.cluster_id,
        voter_id=p.voter_id,
        voter_directory_id=p.voter_directory_id,
    )


def encode_RemoveRaftVoterRequest(m: RemoveRaftVoterRequest) -> bytes:
    p = pb.RemoveRaftVoterRequest()
    fill_RemoveRaftVoterRequest(m, p)
    return p.SerializeToString()


def decode_RemoveRaftVoterRequest(data: Buffer) -> RemoveRaftVoterRequest:
    return read_RemoveRaftVoterRequest(parse(pb.RemoveRaftVoterRequest, data))


def fill_RemoveRaftVoterResponse(m: RemoveRaftVoterResponse, p: pb.RemoveRaftVoterResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.leader_id = m.leader_id
    p.leader_epoch = m.leader_epoch


def read_RemoveRaftVoterResponse(p: pb.RemoveRaftVoterResponse) -> RemoveRaftVoterResponse:
    return RemoveRaftVoterResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        leader_id=p.leader_id,
        leader_epoch=p.leader_epoch,
    )


def encode_RemoveRaftVoterResponse(m: RemoveRaftVoterResponse) -> bytes:
    p = pb.RemoveRaftVoterResponse()
    fill_RemoveRaftVoterResponse(m, p)
    return p.SerializeToString()


def decode_RemoveRaftVoterResponse(data: Buffer) -> RemoveRaftVoterResponse:
    return read_RemoveRaftVoterResponse(parse(pb.RemoveRaftVoterResponse, data))


def fill_UpdateRaftVoterRequest(m: UpdateRaftVoterRequest, p: pb.UpdateRaftVoterRequest) -> None:
    p.current_leader_epoch = m.current_leader_epoch
    p.voter_id = m.voter_id
    p.voter_directory_id = m.voter_directory_id
    for x_listeners in m.listeners:
        fill_Endpoint(x_listeners, p.listeners.add())
    p.min_kraft_version = m.min_kraft_version
    p.max_kraft_version = m.max_kraft_version


def read_UpdateRaftVoterRequest(p: pb.UpdateRaftVoterRequest) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        current_leader_epoch=p.current_leader_epoch,
        voter_id=p.voter_id,
        voter_directory_id=p.voter_directory_id,
        listeners=tuple([read_Endpoint(x) for x in p.listeners]),
        min_kraft_version=p.min_kraft_version,
        max_kraft_version=p.max_kraft_version,
    )


def encode_UpdateRaftVoterRequest(m: UpdateRaftVoterRequest) -> bytes:
    p = pb.UpdateRaftVoterRequest()
    fill_UpdateRaftVoterRequest(m, p)
    return p.SerializeToString()


def decode_UpdateRaftVoterRequest(data: Buffer) -> UpdateRaftVoterRequest:
    return read_UpdateRaftVoterRequest(parse(pb.UpdateRaftVoterRequest, data))


def fill_UpdateRaftVoterResponse(m: UpdateRaftVoterResponse, p: pb.UpdateRaftVoterResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.leader_id = m.leader_id
    p.leader_epoch = m.leader_epoch


def read_UpdateRaftVoterResponse(p: pb.UpdateRaftVoterResponse) -> UpdateRaftVoterResponse:
    return UpdateRaftVoterResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        leader_id=p.leader_id,
        leader_epoch=p.leader_epoch,
    )


def encode_UpdateRaftVoterResponse(m: UpdateRaftVoterResponse) -> bytes:
    p = pb.UpdateRaftVoterResponse()
    fill_UpdateRaftVoterResponse(m, p)
    return p.SerializeToString()


def decode_UpdateRaftVoterResponse(data: Buffer) -> UpdateRaftVoterResponse:
    return read_UpdateRaftVoterResponse(parse(pb.UpdateRaftVoterResponse, data))


def fill_FetchSnapshotRequest(m: FetchSnapshotRequest, p: pb.FetchSnapshotRequest) -> None:
    p.replica_id = m.replica_id
    p.replica_directory_id = m.replica_directory_id
    p.current_leader_epoch = m.current_leader_epoch
    if m.snapshot_id is not None:
        p.snapshot_id.SetInParent()
        fill_SnapshotId(m.snapshot_id, p.snapshot_id)
    p.position = m.position
    p.max_bytes = m.max_bytes


def read_FetchSnapshotRequest(p: pb.FetchSnapshotRequest) -> FetchSnapshotRequest:
    return FetchSnapshotRequest(
        replica_id=p.replica_id,
        replica_directory_id=p.replica_directory_id,
        current_leader_epoch=p.current_leader_epoch,
        snapshot_id=read_SnapshotId(p.snapshot_id) if p.HasField("snapshot_id") else None,
        position=p.position,
        max_bytes=p.max_bytes,
    )


def encode_FetchSnapshotRequest(m: FetchSnapshotRequest) -> bytes:
    p = pb.FetchSnapshotRequest()
    fill_FetchSnapshotRequest(m, p)
    return p.SerializeToString()


def decode_FetchSnapshotRequest(data: Buffer) -> FetchSnapshotRequest:
    return read_FetchSnapshotRequest(parse(pb.FetchSnapshotRequest, data))


def fill_FetchSnapshotResponse(m: FetchSnapshotResponse, p: pb.FetchSnapshotResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.leader_id = m.leader_id
    p.leader_epoch = m.leader_epoch
    if m.snapshot_id is not None:
        p.snapshot_id.SetInParent()
        fill_SnapshotId(m.snapshot_id, p.snapshot_id)
    p.size = m.size
    p.position = m.position
    p.unaligned_records = m.unaligned_records if type(m.unaligned_records) is bytes else bytes(m.unaligned_records)
    for x_node_endpoints in m.node_endpoints:
        fill_NodeEndpoint(x_node_endpoints, p.node_endpoints.add())


def read_FetchSnapshotResponse(p: pb.FetchSnapshotResponse) -> FetchSnapshotResponse:
    return FetchSnapshotResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        leader_id=p.leader_id,
        leader_epoch=p.leader_epoch,
        snapshot_id=read_SnapshotId(p.snapshot_id) if p.HasField("snapshot_id") else None,
        size=p.size,
        position=p.position,
        unaligned_records=p.unaligned_records,
        node_endpoints=tuple([read_NodeEndpoint(x) for x in p.node_endpoints]),
    )


def encode_FetchSnapshotResponse(m: FetchSnapshotResponse) -> bytes:
    p = pb.FetchSnapshotResponse()
    fill_FetchSnapshotResponse(m, p)
    return p.SerializeToString()


def decode_FetchSnapshotResponse(data: Buffer) -> FetchSnapshotResponse:
    return read_FetchSnapshotResponse(parse(pb.FetchSnapshotResponse, data))


def fill_DescribeQuorumRequest(m: DescribeQuorumRequest, p: pb.DescribeQuorumRequest) -> None:
    pass


def read_DescribeQuorumRequest(p: pb.DescribeQuorumRequest) -> DescribeQuorumRequest:
    return DescribeQuorumRequest()


def encode_DescribeQuorumRequest(m: DescribeQuorumRequest) -> bytes:
    p = pb.DescribeQuorumRequest()
    fill_DescribeQuorumRequest(m, p)
    return p.SerializeToString()


def decode_DescribeQuorumRequest(data: Buffer) -> DescribeQuorumRequest:
    return read_DescribeQuorumRequest(parse(pb.DescribeQuorumRequest, data))


def fill_DescribeQuorumResponse(m: DescribeQuorumResponse, p: pb.DescribeQuorumResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.leader_id = m.leader_id
    p.leader_epoch = m.leader_epoch
    p.high_watermark = m.high_watermark
    for x_voters in m.voters:
        fill_QuorumReplica(x_voters, p.voters.add())
    for x_observers in m.observers:
        fill_QuorumReplica(x_observers, p.observers.add())
    for x_nodes in m.nodes:
        fill_QuorumNode(x_nodes, p.nodes.add())
    p.cluster_id = m.cluster_id
    p.kraft_version = m.kraft_version
    if m.voter_change is not None:
        p.voter_change.SetInParent()
        fill_VoterChange(m.voter_change, p.voter_change)


def read_DescribeQuorumResponse(p: pb.DescribeQuorumResponse) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        leader_id=p.leader_id,
        leader_epoch=p.leader_epoch,
        high_watermark=p.high_watermark,
        voters=tuple([read_QuorumReplica(x) for x in p.voters]),
        observers=tuple([read_QuorumReplica(x) for x in p.observers]),
        nodes=tuple([read_QuorumNode(x) for x in p.nodes]),
        cluster_id=p.cluster_id,
        kraft_version=p.kraft_version,
        voter_change=read_VoterChange(p.voter_change) if p.HasField("voter_change") else None,
    )


def encode_DescribeQuorumResponse(m: DescribeQuorumResponse) -> bytes:
    p = pb.DescribeQuorumResponse()
    fill_DescribeQuorumResponse(m, p)
    return p.SerializeToString()


def decode_DescribeQuorumResponse(data: Buffer) -> DescribeQuorumResponse:
    return read_DescribeQuorumResponse(parse(pb.DescribeQuorumResponse, data))


def fill_VoterChange(m: VoterChange, p: pb.VoterChange) -> None:
    p.kind = m.kind
    p.voter_id = m.voter_id
    p.voter_directory_id = m.voter_directory_id
    p.phase = m.phase
    p.log_end_offset = m.log_end_offset
    p.leader_end_offset = m.leader_end_offset


def read_VoterChange(p: pb.VoterChange) -> VoterChange:
    return VoterChange(
        kind=p.kind,
        voter_id=p.voter_id,
        voter_directory_id=p.voter_directory_id,
        phase=p.phase,
        log_end_offset=p.log_end_offset,
        leader_end_offset=p.leader_end_offset,
    )


def encode_VoterChange(m: VoterChange) -> bytes:
    p = pb.VoterChange()
    fill_VoterChange(m, p)
    return p.SerializeToString()


def decode_VoterChange(data: Buffer) -> VoterChange:
    return read_VoterChange(parse(pb.VoterChange, data))


def fill_QuorumReplica(m: QuorumReplica, p: pb.QuorumReplica) -> None:
    p.replica_id = m.replica_id
    p.directory_id = m.directory_id
    p.log_end_offset = m.log_end_offset
    p.since_fetch_ms = m.since_fetch_ms
    p.since_caught_up_ms = m.since_caught_up_ms
    p.last_fetch_wall_ms = m.last_fetch_wall_ms
    p.last_caught_up_wall_ms = m.last_caught_up_wall_ms


def read_QuorumReplica(p: pb.QuorumReplica) -> QuorumReplica:
    return QuorumReplica(
        replica_id=p.replica_id,
        directory_id=p.directory_id,
        log_end_offset=p.log_end_offset,
        since_fetch_ms=p.since_fetch_ms,
        since_caught_up_ms=p.since_caught_up_ms,
        last_fetch_wall_ms=p.last_fetch_wall_ms,
        last_caught_up_wall_ms=p.last_caught_up_wall_ms,
    )


def encode_QuorumReplica(m: QuorumReplica) -> bytes:
    p = pb.QuorumReplica()
    fill_QuorumReplica(m, p)
    return p.SerializeToString()


def decode_QuorumReplica(data: Buffer) -> QuorumReplica:
    return read_QuorumReplica(parse(pb.QuorumReplica, data))


def fill_QuorumNode(m: QuorumNode, p: pb.QuorumNode) -> None:
    p.node_id = m.node_id
    for x_endpoints in m.endpoints:
        fill_Endpoint(x_endpoints, p.endpoints.add())


def read_QuorumNode(p: pb.QuorumNode) -> QuorumNode:
    return QuorumNode(
        node_id=p.node_id,
        endpoints=tuple([read_Endpoint(x) for x in p.endpoints]),
    )


def encode_QuorumNode(m: QuorumNode) -> bytes:
    p = pb.QuorumNode()
    fill_QuorumNode(m, p)
    return p.SerializeToString()


def decode_QuorumNode(data: Buffer) -> QuorumNode:
    return read_QuorumNode(parse(pb.QuorumNode, data))
