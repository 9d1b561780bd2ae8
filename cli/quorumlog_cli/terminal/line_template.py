"""Templates of input lines, as rpk's `produce -f`: which part of a line is key, value, headers, partition and time.

    %k:%s              KEY:VALUE                     %k\\t%h\\t%s      KEY, headers as a=1,b=2, VALUE, between tabs
    %p %T %s           partition, ms since 1970      %%              a percent sign

The text between two parts ends the one before it where it first comes; the last part is the rest of the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from quorumlog_cli.terminal.records_text import BadFormat, BadLine, escaped

_TOKEN = re.compile(rb"%(.)|\\(x[0-9a-fA-F]{1,2}|.)|([^%\\]+)|([%\\])", re.DOTALL)
_PARTS = {b"k": "key", b"s": "value", b"v": "value", b"h": "headers", b"p": "partition", b"T": "timestamp_ms"}
_NUMBERS = {"partition": rb"\d{1,10}", "timestamp_ms": rb"\d{1,19}"}


def compile_template(text: str) -> Callable[[bytes], dict[str, Any]]:
    """The function gives what `Producer.send` takes of a line, and raises BadLine. Raises BadFormat."""
    pattern, names, open_part = b"", list[str](), False
    for letter, escape, literal, stray in _TOKEN.findall(text.encode()):
        if stray:
            raise BadFormat(f"a single {stray.decode()} at the end; write it twice")
        if letter and letter != b"%":
            name = _PARTS.get(letter)
            if name is None:
                known = " ".join(f"%{one.decode()}" for one in _PARTS)
                raise BadFormat(f"unknown %{letter.decode('utf-8', 'replace')}; known: {known} %%")
            if name in names:
                raise BadFormat(f"%{letter.decode()}: the {name} comes twice")
            if open_part:
                raise BadFormat(f"nothing is between %{letter.decode()} and what comes before it")
            names.append(name)
            pattern += b"(%s)" % _NUMBERS.get(name, rb".*?")
            open_part = name not in _NUMBERS
        else:
            pattern += re.escape(b"%" if letter else escaped(escape) if escape else literal)
            open_part = False
    if "value" not in names:
        raise BadFormat("it has no %s: a record without a value deletes its key; -Z makes an empty one null")
    fits = re.compile(pattern, re.DOTALL).fullmatch

    def read(line: bytes) -> dict[str, Any]:
        found = fits(line)
        if found is None:
            raise BadLine(f"it does not fit {text!r}: {line[:80]!r}")
        return {name: _value(name, part) for name, part in zip(names, found.groups(), strict=True)}

    return read


def _value(name: str, part: bytes) -> Any:
    if name in _NUMBERS:
        return int(part)
    return _headers(part) if name == "headers" else part


def _headers(text: bytes) -> list[tuple[str, bytes | None]]:
    """As %h prints them. Raises BadLine."""
    found: list[tuple[str, bytes | None]] = []
    for item in text.split(b",") if text else ():
        name, sign, value = item.partition(b"=")
        try:
            found.append((name.decode(), None if value == b"NULL" or not sign else value))
        except UnicodeDecodeError as error:
            raise BadLine(f"the name of a header is not UTF-8: {name[:80]!r}") from error
        if not name:
            raise BadLine(f"a header without a name: {item[:80]!r}")
    return found
