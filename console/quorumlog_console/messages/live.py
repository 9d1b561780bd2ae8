"""A live tail: a page, and the stream of server-sent events that it reads.

Each record is sent once and in order, or its number among those that were skipped. Texts only: a browser would round a
number. Every answer ends with the place where another stream goes on, so a pause, or a lost connection, loses nothing.
A stream ends with its page, with the session, or with the console; there are `limits.tails` of them at a time.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from quorumlog.client.errors import AuthenticationFailed, QuorumlogError
from quorumlog.client.looking.forms import Form, Piece, Shown
from quorumlog.client.looking.place import BadPlace, Forward, read_place
from quorumlog.client.looking.tail import Tail
from quorumlog.client.looking.tail_buffer import Gone, Item, Skipped, TailBuffer
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import RpcError
from quorumlog_console.access import Access
from quorumlog_console.console import console_of
from quorumlog_console.messages.asked import Asked, BadAddress, asked_of
from quorumlog_console.messages.listed import FORMS
from quorumlog_console.messages.reading import reading, why
from quorumlog_console.messages.rows import Row, row_of
from quorumlog_console.page import NotLoggedIn, access_of, page, render
from quorumlog_console.slots import Busy
from quorumlog_console.trouble import trouble

TURNS_A_SECOND = 4
QUIET_MS = 1_000  # then the page is told how far the tail is, and that it lives


@page
async def tail(request: Request, access: Access) -> Response:
    topic = request.path_params["name"]
    try:
        asked = asked_of(topic, request.query_params, _now_ms())
    except BadAddress as error:
        return trouble(request, 400, "This cannot be tailed", str(error), access)
    limits = console_of(request).limits
    return render(
        request, "tail.html", f"Live tail of {topic}", access, asked=asked, fields=asked.fields, forms=FORMS,
        stream=asked.address("/stream", place=""), buffered=limits.tail_buffer_records,
        a_second=limits.tail_records_a_second,
    )  # fmt: skip


async def stream(request: Request) -> Response:
    """Refusals are events, too: a browser tells its page nothing of an answer that is no stream."""
    topic = request.path_params["name"]
    try:
        access = access_of(request)
        asked = asked_of(topic, request.query_params, _now_ms())
        place = _place(request, asked)
    except NotLoggedIn:
        return _stream(_end("The session is over. Log in again."))
    except (BadAddress, BadPlace) as error:
        return _stream(_end(str(error)))
    return _stream(events(request, access, asked, place))


def _stream(found: AsyncIterator[str]) -> Response:
    return StreamingResponse(found, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def _place(request: Request, asked: Asked) -> Forward | None:
    """Where the stream before has ended, as the browser repeats it, or else as the page's address says."""
    text = request.headers.get("last-event-id") or asked.place
    place = read_place(text) if text else None
    if place is not None and not isinstance(place, Forward):
        raise BadPlace("a tail goes on forward")
    return place


async def events(request: Request, access: Access, asked: Asked, place: Forward | None) -> AsyncIterator[str]:
    console = console_of(request)
    try:
        with console.tails:
            async with reading(access, sees_uncommitted=asked.sees_uncommitted) as consumer:
                made = Tail(consumer, asked.topic, asked.where, TailBuffer(console.limits.tail_buffer_records))
                await made.begin(place)
                nursery = Nursery(lambda _name, _error: None)  # `_follow` raises it
                runs = nursery.start(made.run(), "live tail")
                try:
                    async for text in _follow(request, access, asked, made, runs):
                        yield text
                finally:
                    await nursery.close()
    except AuthenticationFailed:
        access.is_refused = True
        yield _event("end", {"why": "The cluster does not take this login any more. Log in again."})
    except (QuorumlogError, RpcError, Busy) as error:
        _, what, text = why(error, asked.topic, access.principal)
        yield _event("end", {"why": f"{what}. {text}"})


async def _follow(
    request: Request, access: Access, asked: Asked, made: Tail, runs: asyncio.Task[None]
) -> AsyncIterator[str]:
    console = console_of(request)
    a_turn = max(1, console.limits.tail_records_a_second // TURNS_A_SECOND)
    yield _event("state", _state(made), made.place)
    while console.access_of(request, extends=False) is access:
        if runs.done():
            await runs  # raises what ended it
        if not await made.wait(QUIET_MS):
            yield _event("state", _state(made), made.place)
            continue
        items = made.take(a_turn)
        records = [item for item in items if not isinstance(item, Skipped | Gone)]
        shown = iter(await console.decoded(records, asked.form))
        for item in items:
            read = item if isinstance(item, Skipped | Gone) else next(shown).record
            yield _of(read, asked.form, made.place.topic_id)
        yield _event("state", _state(made), made.place)
        await asyncio.sleep(1 / TURNS_A_SECOND)
    yield _event("end", {"why": "The session is over. Log in again."})


def _state(made: Tail) -> dict[str, str]:
    buffer = made.buffer
    return {"read": str(made.read_records), "waiting": str(len(buffer)), "skipped": str(buffer.total_skipped)}


def _of(item: Item, form: Form | None, topic_id: bytes) -> str:
    if isinstance(item, Skipped):
        return _event("skipped", {"count": str(item.count)})
    if isinstance(item, Gone):
        return _event("gone", {"partition": str(item.partition), "start": str(item.start), "end": str(item.end)})
    return _event("record", texts_of(row_of(item, form, topic_id)))


def texts_of(row: Row) -> dict[str, Any]:
    return {
        "partition": str(row.partition),
        "offset": str(row.offset),
        "time": row.time,
        "address": row.address,
        "key": _shown(row.key),
        "line": _pieces(row.line),
        "value": _shown(row.value),
        "header_count": str(row.header_count),
        "headers": [{"name": _pieces(one.name), "value": _shown(one.value)} for one in row.headers],
    }


def _shown(shown: Shown) -> dict[str, Any]:
    return {
        "form": shown.form or "null",
        "pieces": _pieces(shown.pieces),
        "size": str(shown.size),
        "cut": shown.cut,
    }


def _pieces(pieces: Sequence[Piece]) -> list[list[Any]]:
    return [[piece.text, int(piece.is_sign)] for piece in pieces]


def _event(kind: str, data: dict[str, Any], place: Forward | None = None) -> str:
    """JSON has no line feeds of its own, so one line holds it."""
    name = f"id: {place.to_text()}\n" if place is not None else ""
    return f"{name}event: {kind}\ndata: {json.dumps(data)}\n\n"


async def _end(text: str) -> AsyncIterator[str]:
    yield _event("end", {"why": text})


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
