"""How Kafka lays out a versioned message inside a record's key or value: fields that come and go with the version.

A value begins with its version as an int16, a key with its type; the fields follow. From the first flexible version on,
lengths are unsigned varints plus one, and every struct ends with tagged fields. A `Layout` names the fields of one
struct once; reading, writing and showing as JSON follow from it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Any, Generic, NamedTuple, TypeVar

from quorumlog.ids import format_uuid
from quorumlog.records.coordinator.fields import FieldReader, FieldWriter
from quorumlog.records.format.corrupt import CorruptRecords
from quorumlog.records.format.flexible import INT8, INT16, INT32, INT64
from quorumlog.slices import Pace, Sliced

T = TypeVar("T")
Show = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """How one field is read and written, in a version, and shown as JSON in the words of kafka-dump-log.

    sliced: the same in slices, where it may have thousands of elements.
    """

    read: Callable[[FieldReader, int], Any]
    write: Callable[[FieldWriter, int, Any], None]
    show: Callable[[int, Any], Any]
    sliced: SlicedKind | None = None


class SlicedKind(NamedTuple):
    read: Callable[[FieldReader, int, Pace], Sliced[Any]]
    write: Callable[[FieldWriter, int, Any, Pace], Sliced[None]]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the versions [since, until]. tag: of a tagged field, which is left out where it has its default."""

    name: str
    kind: Kind
    since: int = 0
    until: int = 99
    tag: int | None = None
    default: Any = None

    def is_in(self, version: int) -> bool:
        return self.since <= version <= self.until


class _Parts(NamedTuple):
    """The fields of one version: (name, kind) in order, and those with a tag."""

    plain: tuple[tuple[str, Kind], ...]
    tagged: dict[int, Field]


class Layout(Generic[T]):
    """The fields of one struct, in order. `make` builds it from the fields that a version has, by name."""

    def __init__(self, make: Callable[..., T], *fields: Field, newest: int = 0, flexible_since: int = 0) -> None:
        """Versions [0, newest] are known. A struct inside another one has the versions of the outer one."""
        self._make, self._fields = make, fields
        self._parts: dict[int, _Parts] = {}  # of the versions that were asked for
        self.newest, self.flexible_since = newest, flexible_since

    def encode(self, value: T, version: int) -> bytes:
        """The version, then the fields. Raises ValueError for a version that is not known."""
        writer = self._begun(version)
        self.write(writer, version, value)
        return writer.done()

    def encode_sliced(self, value: T, version: int, pace: Pace) -> Sliced[bytes]:
        """`encode` in slices: between the elements of its arrays of structs."""
        writer, (plain, tagged) = self._begun(version), self._parts_of(version)
        for name, kind in plain:
            if kind.sliced is None:
                kind.write(writer, version, getattr(value, name))
            else:
                yield from kind.sliced.write(writer, version, getattr(value, name), pace)
        self._write_tags(writer, version, value, tagged)
        return writer.done()

    def _begun(self, version: int) -> FieldWriter:
        if not 0 <= version <= self.newest:
            raise ValueError(f"version {version} is not in 0 to {self.newest}")
        writer = FieldWriter(flexible=version >= self.flexible_since)
        writer.number(INT16, version)
        return writer

    def decode(self, data: bytes) -> tuple[int, T]:
        """(version, value). Raises CorruptRecords, and UnknownVersion for a version of newer software."""
        reader, version = self._opened(data)
        value = self.read(reader, version)
        reader.end()
        return version, value

    def decode_sliced(self, data: bytes, pace: Pace) -> Sliced[T]:
        """`decode` in slices, without the version: between the elements of its arrays of structs."""
        reader, version = self._opened(data)
        plain, tagged = self._parts_of(version)
        values: dict[str, Any] = {}
        for name, kind in plain:
            if kind.sliced is None:
                values[name] = kind.read(reader, version)
            else:
                values[name] = yield from kind.sliced.read(reader, version, pace)
        self._read_tags(reader, version, values, tagged)
        reader.end()
        return self._make(**values)

    def _opened(self, data: bytes) -> tuple[FieldReader, int]:
        reader = FieldReader(data)
        version = reader.number(INT16)
        if not 0 <= version <= self.newest:
            raise UnknownVersion(version, self.newest)
        reader.flexible = version >= self.flexible_since
        return reader, version

    def _parts_of(self, version: int) -> _Parts:
        found = self._parts.get(version)
        if found is None:
            present = [field for field in self._fields if field.is_in(version)]
            found = self._parts[version] = _Parts(
                tuple((field.name, field.kind) for field in present if field.tag is None),
                {field.tag: field for field in present if field.tag is not None},
            )
        return found

    def read(self, reader: FieldReader, version: int) -> T:
        plain, tagged = self._parts_of(version)
        values = {name: kind.read(reader, version) for name, kind in plain}
        self._read_tags(reader, version, values, tagged)
        return self._make(**values)

    def _read_tags(self, reader: FieldReader, version: int, values: dict[str, Any], tagged: dict[int, Field]) -> None:
        if not reader.flexible:
            return
        values |= {field.name: field.default for field in tagged.values()}
        for tag, inner in reader.tags():
            if (field := tagged.get(tag)) is not None:
                values[field.name] = field.kind.read(inner, version)
                inner.end()

    def write(self, writer: FieldWriter, version: int, value: T) -> None:
        plain, tagged = self._parts_of(version)
        for name, kind in plain:
            kind.write(writer, version, getattr(value, name))
        self._write_tags(writer, version, value, tagged)

    def _write_tags(self, writer: FieldWriter, version: int, value: T, tagged: dict[int, Field]) -> None:
        if not writer.flexible:
            return
        tags: dict[int, bytes] = {}
        for tag, field in tagged.items():
            if getattr(value, field.name) != field.default:
                inner = FieldWriter(flexible=True)
                field.kind.write(inner, version, getattr(value, field.name))
                tags[tag] = inner.done()
        writer.tags(tags)

    def show(self, version: int, value: T) -> dict[str, Any]:
        """The fields of this version by Kafka's names; a tagged field only where it has not its default."""
        return {
            _kafka_name(field.name): field.kind.show(version, getattr(value, field.name))
            for field in self._fields
            if field.is_in(version) and (field.tag is None or getattr(value, field.name) != field.default)
        }

    @property
    def kind(self) -> Kind:
        """This struct as a field of another one."""
        return Kind(self.read, self.write, self.show)


class UnknownVersion(CorruptRecords):
    """A version that newer software wrote. What stands in it cannot be told."""

    def __init__(self, version: int, newest: int) -> None:
        super().__init__(0, f"version {version} is not known; this software knows 0 to {newest}")
        self.version = version


def _itself(value: Any) -> Any:
    return value


def _plain(read: Callable[[FieldReader], Any], write: Callable[[FieldWriter, Any], None], show: Show = _itself) -> Kind:
    """A field whose form is the same in all versions, but for lengths."""
    return Kind(
        lambda reader, _: read(reader), lambda writer, _, value: write(writer, value), lambda _, value: show(value)
    )


def _number(form: Struct) -> Kind:
    return _plain(lambda reader: reader.number(form), lambda writer, value: writer.number(form, value))


BYTE, SHORT, INT, LONG = _number(INT8), _number(INT16), _number(INT32), _number(INT64)
UUID = _plain(FieldReader.uuid, FieldWriter.uuid, format_uuid)
TEXT = _plain(FieldReader.text, FieldWriter.text)
NULLABLE_TEXT = _plain(FieldReader.nullable_text, FieldWriter.nullable_text)
BYTES = _plain(FieldReader.blob, FieldWriter.blob, lambda value: b64encode(value).decode())


def array(of: Kind, *, nullable: bool = False) -> Kind:
    """A tuple of values. In slices only if it cannot be null: those are the long ones."""

    def read(reader: FieldReader, version: int) -> tuple[Any, ...] | None:
        items = reader.nullable_items if nullable else reader.items
        return items(lambda: of.read(reader, version))

    def write(writer: FieldWriter, version: int, value: tuple[Any, ...] | None) -> None:
        writer.items(value, lambda item: of.write(writer, version, item))

    def show(version: int, value: tuple[Any, ...] | None) -> list[Any] | None:
        return None if value is None else [of.show(version, item) for item in value]

    def read_sliced(reader: FieldReader, version: int, pace: Pace) -> Sliced[tuple[Any, ...]]:
        found = []
        for _ in range(reader.item_count()):
            found.append(of.read(reader, version))
            if pace.is_over():
                yield
        return tuple(found)

    def write_sliced(writer: FieldWriter, version: int, value: tuple[Any, ...], pace: Pace) -> Sliced[None]:
        writer.item_count(value)
        for item in value:
            of.write(writer, version, item)
            if pace.is_over():
                yield

    return Kind(read, write, show, None if nullable else SlicedKind(read_sliced, write_sliced))


def optional_struct(layout: Layout[Any]) -> Kind:
    """A struct behind a byte that says whether it is there: 1, or -1 for null. For tagged fields that may be null."""

    def read(reader: FieldReader, version: int) -> Any:
        return None if reader.number(INT8) < 0 else layout.read(reader, version)

    def write(writer: FieldWriter, version: int, value: Any) -> None:
        writer.number(INT8, -1 if value is None else 1)
        if value is not None:
            layout.write(writer, version, value)

    return Kind(read, write, lambda version, value: None if value is None else layout.show(version, value))


def _kafka_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
