"""Messages that several files share.

Written by `./dev proto` from proto/quorumlog/v1/common.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The address of one listener of a node.

    name: Name of the listener, as in `listeners` (e.g. CLIENT, INTERNAL).
    """

    name: str
    host: str
    port: int


@message(frozen=True, slots=True, kw_only=True)
class NodeEndpoint:
    """A node and one of its addresses: a hint where to retry."""

    node_id: int
    host: str
    port: int


@message(frozen=True, slots=True, kw_only=True)
class CurrentLeader:
    """The leader, as far as the answering node knows.

    leader_id: -1: none is known.
    """

    leader_id: int
    leader_epoch: int


@message(frozen=True, slots=True, kw_only=True)
class EpochEndOffset:
    """End of an epoch in a log: the offset after the last record of `epoch`.

    end_offset: Exclusive.
    """

    epoch: int
    end_offset: int


@message(frozen=True, slots=True, kw_only=True)
class SnapshotId:
    """Names a metadata snapshot: all records below `end_offset`. `epoch` is the epoch of the last one."""

    end_offset: int
    epoch: int


@message(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """A name and a value. A setting without a value is refused."""

    name: str
    value: str | None = None


@message(frozen=True, slots=True, kw_only=True)
class FeatureRange:
    """The levels of one feature that a node's software supports (KIP-584). Level 0 means that the feature is off.

    min_level: 1 or more, inclusive.
    max_level: Inclusive.
    """

    name: str
    min_level: int
    max_level: int


@message(frozen=True, slots=True, kw_only=True)
class QuotaEntity:
    """A part of what a quota is for. An absent name: the default of this type.

    entity_type: user, client-id, ip.
    """

    entity_type: str
    entity_name: str | None = None
