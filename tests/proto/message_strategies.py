"""Every generated message: its dataclass, its encoder and decoder, and a strategy for its values."""

from __future__ import annotations

import dataclasses
import importlib
import types
import typing
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import strategies as st

import quorumlog.rpc.pb as pb_package
from quorumlog.messages.buffer import Buffer, Pieces

F = FieldDescriptor
RANGES = {
    F.TYPE_INT32: (-(2**31), 2**31 - 1), F.TYPE_SINT32: (-(2**31), 2**31 - 1), F.TYPE_SFIXED32: (-(2**31), 2**31 - 1),
    F.TYPE_INT64: (-(2**63), 2**63 - 1), F.TYPE_SINT64: (-(2**63), 2**63 - 1), F.TYPE_SFIXED64: (-(2**63), 2**63 - 1),
    F.TYPE_UINT32: (0, 2**32 - 1), F.TYPE_FIXED32: (0, 2**32 - 1),
    F.TYPE_UINT64: (0, 2**64 - 1), F.TYPE_FIXED64: (0, 2**64 - 1),
}  # fmt: skip
MAX_DEPTH = 3  # of messages inside messages of their own kind


class Generated(NamedTuple):
    """kind: the dataclass. descriptor: protoc's description of the same message."""

    kind: Any
    descriptor: Descriptor
    encode: Callable[[Any], bytes]
    decode: Callable[[Any], Any]


def generated_messages() -> list[Generated]:
    """All messages of all schema files, including nested ones, in the order of the files."""
    found = []
    for path in sorted(Path(pb_package.__file__).parent.glob("*_pb2.py")):
        stem = path.stem.removesuffix("_pb2")
        stub = importlib.import_module(f"quorumlog.rpc.pb.{path.stem}")
        descriptors = list(stub.DESCRIPTOR.message_types_by_name.values())
        if descriptors:
            messages = importlib.import_module(f"quorumlog.messages.{stem}")
            convert = importlib.import_module(f"quorumlog.rpc.convert.{stem}")
            found += [_generated(d, "", messages, convert) for d in descriptors]
    return [one for group in found for one in group]


def _generated(
    descriptor: Descriptor, prefix: str, messages: types.ModuleType, convert: types.ModuleType
) -> list[Generated]:
    name = prefix + descriptor.name
    encode, decode = getattr(convert, f"encode_{name}"), getattr(convert, f"decode_{name}")
    own = Generated(getattr(messages, name), descriptor, encode, decode)
    nested = [one for d in descriptor.nested_types for one in _generated(d, name, messages, convert)]
    return [own, *nested]


def values(kind: Any, descriptor: Descriptor, depth: int = 0) -> st.SearchStrategy[Any]:
    """Instances of a generated dataclass. Types come from its annotations, integer ranges from protoc."""
    hints = typing.get_type_hints(kind)
    fields = {f.name: _field(hints[f.name], descriptor.fields_by_name[f.name], depth) for f in dataclasses.fields(kind)}
    return st.builds(kind, **fields).map(_one_of_each_oneof(descriptor))


def _one_of_each_oneof(descriptor: Descriptor) -> Callable[[Any], Any]:
    groups = [[f.name for f in oneof.fields] for oneof in descriptor.oneofs if len(oneof.fields) > 1]

    def thin(message: Any) -> Any:
        for names in groups:
            extra = [name for name in names if getattr(message, name) is not None][1:]
            message = dataclasses.replace(message, **dict.fromkeys(extra))
        return message

    return thin


def _field(hint: Any, field: FieldDescriptor, depth: int) -> st.SearchStrategy[Any]:
    if hint == Buffer:
        return _buffers()
    if hint == Buffer | Pieces:
        return _buffers() | st.lists(_buffers(), max_size=3).map(Pieces)
    if typing.get_origin(hint) is tuple:
        return st.lists(_single(typing.get_args(hint)[0], field, depth), max_size=2).map(tuple)
    if isinstance(hint, types.UnionType):
        (single,) = [part for part in typing.get_args(hint) if part is not types.NoneType]
        if dataclasses.is_dataclass(single) and depth >= MAX_DEPTH:
            return st.none()
        return st.none() | _single(single, field, depth)
    return _single(hint, field, depth)


def _buffers() -> st.SearchStrategy[Buffer]:
    data = st.binary(max_size=20)
    return data | data.map(bytearray) | data.map(memoryview)


def _single(hint: Any, field: FieldDescriptor, depth: int) -> st.SearchStrategy[Any]:
    if dataclasses.is_dataclass(hint):
        return values(hint, field.message_type, depth + 1)
    if issubclass(hint, IntEnum):
        return st.sampled_from(list(hint))
    if hint is int:
        return st.integers(*RANGES[field.type])
    return {
        str: st.text(max_size=8),
        bytes: st.binary(max_size=20),
        bool: st.booleans(),
        float: st.floats(allow_nan=False, width=32 if field.type == F.TYPE_FLOAT else 64),
    }[hint]
