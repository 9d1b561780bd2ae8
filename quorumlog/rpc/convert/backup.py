"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/backup.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.backup import (
    CoordinatedPartition,
    HoldCommitsRequest,
    HoldCommitsResponse,
    ReadMetadataRequest,
    ReadMetadataResponse,
)
from quorumlog.messages.buffer import Buffer
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import backup_pb2 as pb


def fill_ReadMetadataRequest(m: ReadMetadataRequest, p: pb.ReadMetadataRequest) -> None:
    p.timeout_ms = m.timeout_ms


def read_ReadMetadataRequest(p: pb.ReadMetadataRequest) -> ReadMetadataRequest:
    return ReadMetadataRequest(
        timeout_ms=p.timeout_ms,
    )


def encode_ReadMetadataRequest(m: ReadMetadataRequest) -> bytes:
    p = pb.ReadMetadataRequest()
    fill_ReadMetadataRequest(m, p)
    return p.SerializeToString()


def decode_ReadMetadataRequest(data: Buffer) -> ReadMetadataRequest:
    return read_ReadMetadataRequest(parse(pb.ReadMetadataRequest, data))


def fill_ReadMetadataResponse(m: ReadMetadataResponse, p: pb.ReadMetadataResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.offset = m.offset
    p.snapshot = m.snapshot


def read_ReadMetadataResponse(p: pb.ReadMetadataResponse) -> ReadMetadataResponse:
    return ReadMetadataResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        offset=p.offset,
        snapshot=p.snapshot,
    )


def encode_ReadMetadataResponse(m: ReadMetadataResponse) -> bytes:
    p = pb.ReadMetadataResponse()
    fill_ReadMetadataResponse(m, p)
    return p.SerializeToString()


def decode_ReadMetadataResponse(data: Buffer) -> ReadMetadataResponse:
    return read_ReadMetadataResponse(parse(pb.ReadMetadataResponse, data))


def fill_HoldCommitsRequest(m: HoldCommitsRequest, p: pb.HoldCommitsRequest) -> None:
    p.holder = m.holder
    p.lease_ms = m.lease_ms


def read_HoldCommitsRequest(p: pb.HoldCommitsRequest) -> HoldCommitsRequest:
    return HoldCommitsRequest(
        holder=p.holder,
        lease_ms=p.lease_ms,
    )


def encode_HoldCommitsRequest(m: HoldCommitsRequest) -> bytes:
    p = pb.HoldCommitsRequest()
    fill_HoldCommitsRequest(m, p)
    return p.SerializeToString()


def decode_HoldCommitsRequest(data: Buffer) -> HoldCommitsRequest:
    return read_HoldCommitsRequest(parse(pb.HoldCommitsRequest, data))


def fill_HoldCommitsResponse(m: HoldCommitsResponse, p: pb.HoldCommitsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.was_held = m.was_held
    p.is_drained = m.is_drained
    for x_partitions in m.partitions:
        fill_CoordinatedPartition(x_partitions, p.partitions.add())
    p.compaction_paused_ms = m.compaction_paused_ms


def read_HoldCommitsResponse(p: pb.HoldCommitsResponse) -> HoldCommitsResponse:
    return HoldCommitsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        was_held=p.was_held,
        is_drained=p.is_drained,
        partitions=tuple([read_CoordinatedPartition(x) for x in p.partitions]),
        compaction_paused_ms=p.compaction_paused_ms,
    )


def encode_HoldCommitsResponse(m: HoldCommitsResponse) -> bytes:
    p = pb.HoldCommitsResponse()
    fill_HoldCommitsResponse(m, p)
    return p.SerializeToString()


def decode_HoldCommitsResponse(data: Buffer) -> HoldCommitsResponse:
    return read_HoldCommitsResponse(parse(pb.HoldCommitsResponse, data))


def fill_CoordinatedPartition(m: CoordinatedPartition, p: pb.CoordinatedPartition) -> None:
    p.index = m.index
    p.leader_epoch = m.leader_epoch


def read_CoordinatedPartition(p: pb.CoordinatedPartition) -> CoordinatedPartition:
    return CoordinatedPartition(
        index=p.index,
        leader_epoch=p.leader_epoch,
    )


def encode_CoordinatedPartition(m: CoordinatedPartition) -> bytes:
    p = pb.CoordinatedPartition()
    fill_CoordinatedPartition(m, p)
    return p.SerializeToString()


def decode_CoordinatedPartition(data: Buffer) -> CoordinatedPartition:
    return read_CoordinatedPartition(parse(pb.CoordinatedPartition, data))
