"""What has happened at a node: the changes of metadata that it has applied, and what it has met itself. Not in
Kafka.

Written by `./dev proto` from proto/quorumlog/v1/events.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class DescribeEventsRequest:
    """Of the answering broker's own ring, which holds the newest `events.max`.

    since_ms: Milliseconds since 1970, inclusive; 0: as far back as the ring goes.
    kinds: Whole kinds (broker.fenced) or their first words (broker); none: all.
    subject: partition/orders-4 exactly, or with a * at its end all that begin so; empty: all.
    limit: The newest so many; at most 10,000.
    """

    since_ms: int = 0
    kinds: tuple[str, ...] = ()
    subject: str = ""
    limit: int = 1000


@message(frozen=True, slots=True, kw_only=True)
class DescribeEventsResponse:
    """events: In the order in which the node met them.
    lost: How many have fallen out of the ring since the node's start.
    complete_since_ms: What the ring holds has no gap from here on, milliseconds since 1970.
    """

    error_code: int = 0
    error_message: str = ""
    events: tuple[Event, ...] = ()
    lost: int = 0
    complete_since_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class Event:
    """at_ms: Milliseconds since 1970: of the record where there is one, else by the node's clock.
    node_id: That met it.
    number: From 1 on since the node's start; none is left out.
    subject: KIND/NAME: partition/orders-4, broker/3, topic/orders, group/billing, transaction/ID, directory/PATH,
    node/3,
        listener/CLIENT, client/NAME, user/ada; quorum, cluster.
    offset: Of the metadata record; -1: it comes from none.
    record: The record's type; empty: it comes from none.
    """

    at_ms: int
    node_id: int
    number: int
    kind: str
    subject: str
    text: str
    offset: int = -1
    record: str = ""
