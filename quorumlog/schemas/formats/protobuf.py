"""Protobuf: messages by the descriptors of a schema, each schema in a pool of its own.

A registry tells a schema as the text of a .proto file, or, as clients in Python register it, as the descriptor of the
file in base64. A value is a message; which message of the file it is, the indexes before it say (`framing`).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message

from quorumlog.schemas.errors import BadData, BadFrame, BadSchema, BadValue
from quorumlog.schemas.formats.codec import said
from quorumlog.schemas.formats.protoc import compiled
from quorumlog.schemas.framing import Indexes, read_indexes, write_indexes
from quorumlog.schemas.schema import Schema

MAIN = "schema.proto"  # name of the file that a text is of, which the registry does not tell
WELL_KNOWN = "google/protobuf/"


class ProtobufCodec:
    """What stands before a message, its indexes, is encoded and decoded here, too.

    message: the class that values are of; None: that of `name`, or of the indexes, by the schema alone. name: of the
    message that `from_text` makes; empty: the file's first.
    """

    def __init__(
        self,
        schema: Schema,
        referenced: Mapping[str, Schema] = {},
        message: type[Message] | None = None,
        name: str = "",
    ) -> None:
        self._file = _file_of(schema, referenced)
        self._message = message
        wanted = message.DESCRIPTOR.full_name if message is not None else name
        if not wanted and not self._file.message_types_by_name:
            raise BadSchema("the .proto file has no message")
        self._indexes = indexes_of(self._file, wanted) if wanted else (0,)

    @property
    def name(self) -> str:
        return self._descriptor(self._indexes).full_name

    def encode(self, value: Any) -> bytes:
        """value: a message of the class, or of another with the same name."""
        if not isinstance(value, Message):
            raise BadValue(f"a Protobuf message is wanted, not {type(value).__name__}")
        indexes = indexes_of(self._file, value.DESCRIPTOR.full_name)
        try:
            return write_indexes(indexes) + value.SerializeToString()
        except (EncodeError, ValueError) as error:
            raise BadValue(f"it cannot be encoded: {said(error)}") from error

    def decode(self, data: bytes) -> Message:
        message, rest = self._class_of(data)
        try:
            return message.FromString(rest)
        except (DecodeError, ValueError, RecursionError) as error:
            raise BadData(f"the bytes are no {message.DESCRIPTOR.full_name}: {said(error)}") from error

    def text(self, data: bytes) -> str:
        found = self.decode(data)
        try:
            text: str = json_format.MessageToJson(
                found, indent=None, preserving_proto_field_name=True, ensure_ascii=False
            )
        except Exception as error:  # a well-known type with a value that JSON does not have
            raise BadData(f"it cannot be shown as JSON: {said(error)}") from error
        return text

    def from_text(self, text: str) -> bytes:
        message = self._message or message_factory.GetMessageClass(self._descriptor(self._indexes))
        try:
            value = json_format.Parse(text, message())
        except (json_format.ParseError, ValueError, RecursionError) as error:
            raise BadValue(f"it is no {message.DESCRIPTOR.full_name} as JSON: {said(error)}") from error
        return self.encode(value)

    def _class_of(self, data: bytes) -> tuple[type[Message], bytes]:
        try:
            indexes, rest = read_indexes(data)
        except BadFrame as error:
            raise BadData(str(error)) from None
        descriptor = self._descriptor(indexes)
        if self._message is None:
            return message_factory.GetMessageClass(descriptor), rest
        if self._message.DESCRIPTOR.full_name != descriptor.full_name:
            raise BadData(f"it is a {descriptor.full_name}, and {self._message.DESCRIPTOR.full_name} is wanted")
        return self._message, rest

    def _descriptor(self, indexes: Indexes) -> Descriptor:
        level = list(self._file.message_types_by_name.values())
        found: Descriptor | None = None
        for index in indexes:
            if index >= len(level):
                raise BadData(f"the schema has no message {'.'.join(map(str, indexes))}")
            found = level[index]
            level = list(found.nested_types)
        assert found is not None
        return found


def schema_text(file: Any) -> str:
    """As clients in Python register a file: its descriptor in base64. file: a FileDescriptor, of either kind."""
    made = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(made)
    return base64.b64encode(made.SerializeToString()).decode()


def imports_of(file: Any) -> list[Any]:
    """Those that have to be in the registry, too."""
    return [one for one in file.dependencies if not one.name.startswith(WELL_KNOWN)]


def indexes_of(file: FileDescriptor, name: str) -> Indexes:
    """Of the message with this full name, from the file's own messages on. Raises BadValue."""
    for indexes, found in _messages(list(file.message_types_by_name.values()), ()):
        if found.full_name == name:
            return indexes
    raise BadValue(f"the schema has no message {name}")


def _messages(level: list[Descriptor], above: Indexes) -> Iterable[tuple[Indexes, Descriptor]]:
    for index, one in enumerate(level):
        yield (*above, index), one
        yield from _messages(list(one.nested_types), (*above, index))


def _file_of(schema: Schema, referenced: Mapping[str, Schema]) -> FileDescriptor:
    main = _serialized(schema.text)
    if main is not None:
        return _pooled(main, {name: one.text for name, one in referenced.items()})
    texts = {MAIN: schema.text}
    given: dict[str, descriptor_pb2.FileDescriptorProto] = {}
    for name, one in referenced.items():
        made = _serialized(one.text)
        if made is None:
            texts[name] = one.text
        else:
            given[name] = made
    if given:
        raise BadSchema(f"{', '.join(given)} is a descriptor, and the file that imports it a text: register both alike")
    found = descriptor_pb2.FileDescriptorSet.FromString(compiled(MAIN, texts))
    return _in_pool({one.name: one for one in found.file}, MAIN)


def _serialized(text: str) -> descriptor_pb2.FileDescriptorProto | None:
    """None: it is the text of a .proto file, which no base64 can be."""
    try:
        return descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None


def _pooled(main: descriptor_pb2.FileDescriptorProto, texts: Mapping[str, str]) -> FileDescriptor:
    files = {main.name: main}
    for name, text in texts.items():
        made = _serialized(text)
        if made is None:
            found = descriptor_pb2.FileDescriptorSet.FromString(
                compiled(name, {one: other for one, other in texts.items() if _serialized(other) is None})
            )
            files |= {one.name: one for one in found.file}
            continue
        made.name = name
        files[name] = made
    return _in_pool(files, main.name)


def _in_pool(files: dict[str, descriptor_pb2.FileDescriptorProto], main: str) -> FileDescriptor:
    pool = descriptor_pool.DescriptorPool()
    added: set[str] = set()

    def add(name: str, above: tuple[str, ...]) -> None:
        if name in added:
            return
        if name in above:
            raise BadSchema(f"{name} imports itself")
        file = files.get(name) or _well_known(name)
        for one in file.dependency:
            add(one, (*above, name))
        pool.Add(file)
        added.add(name)

    try:
        add(main, ())
        found: FileDescriptor = pool.FindFileByName(main)
    except (TypeError, KeyError, ValueError, RecursionError) as error:
        raise BadSchema(f"it is no Protobuf schema: {said(error)}") from error
    return found


def _well_known(name: str) -> descriptor_pb2.FileDescriptorProto:
    """Of a file that protobuf itself brings. Raises BadSchema."""
    from importlib import import_module

    if not (name.startswith(WELL_KNOWN) and name.removesuffix(".proto").removeprefix(WELL_KNOWN).isidentifier()):
        raise BadSchema(f"it imports {name!r:.200}, and no reference says which schema that is")
    try:
        module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    except ImportError:
        raise BadSchema(f"it imports {name!r:.200}, which protobuf does not have") from None
    made = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(made)
    return made
