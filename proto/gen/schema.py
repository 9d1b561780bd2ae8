"""The schema as the generator uses it: files of enums, messages and services, from protoc's descriptors.

This module refuses everything that the generator does not support, and names the element: maps, names that Python
cannot use, types of other packages, markers in the wrong place, and a request type of two methods.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from comments import Comment, parse_comment
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)

F = FieldDescriptorProto
SCALARS = {
    **dict.fromkeys((F.TYPE_INT32, F.TYPE_INT64, F.TYPE_UINT32, F.TYPE_UINT64, F.TYPE_SINT32, F.TYPE_SINT64), "int"),
    **dict.fromkeys((F.TYPE_FIXED32, F.TYPE_FIXED64, F.TYPE_SFIXED32, F.TYPE_SFIXED64), "int"),
    **dict.fromkeys((F.TYPE_DOUBLE, F.TYPE_FLOAT), "float"),
    F.TYPE_STRING: "str",
    F.TYPE_BYTES: "bytes",
    F.TYPE_BOOL: "bool",
}
UNUSABLE = frozenset({"int", "str", "bytes", "bool", "float", "tuple", "Buffer"})

RECORD = re.compile(
    r"Type (?P<number>\d+)(?:, from metadata\.version (?P<levels>\d+(?:(?:, | and )\d+)*) on)?\.(?: |$)"
)
SINCE = re.compile(r"@(\d+)\.(?: |$)")

# Field numbers in descriptor.proto: the steps of a SourceCodeInfo path.
FILE_MESSAGE, FILE_ENUM, FILE_SERVICE = 4, 5, 6
MESSAGE_FIELD, MESSAGE_NESTED, MESSAGE_ENUM = 2, 3, 4
ENUM_VALUE, SERVICE_METHOD = 2, 2
FILE_SYNTAX, FILE_PACKAGE = 12, 2
Path = tuple[int, ...]


class SchemaError(Exception):
    """The schema uses something that the generator does not support. The message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeName:
    """A message or enum. python: its name in Python. pb: its path in the `_pb2` module. module: its file's stem."""

    python: str
    pb: str
    module: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field. Exactly one of scalar, enum and message is set.

    optional: declared `optional`, or a member of the oneof named by `oneof`.
    """

    name: str
    comment: Comment
    repeated: bool
    optional: bool
    oneof: str | None
    scalar: str | None = None
    enum: TypeName | None = None
    message: TypeName | None = None

    @property
    def foreign(self) -> TypeName | None:
        """The enum or message type of the field, if any."""
        return self.enum or self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Enum:
    """values: (name without the enum's own prefix, number, documentation)."""

    name: TypeName
    doc: str
    values: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What the comment of a metadata record says of its frame.

    levels: for each version, from 0 on, the level of metadata.version that first writes it. added: the fields that came
    with each later version.
    """

    number: int
    levels: tuple[int, ...]
    added: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """record: None for what is no record of the metadata log, or only a part of one."""

    name: TypeName
    doc: str
    fields: tuple[Field, ...]
    oneofs: tuple[str, ...]
    record: Record | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    service: str  # fully qualified
    name: str
    doc: str
    request: TypeName
    response: TypeName
    client_streaming: bool
    server_streaming: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """root: the package of the generated modules, the first part of the path. stem: the name of those modules."""

    path: str
    root: str
    stem: str
    doc: str
    enums: tuple[Enum, ...]
    messages: tuple[Message, ...]
    methods: tuple[Method, ...]


def read_schema(files: Iterable[FileDescriptorProto], wanted: Iterable[str]) -> list[File]:
    """The wanted files, in their order. `files` contains these and all their imports."""
    by_name = {file.name: file for file in files}
    names = {full: name for file in by_name.values() for full, name in _names(file)}
    schema = [_Reader(by_name[path], names).file() for path in wanted]
    _check_requests(schema)
    return schema


def _names(file: FileDescriptorProto) -> Iterator[tuple[str, TypeName]]:
    """Every type of a file, by its fully qualified name with a leading dot."""
    module = PurePosixPath(file.name).stem

    def walk(prefix: str, python: str, pb: str, message: DescriptorProto) -> Iterator[tuple[str, TypeName]]:
        full, python, pb = f"{prefix}.{message.name}", python + message.name, f"{pb}{message.name}"
        yield full, TypeName(python=python, pb=pb, module=module)
        for enum in message.enum_type:
            yield f"{full}.{enum.name}", TypeName(python=python + enum.name, pb=f"{pb}.{enum.name}", module=module)
        for nested in message.nested_type:
            yield from walk(full, python, f"{pb}.", nested)

    for enum in file.enum_type:
        yield f".{file.package}.{enum.name}", TypeName(python=enum.name, pb=enum.name, module=module)
    for message in file.message_type:
        yield from walk(f".{file.package}", "", "", message)


def _check_requests(schema: list[File]) -> None:
    """Handlers and codecs are found by request type, so each request type must belong to one method. Or to two: the
    newer one then streams what the older one carries one by one."""
    owner: dict[tuple[str, bool], str] = {}
    for file in schema:
        for method in file.methods:
            path, name = f"{method.service}/{method.name}", method.request.python
            before = owner.get((name, method.client_streaming)) or (
                owner.get((name, True)) if not method.client_streaming else None
            )
            if before is not None:
                raise SchemaError(f"{name} is the request of both {before} and {path}")
            owner[name, method.client_streaming] = path


class _Reader:
    """Reads one file: the descriptors, and their comments, which protoc stores by path."""

    def __init__(self, descriptor: FileDescriptorProto, names: dict[str, TypeName]) -> None:
        self.descriptor, self.names = descriptor, names
        self.root = PurePosixPath(descriptor.name).parts[0]
        self.locations = {tuple(place.path): place for place in descriptor.source_code_info.location}

    def file(self) -> File:
        if self.descriptor.syntax != "proto3":
            raise SchemaError(f"{self.descriptor.name}: only proto3 is supported")
        prefix = f".{self.descriptor.package}"
        messages: list[Message] = []
        enums: list[Enum] = []
        for index, enum in enumerate(self.descriptor.enum_type):
            enums.append(self._enum(prefix, enum, (FILE_ENUM, index)))
        for index, message in enumerate(self.descriptor.message_type):
            self._message(prefix, message, (FILE_MESSAGE, index), messages, enums)
        return File(
            path=self.descriptor.name,
            root=self.root,
            stem=PurePosixPath(self.descriptor.name).stem,
            doc=self._file_doc(),
            enums=tuple(enums),
            messages=tuple(messages),
            methods=tuple(
                method
                for index, service in enumerate(self.descriptor.service)
                for method in self._methods(service, (FILE_SERVICE, index))
            ),
        )

    def _file_doc(self) -> str:
        """The comment above `syntax`, with or without a blank line between them."""
        place = self.locations.get((FILE_SYNTAX,))
        if place is None:
            return ""
        return parse_comment(*place.leading_detached_comments, place.leading_comments).doc

    def _comment(self, path: Path) -> Comment:
        place = self.locations.get(path)
        return Comment() if place is None else parse_comment(place.leading_comments, place.trailing_comments)

    def _named(self, full: str, blame: str) -> TypeName:
        name = self.names.get(full)
        if name is None or not full.startswith(f".{self.root}."):
            raise SchemaError(f"{blame}: {full} is not a type of this schema")
        return name

    def _enum(self, prefix: str, enum: EnumDescriptorProto, path: Path) -> Enum:
        name = self.names[f"{prefix}.{enum.name}"]
        own = _screaming(enum.name) + "_"
        strip = len(own) if all(v.name.startswith(own) and v.name[len(own) :].isidentifier() for v in enum.value) else 0
        values = tuple(
            (_usable(v.name[strip:], name.python), v.number, self._comment((*path, ENUM_VALUE, index)).doc)
            for index, v in enumerate(enum.value)
        )
        return Enum(name=name, doc=self._comment(path).doc, values=values)

    def _message(
        self, prefix: str, message: DescriptorProto, path: Path, messages: list[Message], enums: list[Enum]
    ) -> None:
        full = f"{prefix}.{message.name}"
        if any(nested.options.map_entry for nested in message.nested_type):
            raise SchemaError(f"{full}: maps are not supported, use a repeated message")
        fields = tuple(
            self._field(message, field, (*path, MESSAGE_FIELD, index)) for index, field in enumerate(message.field)
        )
        oneofs = tuple(dict.fromkeys(field.oneof for field in fields if field.oneof is not None))
        doc = self._comment(path).doc
        record = _record(full, doc, fields)
        messages.append(Message(name=self.names[full], doc=doc, fields=fields, oneofs=oneofs, record=record))
        for index, enum in enumerate(message.enum_type):
            enums.append(self._enum(full, enum, (*path, MESSAGE_ENUM, index)))
        for index, nested in enumerate(message.nested_type):
            self._message(full, nested, (*path, MESSAGE_NESTED, index), messages, enums)

    def _field(self, message: DescriptorProto, field: FieldDescriptorProto, path: Path) -> Field:
        blame = f"{message.name}.{field.name}"
        in_oneof = field.HasField("oneof_index") and not field.proto3_optional
        made = Field(
            name=_usable(field.name, message.name),
            comment=self._comment(path),
            repeated=field.label == F.LABEL_REPEATED,
            optional=field.proto3_optional or in_oneof,
            oneof=message.oneof_decl[field.oneof_index].name if in_oneof else None,
            scalar=SCALARS.get(field.type),
            enum=self._named(field.type_name, blame) if field.type == F.TYPE_ENUM else None,
            message=self._named(field.type_name, blame) if field.type == F.TYPE_MESSAGE else None,
        )
        _check_markers(made, blame)
        return made

    def _methods(self, service: ServiceDescriptorProto, path: Path) -> Iterator[Method]:
        full = f"{self.descriptor.package}.{service.name}"
        for index, method in enumerate(service.method):
            yield Method(
                service=full,
                name=method.name,
                doc=self._comment((*path, SERVICE_METHOD, index)).doc,
                request=self._named(method.input_type, f"{full}/{method.name}"),
                response=self._named(method.output_type, f"{full}/{method.name}"),
                client_streaming=method.client_streaming,
                server_streaming=method.server_streaming,
            )


def _record(blame: str, doc: str, fields: tuple[Field, ...]) -> Record | None:
    """None for a comment that does not begin with a record's type."""
    if not doc.startswith("Type "):
        return None
    found = RECORD.match(doc.replace("\n", " "))
    if found is None:
        raise SchemaError(f"{blame}: not a record's type: {doc.splitlines()[0]}")
    levels = tuple(int(level) for level in re.findall(r"\d+", found["levels"] or "1"))
    if list(levels) != sorted(set(levels)):
        raise SchemaError(f"{blame}: levels ascend, {levels} do not")
    added: list[list[str]] = [[] for _ in levels[1:]]
    for field in fields:
        since = SINCE.match(field.comment.doc)
        if since is None:
            continue
        if not 0 < int(since[1]) < len(levels):
            raise SchemaError(f"{blame}.{field.name}: the record has no version {since[1]}")
        added[int(since[1]) - 1].append(field.name)
    return Record(number=int(found["number"]), levels=levels, added=tuple(map(tuple, added)))


def _check_markers(field: Field, blame: str) -> None:
    """Raises SchemaError for a marker in the wrong place, which would otherwise be taken for prose."""
    if field.scalar is None and field.enum is None and field.message is None:
        raise SchemaError(f"{blame}: this type is not supported")
    if field.comment.buffer and (field.scalar != "bytes" or field.repeated):
        raise SchemaError(f"{blame}: only a single bytes field can be a buffer")
    if field.comment.required and (field.message is None or field.repeated or field.oneof is not None):
        raise SchemaError(f"{blame}: only a single message field can be required (scalars without default are)")
    if field.comment.default is not None and (field.message is not None or field.repeated):
        raise SchemaError(f"{blame}: only a single scalar or enum can have a default")


def _usable(name: str, owner: str) -> str:
    if keyword.iskeyword(name) or name in UNUSABLE or name.startswith("__"):
        raise SchemaError(f"{owner}.{name}: not usable as a name in Python; rename it")
    return name


def _screaming(camel: str) -> str:
    """FetchState -> FETCH_STATE."""
    return "".join(f"_{c}" if c.isupper() and i else c for i, c in enumerate(camel)).upper()
