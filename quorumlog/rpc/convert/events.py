"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/events.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.events import DescribeEventsRequest, DescribeEventsResponse, Event
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import events_pb2 as pb


def fill_DescribeEventsRequest(m: DescribeEventsRequest, p: pb.DescribeEventsRequest) -> None:
    p.since_ms = m.since_ms
    p.kinds.extend(m.kinds)
    p.subject = m.subject
    p.limit = m.limit


def read_DescribeEventsRequest(p: pb.DescribeEventsRequest) -> DescribeEventsRequest:
    return DescribeEventsRequest(
        since_ms=p.since_ms,
        kinds=tuple(p.kinds[:]),
        subject=p.subject,
        limit=p.limit,
    )


def encode_DescribeEventsRequest(m: DescribeEventsRequest) -> bytes:
    p = pb.DescribeEventsRequest()
    fill_DescribeEventsRequest(m, p)
    return p.SerializeToString()


def decode_DescribeEventsRequest(data: Buffer) -> DescribeEventsRequest:
    return read_DescribeEventsRequest(parse(pb.DescribeEventsRequest, data))


def fill_DescribeEventsResponse(m: DescribeEventsResponse, p: pb.DescribeEventsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_events in m.events:
        fill_Event(x_events, p.events.add())
    p.lost = m.lost
    p.complete_since_ms = m.complete_since_ms


def read_DescribeEventsResponse(p: pb.DescribeEventsResponse) -> DescribeEventsResponse:
    return DescribeEventsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        events=tuple([read_Event(x) for x in p.events]),
        lost=p.lost,
        complete_since_ms=p.complete_since_ms,
    )


def encode_DescribeEventsResponse(m: DescribeEventsResponse) -> bytes:
    p = pb.DescribeEventsResponse()
    fill_DescribeEventsResponse(m, p)
    return p.SerializeToString()


def decode_DescribeEventsResponse(data: Buffer) -> DescribeEventsResponse:
    return read_DescribeEventsResponse(parse(pb.DescribeEventsResponse, data))


def fill_Event(m: Event, p: pb.Event) -> None:
    p.at_ms = m.at_ms
    p.node_id = m.node_id
    p.number = m.number
    p.kind = m.kind
    p.subject = m.subject
    p.text = m.text
    p.offset = m.offset
    p.record = m.record


def read_Event(p: pb.Event) -> Event:
    return Event(
        at_ms=p.at_ms,
        node_id=p.node_id,
        number=p.number,
        kind=p.kind,
        subject=p.subject,
        text=p.text,
        offset=p.offset,
        record=p.record,
    )


def encode_Event(m: Event) -> bytes:
    p = pb.Event()
    fill_Event(m, p)
    return p.SerializeToString()


def decode_Event(data: Buffer) -> Event:
    return read_Event(parse(pb.Event, data))
