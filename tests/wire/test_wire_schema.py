"""Every message of every version that the lane speaks, against kio's own reader and writer, an independent codec."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wire_bytes import entity_of, through_kio, values_of

from quorumlog.wire.format.cursor import Cursor, Malformed
from quorumlog.wire.format.frame_writer import LENGTH_BYTES, FrameWriter
from quorumlog.wire.format.schema import shape_of
from quorumlog.wire.protocol import sasl
from quorumlog.wire.protocol.apis import APIS

SPOKEN = [(api.schema, version) for api in APIS for version in range(api.oldest, api.newest + 1)]
SPOKEN += [("api_versions", version) for version in range(5)]
SPOKEN += [("sasl_handshake", version) for version in range(sasl.SASL_VERSIONS[sasl.HANDSHAKE_KEY][1] + 1)]
SPOKEN += [("sasl_authenticate", version) for version in range(sasl.SASL_VERSIONS[sasl.AUTHENTICATE_KEY][1] + 1)]
KINDS = [entity_of(schema, version, side) for schema, version in SPOKEN for side in ("request", "response")]
NAMES = [f"{kind.__name__}-{kind.__version__}" for kind in KINDS]


def written(kind: Any, values: dict[str, Any]) -> bytes:
    writer = FrameWriter()
    shape_of(kind).write(writer, values)
    return b"".join(writer.frame())[LENGTH_BYTES:]


def read(kind: Any, data: bytes) -> dict[str, Any]:
    cursor = Cursor(memoryview(data))
    values = shape_of(kind).read(cursor)
    assert cursor.left == 0
    return values


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_bytes_are_those_of_kio_and_can_be_read_again(kind: Any, data: st.DataObject) -> None:
    values = data.draw(values_of(kind))
    ours = written(kind, values)
    kios = through_kio(kind, ours)  # leaves out tagged structs of defaults, which are legal and which we may write
    assert through_kio(kind, written(kind, read(kind, kios))) == kios
    assert kios == ours or len(kios) < len(ours)
    assert written(kind, read(kind, ours)) == ours


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
@settings(max_examples=1, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_truncation_is_malformed_or_shorter(kind: Any, data: st.DataObject) -> None:
    whole = written(kind, data.draw(values_of(kind)))
    for size in range(min(len(whole), 60)):
        try:
            shape_of(kind).read(Cursor(memoryview(whole[:size])))
        except Malformed:
            continue
        pytest.fail(f"{size} of {len(whole)} bytes were read as a whole message")


GIANT_COUNTS = [
    ("a compact count in the billions", "create_topics", 7, b"\xff\xff\xff\xff\x07" + bytes(100)),
    ("a varint without an end", "create_topics", 7, b"\xff" * 12),
    ("an old count in the billions", "metadata", 4, (2**31 - 1).to_bytes(4, "big") + bytes(100)),
    ("a negative count", "metadata", 4, (-5).to_bytes(4, "big", signed=True)),
    ("more elements than one message may have", "metadata", 4, (300_000).to_bytes(4, "big") + bytes(700_000)),
    ("null where a text has to be", "metadata", 4, b"\0\0\0\1\xff\xff\1"),
    ("text that is not UTF-8", "metadata", 4, b"\0\0\0\1\0\1\xff\1"),
    ("text past the end", "metadata", 4, b"\0\0\0\1\x7f\xffabc"),
    ("a tag past the end", "metadata", 9, b"\1\1\0\0\1\0\x7f"),
]


@pytest.mark.parametrize(
    ("schema", "version", "data"), [row[1:] for row in GIANT_COUNTS], ids=[r[0] for r in GIANT_COUNTS]
)
def test_impossible_bytes_are_malformed(schema: str, version: int, data: bytes) -> None:
    """CVE-2026-111108, CVE-2026-111115: counts of arrays and of tags are taken at their word."""
    with pytest.raises(Malformed):
        shape_of(entity_of(schema, version, "request")).read(Cursor(memoryview(data)))


def test_records_are_views_of_the_frame_both_ways() -> None:
    kind = entity_of("produce", 9, "request")
    records = bytes(range(256)) * 40
    topic = {"name": "t", "partition_data": [{"index": 0, "records": memoryview(records)}]}
    writer = FrameWriter()
    shape_of(kind).write(writer, {"acks": 1, "timeout": 1, "topic_data": [topic]})
    frame = writer.frame()
    assert any(part.obj is records for part in frame if isinstance(part, memoryview))
    data = b"".join(frame)[LENGTH_BYTES:]
    found = shape_of(kind).read(Cursor(memoryview(data)))["topic_data"][0]["partition_data"][0]["records"]
    assert found.obj is data and found == records
