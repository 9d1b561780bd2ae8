"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/imports.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.imports import (
    BeginImportRequest,
    BeginImportResponse,
    FinishImportRequest,
    FinishImportResponse,
    ImportedPartition,
    ImportRecordsRequest,
    ImportRecordsResponse,
    SealedReplica,
)
from quorumlog.rpc.convert.cluster import fill_ReplicaAssignment, read_ReplicaAssignment
from quorumlog.rpc.convert.common import fill_ConfigEntry, read_ConfigEntry
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import imports_pb2 as pb


def fill_BeginImportRequest(m: BeginImportRequest, p: pb.BeginImportRequest) -> None:
    p.name = m.name
    p.replication_factor = m.replication_factor
    for x_assignments in m.assignments:
        fill_ReplicaAssignment(x_assignments, p.assignments.add())
    for x_configs in m.configs:
        fill_ConfigEntry(x_configs, p.configs.add())
    p.last_epochs.extend(m.last_epochs)
    p.next_producer_id = m.next_producer_id
    p.timeout_ms = m.timeout_ms


def read_BeginImportRequest(p: pb.BeginImportRequest) -> BeginImportRequest:
    return BeginImportRequest(
        name=p.name,
        replication_factor=p.replication_factor,
        assignments=tuple([read_ReplicaAssignment(x) for x in p.assignments]),
        configs=tuple([read_ConfigEntry(x) for x in p.configs]),
        last_epochs=tuple(p.last_epochs[:]),
        next_producer_id=p.next_producer_id,
        timeout_ms=p.timeout_ms,
    )


def encode_BeginImportRequest(m: BeginImportRequest) -> bytes:
    p = pb.BeginImportRequest()
    fill_BeginImportRequest(m, p)
    return p.SerializeToString()


def decode_BeginImportRequest(data: Buffer) -> BeginImportRequest:
    return read_BeginImportRequest(parse(pb.BeginImportRequest, data))


def fill_BeginImportResponse(m: BeginImportResponse, p: pb.BeginImportResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.topic_id = m.topic_id
    for x_assignments in m.assignments:
        fill_ReplicaAssignment(x_assignments, p.assignments.add())
    p.resumed = m.resumed


def read_BeginImportResponse(p: pb.BeginImportResponse) -> BeginImportResponse:
    return BeginImportResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        topic_id=p.topic_id,
        assignments=tuple([read_ReplicaAssignment(x) for x in p.assignments]),
        resumed=p.resumed,
    )


def encode_BeginImportResponse(m: BeginImportResponse) -> bytes:
    p = pb.BeginImportResponse()
    fill_BeginImportResponse(m, p)
    return p.SerializeToString()


def decode_BeginImportResponse(data: Buffer) -> BeginImportResponse:
    return read_BeginImportResponse(parse(pb.BeginImportResponse, data))


def fill_ImportRecordsRequest(m: ImportRecordsRequest, p: pb.ImportRecordsRequest) -> None:
    p.topic_id = m.topic_id
    p.index = m.index
    p.end_offset = m.end_offset
    p.start_offset = m.start_offset
    p.records = m.records
    p.seal_at_log_start = m.seal_at_log_start


def read_ImportRecordsRequest(p: pb.ImportRecordsRequest) -> ImportRecordsRequest:
    return ImportRecordsRequest(
        topic_id=p.topic_id,
        index=p.index,
        end_offset=p.end_offset,
        start_offset=p.start_offset,
        records=p.records,
        seal_at_log_start=p.seal_at_log_start,
    )


def encode_ImportRecordsRequest(m: ImportRecordsRequest) -> bytes:
    p = pb.ImportRecordsRequest()
    fill_ImportRecordsRequest(m, p)
    return p.SerializeToString()


def decode_ImportRecordsRequest(data: Buffer) -> ImportRecordsRequest:
    return read_ImportRecordsRequest(parse(pb.ImportRecordsRequest, data))


def fill_ImportRecordsResponse(m: ImportRecordsResponse, p: pb.ImportRecordsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.end_offset = m.end_offset
    p.start_offset = m.start_offset
    p.last_checksum = m.last_checksum
    p.sealed = m.sealed
    p.broker_epoch = m.broker_epoch


def read_ImportRecordsResponse(p: pb.ImportRecordsResponse) -> ImportRecordsResponse:
    return ImportRecordsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        end_offset=p.end_offset,
        start_offset=p.start_offset,
        last_checksum=p.last_checksum,
        sealed=p.sealed,
        broker_epoch=p.broker_epoch,
    )


def encode_ImportRecordsResponse(m: ImportRecordsResponse) -> bytes:
    p = pb.ImportRecordsResponse()
    fill_ImportRecordsResponse(m, p)
    return p.SerializeToString()


def decode_ImportRecordsResponse(data: Buffer) -> ImportRecordsResponse:
    return read_ImportRecordsResponse(parse(pb.ImportRecordsResponse, data))


def fill_FinishImportRequest(m: FinishImportRequest, p: pb.FinishImportRequest) -> None:
    p.topic_id = m.topic_id
    for x_partitions in m.partitions:
        fill_ImportedPartition(x_partitions, p.partitions.add())
    p.timeout_ms = m.timeout_ms


def read_FinishImportRequest(p: pb.FinishImportRequest) -> FinishImportRequest:
    return FinishImportRequest(
        topic_id=p.topic_id,
        partitions=tuple([read_ImportedPartition(x) for x in p.partitions]),
        timeout_ms=p.timeout_ms,
    )


def encode_FinishImportRequest(m: FinishImportRequest) -> bytes:
    p = pb.FinishImportRequest()
    fill_FinishImportRequest(m, p)
    return p.SerializeToString()


def decode_FinishImportRequest(data: Buffer) -> FinishImportRequest:
    return read_FinishImportRequest(parse(pb.FinishImportRequest, data))


def fill_ImportedPartition(m: ImportedPartition, p: pb.ImportedPartition) -> None:
    p.index = m.index
    for x_replicas in m.replicas:
        fill_SealedReplica(x_replicas, p.replicas.add())


def read_ImportedPartition(p: pb.ImportedPartition) -> ImportedPartition:
    return ImportedPartition(
        index=p.index,
        replicas=tuple([read_SealedReplica(x) for x in p.replicas]),
    )


def encode_ImportedPartition(m: ImportedPartition) -> bytes:
    p = pb.ImportedPartition()
    fill_ImportedPartition(m, p)
    return p.SerializeToString()


def decode_ImportedPartition(data: Buffer) -> ImportedPartition:
    return read_ImportedPartition(parse(pb.ImportedPartition, data))


def fill_SealedReplica(m: SealedReplica, p: pb.SealedReplica) -> None:
    p.broker_id = m.broker_id
    p.broker_epoch = m.broker_epoch
    p.end_offset = m.end_offset


def read_SealedReplica(p: pb.SealedReplica) -> SealedReplica:
    return SealedReplica(
        broker_id=p.broker_id,
        broker_epoch=p.broker_epoch,
        end_offset=p.end_offset,
    )


def encode_SealedReplica(m: SealedReplica) -> bytes:
    p = pb.SealedReplica()
    fill_SealedReplica(m, p)
    return p.SerializeToString()


def decode_SealedReplica(data: Buffer) -> SealedReplica:
    return read_SealedReplica(parse(pb.SealedReplica, data))


def fill_FinishImportResponse(m: FinishImportResponse, p: pb.FinishImportResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_FinishImportResponse(p: pb.FinishImportResponse) -> FinishImportResponse:
    return FinishImportResponse(
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_FinishImportResponse(m: FinishImportResponse) -> bytes:
    p = pb.FinishImportResponse()
    fill_FinishImportResponse(m, p)
    return p.SerializeToString()


def decode_FinishImportResponse(data: Buffer) -> FinishImportResponse:
    return read_FinishImportResponse(parse(pb.FinishImportResponse, data))
