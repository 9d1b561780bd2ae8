"""Kafka's schemas from kio with our tags, each loaded when its version is first used, since most versions never are.

The tags are fields of ours in Kafka's messages (KIP-482), which other software skips without reading them:

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
from functools import cache
from importlib import import_module
from typing import Any

from quorumlog.ids import ZERO_UUID
from quorumlog.wire.format.cursor import Cursor
from quorumlog.wire.format.frame_writer import FrameWriter
from quorumlog.wire.format.primitives import COMPACT, FIXED, text
from quorumlog.wire.format.schema import Shape, Step, shape_of

OWN_TAG = 0x716C  # of each of them, since each message has one


def _fixed(name: str, kind: str, default: Any) -> Step:
    packed = struct.Struct(f">{FIXED[kind]}")

    def write(writer: FrameWriter, value: Any) -> None:
        writer.tail += packed.pack(value)

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


@cache
def request_shape(schema: str, version: int) -> Shape:
    """schema: kio's name of the API, e.g. `list_offsets`."""
    return _load(schema, version, "request")


@cache
def response_shape(schema: str, version: int) -> Shape:
    return _load(schema, version, "response")


def _load(schema: str, version: int, side: str) -> Shape:
    name = "".join(word.capitalize() for word in schema.split("_")) + side.capitalize()
    module = import_module(f"kio.schema.{schema}.v{version}.{side}")
    for entity, step in OWN_FIELDS.items():
        if hasattr(module, entity) and (shape := shape_of(getattr(module, entity))).flexible:
            shape.tags[OWN_TAG] = step
    return shape_of(getattr(module, name))
