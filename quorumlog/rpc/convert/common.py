"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/common.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.common import (
    ConfigEntry,
    CurrentLeader,
    Endpoint,
    EpochEndOffset,
    FeatureRange,
    NodeEndpoint,
    QuotaEntity,
    SnapshotId,
)
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import common_pb2 as pb


def fill_Endpoint(m: Endpoint, p: pb.Endpoint) -> None:
    p.name = m.name
    p.host = m.host
    p.port = m.port


def read_Endpoint(p: pb.Endpoint) -> Endpoint:
    return Endpoint(
        name=p.name,
        host=p.host,
        port=p.port,
    )


def encode_Endpoint(m: Endpoint) -> bytes:
    p = pb.Endpoint()
    fill_Endpoint(m, p)
    return p.SerializeToString()


def decode_Endpoint(data: Buffer) -> Endpoint:
    return read_Endpoint(parse(pb.Endpoint, data))


def fill_NodeEndpoint(m: NodeEndpoint, p: pb.NodeEndpoint) -> None:
    p.node_id = m.node_id
    p.host = m.host
    p.port = m.port


def read_NodeEndpoint(p: pb.NodeEndpoint) -> NodeEndpoint:
    return NodeEndpoint(
        node_id=p.node_id,
        host=p.host,
        port=p.port,
    )


def encode_NodeEndpoint(m: NodeEndpoint) -> bytes:
    p = pb.NodeEndpoint()
    fill_NodeEndpoint(m, p)
    return p.SerializeToString()


def decode_NodeEndpoint(data: Buffer) -> NodeEndpoint:
    return read_NodeEndpoint(parse(pb.NodeEndpoint, data))


def fill_CurrentLeader(m: CurrentLeader, p: pb.CurrentLeader) -> None:
    p.leader_id = m.leader_id
    p.leader_epoch = m.leader_epoch


def read_CurrentLeader(p: pb.CurrentLeader) -> CurrentLeader:
    return CurrentLeader(
        leader_id=p.leader_id,
        leader_epoch=p.leader_epoch,
    )


def encode_CurrentLeader(m: CurrentLeader) -> bytes:
    p = pb.CurrentLeader()
    fill_CurrentLeader(m, p)
    return p.SerializeToString()


def decode_CurrentLeader(data: Buffer) -> CurrentLeader:
    return read_CurrentLeader(parse(pb.CurrentLeader, data))


def fill_EpochEndOffset(m: EpochEndOffset, p: pb.EpochEndOffset) -> None:
    p.epoch = m.epoch
    p.end_offset = m.end_offset


def read_EpochEndOffset(p: pb.EpochEndOffset) -> EpochEndOffset:
    return EpochEndOffset(
        epoch=p.epoch,
        end_offset=p.end_offset,
    )


def encode_EpochEndOffset(m: EpochEndOffset) -> bytes:
    p = pb.EpochEndOffset()
    fill_EpochEndOffset(m, p)
    return p.SerializeToString()


def decode_EpochEndOffset(data: Buffer) -> EpochEndOffset:
    return read_EpochEndOffset(parse(pb.EpochEndOffset, data))


def fill_SnapshotId(m: SnapshotId, p: pb.SnapshotId) -> None:
    p.end_offset = m.end_offset
    p.epoch = m.epoch


def read_SnapshotId(p: pb.SnapshotId) -> SnapshotId:
    return SnapshotId(
        end_offset=p.end_offset,
        epoch=p.epoch,
    )


def encode_SnapshotId(m: SnapshotId) -> bytes:
    p = pb.SnapshotId()
    fill_SnapshotId(m, p)
    return p.SerializeToString()


def decode_SnapshotId(data: Buffer) -> SnapshotId:
    return read_SnapshotId(parse(pb.SnapshotId, data))


def fill_ConfigEntry(m: ConfigEntry, p: pb.ConfigEntry) -> None:
    p.name = m.name
    if m.value is not None:
        p.value = m.value


def read_ConfigEntry(p: pb.ConfigEntry) -> ConfigEntry:
    return ConfigEntry(
        name=p.name,
        value=p.value if p.HasField("value") else None,
    )


def encode_ConfigEntry(m: ConfigEntry) -> bytes:
    p = pb.ConfigEntry()
    fill_ConfigEntry(m, p)
    return p.SerializeToString()


def decode_ConfigEntry(data: Buffer) -> ConfigEntry:
    return read_ConfigEntry(parse(pb.ConfigEntry, data))


def fill_FeatureRange(m: FeatureRange, p: pb.FeatureRange) -> None:
    p.name = m.name
    p.min_level = m.min_level
    p.max_level = m.max_level


def read_FeatureRange(p: pb.FeatureRange) -> FeatureRange:
    return FeatureRange(
        name=p.name,
        min_level=p.min_level,
        max_level=p.max_level,
    )


def encode_FeatureRange(m: FeatureRange) -> bytes:
    p = pb.FeatureRange()
    fill_FeatureRange(m, p)
    return p.SerializeToString()


def decode_FeatureRange(data: Buffer) -> FeatureRange:
    return read_FeatureRange(parse(pb.FeatureRange, data))


def fill_QuotaEntity(m: QuotaEntity, p: pb.QuotaEntity) -> None:
    p.entity_type = m.entity_type
    if m.entity_name is not None:
        p.entity_name = m.entity_name


def read_QuotaEntity(p: pb.QuotaEntity) -> QuotaEntity:
    return QuotaEntity(
        entity_type=p.entity_type,
        entity_name=p.entity_name if p.HasField("entity_name") else None,
    )


def encode_QuotaEntity(m: QuotaEntity) -> bytes:
    p = pb.QuotaEntity()
    fill_QuotaEntity(m, p)
    return p.SerializeToString()


def decode_QuotaEntity(data: Buffer) -> QuotaEntity:
    return read_QuotaEntity(parse(pb.QuotaEntity, data))
