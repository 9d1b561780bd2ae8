"""Fields of ours in Kafka's messages: tagged fields (KIP-482), which other software skips without reading them.

- ApiVersions: the answer to one of our clients names the node's gRPC address.
- Metadata: a client may ask how far the metadata of the answer reach; then the answer says so. Kafka's message has no
  field for it, and a broker that is behind looks like any other (`client/cluster/metadata_cache.py`).
- ListOffsets: a client names the topic's id, too. Kafka's message has the name only, and in metadata that are behind it
  may be that of a former topic (KIP-516).

Nothing of this is sent to clients that are not ours.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from quorumlog.ids import ZERO_UUID
from quorumlog.wire.cursor import Cursor
from quorumlog.wire.frame_parts import Parts
from quorumlog.wire.primitives import COMPACT, FIXED, text
from quorumlog.wire.schema import Step

OWN_TAG = 0x716C  # of each of them, since each message has one


def _fixed(name: str, kind: str, default: Any) -> Step:
    packed = struct.Struct(f">{FIXED[kind]}")

    def write(parts: Parts, value: Any) -> None:
        parts.tail += packed.pack(value)

    def read(cursor: Cursor) -> Any:
        return packed.unpack_from(cursor.data, cursor.skip(packed.size))[0]

    return Step(name, read, write, default, packed.size)


OWN_FIELDS: Mapping[str, Step] = {
    "ApiVersionsResponse": Step("grpc_address", *text(COMPACT, nullable=False), None, 1),
    "MetadataRequest": _fixed("wants_metadata_offset", "bool", False),
    "MetadataResponse": _fixed("metadata_offset", "int64", -1),
    "ListOffsetsTopic": _fixed("topic_id", "uuid", ZERO_UUID),
}
"""By the name of Kafka's message, in the versions that have tags."""
