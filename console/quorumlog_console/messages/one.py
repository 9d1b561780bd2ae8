"""One record: its page, which has a lasting address, and its key, value or a header as a file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from quorumlog.client.consumer import AsyncConsumer, ConsumedRecord
from quorumlog.client.errors import AuthenticationFailed, QuorumlogError
from quorumlog.client.looking.forms import MAX_SHOWN_BYTES, Form
from quorumlog.client.looking.limits import Limits
from quorumlog.client.looking.newest import before
from quorumlog.client.looking.place import MAX_OFFSET, Forward
from quorumlog.client.looking.search import search
from quorumlog.ids import Offset
from quorumlog.rpc.transport import RpcError
from quorumlog_console.access import Access
from quorumlog_console.console import console_of
from quorumlog_console.messages.listed import FORMS
from quorumlog_console.messages.reading import reading, why
from quorumlog_console.messages.rows import SHOWN_HEADERS, Row, address_of, file_name, row_of
from quorumlog_console.page import page, render
from quorumlog_console.slots import Busy
from quorumlog_console.trouble import trouble

PARTS = ("value", "key", "header")
_ID = re.compile(r"[0-9a-f]{32}|")


@dataclass(frozen=True, slots=True)
class Wanted:
    topic: str
    topic_id: bytes  # empty: whichever topic has the name now
    partition: int
    offset: int
    form: Form | None
    sees_uncommitted: bool

    def address(self, offset: int, page: str = "one", **more: str) -> str:
        given = {"id": self.topic_id.hex(), "uncommitted": "1" if self.sees_uncommitted else "", **more}
        return address_of(self.topic, self.partition, offset, page, **given)


def wanted_of(request: Request) -> Wanted | None:
    """None: the address names no record."""
    given = request.query_params
    texts = (given.get("partition", ""), given.get("offset", ""))
    if not all(text.isascii() and text.isdigit() and len(text) <= 19 for text in texts):
        return None
    partition, offset = map(int, texts)
    topic_id, form = given.get("id", ""), given.get("form", "")
    if partition >= 2**31 or offset > MAX_OFFSET or not _ID.fullmatch(topic_id):
        return None
    chosen = Form(form) if form in [*Form] else None
    is_uncommitted = given.get("uncommitted") == "1"
    return Wanted(request.path_params["name"], bytes.fromhex(topic_id), partition, offset, chosen, is_uncommitted)


@page
async def one(request: Request, access: Access) -> Response:
    wanted = wanted_of(request)
    if wanted is None:
        return trouble(request, 404, "There is no such record", "Its address needs a partition and an offset.", access)
    try:
        with console_of(request).searches:
            async with reading(access, sees_uncommitted=wanted.sees_uncommitted) as consumer:
                found = await _from(consumer, wanted, 2)
                earlier = await before(
                    consumer, wanted.topic, wanted.partition, Offset(wanted.offset), Limits(records=1)
                )
    except AuthenticationFailed:
        raise
    except (QuorumlogError, RpcError, Busy) as error:
        return trouble(request, *why(error, wanted.topic, access.principal), access)
    record = found[0] if found and found[0].offset == wanted.offset else None
    later = [one.offset for one in found if one.offset > wanted.offset]
    row: Row | None = None
    if record is not None:
        (shown,) = await console_of(request).decoded([record], wanted.form)
        row = row_of(
            shown.record, wanted.form, wanted.topic_id, max_bytes=MAX_SHOWN_BYTES, max_headers=SHOWN_HEADERS,
            note=shown.note,
        )  # fmt: skip
    return render(
        request,
        "message.html",
        f"Message {wanted.offset} of {wanted.topic}-{wanted.partition}",
        access,
        404 if row is None else 200,
        wanted=wanted,
        row=row,
        forms=FORMS,
        previous=wanted.address(earlier.records[-1].offset) if earlier.records else "",
        following=wanted.address(later[0]) if later else "",
        later=later[0] if later else None,
    )


async def _from(consumer: AsyncConsumer, wanted: Wanted, count: int) -> tuple[ConsumedRecord, ...]:
    """The first records from the offset on."""
    place = Forward(wanted.topic_id, {wanted.partition: Offset(wanted.offset)})
    return (await search(consumer, wanted.topic, place, limits=Limits(records=count))).records


@page
async def bytes_of(request: Request, access: Access) -> Response:
    """The bytes as they are stored, to be saved and never to be shown by the browser."""
    wanted, part = wanted_of(request), request.query_params.get("part", "value")
    if wanted is None or part not in PARTS:
        return trouble(request, 404, "There is no such record", "Its address needs a partition and an offset.", access)
    try:
        with console_of(request).searches:
            async with reading(access, sees_uncommitted=wanted.sees_uncommitted) as consumer:
                found = await _from(consumer, wanted, 1)
    except AuthenticationFailed:
        raise
    except (QuorumlogError, RpcError, Busy) as error:
        return trouble(request, *why(error, wanted.topic, access.principal), access)
    data = None
    if found and found[0].offset == wanted.offset:
        data = _part(found[0], part, request.query_params.get("index", "0"))
    if data is None:
        return trouble(request, 404, "There is nothing to save", "The record is not there, or this is null.", access)
    name = file_name(wanted.topic, wanted.partition, wanted.offset, part)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(data, media_type="application/octet-stream", headers=headers)


def _part(record: ConsumedRecord, part: str, index: str) -> bytes | None:
    if part == "header":
        at = int(index) if index.isascii() and index.isdigit() and len(index) < 7 else -1
        return record.headers[at][1] if 0 <= at < len(record.headers) else None
    return record.key if part == "key" else record.value
