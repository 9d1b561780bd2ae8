"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/brokers.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.brokers import (
    AclCreation,
    AclDescription,
    AclFilterResult,
    AclResource,
    AclResult,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
    MatchingAcl,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from quorumlog.messages.buffer import Buffer
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import brokers_pb2 as pb


def fill_UnregisterBrokerRequest(m: UnregisterBrokerRequest, p: pb.UnregisterBrokerRequest) -> None:
    p.broker_id = m.broker_id
    p.broker_epoch = m.broker_epoch


def read_UnregisterBrokerRequest(p: pb.UnregisterBrokerRequest) -> UnregisterBrokerRequest:
    return UnregisterBrokerRequest(
        broker_id=p.broker_id,
        broker_epoch=p.broker_epoch,
    )


def encode_UnregisterBrokerRequest(m: UnregisterBrokerRequest) -> bytes:
    p = pb.UnregisterBrokerRequest()
    fill_UnregisterBrokerRequest(m, p)
    return p.SerializeToString()


def decode_UnregisterBrokerRequest(data: Buffer) -> UnregisterBrokerRequest:
    return read_UnregisterBrokerRequest(parse(pb.UnregisterBrokerRequest, data))


def fill_UnregisterBrokerResponse(m: UnregisterBrokerResponse, p: pb.UnregisterBrokerResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.throttle_time_ms = m.throttle_time_ms


def read_UnregisterBrokerResponse(p: pb.UnregisterBrokerResponse) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_UnregisterBrokerResponse(m: UnregisterBrokerResponse) -> bytes:
    p = pb.UnregisterBrokerResponse()
    fill_UnregisterBrokerResponse(m, p)
    return p.SerializeToString()


def decode_UnregisterBrokerResponse(data: Buffer) -> UnregisterBrokerResponse:
    return read_UnregisterBrokerResponse(parse(pb.UnregisterBrokerResponse, data))


def fill_DescribeAclsRequest(m: DescribeAclsRequest, p: pb.DescribeAclsRequest) -> None:
    p.resource_type_filter = m.resource_type_filter
    if m.resource_name_filter is not None:
        p.resource_name_filter = m.resource_name_filter
    p.pattern_type_filter = m.pattern_type_filter
    if m.principal_filter is not None:
        p.principal_filter = m.principal_filter
    if m.host_filter is not None:
        p.host_filter = m.host_filter
    p.operation = m.operation
    p.permission_type = m.permission_type


def read_DescribeAclsRequest(p: pb.DescribeAclsRequest) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=p.resource_type_filter,
        resource_name_filter=p.resource_name_filter if p.HasField("resource_name_filter") else None,
        pattern_type_filter=p.pattern_type_filter,
        principal_filter=p.principal_filter if p.HasField("principal_filter") else None,
        host_filter=p.host_filter if p.HasField("host_filter") else None,
        operation=p.operation,
        permission_type=p.permission_type,
    )


def encode_DescribeAclsRequest(m: DescribeAclsRequest) -> bytes:
    p = pb.DescribeAclsRequest()
    fill_DescribeAclsRequest(m, p)
    return p.SerializeToString()


def decode_DescribeAclsRequest(data: Buffer) -> DescribeAclsRequest:
    return read_DescribeAclsRequest(parse(pb.DescribeAclsRequest, data))


def fill_DescribeAclsResponse(m: DescribeAclsResponse, p: pb.DescribeAclsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.throttle_time_ms = m.throttle_time_ms
    for x_resources in m.resources:
        fill_AclResource(x_resources, p.resources.add())


def read_DescribeAclsResponse(p: pb.DescribeAclsResponse) -> DescribeAclsResponse:
    return DescribeAclsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        throttle_time_ms=p.throttle_time_ms,
        resources=tuple([read_AclResource(x) for x in p.resources]),
    )


def encode_DescribeAclsResponse(m: DescribeAclsResponse) -> bytes:
    p = pb.DescribeAclsResponse()
    fill_DescribeAclsResponse(m, p)
    return p.SerializeToString()


def decode_DescribeAclsResponse(data: Buffer) -> DescribeAclsResponse:
    return read_DescribeAclsResponse(parse(pb.DescribeAclsResponse, data))


def fill_AclResource(m: AclResource, p: pb.AclResource) -> None:
    p.resource_type = m.resource_type
    p.resource_name = m.resource_name
    p.pattern_type = m.pattern_type
    for x_acls in m.acls:
        fill_AclDescription(x_acls, p.acls.add())


def read_AclResource(p: pb.AclResource) -> AclResource:
    return AclResource(
        resource_type=p.resource_type,
        resource_name=p.resource_name,
        pattern_type=p.pattern_type,
        acls=tuple([read_AclDescription(x) for x in p.acls]),
    )


def encode_AclResource(m: AclResource) -> bytes:
    p = pb.AclResource()
    fill_AclResource(m, p)
    return p.SerializeToString()


def decode_AclResource(data: Buffer) -> AclResource:
    return read_AclResource(parse(pb.AclResource, data))


def fill_AclDescription(m: AclDescription, p: pb.AclDescription) -> None:
    p.principal = m.principal
    p.host = m.host
    p.operation = m.operation
    p.permission_type = m.permission_type


def read_AclDescription(p: pb.AclDescription) -> AclDescription:
    return AclDescription(
        principal=p.principal,
        host=p.host,
        operation=p.operation,
        permission_type=p.permission_type,
    )


def encode_AclDescription(m: AclDescription) -> bytes:
    p = pb.AclDescription()
    fill_AclDescription(m, p)
    return p.SerializeToString()


def decode_AclDescription(data: Buffer) -> AclDescription:
    return read_AclDescription(parse(pb.AclDescription, data))


def fill_CreateAclsRequest(m: CreateAclsRequest, p: pb.CreateAclsRequest) -> None:
    for x_creations in m.creations:
        fill_AclCreation(x_creations, p.creations.add())


def read_CreateAclsRequest(p: pb.CreateAclsRequest) -> CreateAclsRequest:
    return CreateAclsRequest(
        creations=tuple([read_AclCreation(x) for x in p.creations]),
    )


def encode_CreateAclsRequest(m: CreateAclsRequest) -> bytes:
    p = pb.CreateAclsRequest()
    fill_CreateAclsRequest(m, p)
    return p.SerializeToString()


def decode_CreateAclsRequest(data: Buffer) -> CreateAclsRequest:
    return read_CreateAclsRequest(parse(pb.CreateAclsRequest, data))


def fill_AclCreation(m: AclCreation, p: pb.AclCreation) -> None:
    p.resource_type = m.resource_type
    p.resource_name = m.resource_name
    p.resource_pattern_type = m.resource_pattern_type
    p.principal = m.principal
    p.host = m.host
    p.operation = m.operation
    p.permission_type = m.permission_type


def read_AclCreation(p: pb.AclCreation) -> AclCreation:
    return AclCreation(
        resource_type=p.resource_type,
        resource_name=p.resource_name,
        resource_pattern_type=p.resource_pattern_type,
        principal=p.principal,
        host=p.host,
        operation=p.operation,
        permission_type=p.permission_type,
    )


def encode_AclCreation(m: AclCreation) -> bytes:
    p = pb.AclCreation()
    fill_AclCreation(m, p)
    return p.SerializeToString()


def decode_AclCreation(data: Buffer) -> AclCreation:
    return read_AclCreation(parse(pb.AclCreation, data))


def fill_CreateAclsResponse(m: CreateAclsResponse, p: pb.CreateAclsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.throttle_time_ms = m.throttle_time_ms
    for x_results in m.results:
        fill_AclResult(x_results, p.results.add())


def read_CreateAclsResponse(p: pb.CreateAclsResponse) -> CreateAclsResponse:
    return CreateAclsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        throttle_time_ms=p.throttle_time_ms,
        results=tuple([read_AclResult(x) for x in p.results]),
    )


def encode_CreateAclsResponse(m: CreateAclsResponse) -> bytes:
    p = pb.CreateAclsResponse()
    fill_CreateAclsResponse(m, p)
    return p.SerializeToString()


def decode_CreateAclsResponse(data: Buffer) -> CreateAclsResponse:
    return read_CreateAclsResponse(parse(pb.CreateAclsResponse, data))


def fill_AclResult(m: AclResult, p: pb.AclResult) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_AclResult(p: pb.AclResult) -> AclResult:
    return AclResult(
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_AclResult(m: AclResult) -> bytes:
    p = pb.AclResult()
    fill_AclResult(m, p)
    return p.SerializeToString()


def decode_AclResult(data: Buffer) -> AclResult:
    return read_AclResult(parse(pb.AclResult, data))


def fill_DeleteAclsRequest(m: DeleteAclsRequest, p: pb.DeleteAclsRequest) -> None:
    for x_filters in m.filters:
        fill_DescribeAclsRequest(x_filters, p.filters.add())


def read_DeleteAclsRequest(p: pb.DeleteAclsRequest) -> DeleteAclsRequest:
    return DeleteAclsRequest(
        filters=tuple([read_DescribeAclsRequest(x) for x in p.filters]),
    )


def encode_DeleteAclsRequest(m: DeleteAclsRequest) -> bytes:
    p = pb.DeleteAclsRequest()
    fill_DeleteAclsRequest(m, p)
    return p.SerializeToString()


def decode_DeleteAclsRequest(data: Buffer) -> DeleteAclsRequest:
    return read_DeleteAclsRequest(parse(pb.DeleteAclsRequest, data))


def fill_DeleteAclsResponse(m: DeleteAclsResponse, p: pb.DeleteAclsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.throttle_time_ms = m.throttle_time_ms
    for x_filter_results in m.filter_results:
        fill_AclFilterResult(x_filter_results, p.filter_results.add())


def read_DeleteAclsResponse(p: pb.DeleteAclsResponse) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        throttle_time_ms=p.throttle_time_ms,
        filter_results=tuple([read_AclFilterResult(x) for x in p.filter_results]),
    )


def encode_DeleteAclsResponse(m: DeleteAclsResponse) -> bytes:
    p = pb.DeleteAclsResponse()
    fill_DeleteAclsResponse(m, p)
    return p.SerializeToString()


def decode_DeleteAclsResponse(data: Buffer) -> DeleteAclsResponse:
    return read_DeleteAclsResponse(parse(pb.DeleteAclsResponse, data))


def fill_AclFilterResult(m: AclFilterResult, p: pb.AclFilterResult) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_matching_acls in m.matching_acls:
        fill_MatchingAcl(x_matching_acls, p.matching_acls.add())


def read_AclFilterResult(p: pb.AclFilterResult) -> AclFilterResult:
    return AclFilterResult(
        error_code=p.error_code,
        error_message=p.error_message,
        matching_acls=tuple([read_MatchingAcl(x) for x in p.matching_acls]),
    )


def encode_AclFilterResult(m: AclFilterResult) -> bytes:
    p = pb.AclFilterResult()
    fill_AclFilterResult(m, p)
    return p.SerializeToString()


def decode_AclFilterResult(data: Buffer) -> AclFilterResult:
    return read_AclFilterResult(parse(pb.AclFilterResult, data))


def fill_MatchingAcl(m: MatchingAcl, p: pb.MatchingAcl) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.resource_type = m.resource_type
    p.resource_name = m.resource_name
    p.pattern_type = m.pattern_type
    p.principal = m.principal
    p.host = m.host
    p.operation = m.operation
    p.permission_type = m.permission_type


def read_MatchingAcl(p: pb.MatchingAcl) -> MatchingAcl:
    return MatchingAcl(
        error_code=p.error_code,
        error_message=p.error_message,
        resource_type=p.resource_type,
        resource_name=p.resource_name,
        pattern_type=p.pattern_type,
        principal=p.principal,
        host=p.host,
        operation=p.operation,
        permission_type=p.permission_type,
    )


def encode_MatchingAcl(m: MatchingAcl) -> bytes:
    p = pb.MatchingAcl()
    fill_MatchingAcl(m, p)
    return p.SerializeToString()


def decode_MatchingAcl(data: Buffer) -> MatchingAcl:
    return read_MatchingAcl(parse(pb.MatchingAcl, data))
