"""Java's `.properties` text, as far as Kafka's small files use it: `key=value` lines with backslash escapes.

Written as `java.util.Properties.store` writes it; read as `load` reads it, continuation lines included. Total: any text
gives a dict or BadProperties.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from io import StringIO

_ESCAPED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
_UNESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SPECIAL = "=:#!\\"
_HEX4 = re.compile(r"[0-9a-fA-F]{4}", re.ASCII)
_BLANK = " \t\f"
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
MAX_PROPERTIES_BYTES = 64 << 10  # of one file; Kafka's have some hundred


class BadProperties(Exception):
    """Text that is not in the format. line: counted from 1."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__(f"{path} line {line}: {reason}; correct it with an editor, the format is Java's .properties")
        self.path, self.line, self.reason = path, line, reason


def render_properties(properties: Mapping[str, str], comment: str = "") -> bytes:
    """`#`, `#comment`, then one line for each entry, in the mapping's order."""
    lines = ["#", *(f"#{line}" for line in comment.splitlines())]
    lines += [f"{_escape(key, is_key=True)}={_escape(value)}" for key, value in properties.items()]
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def parse_properties(path: str, content: bytes) -> dict[str, str]:
    """Raises BadProperties. If a key occurs twice, its last value counts."""
    if len(content) > MAX_PROPERTIES_BYTES:
        raise BadProperties(path, 1, f"{len(content)} bytes are more than the limit of {MAX_PROPERTIES_BYTES}")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadProperties(path, content.count(b"\n", 0, error.start) + 1, "the text is not UTF-8") from error
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        end = _key_end(line)
        value = line[end:].lstrip(_BLANK)
        if value[:1] in ("=", ":"):
            value = value[1:].lstrip(_BLANK)
        properties[_unescape(path, number, line[:end])] = _unescape(path, number, value)
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with content, each with its number. A line that ends in an odd number of backslashes continues."""
    open_line: tuple[int, str] | None = None
    for number, found in enumerate(_LINE.finditer(text), start=1):
        line = found[1].lstrip(_BLANK)
        if open_line is None and (not line or line[0] in "#!"):
            continue
        start, before = open_line or (number, "")
        whole = before + line
        if (len(whole) - len(whole.rstrip("\\"))) % 2:
            open_line = (start, whole[:-1])
        else:
            yield start, whole
            open_line = None
    if open_line:
        yield open_line


def _key_end(line: str) -> int:
    """Index of the first separator that is not escaped."""
    at = 0
    while at < len(line) and line[at] not in "=:" + _BLANK:
        at += 2 if line[at] == "\\" else 1
    return min(at, len(line))


def _escape(text: str, is_key: bool = False) -> str:
    pieces = []
    for at, char in enumerate(text):
        if char in _ESCAPED:
            pieces.append(_ESCAPED[char])
        elif char in _SPECIAL or (char == " " and (is_key or at == 0)):
            pieces.append("\\" + char)
        elif " " <= char <= "~":
            pieces.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass")
            pieces += [f"\\u{units[n]:02X}{units[n + 1]:02X}" for n in range(0, len(units), 2)]
    return "".join(pieces)


def _unescape(path: str, line: int, text: str) -> str:
    if "\\" not in text:
        return text
    unescaped, at = StringIO(), 0  # a list of pieces would take several times the text
    while 0 <= (slash := text.find("\\", at)) < len(text) - 1:
        unescaped.write(text[at:slash])
        char, at = _escaped_char(path, line, text, slash + 1)
        unescaped.write(char)
    unescaped.write(text[at:])
    joined = unescaped.getvalue()
    return joined.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")  # joins surrogate pairs


def _escaped_char(path: str, line: int, text: str, at: int) -> tuple[str, int]:
    if text[at] != "u":
        return _UNESCAPED.get(text[at], text[at]), at + 1
    digits = _HEX4.match(text, at + 1)
    if digits is None:
        raise BadProperties(path, line, "\\u must be followed by four hexadecimal digits")
    return chr(int(digits[0], 16)), at + 5
