"""Bytes as people read them: as JSON, text, hex or base64; and which of these fits.

What is shown cannot be run or mislead: a sign that one does not see, or that turns the direction of the text, is a
piece of its own with its number in place of itself, and so is a byte that is no UTF-8.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from quorumlog.client.looking.json_text import NotJson, check_json, pretty

MAX_SHOWN_BYTES = 64 << 10
MAX_JSON_BYTES = 1 << 20  # a larger value is shown as text
HEX_COLUMNS = 16
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_PLAIN_CONTROLS = "\n\t"
_PLAIN = re.compile(r"[\x20-\x7e\n\t]+")


class Form(StrEnum):
    JSON = "json"
    TEXT = "text"
    HEX = "hex"
    BASE64 = "base64"


@dataclass(frozen=True, slots=True)
class Piece:
    """is_sign: the text names what stands there, such as U+202E or \\xFF, and is not there itself."""

    text: str
    is_sign: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """form: None for null. size: of the whole, in bytes. cut: not all of it is shown. problem: why another form."""

    form: Form | None
    pieces: tuple[Piece, ...]
    size: int
    cut: bool = False
    problem: str = ""

    @property
    def text(self) -> str:
        """In one line of signs; what is named stands in angle brackets."""
        return "".join(f"⟨{piece.text}⟩" if piece.is_sign else piece.text for piece in self.pieces)


def guess_form(data: bytes) -> Form:
    """The form in which most of it can be read."""
    try:
        text = data[:MAX_JSON_BYTES].decode()
    except UnicodeDecodeError as error:
        is_cut = len(data) > MAX_JSON_BYTES and error.start >= MAX_JSON_BYTES - 3
        if not is_cut:
            return Form.HEX
        text = data[: error.start].decode()
    if any(unicodedata.category(sign) == "Cc" and sign not in "\n\t\r" for sign in _unusual(text)):
        return Form.HEX
    if len(data) <= MAX_JSON_BYTES and text.lstrip()[:1] in ("{", "["):
        try:
            check_json(text)
        except NotJson:
            return Form.TEXT
        return Form.JSON
    return Form.TEXT


def show(data: bytes | None, form: Form | None = None, *, max_bytes: int = MAX_SHOWN_BYTES) -> Shown:
    """form: None: the one that fits. max_bytes: of the bytes that are shown; of JSON, of the signs."""
    if data is None:
        return Shown(None, (), 0)
    wanted = form or guess_form(data)
    match wanted:
        case Form.JSON:
            return _as_json(data, max_bytes)
        case Form.HEX:
            return Shown(wanted, (Piece(hex_dump(data[:max_bytes])),), len(data), len(data) > max_bytes)
        case Form.BASE64:
            part = data[: max(3, max_bytes - max_bytes % 3)]
            return Shown(wanted, (Piece(base64.b64encode(part).decode()),), len(data), len(part) < len(data))
        case Form.TEXT:
            return _as_text(data, max_bytes)


def _as_json(data: bytes, max_signs: int) -> Shown:
    try:
        if len(data) > MAX_JSON_BYTES:
            raise NotJson(f"larger than {MAX_JSON_BYTES} bytes")
        text = data.decode()
        check_json(text)
    except (NotJson, UnicodeDecodeError) as error:
        shown = _as_text(data, max_signs)
        return Shown(shown.form, shown.pieces, shown.size, shown.cut, f"not shown as JSON: {error}")
    laid_out = pretty(text, most=max_signs)
    return Shown(Form.JSON, tuple(pieces(laid_out[:max_signs])), len(data), len(laid_out) > max_signs)


def _as_text(data: bytes, max_bytes: int) -> Shown:
    part = data[:max_bytes]
    while len(part) < len(data) and part and data[len(part)] & 0xC0 == 0x80 and len(data[:max_bytes]) - len(part) < 3:
        part = part[:-1]  # not through the middle of a sign
    text = part.decode(errors="surrogateescape")
    return Shown(Form.TEXT, tuple(pieces(text)), len(data), len(part) < len(data))


def pieces(text: str) -> Iterator[Piece]:
    """A text in pieces that can be read, and signs that are named. A lone surrogate stands for a byte: Python's
    error handler `surrogateescape`."""
    start = 0
    for at, sign in _unusual_places(text):
        name = _name(sign)
        if name is None:
            continue
        if start < at:
            yield Piece(text[start:at])
        yield Piece(name, is_sign=True)
        start = at + 1
    if start < len(text):
        yield Piece(text[start:])


def _name(sign: str) -> str | None:
    """None: it is shown as it is."""
    if "\udc80" <= sign <= "\udcff":
        return f"\\x{ord(sign) - 0xDC00:02X}"
    category = unicodedata.category(sign)
    if (category in _HIDDEN and sign not in _PLAIN_CONTROLS) or (category == "Zs" and sign != " "):
        return f"U+{ord(sign):04X}"
    return None


def _unusual(text: str) -> str:
    return _PLAIN.sub("", text)


def _unusual_places(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for found in _PLAIN.finditer(text):
        yield from ((place, text[place]) for place in range(at, found.start()))
        at = found.end()
    yield from ((place, text[place]) for place in range(at, len(text)))


def hex_dump(data: bytes) -> str:
    """Lines of 16 bytes: position, bytes, and what of them is ASCII. As `hexdump -C`."""
    lines = []
    for start in range(0, len(data), HEX_COLUMNS):
        row = data[start : start + HEX_COLUMNS]
        left, right = row[:8].hex(" "), row[8:].hex(" ")
        ascii_part = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        lines.append(f"{start:08x}  {left:<23}  {right:<23}  |{ascii_part}|")
    return "\n".join(lines)
