"""Records as text, as in kcat: format strings, and JSON lines that `produce -J` accepts."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from quorumlog_cli.terminal.output import json_text

DEFAULT_FORMAT = "%s\n"
_PIECE = re.compile(rb"%(.)|\\(x[0-9a-fA-F]{1,2}|.)|([^%\\]+)|([%\\])", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"0": b"\0", b"\\": b"\\"}
_DELIMITER_PIECE = re.compile(rb"\\x([0-9a-fA-F]{1,2})?|\\([ntr])|(.)", re.DOTALL)
_STORED_FIELDS = ("key", "key_base64", "value", "value_base64", "headers", "timestamp")
_PLACE_FIELDS = ("topic", "partition", "offset")  # where `consume -J` found the record: not read
_NAMES_ELSEWHERE = {"payload": "value", "ts": "timestamp"}  # kcat's
_MAX_TIMESTAMP_MS = 2**63 - 1


class BadFormat(Exception):
    """A format string with an unknown letter or escape."""


class AnyRecord(Protocol):
    """The fields of a record that can be shown."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...


Part = Callable[[AnyRecord], bytes]

_LETTERS: Mapping[bytes, Part] = {
    b"t": lambda record: record.topic.encode(),
    b"p": lambda record: b"%d" % record.partition,
    b"o": lambda record: b"%d" % record.offset,
    b"k": lambda record: record.key or b"",
    b"s": lambda record: record.value or b"",
    b"h": lambda record: b",".join(_header(name, value) for name, value in record.headers),
    b"T": lambda record: b"%d" % record.timestamp_ms,
    b"K": lambda record: b"%d" % (-1 if record.key is None else len(record.key)),
    b"S": lambda record: b"%d" % (-1 if record.value is None else len(record.value)),
    b"R": lambda record: struct.pack(">i", -1 if record.value is None else len(record.value)),
    b"v": lambda record: record.value or b"",
    b"V": lambda record: b"%d" % (-1 if record.value is None else len(record.value)),
    b"%": lambda record: b"%",
}


def compile_format(text: str) -> Part:
    """%t topic, %p partition, %o offset, %k key, %s value, %h headers, %T timestamp in ms.

    %K and %S are the lengths of key and value in bytes, -1 for null; %R is that of the value as kcat's 4 bytes, the
    highest first. %v and %V are rpk's names for %s and %S; %% is a percent sign.
    Escapes: \\n \\t \\r \\0 \\\\ \\xHH. Raises BadFormat.
    """
    parts = [_part(*match.groups()) for match in _PIECE.finditer(text.encode())]
    return lambda record: b"".join(part(record) for part in parts)


def _part(letter: bytes | None, escape: bytes | None, literal: bytes | None, stray: bytes | None) -> Part:
    if letter is not None:
        if letter not in _LETTERS:
            raise BadFormat(f"unknown %{letter.decode('utf-8', 'replace')}; known: " + " ".join(_names()))
        return _LETTERS[letter]
    if escape is not None:
        return _constant(escaped(escape))
    if stray is not None:
        raise BadFormat(f"a single {stray.decode()} at the end; write it twice")
    return _constant(literal or b"")


def escaped(escape: bytes) -> bytes:
    """escape: what follows the backslash. Raises BadFormat."""
    known = bytes([int(escape[1:], 16)]) if len(escape) > 1 else _ESCAPES.get(escape)
    if known is None:
        raise BadFormat(f"unknown escape \\{escape.decode('utf-8', 'replace')}; known: \\n \\t \\r \\0 \\\\ \\xHH")
    return known


def _constant(data: bytes) -> Part:
    return lambda record: data


def _names() -> list[str]:
    return [f"%{letter.decode()}" for letter in _LETTERS]


def _header(name: str, value: bytes | None) -> bytes:
    return name.encode() + b"=" + (b"NULL" if value is None else value)


def to_json_line(record: AnyRecord) -> bytes:
    """One JSON object and a line feed. Bytes that are not UTF-8 are in "key_base64" and "value_base64"."""
    document: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        **_field("key", record.key),
        **_field("value", record.value),
        "headers": [{"name": name, **_field("value", value)} for name, value in record.headers],
    }
    return json_text(document).encode() + b"\n"


def _field(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode("ascii")}


def parse_delimiter(text: str) -> bytes:
    """The bytes of -K. Escapes as in kcat: \\n \\t \\r \\xHH; a backslash before anything else is itself.

    Raises BadFormat.
    """
    if not text:
        raise BadFormat("an empty delimiter separates nothing")
    return b"".join(_delimiter_piece(match) for match in _DELIMITER_PIECE.finditer(text.encode()))


def _delimiter_piece(match: re.Match[bytes]) -> bytes:
    digits, escape, literal = match.groups()
    if literal is not None:
        return bytes(literal)
    if escape is not None:
        return _ESCAPES[escape]
    if digits is None:
        raise BadFormat("\\x without a hexadecimal number, as in \\x1f")
    return bytes([int(digits, 16)])


class BadLine(Exception):
    """A line that is not a record. The message says why."""


def from_json_line(line: bytes) -> dict[str, Any]:
    """key, value, headers and timestamp_ms of a line of `to_json_line`; topic, partition and offset are ignored.

    A JSON value that is not a string is stored as its JSON text. "value" must be there, because a record without one
    deletes its key in a compacted topic; null is written out. Nothing in the line is left out silently: raises BadLine
    for any other field, and for one that comes twice.
    """
    try:
        document = json.loads(line, object_pairs_hook=_without_repetition, parse_constant=_refuse_constant)
        if not isinstance(document, dict):
            raise ValueError("not an object")
        _check_fields(document, _STORED_FIELDS + _PLACE_FIELDS)
        if "value" not in document and "value_base64" not in document:
            raise ValueError('it has no "value"; a record without one is written "value": null')
        return {
            "key": _bytes_of(document, "key"),
            "value": _bytes_of(document, "value"),
            "headers": [_json_header(header) for header in _json_headers(document.get("headers"))],
            "timestamp_ms": _json_timestamp(document.get("timestamp")),
        }
    except (ValueError, RecursionError) as error:
        raise BadLine(f"not a record as JSON ({error}): {line[:80]!r}") from error


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f'"{next(name for name in names if names.count(name) > 1)}" comes twice')
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _check_fields(document: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in document:
        if name not in known:
            meant = f'; it is called "{_NAMES_ELSEWHERE[name]}" here' if name in _NAMES_ELSEWHERE else ""
            raise ValueError(f'unknown field "{name}"{meant}; known: {", ".join(known)}')


def _json_headers(headers: Any) -> list[Any]:
    if headers is None:
        return []
    if not isinstance(headers, list):
        raise ValueError('"headers" is not a list of {"name": ..., "value": ...}')
    return headers


def _json_header(header: Any) -> tuple[str, bytes | None]:
    if not isinstance(header, dict) or not isinstance(header.get("name"), str):
        raise ValueError('a header is not {"name": ..., "value": ...}')
    _check_fields(header, ("name", "value", "value_base64"))
    return header["name"], _bytes_of(header, "value")


def _json_timestamp(value: Any) -> int | None:
    """None: the time of sending."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value <= _MAX_TIMESTAMP_MS:
        raise ValueError('"timestamp" is not a number of milliseconds')
    return value


def _bytes_of(document: Mapping[str, Any], name: str) -> bytes | None:
    encoded = f"{name}_base64"
    if encoded in document:
        if name in document:
            raise ValueError(f'"{name}" and "{encoded}" are both there')
        if not isinstance(document[encoded], str):
            raise ValueError(f'"{encoded}" is not a string')
        return base64.b64decode(document[encoded], validate=True)
    value = document.get(name)
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
