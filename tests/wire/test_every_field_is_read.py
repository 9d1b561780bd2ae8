"""Each field of each version of each request of Kafka's is read into our message, or is on a list with a reason.

A field whose name differs between versions, or from ours, is otherwise lost without an error: the converter takes what
it finds, and the message's default for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import pytest

from quorumlog.wire.format.cursor import Cursor
from quorumlog.wire.format.frame_writer import LENGTH_BYTES
from quorumlog.wire.format.header import RequestHeader, read_fixed
from quorumlog.wire.protocol.apis import APIS, Api
from quorumlog.wire.protocol.codec import decode_request, encode_request_values

Path = tuple[str, ...]

NOT_READ: dict[tuple[str, str], str] = {
    (
        "fetch",
        "cluster_id",
    ): "for Kafka's controllers, which do not come by this wire; brokers prove theirs (docs/security.md)",
    ("fetch", "topics.partitions.replica_directory_id"): "as the cluster id",
    ("fetch", "topics.partitions.high_watermark"): "as the cluster id",
    ("describe_quorum", "topics.topic_name"): "there is one partition to ask about, that of the metadata",
    ("describe_quorum", "topics.partitions.partition_index"): "as the name",
    ("join_group", "reason"): "a text for the coordinator's log",
    ("leave_group", "members.reason"): "as in join_group",
}


def entity(api: Api, version: int) -> Any:
    name = "".join(word.capitalize() for word in api.schema.split("_")) + "Request"
    return getattr(import_module(f"kio.schema.{api.schema}.v{version}.request"), name)


def kind_of(field: Any) -> tuple[Any, bool]:
    """(type of the field, or of its elements; whether it is an array)."""
    kind: Any = field.type
    if get_origin(kind) is UnionType:
        kind = next(part for part in get_args(kind) if part is not NoneType)
    return (get_args(kind)[0], True) if get_origin(kind) is tuple else (kind, False)


def leaves(shape: Any, at: Path = ()) -> Iterator[Path]:
    for field in fields(shape):
        kind, _ = kind_of(field)
        path = (*at, field.name)
        if is_dataclass(kind):
            yield from leaves(kind, path)
        else:
            yield path


def filled(shape: Any, changed: Path) -> dict[str, Any]:
    """Values of every field; that of the field at `changed` is another one."""
    values: dict[str, Any] = {}
    for field in fields(shape):
        kind, is_array = kind_of(field)
        inner = changed[1:] if changed[:1] == (field.name,) else ()
        is_changed = changed == (field.name,)
        value = filled(kind, inner) if is_dataclass(kind) else example(field.metadata["kafka_type"], is_changed)
        values[field.name] = [value] if is_array else value
    return values


def example(kind: str, is_changed: bool) -> Any:
    if kind == "string":
        return "b" if is_changed else "a"
    if kind in ("bytes", "records"):
        return b"b" if is_changed else b"a"
    if kind == "uuid":
        return (b"b" if is_changed else b"a") * 16
    if kind == "bool":
        return is_changed
    return 2 if is_changed else 1


def read(api: Api, version: int, values: dict[str, Any]) -> Any:
    frame = encode_request_values(RequestHeader(api.key, version, 9, "me"), api.request_shape(version), values)
    cursor = Cursor(memoryview(b"".join(frame))[LENGTH_BYTES:])
    return decode_request(api, cursor, read_fixed(cursor)).request


VERSIONS = [(api, version) for api in APIS for version in range(api.oldest, api.newest + 1)]


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=[f"{api.schema}-{version}" for api, version in VERSIONS])
def test_every_field_of_a_request_is_read(api: Api, version: int) -> None:
    shape = entity(api, version)
    before = read(api, version, filled(shape, ()))
    lost = {(api.schema, ".".join(path)) for path in leaves(shape) if read(api, version, filled(shape, path)) == before}
    assert lost - NOT_READ.keys() == set()


def test_the_list_holds_nothing_that_is_read() -> None:
    unread = set()
    for api, version in VERSIONS:
        shape = entity(api, version)
        before = read(api, version, filled(shape, ()))
        for path in leaves(shape):
            if read(api, version, filled(shape, path)) == before:
                unread.add((api.schema, ".".join(path)))
    assert set(NOT_READ) - unread == set()
