"""Which records are wanted: by key, value and headers, as the bytes are stored, whatever is shown of them.

A condition as text (`read_condition`), where SUBJECT is `key`, `value`, `header.NAME` or `header["NAME"]`:

    SUBJECT = OPERAND          the same bytes               SUBJECT contains OPERAND   somewhere in it
    SUBJECT != OPERAND         other bytes, or none         SUBJECT ~ EXPRESSION       RE2 finds it somewhere (UTF-8)
    SUBJECT is null            a tombstone, for `value`     SUBJECT $.a[0].b OP ...    the same, of what a path fits
    header.NAME                there is such a header       $.a OP ...                 the same as value $.a OP ...

An operand is what follows, to the end; within quotes (") it is read as a text of JSON; x'00ff' are bytes. Of a path,
the operand of =, !=, <, <=, > and >= is a value of JSON, and what is none is a text. Numbers are compared by their
digits, see `json_text.Number`. A record without the header, or whose value is no JSON, fits only `!=`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from quorumlog.client.looking.json_path import BadPath, Path, read_path
from quorumlog.client.looking.json_text import Members, NotJson, Number, read_json

MAX_CONDITION = 4_096  # characters
MAX_CONDITIONS = 10
MAX_EXPRESSION_MEMORY = 8 << 20  # bytes that RE2 may take for one expression


class BadCondition(ValueError):
    """A text that is no condition. It says what is wrong and what is known."""


class Part(StrEnum):
    KEY = "key"
    VALUE = "value"
    HEADER = "header"


class How(StrEnum):
    EQUALS = "="
    DIFFERS = "!="
    CONTAINS = "contains"
    FITS = "~"
    IS_NULL = "is null"
    EXISTS = "exists"
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="


class Looked(Protocol):
    """The fields of a record that are looked at; a `ConsumedRecord` has them."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...


Test = Callable[[bytes | None], bool]
_ORDERED = (How.LESS, How.AT_MOST, How.MORE, How.AT_LEAST)
_SUBJECT = re.compile(r'(key|value)(?![\w.\[])|header(?:\.([^\s=!~<>"\[$]+)|\[("(?:[^"\\]|\\.)*")\])')
_HOW = re.compile(r"\s*(==|!=|<=|>=|=|~|<|>|contains\b|is\s+null\s*$|exists\s*$|$)\s?", re.IGNORECASE)
_HEX = re.compile(r"x'((?:[0-9a-fA-F]{2})*)'")


@dataclass(frozen=True, slots=True)
class Condition:
    """part, header: what is looked at; path: in its JSON. A header that comes twice fits if one of the two does."""

    part: Part
    how: How
    header: str
    path: Path | None
    test: Test
    text: str

    def fits(self, record: Looked) -> bool:
        if self.how is How.DIFFERS:
            return not any(self.test(data) for data in self._subjects(record))
        return any(self.test(data) for data in self._subjects(record))

    def _subjects(self, record: Looked) -> Iterator[bytes | None]:
        match self.part:
            case Part.KEY:
                yield record.key
            case Part.VALUE:
                yield record.value
            case Part.HEADER:
                yield from (value for name, value in record.headers if name == self.header)


@dataclass(frozen=True, slots=True)
class Where:
    """Conditions that all have to fit; none of them: every record is wanted."""

    conditions: tuple[Condition, ...] = ()

    def fits(self, record: Looked) -> bool:
        return all(condition.fits(record) for condition in self.conditions)


def read_where(texts: Sequence[str]) -> Where:
    """Empty texts are left out. Raises BadCondition."""
    wanted = [text for text in texts if text.strip()]
    if len(wanted) > MAX_CONDITIONS:
        raise BadCondition(f"{len(wanted)} conditions; at most {MAX_CONDITIONS}")
    return Where(tuple(read_condition(text) for text in wanted))


def read_condition(text: str) -> Condition:
    """Raises BadCondition."""
    if len(text) > MAX_CONDITION:
        raise BadCondition(f"a condition of {len(text)} characters; at most {MAX_CONDITION}")
    part, header, rest = _subject(text.lstrip())
    path = None
    if rest.lstrip().startswith("$"):
        try:
            path, rest = read_path(rest.lstrip())
        except BadPath as error:
            raise BadCondition(str(error)) from error
    found = _HOW.match(rest)
    if found is None or (not found[1] and part is not Part.HEADER and path is None):
        raise BadCondition(
            f"after {text[: len(text) - len(rest)]!r} comes =, !=, ~, contains, is null or a path: {text!r}"
        )
    how, operand = _how(found[1]), rest[found.end() :]
    if how in _ORDERED and path is None:
        raise BadCondition(f"{how} compares what a path fits, as in `value $.price {how} 5`: {text!r}")
    return make_condition(part, how, operand, header=header, path=path, text=text)


def _subject(text: str) -> tuple[Part, str, str]:
    """With the name of a header, and what follows."""
    if text.startswith("$"):
        return Part.VALUE, "", text
    found = _SUBJECT.match(text)
    if found is None:
        raise BadCondition(f'a condition begins with key, value, header.NAME, header["NAME"] or $: {text!r}')
    if found[1]:
        return Part(found[1]), "", text[found.end() :]
    try:
        name = found[2] if found[2] is not None else json.loads(found[3])
    except ValueError as error:
        raise BadCondition(f"{found[3]}: {error}") from error
    return Part.HEADER, name, text[found.end() :]


def _how(text: str) -> How:
    plain = " ".join(text.lower().split())
    return {"": How.EXISTS, "==": How.EQUALS}.get(plain) or How(plain)


def make_condition(
    part: Part, how: How, operand: str = "", *, header: str = "", path: Path | None = None, text: str = ""
) -> Condition:
    """operand: as in a text. Raises BadCondition, also for what RE2 does not take."""
    test = _test_of_bytes(how, operand) if path is None else _test_of_path(path, how, operand)
    return Condition(part, how, header, path, test, text)


def read_operand(text: str) -> bytes:
    """As the page's head says. Raises BadCondition for a text in quotes that is none."""
    stripped = text.strip()
    if found := _HEX.fullmatch(stripped):
        return bytes.fromhex(found[1])
    if stripped.startswith('"') and stripped.endswith('"') and len(stripped) > 1:
        try:
            text = json.loads(stripped, strict=False)
        except ValueError as error:
            raise BadCondition(f"{stripped}: {error}") from error
    return text.encode(errors="surrogatepass")


def _test_of_bytes(how: How, operand: str) -> Test:
    match how:
        case How.EXISTS:
            return lambda data: True
        case How.IS_NULL:
            return lambda data: data is None
        case How.FITS:
            search = _expression(operand)
            return lambda data: data is not None and search(data)
        case How.CONTAINS:
            inner = read_operand(operand)
            return lambda data: data is not None and inner in data
        case How.EQUALS | How.DIFFERS:
            whole = read_operand(operand)
            return lambda data: data == whole
        case _:
            raise BadCondition(f"{how} compares what a path fits")


def _expression(text: str) -> Callable[[bytes], bool]:
    import re2  # where an expression is given

    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, MAX_EXPRESSION_MEMORY
    try:
        compiled = re2.compile(text.encode(errors="surrogatepass"), options)
    except re2.error as error:
        said = error.args[0] if error.args else "not valid"
        reason = said.decode(errors="replace") if isinstance(said, bytes) else said
        raise BadCondition(f"{text!r} is no RE2 expression: {reason}") from error
    return lambda data: compiled.search(data) is not None


def _test_of_path(path: Path, how: How, operand: str) -> Test:
    test = _test_of_value(how, operand)

    def of_json(data: bytes | None) -> bool:
        if data is None:
            return False
        try:
            value = read_json(data)
        except NotJson:
            return False
        return any(test(found) for found in path.find(value))

    return of_json


def _test_of_value(how: How, operand: str) -> Callable[[Any], bool]:
    match how:
        case How.EXISTS:
            return lambda value: True
        case How.IS_NULL:
            return lambda value: value is None
        case How.FITS:
            search = _expression(operand)
            return lambda value: search(_as_bytes(value))
        case How.CONTAINS:
            inner = read_operand(operand)
            return lambda value: inner in _as_bytes(value)
        case _:
            return _compared(how, _json_operand(operand))


def _json_operand(text: str) -> Any:
    try:
        return read_json(text.strip())
    except NotJson:
        return text


def _compared(how: How, wanted: Any) -> Callable[[Any], bool]:
    if how in (How.EQUALS, How.DIFFERS):
        return lambda value: type(value) is type(wanted) and value == wanted
    if not isinstance(wanted, (str, Number)):
        raise BadCondition(f"{how} compares numbers and texts")

    def is_ordered(value: Any) -> bool:
        if type(value) is not type(wanted):
            return False
        if how in (How.AT_MOST, How.AT_LEAST) and value == wanted:
            return True
        first, second = (value, wanted) if how in (How.LESS, How.AT_MOST) else (wanted, value)
        return _is_less(first, second)

    return is_ordered


def _is_less(first: Any, second: Any) -> bool:
    return first.is_less(second) if isinstance(first, Number) else bool(first < second)


def _as_bytes(value: Any) -> bytes:
    """A text as it is, a number by its digits, and of other values what JSON calls them."""
    if isinstance(value, str):
        return value.encode(errors="surrogatepass")
    if isinstance(value, Number):
        return value.text.encode()
    if isinstance(value, (list, Members)):
        return b""
    return json.dumps(value).encode()
