"""Kafka's messages from and to bytes, by the field lists that kio generates from Kafka's own schemas.

A message is a dict of kio's field names, in one version: a field that the version does not have is missing after
reading, and is ignored when writing. Numbers are ints, times milliseconds, uuids 16 bytes, records views of the frame.

`read_sliced` and `write_sliced` do the same in slices, for messages of 100,000 elements: between the elements of an
array of structs others may run. Arrays of numbers are read and written at once, 200,000 of them in 3 ms.

Why not kio's own reader: it allocates as much as a count says before it looks at the bytes, so that a count in the
billions aborts the process (kio 0.6.5), and it copies records. Adjacent fields of fixed width become one `struct`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, get_args, get_origin

from quorumlog.slices import Pace, Sliced
from quorumlog.wire.format.cursor import Cursor, Malformed
from quorumlog.wire.format.frame_writer import FrameWriter, write_uvarint
from quorumlog.wire.format.primitives import COMPACT, FIXED, LONG, SHORT, Lengths, blob, text

Values = dict[str, Any]
Read = Callable[[Cursor], Any]
Write = Callable[[FrameWriter, Any], None]


class Step(NamedTuple):
    """One field of variable length, or one tagged field. default: written if there is no value.

    elements: of an array that has as many of them as its message says, other than numbers.
    """

    name: str
    read: Read
    write: Write
    default: Any
    least_bytes: int
    elements: Elements | None = None


class Run:
    """Adjacent fields of fixed width."""

    __slots__ = ("defaults", "letters", "names", "packed")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.defaults: list[Any] = []
        self.letters = ">"
        self.packed = struct.Struct(">")

    def add(self, name: str, letter: str, default: Any) -> None:
        self.names.append(name)
        self.defaults.append(default)
        self.letters += letter
        self.packed = struct.Struct(self.letters)


class Shape:
    """One struct of one message, in one version."""

    __slots__ = ("flexible", "least_bytes", "name", "steps", "tags")

    def __init__(self, entity: Any) -> None:
        self.name: str = entity.__name__
        self.flexible: bool = entity.__flexible__
        self.steps: list[Run | Step] = []
        self.tags: dict[int, Step] = {}
        for field in fields(entity):
            tag = field.metadata.get("tag")
            if tag is None:
                self._add(field)
            else:
                self.tags[tag] = _step(field, self.flexible, tagged=True)
        self.tags = dict(sorted(self.tags.items()))
        sizes = [step.packed.size if isinstance(step, Run) else step.least_bytes for step in self.steps]
        self.least_bytes: int = sum(sizes) + (1 if self.flexible else 0)

    def read(self, cursor: Cursor) -> Values:
        values: Values = {}
        for step in self.steps:
            if isinstance(step, Run):
                packed = step.packed
                values.update(zip(step.names, packed.unpack_from(cursor.data, cursor.skip(packed.size)), strict=True))
            else:
                values[step.name] = step.read(cursor)
        if self.flexible:
            self._read_tags(cursor, values)
        return values

    def write(self, writer: FrameWriter, values: Mapping[str, Any]) -> None:
        for step in self.steps:
            if isinstance(step, Run):
                writer.tail += step.packed.pack(*_chosen(step, values))
            else:
                value = values.get(step.name)
                step.write(writer, step.default if value is None else value)
        if self.flexible:
            self._write_tags(writer, values)

    def read_sliced(self, cursor: Cursor, pace: Pace) -> Sliced[Values]:
        """`read`. Raises Malformed."""
        values: Values = {}
        for step in self.steps:
            if isinstance(step, Run):
                packed = step.packed
                values.update(zip(step.names, packed.unpack_from(cursor.data, cursor.skip(packed.size)), strict=True))
            elif step.elements is not None:
                values[step.name] = yield from step.elements.read_sliced(cursor, pace)
            else:
                values[step.name] = step.read(cursor)
        if self.flexible:
            self._read_tags(cursor, values)
        return values

    def write_sliced(self, writer: FrameWriter, values: Mapping[str, Any], pace: Pace) -> Sliced[None]:
        """`write`. Nothing else may be written to `writer` until it has ended."""
        for step in self.steps:
            if isinstance(step, Run):
                writer.tail += step.packed.pack(*_chosen(step, values))
                continue
            value = values.get(step.name)
            value = step.default if value is None else value
            if step.elements is not None:
                yield from step.elements.write_sliced(writer, value, pace)
            else:
                step.write(writer, value)
        if self.flexible:
            self._write_tags(writer, values)

    @property
    def has_elements(self) -> bool:
        """One of it may be as long as its message says."""
        return any(isinstance(step, Step) and step.elements is not None for step in self.steps)

    def has(self, name: str) -> bool:
        """There is a field of this name that is not tagged."""
        return any(name in step.names if isinstance(step, Run) else name == step.name for step in self.steps)

    def _add(self, field: Field[Any]) -> None:
        letter = None if _is_array(field) else FIXED.get(field.metadata.get("kafka_type", ""))
        if letter is None:
            self.steps.append(_step(field, self.flexible, tagged=False))
            return
        if not self.steps or not isinstance(self.steps[-1], Run):
            self.steps.append(Run())
        run = self.steps[-1]
        assert isinstance(run, Run)
        run.add(field.name, letter, _fixed_default(field, letter))

    def _read_tags(self, cursor: Cursor, values: Values) -> None:
        for _ in range(cursor.uvarint()):
            tag, size = cursor.uvarint(), cursor.uvarint()
            end = cursor.skip(size) + size
            step = self.tags.get(tag)
            if step is None:
                continue
            cursor.position = end - size
            values[step.name] = step.read(cursor)
            if cursor.position != end:
                raise Malformed(f"tag {tag} of {self.name} has {size} bytes, but its value has another size")

    def _write_tags(self, writer: FrameWriter, values: Mapping[str, Any]) -> None:
        present = [(tag, step) for tag, step in self.tags.items() if _is_written(values.get(step.name), step.default)]
        write_uvarint(writer.tail, len(present))
        for tag, step in present:
            inner = FrameWriter()
            inner.tail.clear()
            step.write(inner, values[step.name])
            write_uvarint(writer.tail, tag)
            write_uvarint(writer.tail, len(inner.tail))
            writer.tail += inner.tail


def shape_of(entity: Any) -> Shape:
    return _shape_of(entity)


@cache
def _shape_of(entity: type) -> Shape:
    return Shape(entity)


def _chosen(run: Run, values: Mapping[str, Any]) -> list[Any]:
    chosen = [values.get(name) for name in run.names]
    return [default if value is None else value for value, default in zip(chosen, run.defaults, strict=True)]


def _step(field: Field[Any], flexible: bool, tagged: bool) -> Step:
    """tagged: the field is never null, since it is left out instead."""
    element, nullable = _element(field)
    nullable = nullable and not tagged
    if _is_array(field):
        return _array(field, element, flexible, nullable)
    if is_dataclass(element):
        return _struct(field.name, shape_of(element), nullable)
    kind = field.metadata["kafka_type"]
    if kind in FIXED:
        return _single(field, FIXED[kind])
    lengths = COMPACT if flexible else (SHORT if kind == "string" else LONG)
    if kind == "string":
        read, write = text(lengths, nullable)
    else:
        read, write = blob(lengths, nullable, as_view=kind == "records")
    default = field.default if isinstance(field.default, str) else None
    return Step(field.name, read, write, default, lengths.least_bytes)


def _is_written(value: Any, default: Any) -> bool:
    """A tagged field with its default value is left out."""
    return value is not None and value != default and not (default == () and len(value) == 0)


def _single(field: Field[Any], letter: str) -> Step:
    """A tagged field of fixed width."""
    packed = struct.Struct(f">{letter}")

    def write(writer: FrameWriter, value: Any) -> None:
        writer.tail += packed.pack(value)

    def read(cursor: Cursor) -> Any:
        return packed.unpack_from(cursor.data, cursor.skip(packed.size))[0]

    return Step(field.name, read, write, _fixed_default(field, letter), packed.size)


def _struct(name: str, shape: Shape, nullable: bool) -> Step:
    """A nullable struct begins with one byte: -1 null, 1 present (KIP-893)."""
    if not nullable:
        return Step(name, shape.read, shape.write, {}, shape.least_bytes)

    def read(cursor: Cursor) -> Values | None:
        present = cursor.data[cursor.skip(1)]
        return None if present == 0xFF else shape.read(cursor)

    def write(writer: FrameWriter, value: Values | None) -> None:
        writer.tail.append(0xFF if value is None else 1)
        if value is not None:
            shape.write(writer, value)

    return Step(name, read, write, None, 1)


def _array(field: Field[Any], element: Any, flexible: bool, nullable: bool) -> Step:
    lengths = COMPACT if flexible else LONG
    kind = field.metadata.get("kafka_type", "")
    default = None if nullable else ()
    if kind in FIXED:
        read, write = _numbers(FIXED[kind], lengths, nullable)
        return Step(field.name, read, write, default, lengths.least_bytes)
    if is_dataclass(element):
        shape = shape_of(element)
        elements = Elements(shape.read, shape.write, shape.least_bytes, lengths, nullable, shape)
    else:
        of_text = COMPACT if flexible else SHORT
        assert kind == "string", f"an array of {kind}"
        elements = Elements(*text(of_text, nullable=False), of_text.least_bytes, lengths, nullable, None)
    return Step(field.name, elements.read, elements.write, default, lengths.least_bytes, elements)


class Elements:
    """An array of structs or of strings. shape: of a struct."""

    __slots__ = ("_deep", "_least_bytes", "_lengths", "_nullable", "_read_one", "_write_one")

    def __init__(
        self,
        read_one: Read,
        write_one: Write,
        least_bytes: int,
        lengths: Lengths,
        nullable: bool,
        shape: Shape | None,
    ) -> None:
        self._read_one, self._write_one = read_one, write_one
        self._least_bytes, self._lengths, self._nullable = least_bytes, lengths, nullable
        self._deep = shape if shape is not None and shape.has_elements else None

    def read(self, cursor: Cursor) -> Any:
        count = self._lengths.read(cursor)
        if count < 0:
            return _null(self._nullable)
        return [self._read_one(cursor) for _ in range(cursor.count(count, self._least_bytes))]

    def write(self, writer: FrameWriter, values: Any) -> None:
        self._lengths.write(writer.tail, -1 if values is None else len(values))
        for value in values or ():
            self._write_one(writer, value)

    def read_sliced(self, cursor: Cursor, pace: Pace) -> Sliced[Any]:
        count = self._lengths.read(cursor)
        if count < 0:
            return _null(self._nullable)
        found: list[Any] = []
        for _ in range(cursor.count(count, self._least_bytes)):
            found.append(
                self._read_one(cursor) if self._deep is None else (yield from self._deep.read_sliced(cursor, pace))
            )
            if pace.is_over():
                yield
        return found

    def write_sliced(self, writer: FrameWriter, values: Any, pace: Pace) -> Sliced[None]:
        self._lengths.write(writer.tail, -1 if values is None else len(values))
        for value in values or ():
            if self._deep is None:
                self._write_one(writer, value)
            else:
                yield from self._deep.write_sliced(writer, value, pace)
            if pace.is_over():
                yield


def _numbers(letter: str, lengths: Lengths, nullable: bool) -> tuple[Read, Write]:
    width = struct.calcsize(f">{letter}")

    def many(count: int) -> str:
        return ">" + letter * count if letter.endswith("s") else f">{count}{letter}"

    def read(cursor: Cursor) -> Any:
        count = lengths.read(cursor)
        if count < 0:
            return _null(nullable)
        start = cursor.skip(cursor.count(count, width) * width)
        return struct.unpack_from(many(count), cursor.data, start)

    def write(writer: FrameWriter, values: Any) -> None:
        lengths.write(writer.tail, -1 if values is None else len(values))
        if values:
            writer.tail += struct.pack(many(len(values)), *values)

    return read, write


def _null(nullable: bool) -> Any:
    """None if the array may be null. Raises Malformed."""
    if not nullable:
        raise Malformed("a null array, in a field that must have one")


def _is_array(field: Field[Any]) -> bool:
    return any(get_origin(part) is tuple for part in (field.type, *get_args(field.type)))


def _element(field: Field[Any]) -> tuple[Any, bool]:
    """The type inside `X | None` and `tuple[X, ...]`, and whether the field may be null."""
    kind: Any = field.type
    nullable = False
    if get_origin(kind) is UnionType:
        nullable = NoneType in get_args(kind)
        kind = next(part for part in get_args(kind) if part is not NoneType)
    if get_origin(kind) is tuple:
        kind = get_args(kind)[0]
    return kind, nullable


def _fixed_default(field: Field[Any], letter: str) -> Any:
    if letter == "16s":
        return bytes(16)
    if field.metadata["kafka_type"] == "datetime_i64":
        return -1
    return field.default if isinstance(field.default, int) else 0
