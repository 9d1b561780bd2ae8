"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/joint.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.joint import (
    AbortJointRequest,
    AbortJointResponse,
    BeginJointRequest,
    BeginJointResponse,
    CommitJointRequest,
    CommitJointResponse,
    ForgetJointRequest,
    ForgetJointResponse,
    JointChildRef,
    JointFact,
    ListedJointGroup,
    ListJointRequest,
    ListJointResponse,
    OpenJointChild,
)
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import joint_pb2 as pb


def fill_BeginJointRequest(m: BeginJointRequest, p: pb.BeginJointRequest) -> None:
    p.group_id = m.group_id
    p.kind = m.kind
    p.location = m.location
    p.run = m.run
    p.sequence = m.sequence
    p.token = m.token
    p.timeout_ms = m.timeout_ms
    p.first_batch = m.first_batch
    p.checkpoint_moved = m.checkpoint_moved


def read_BeginJointRequest(p: pb.BeginJointRequest) -> BeginJointRequest:
    return BeginJointRequest(
        group_id=p.group_id,
        kind=p.kind,
        location=p.location,
        run=p.run,
        sequence=p.sequence,
        token=p.token,
        timeout_ms=p.timeout_ms,
        first_batch=p.first_batch,
        checkpoint_moved=p.checkpoint_moved,
    )


def encode_BeginJointRequest(m: BeginJointRequest) -> bytes:
    p = pb.BeginJointRequest()
    fill_BeginJointRequest(m, p)
    return p.SerializeToString()


def decode_BeginJointRequest(data: Buffer) -> BeginJointRequest:
    return read_BeginJointRequest(parse(pb.BeginJointRequest, data))


def fill_BeginJointResponse(m: BeginJointResponse, p: pb.BeginJointResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.decided = m.decided
    p.slot = m.slot
    p.transactional_id = m.transactional_id
    p.producer_id = m.producer_id
    p.producer_epoch = m.producer_epoch


def read_BeginJointResponse(p: pb.BeginJointResponse) -> BeginJointResponse:
    return BeginJointResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        decided=p.decided,
        slot=p.slot,
        transactional_id=p.transactional_id,
        producer_id=p.producer_id,
        producer_epoch=p.producer_epoch,
    )


def encode_BeginJointResponse(m: BeginJointResponse) -> bytes:
    p = pb.BeginJointResponse()
    fill_BeginJointResponse(m, p)
    return p.SerializeToString()


def decode_BeginJointResponse(data: Buffer) -> BeginJointResponse:
    return read_BeginJointResponse(parse(pb.BeginJointResponse, data))


def fill_JointChildRef(m: JointChildRef, p: pb.JointChildRef) -> None:
    p.slot = m.slot
    p.producer_epoch = m.producer_epoch
    p.token = m.token


def read_JointChildRef(p: pb.JointChildRef) -> JointChildRef:
    return JointChildRef(
        slot=p.slot,
        producer_epoch=p.producer_epoch,
        token=p.token,
    )


def encode_JointChildRef(m: JointChildRef) -> bytes:
    p = pb.JointChildRef()
    fill_JointChildRef(m, p)
    return p.SerializeToString()


def decode_JointChildRef(data: Buffer) -> JointChildRef:
    return read_JointChildRef(parse(pb.JointChildRef, data))


def fill_JointFact(m: JointFact, p: pb.JointFact) -> None:
    p.name = m.name
    p.value = m.value


def read_JointFact(p: pb.JointFact) -> JointFact:
    return JointFact(
        name=p.name,
        value=p.value,
    )


def encode_JointFact(m: JointFact) -> bytes:
    p = pb.JointFact()
    fill_JointFact(m, p)
    return p.SerializeToString()


def decode_JointFact(data: Buffer) -> JointFact:
    return read_JointFact(parse(pb.JointFact, data))


def fill_CommitJointRequest(m: CommitJointRequest, p: pb.CommitJointRequest) -> None:
    p.group_id = m.group_id
    p.kind = m.kind
    p.location = m.location
    p.run = m.run
    p.sequence = m.sequence
    for x_children in m.children:
        fill_JointChildRef(x_children, p.children.add())
    for x_facts in m.facts:
        fill_JointFact(x_facts, p.facts.add())
    p.commit_wait_ms = m.commit_wait_ms
    p.first_batch = m.first_batch
    p.checkpoint_moved = m.checkpoint_moved
    p.replay_mismatch = m.replay_mismatch


def read_CommitJointRequest(p: pb.CommitJointRequest) -> CommitJointRequest:
    return CommitJointRequest(
        group_id=p.group_id,
        kind=p.kind,
        location=p.location,
        run=p.run,
        sequence=p.sequence,
        children=tuple([read_JointChildRef(x) for x in p.children]),
        facts=tuple([read_JointFact(x) for x in p.facts]),
        commit_wait_ms=p.commit_wait_ms,
        first_batch=p.first_batch,
        checkpoint_moved=p.checkpoint_moved,
        replay_mismatch=p.replay_mismatch,
    )


def encode_CommitJointRequest(m: CommitJointRequest) -> bytes:
    p = pb.CommitJointRequest()
    fill_CommitJointRequest(m, p)
    return p.SerializeToString()


def decode_CommitJointRequest(data: Buffer) -> CommitJointRequest:
    return read_CommitJointRequest(parse(pb.CommitJointRequest, data))


def fill_CommitJointResponse(m: CommitJointResponse, p: pb.CommitJointResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.complete = m.complete


def read_CommitJointResponse(p: pb.CommitJointResponse) -> CommitJointResponse:
    return CommitJointResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        complete=p.complete,
    )


def encode_CommitJointResponse(m: CommitJointResponse) -> bytes:
    p = pb.CommitJointResponse()
    fill_CommitJointResponse(m, p)
    return p.SerializeToString()


def decode_CommitJointResponse(data: Buffer) -> CommitJointResponse:
    return read_CommitJointResponse(parse(pb.CommitJointResponse, data))


def fill_AbortJointRequest(m: AbortJointRequest, p: pb.AbortJointRequest) -> None:
    p.group_id = m.group_id
    p.location = m.location
    p.run = m.run
    p.sequence = m.sequence
    p.token = m.token


def read_AbortJointRequest(p: pb.AbortJointRequest) -> AbortJointRequest:
    return AbortJointRequest(
        group_id=p.group_id,
        location=p.location,
        run=p.run,
        sequence=p.sequence,
        token=p.token,
    )


def encode_AbortJointRequest(m: AbortJointRequest) -> bytes:
    p = pb.AbortJointRequest()
    fill_AbortJointRequest(m, p)
    return p.SerializeToString()


def decode_AbortJointRequest(data: Buffer) -> AbortJointRequest:
    return read_AbortJointRequest(parse(pb.AbortJointRequest, data))


def fill_AbortJointResponse(m: AbortJointResponse, p: pb.AbortJointResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.decided = m.decided
    p.aborted = m.aborted


def read_AbortJointResponse(p: pb.AbortJointResponse) -> AbortJointResponse:
    return AbortJointResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        decided=p.decided,
        aborted=p.aborted,
    )


def encode_AbortJointResponse(m: AbortJointResponse) -> bytes:
    p = pb.AbortJointResponse()
    fill_AbortJointResponse(m, p)
    return p.SerializeToString()


def decode_AbortJointResponse(data: Buffer) -> AbortJointResponse:
    return read_AbortJointResponse(parse(pb.AbortJointResponse, data))


def fill_ListedJointGroup(m: ListedJointGroup, p: pb.ListedJointGroup) -> None:
    p.group_id = m.group_id
    p.sequence = m.sequence
    p.kind = m.kind
    p.run = m.run
    p.location = m.location
    p.decided_at_ms = m.decided_at_ms
    for x_facts in m.facts:
        fill_JointFact(x_facts, p.facts.add())
    for x_open in m.open:
        fill_OpenJointChild(x_open, p.open.add())
    p.ending = m.ending


def read_ListedJointGroup(p: pb.ListedJointGroup) -> ListedJointGroup:
    return ListedJointGroup(
        group_id=p.group_id,
        sequence=p.sequence,
        kind=p.kind,
        run=p.run,
        location=p.location,
        decided_at_ms=p.decided_at_ms,
        facts=tuple([read_JointFact(x) for x in p.facts]),
        open=tuple([read_OpenJointChild(x) for x in p.open]),
        ending=p.ending,
    )


def encode_ListedJointGroup(m: ListedJointGroup) -> bytes:
    p = pb.ListedJointGroup()
    fill_ListedJointGroup(m, p)
    return p.SerializeToString()


def decode_ListedJointGroup(data: Buffer) -> ListedJointGroup:
    return read_ListedJointGroup(parse(pb.ListedJointGroup, data))


def fill_OpenJointChild(m: OpenJointChild, p: pb.OpenJointChild) -> None:
    p.transactional_id = m.transactional_id
    p.run = m.run
    p.sequence = m.sequence
    p.started_at_ms = m.started_at_ms
    p.timeout_ms = m.timeout_ms
    p.location = m.location


def read_OpenJointChild(p: pb.OpenJointChild) -> OpenJointChild:
    return OpenJointChild(
        transactional_id=p.transactional_id,
        run=p.run,
        sequence=p.sequence,
        started_at_ms=p.started_at_ms,
        timeout_ms=p.timeout_ms,
        location=p.location,
    )


def encode_OpenJointChild(m: OpenJointChild) -> bytes:
    p = pb.OpenJointChild()
    fill_OpenJointChild(m, p)
    return p.SerializeToString()


def decode_OpenJointChild(data: Buffer) -> OpenJointChild:
    return read_OpenJointChild(parse(pb.OpenJointChild, data))


def fill_ForgetJointRequest(m: ForgetJointRequest, p: pb.ForgetJointRequest) -> None:
    p.group_id = m.group_id


def read_ForgetJointRequest(p: pb.ForgetJointRequest) -> ForgetJointRequest:
    return ForgetJointRequest(
        group_id=p.group_id,
    )


def encode_ForgetJointRequest(m: ForgetJointRequest) -> bytes:
    p = pb.ForgetJointRequest()
    fill_ForgetJointRequest(m, p)
    return p.SerializeToString()


def decode_ForgetJointRequest(data: Buffer) -> ForgetJointRequest:
    return read_ForgetJointRequest(parse(pb.ForgetJointRequest, data))


def fill_ForgetJointResponse(m: ForgetJointResponse, p: pb.ForgetJointResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_ForgetJointResponse(p: pb.ForgetJointResponse) -> ForgetJointResponse:
    return ForgetJointResponse(
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_ForgetJointResponse(m: ForgetJointResponse) -> bytes:
    p = pb.ForgetJointResponse()
    fill_ForgetJointResponse(m, p)
    return p.SerializeToString()


def decode_ForgetJointResponse(data: Buffer) -> ForgetJointResponse:
    return read_ForgetJointResponse(parse(pb.ForgetJointResponse, data))


def fill_ListJointRequest(m: ListJointRequest, p: pb.ListJointRequest) -> None:
    pass


def read_ListJointRequest(p: pb.ListJointRequest) -> ListJointRequest:
    return ListJointRequest()


def encode_ListJointRequest(m: ListJointRequest) -> bytes:
    p = pb.ListJointRequest()
    fill_ListJointRequest(m, p)
    return p.SerializeToString()


def decode_ListJointRequest(data: Buffer) -> ListJointRequest:
    return read_ListJointRequest(parse(pb.ListJointRequest, data))


def fill_ListJointResponse(m: ListJointResponse, p: pb.ListJointResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_groups in m.groups:
        fill_ListedJointGroup(x_groups, p.groups.add())
    p.joint_version = m.joint_version


def read_ListJointResponse(p: pb.ListJointResponse) -> ListJointResponse:
    return ListJointResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        groups=tuple([read_ListedJointGroup(x) for x in p.groups]),
        joint_version=p.joint_version,
    )


def encode_ListJointResponse(m: ListJointResponse) -> bytes:
    p = pb.ListJointResponse()
    fill_ListJointResponse(m, p)
    return p.SerializeToString()


def decode_ListJointResponse(data: Buffer) -> ListJointResponse:
    return read_ListJointResponse(parse(pb.ListJointResponse, data))
