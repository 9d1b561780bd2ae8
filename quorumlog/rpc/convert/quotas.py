"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/quotas.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredQuota,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribedQuota,
    DescribeQuotaUseRequest,
    DescribeQuotaUseResponse,
    QuotaAlteration,
    QuotaComponent,
    QuotaOp,
    QuotaUse,
    QuotaValue,
)
from quorumlog.rpc.convert.common import fill_QuotaEntity, read_QuotaEntity
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import quotas_pb2 as pb


def fill_DescribeClientQuotasRequest(m: DescribeClientQuotasRequest, p: pb.DescribeClientQuotasRequest) -> None:
    for x_components in m.components:
        fill_QuotaComponent(x_components, p.components.add())
    p.strict = m.strict


def read_DescribeClientQuotasRequest(p: pb.DescribeClientQuotasRequest) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(
        components=tuple([read_QuotaComponent(x) for x in p.components]),
        strict=p.strict,
    )


def encode_DescribeClientQuotasRequest(m: DescribeClientQuotasRequest) -> bytes:
    p = pb.DescribeClientQuotasRequest()
    fill_DescribeClientQuotasRequest(m, p)
    return p.SerializeToString()


def decode_DescribeClientQuotasRequest(data: Buffer) -> DescribeClientQuotasRequest:
    return read_DescribeClientQuotasRequest(parse(pb.DescribeClientQuotasRequest, data))


def fill_QuotaComponent(m: QuotaComponent, p: pb.QuotaComponent) -> None:
    p.entity_type = m.entity_type
    p.match_type = m.match_type
    if m.match is not None:
        p.match = m.match


def read_QuotaComponent(p: pb.QuotaComponent) -> QuotaComponent:
    return QuotaComponent(
        entity_type=p.entity_type,
        match_type=p.match_type,
        match=p.match if p.HasField("match") else None,
    )


def encode_QuotaComponent(m: QuotaComponent) -> bytes:
    p = pb.QuotaComponent()
    fill_QuotaComponent(m, p)
    return p.SerializeToString()


def decode_QuotaComponent(data: Buffer) -> QuotaComponent:
    return read_QuotaComponent(parse(pb.QuotaComponent, data))


def fill_DescribeClientQuotasResponse(m: DescribeClientQuotasResponse, p: pb.DescribeClientQuotasResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_entries in m.entries:
        fill_DescribedQuota(x_entries, p.entries.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_DescribeClientQuotasResponse(p: pb.DescribeClientQuotasResponse) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        entries=tuple([read_DescribedQuota(x) for x in p.entries]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_DescribeClientQuotasResponse(m: DescribeClientQuotasResponse) -> bytes:
    p = pb.DescribeClientQuotasResponse()
    fill_DescribeClientQuotasResponse(m, p)
    return p.SerializeToString()


def decode_DescribeClientQuotasResponse(data: Buffer) -> DescribeClientQuotasResponse:
    return read_DescribeClientQuotasResponse(parse(pb.DescribeClientQuotasResponse, data))


def fill_DescribedQuota(m: DescribedQuota, p: pb.DescribedQuota) -> None:
    for x_entity in m.entity:
        fill_QuotaEntity(x_entity, p.entity.add())
    for x_values in m.values:
        fill_QuotaValue(x_values, p.values.add())


def read_DescribedQuota(p: pb.DescribedQuota) -> DescribedQuota:
    return DescribedQuota(
        entity=tuple([read_QuotaEntity(x) for x in p.entity]),
        values=tuple([read_QuotaValue(x) for x in p.values]),
    )


def encode_DescribedQuota(m: DescribedQuota) -> bytes:
    p = pb.DescribedQuota()
    fill_DescribedQuota(m, p)
    return p.SerializeToString()


def decode_DescribedQuota(data: Buffer) -> DescribedQuota:
    return read_DescribedQuota(parse(pb.DescribedQuota, data))


def fill_QuotaValue(m: QuotaValue, p: pb.QuotaValue) -> None:
    p.key = m.key
    p.value = m.value


def read_QuotaValue(p: pb.QuotaValue) -> QuotaValue:
    return QuotaValue(
        key=p.key,
        value=p.value,
    )


def encode_QuotaValue(m: QuotaValue) -> bytes:
    p = pb.QuotaValue()
    fill_QuotaValue(m, p)
    return p.SerializeToString()


def decode_QuotaValue(data: Buffer) -> QuotaValue:
    return read_QuotaValue(parse(pb.QuotaValue, data))


def fill_AlterClientQuotasRequest(m: AlterClientQuotasRequest, p: pb.AlterClientQuotasRequest) -> None:
    for x_entries in m.entries:
        fill_QuotaAlteration(x_entries, p.entries.add())
    p.validate_only = m.validate_only


def read_AlterClientQuotasRequest(p: pb.AlterClientQuotasRequest) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(
        entries=tuple([read_QuotaAlteration(x) for x in p.entries]),
        validate_only=p.validate_only,
    )


def encode_AlterClientQuotasRequest(m: AlterClientQuotasRequest) -> bytes:
    p = pb.AlterClientQuotasRequest()
    fill_AlterClientQuotasRequest(m, p)
    return p.SerializeToString()


def decode_AlterClientQuotasRequest(data: Buffer) -> AlterClientQuotasRequest:
    return read_AlterClientQuotasRequest(parse(pb.AlterClientQuotasRequest, data))


def fill_QuotaAlteration(m: QuotaAlteration, p: pb.QuotaAlteration) -> None:
    for x_entity in m.entity:
        fill_QuotaEntity(x_entity, p.entity.add())
    for x_ops in m.ops:
        fill_QuotaOp(x_ops, p.ops.add())


def read_QuotaAlteration(p: pb.QuotaAlteration) -> QuotaAlteration:
    return QuotaAlteration(
        entity=tuple([read_QuotaEntity(x) for x in p.entity]),
        ops=tuple([read_QuotaOp(x) for x in p.ops]),
    )


def encode_QuotaAlteration(m: QuotaAlteration) -> bytes:
    p = pb.QuotaAlteration()
    fill_QuotaAlteration(m, p)
    return p.SerializeToString()


def decode_QuotaAlteration(data: Buffer) -> QuotaAlteration:
    return read_QuotaAlteration(parse(pb.QuotaAlteration, data))


def fill_QuotaOp(m: QuotaOp, p: pb.QuotaOp) -> None:
    p.key = m.key
    p.value = m.value
    p.remove = m.remove


def read_QuotaOp(p: pb.QuotaOp) -> QuotaOp:
    return QuotaOp(
        key=p.key,
        value=p.value,
        remove=p.remove,
    )


def encode_QuotaOp(m: QuotaOp) -> bytes:
    p = pb.QuotaOp()
    fill_QuotaOp(m, p)
    return p.SerializeToString()


def decode_QuotaOp(data: Buffer) -> QuotaOp:
    return read_QuotaOp(parse(pb.QuotaOp, data))


def fill_AlterClientQuotasResponse(m: AlterClientQuotasResponse, p: pb.AlterClientQuotasResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_entries in m.entries:
        fill_AlteredQuota(x_entries, p.entries.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_AlterClientQuotasResponse(p: pb.AlterClientQuotasResponse) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        entries=tuple([read_AlteredQuota(x) for x in p.entries]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_AlterClientQuotasResponse(m: AlterClientQuotasResponse) -> bytes:
    p = pb.AlterClientQuotasResponse()
    fill_AlterClientQuotasResponse(m, p)
    return p.SerializeToString()


def decode_AlterClientQuotasResponse(data: Buffer) -> AlterClientQuotasResponse:
    return read_AlterClientQuotasResponse(parse(pb.AlterClientQuotasResponse, data))


def fill_AlteredQuota(m: AlteredQuota, p: pb.AlteredQuota) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_entity in m.entity:
        fill_QuotaEntity(x_entity, p.entity.add())


def read_AlteredQuota(p: pb.AlteredQuota) -> AlteredQuota:
    return AlteredQuota(
        error_code=p.error_code,
        error_message=p.error_message,
        entity=tuple([read_QuotaEntity(x) for x in p.entity]),
    )


def encode_AlteredQuota(m: AlteredQuota) -> bytes:
    p = pb.AlteredQuota()
    fill_AlteredQuota(m, p)
    return p.SerializeToString()


def decode_AlteredQuota(data: Buffer) -> AlteredQuota:
    return read_AlteredQuota(parse(pb.AlteredQuota, data))


def fill_DescribeQuotaUseRequest(m: DescribeQuotaUseRequest, p: pb.DescribeQuotaUseRequest) -> None:
    p.max_results = m.max_results


def read_DescribeQuotaUseRequest(p: pb.DescribeQuotaUseRequest) -> DescribeQuotaUseRequest:
    return DescribeQuotaUseRequest(
        max_results=p.max_results,
    )


def encode_DescribeQuotaUseRequest(m: DescribeQuotaUseRequest) -> bytes:
    p = pb.DescribeQuotaUseRequest()
    fill_DescribeQuotaUseRequest(m, p)
    return p.SerializeToString()


def decode_DescribeQuotaUseRequest(data: Buffer) -> DescribeQuotaUseRequest:
    return read_DescribeQuotaUseRequest(parse(pb.DescribeQuotaUseRequest, data))


def fill_DescribeQuotaUseResponse(m: DescribeQuotaUseResponse, p: pb.DescribeQuotaUseResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_uses in m.uses:
        fill_QuotaUse(x_uses, p.uses.add())
    p.exempt_percentage = m.exempt_percentage


def read_DescribeQuotaUseResponse(p: pb.DescribeQuotaUseResponse) -> DescribeQuotaUseResponse:
    return DescribeQuotaUseResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        uses=tuple([read_QuotaUse(x) for x in p.uses]),
        exempt_percentage=p.exempt_percentage,
    )


def encode_DescribeQuotaUseResponse(m: DescribeQuotaUseResponse) -> bytes:
    p = pb.DescribeQuotaUseResponse()
    fill_DescribeQuotaUseResponse(m, p)
    return p.SerializeToString()


def decode_DescribeQuotaUseResponse(data: Buffer) -> DescribeQuotaUseResponse:
    return read_DescribeQuotaUseResponse(parse(pb.DescribeQuotaUseResponse, data))


def fill_QuotaUse(m: QuotaUse, p: pb.QuotaUse) -> None:
    p.key = m.key
    if m.user is not None:
        p.user = m.user
    if m.client_id is not None:
        p.client_id = m.client_id
    p.rate = m.rate
    p.quota = m.quota
    p.throttled_ms = m.throttled_ms


def read_QuotaUse(p: pb.QuotaUse) -> QuotaUse:
    return QuotaUse(
        key=p.key,
        user=p.user if p.HasField("user") else None,
        client_id=p.client_id if p.HasField("client_id") else None,
        rate=p.rate,
        quota=p.quota,
        throttled_ms=p.throttled_ms,
    )


def encode_QuotaUse(m: QuotaUse) -> bytes:
    p = pb.QuotaUse()
    fill_QuotaUse(m, p)
    return p.SerializeToString()


def decode_QuotaUse(data: Buffer) -> QuotaUse:
    return read_QuotaUse(parse(pb.QuotaUse, data))
