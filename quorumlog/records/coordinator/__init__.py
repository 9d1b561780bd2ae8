"""Records of the internal topics `__consumer_offsets` and `__transaction_state`, byte for byte as Kafka writes them."""

from __future__ import annotations

from quorumlog.records.coordinator.decode import (
    GROUP_TYPES,
    TRANSACTION_TYPES,
    CoordinatorRecord,
    Types,
    UnknownType,
    decode,
    encode_key,
)
from quorumlog.records.coordinator.layout import UnknownVersion

__all__ = [
    "GROUP_TYPES",
    "TRANSACTION_TYPES",
    "CoordinatorRecord",
    "Types",
    "UnknownType",
    "UnknownVersion",
    "decode",
    "encode_key",
]
