"""Records as rows of a page: what is shown of each, and where it is shown whole."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from quorumlog.client.consumer import ConsumedRecord
from quorumlog.client.looking.forms import Form, Piece, Shown, pieces, show
from quorumlog.ids import Uuid

ROW_BYTES = 4_096  # of a key, value or header within a list; the record's own page shows more
KEY_BYTES = 16  # of a key in hex within a list
ROW_HEADERS = 20  # of a record within a list; the record's own page shows SHOWN_HEADERS. One may have 100,000.
SHOWN_HEADERS = 500
MAX_NAME = 1_000  # characters of a header's name
LINE = 160  # characters of what stands in the list before a row is opened


@dataclass(frozen=True, slots=True)
class Header:
    name: tuple[Piece, ...]
    value: Shown


@dataclass(frozen=True, slots=True)
class Row:
    """line: the value's beginning in one line. headers: the first ones; header_count: all of them. address: of the
    record's own page. note: of key and value by a schema."""

    partition: int
    offset: int
    timestamp_ms: int
    time: str
    key: Shown
    value: Shown
    line: tuple[Piece, ...]
    headers: tuple[Header, ...]
    header_count: int
    address: str
    note: str = ""


def row_of(
    record: ConsumedRecord,
    form: Form | None,
    topic_id: Uuid,
    *,
    max_bytes: int = ROW_BYTES,
    max_headers: int = ROW_HEADERS,
    note: str = "",
) -> Row:
    """form: of the value; keys and headers have the one that fits, and hex and base64 where the value has it."""
    of_others = form if form in (Form.HEX, Form.BASE64) else None
    return Row(
        record.partition,
        record.offset,
        record.timestamp_ms,
        time_of(record.timestamp_ms),
        _key(record.key, of_others, max_bytes),
        show(record.value, form, max_bytes=max_bytes),
        one_line(record.value),
        tuple(
            Header(_name(name), show(value, of_others, max_bytes=max_bytes))
            for name, value in record.headers[:max_headers]
        ),
        len(record.headers),
        address_of(record.topic, record.partition, record.offset, id=topic_id.hex()),
        note,
    )


def _name(name: str) -> tuple[Piece, ...]:
    return tuple(pieces(name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…"))


def _key(key: bytes | None, form: Form | None, max_bytes: int) -> Shown:
    """A key that is JSON stays in one line, as it is; of bytes that are no text a line has the first, in hex."""
    shown = show(key, form, max_bytes=max_bytes)
    if key is not None and form is None and shown.form is Form.HEX:
        return Shown(Form.HEX, (Piece(key[:KEY_BYTES].hex(" ")),), len(key), len(key) > KEY_BYTES)
    return show(key, Form.TEXT, max_bytes=max_bytes) if shown.form is Form.JSON else shown


def one_line(value: bytes | None) -> tuple[Piece, ...]:
    if value is None:
        return ()
    shown = show(value[: LINE * 4], Form.TEXT)
    found, left = list[Piece](), LINE
    for piece in shown.pieces:
        text = piece.text if piece.is_sign else " ".join(piece.text.split("\n"))
        if len(text) >= left:
            return (*found, Piece(text[:left] + "…", piece.is_sign))
        found.append(Piece(text, piece.is_sign))
        left -= len(text)
    return tuple(found)


def address_of(topic: str, partition: int, offset: int, page: str = "one", **more: str) -> str:
    query = urlencode({"partition": partition, "offset": offset, **{name: text for name, text in more.items() if text}})
    return f"/topics/{quote(topic, safe='')}/messages/{page}?{query}"


def time_of(timestamp_ms: int) -> str:
    """UTC to the ms; empty for none, and the number where no calendar has it."""
    if timestamp_ms < 0:
        return ""
    try:
        whole = datetime.fromtimestamp(timestamp_ms // 1_000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms"
    return f"{whole:%Y-%m-%d %H:%M:%S}.{timestamp_ms % 1_000:03d}"


def file_name(topic: str, partition: int, offset: int, part: str) -> str:
    """Of a download: nothing in it means something to a file system."""
    safe = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._-") else "_" for sign in topic)
    return f"{safe.lstrip('.') or 'topic'}-{partition}-{offset}-{part}.bin"
