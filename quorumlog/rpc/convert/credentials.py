"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/credentials.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.credentials import (
    AlteredScramUser,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribedScramUser,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramCredentialInfo,
    ScramDeletion,
    ScramUpsertion,
    ScramUserName,
)
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import credentials_pb2 as pb


def fill_DescribeUserScramCredentialsRequest(
    m: DescribeUserScramCredentialsRequest, p: pb.DescribeUserScramCredentialsRequest
) -> None:
    for x_users in m.users:
        fill_ScramUserName(x_users, p.users.add())


def read_DescribeUserScramCredentialsRequest(
    p: pb.DescribeUserScramCredentialsRequest,
) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(
        users=tuple([read_ScramUserName(x) for x in p.users]),
    )


def encode_DescribeUserScramCredentialsRequest(m: DescribeUserScramCredentialsRequest) -> bytes:
    p = pb.DescribeUserScramCredentialsRequest()
    fill_DescribeUserScramCredentialsRequest(m, p)
    return p.SerializeToString()


def decode_DescribeUserScramCredentialsRequest(data: Buffer) -> DescribeUserScramCredentialsRequest:
    return read_DescribeUserScramCredentialsRequest(parse(pb.DescribeUserScramCredentialsRequest, data))


def fill_ScramUserName(m: ScramUserName, p: pb.ScramUserName) -> None:
    p.name = m.name


def read_ScramUserName(p: pb.ScramUserName) -> ScramUserName:
    return ScramUserName(
        name=p.name,
    )


def encode_ScramUserName(m: ScramUserName) -> bytes:
    p = pb.ScramUserName()
    fill_ScramUserName(m, p)
    return p.SerializeToString()


def decode_ScramUserName(data: Buffer) -> ScramUserName:
    return read_ScramUserName(parse(pb.ScramUserName, data))


def fill_DescribeUserScramCredentialsResponse(
    m: DescribeUserScramCredentialsResponse, p: pb.DescribeUserScramCredentialsResponse
) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_results in m.results:
        fill_DescribedScramUser(x_results, p.results.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_DescribeUserScramCredentialsResponse(
    p: pb.DescribeUserScramCredentialsResponse,
) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        results=tuple([read_DescribedScramUser(x) for x in p.results]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_DescribeUserScramCredentialsResponse(m: DescribeUserScramCredentialsResponse) -> bytes:
    p = pb.DescribeUserScramCredentialsResponse()
    fill_DescribeUserScramCredentialsResponse(m, p)
    return p.SerializeToString()


def decode_DescribeUserScramCredentialsResponse(data: Buffer) -> DescribeUserScramCredentialsResponse:
    return read_DescribeUserScramCredentialsResponse(parse(pb.DescribeUserScramCredentialsResponse, data))


def fill_DescribedScramUser(m: DescribedScramUser, p: pb.DescribedScramUser) -> None:
    p.user = m.user
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_credential_infos in m.credential_infos:
        fill_ScramCredentialInfo(x_credential_infos, p.credential_infos.add())


def read_DescribedScramUser(p: pb.DescribedScramUser) -> DescribedScramUser:
    return DescribedScramUser(
        user=p.user,
        error_code=p.error_code,
        error_message=p.error_message,
        credential_infos=tuple([read_ScramCredentialInfo(x) for x in p.credential_infos]),
    )


def encode_DescribedScramUser(m: DescribedScramUser) -> bytes:
    p = pb.DescribedScramUser()
    fill_DescribedScramUser(m, p)
    return p.SerializeToString()


def decode_DescribedScramUser(data: Buffer) -> DescribedScramUser:
    return read_DescribedScramUser(parse(pb.DescribedScramUser, data))


def fill_ScramCredentialInfo(m: ScramCredentialInfo, p: pb.ScramCredentialInfo) -> None:
    p.mechanism = m.mechanism
    p.iterations = m.iterations


def read_ScramCredentialInfo(p: pb.ScramCredentialInfo) -> ScramCredentialInfo:
    return ScramCredentialInfo(
        mechanism=p.mechanism,
        iterations=p.iterations,
    )


def encode_ScramCredentialInfo(m: ScramCredentialInfo) -> bytes:
    p = pb.ScramCredentialInfo()
    fill_ScramCredentialInfo(m, p)
    return p.SerializeToString()


def decode_ScramCredentialInfo(data: Buffer) -> ScramCredentialInfo:
    return read_ScramCredentialInfo(parse(pb.ScramCredentialInfo, data))


def fill_AlterUserScramCredentialsRequest(
    m: AlterUserScramCredentialsRequest, p: pb.AlterUserScramCredentialsRequest
) -> None:
    for x_deletions in m.deletions:
        fill_ScramDeletion(x_deletions, p.deletions.add())
    for x_upsertions in m.upsertions:
        fill_ScramUpsertion(x_upsertions, p.upsertions.add())


def read_AlterUserScramCredentialsRequest(p: pb.AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=tuple([read_ScramDeletion(x) for x in p.deletions]),
        upsertions=tuple([read_ScramUpsertion(x) for x in p.upsertions]),
    )


def encode_AlterUserScramCredentialsRequest(m: AlterUserScramCredentialsRequest) -> bytes:
    p = pb.AlterUserScramCredentialsRequest()
    fill_AlterUserScramCredentialsRequest(m, p)
    return p.SerializeToString()


def decode_AlterUserScramCredentialsRequest(data: Buffer) -> AlterUserScramCredentialsRequest:
    return read_AlterUserScramCredentialsRequest(parse(pb.AlterUserScramCredentialsRequest, data))


def fill_ScramDeletion(m: ScramDeletion, p: pb.ScramDeletion) -> None:
    p.name = m.name
    p.mechanism = m.mechanism


def read_ScramDeletion(p: pb.ScramDeletion) -> ScramDeletion:
    return ScramDeletion(
        name=p.name,
        mechanism=p.mechanism,
    )


def encode_ScramDeletion(m: ScramDeletion) -> bytes:
    p = pb.ScramDeletion()
    fill_ScramDeletion(m, p)
    return p.SerializeToString()


def decode_ScramDeletion(data: Buffer) -> ScramDeletion:
    return read_ScramDeletion(parse(pb.ScramDeletion, data))


def fill_ScramUpsertion(m: ScramUpsertion, p: pb.ScramUpsertion) -> None:
    p.name = m.name
    p.mechanism = m.mechanism
    p.iterations = m.iterations
    p.salt = m.salt
    p.salted_password = m.salted_password


def read_ScramUpsertion(p: pb.ScramUpsertion) -> ScramUpsertion:
    return ScramUpsertion(
        name=p.name,
        mechanism=p.mechanism,
        iterations=p.iterations,
        salt=p.salt,
        salted_password=p.salted_password,
    )


def encode_ScramUpsertion(m: ScramUpsertion) -> bytes:
    p = pb.ScramUpsertion()
    fill_ScramUpsertion(m, p)
    return p.SerializeToString()


def decode_ScramUpsertion(data: Buffer) -> ScramUpsertion:
    return read_ScramUpsertion(parse(pb.ScramUpsertion, data))


def fill_AlterUserScramCredentialsResponse(
    m: AlterUserScramCredentialsResponse, p: pb.AlterUserScramCredentialsResponse
) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_results in m.results:
        fill_AlteredScramUser(x_results, p.results.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_AlterUserScramCredentialsResponse(
    p: pb.AlterUserScramCredentialsResponse,
) -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        results=tuple([read_AlteredScramUser(x) for x in p.results]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_AlterUserScramCredentialsResponse(m: AlterUserScramCredentialsResponse) -> bytes:
    p = pb.AlterUserScramCredentialsResponse()
    fill_AlterUserScramCredentialsResponse(m, p)
    return p.SerializeToString()


def decode_AlterUserScramCredentialsResponse(data: Buffer) -> AlterUserScramCredentialsResponse:
    return read_AlterUserScramCredentialsResponse(parse(pb.AlterUserScramCredentialsResponse, data))


def fill_AlteredScramUser(m: AlteredScramUser, p: pb.AlteredScramUser) -> None:
    p.user = m.user
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_AlteredScramUser(p: pb.AlteredScramUser) -> AlteredScramUser:
    return AlteredScramUser(
        user=p.user,
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_AlteredScramUser(m: AlteredScramUser) -> bytes:
    p = pb.AlteredScramUser()
    fill_AlteredScramUser(m, p)
    return p.SerializeToString()


def decode_AlteredScramUser(data: Buffer) -> AlteredScramUser:
    return read_AlteredScramUser(parse(pb.AlteredScramUser, data))
