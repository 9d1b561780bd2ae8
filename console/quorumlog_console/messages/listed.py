"""The page of a topic's records: the newest, from an offset or a time, with filters; a search that can go on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from quorumlog.client.errors import AuthenticationFailed, QuorumlogError
from quorumlog.client.looking.limits import Limits, Page
from quorumlog.client.looking.newest import begin_at_end, newest
from quorumlog.client.looking.place import Backward, BadPlace, Forward, read_place
from quorumlog.client.looking.search import begin, search
from quorumlog.records.partitioner import partition_for_key
from quorumlog.rpc.transport import RpcError
from quorumlog_console.access import Access
from quorumlog_console.console import console_of
from quorumlog_console.messages.asked import (
    COUNTS,
    DEFAULT_COUNT,
    FIELDS,
    STARTS,
    Asked,
    BadAddress,
    asked_of,
    sentence,
)
from quorumlog_console.messages.reading import reading, why
from quorumlog_console.messages.rows import row_of
from quorumlog_console.page import page, render
from quorumlog_console.slots import Busy
from quorumlog_console.trouble import trouble

if TYPE_CHECKING:
    from quorumlog.client.consumer import AsyncConsumer

FORMS = {"": "what fits", "json": "JSON", "text": "text", "hex": "hex", "base64": "base64"}


@page
async def messages(request: Request, access: Access) -> Response:
    topic = request.path_params["name"]
    try:
        asked = asked_of(topic, request.query_params, time.time_ns() // 1_000_000)
    except BadAddress as error:
        return _form(request, access, topic, str(error))
    console = console_of(request)
    limits = console.limits
    bounds = Limits(records=asked.count, read_records=limits.search_records, time_ms=limits.search_ms)
    try:
        with console.searches, _Timer() as timer:
            async with reading(access, sees_uncommitted=asked.sees_uncommitted) as consumer:
                partitions = await consumer.partitions_for(topic)
                found = await look(consumer, asked, bounds)
    except AuthenticationFailed:
        raise
    except BadPlace as error:
        return _form(request, access, topic, sentence(error))
    except (QuorumlogError, RpcError, Busy) as error:
        return trouble(request, *why(error, topic, access.principal), access)
    shown = await console.decoded(found.records, asked.form)
    rows = [row_of(one.record, asked.form, found.place.topic_id, note=one.note) for one in shown]
    if isinstance(found.place, Backward):
        rows.reverse()
    return render(
        request,
        "messages.html",
        f"Messages of {topic}",
        access,
        asked=asked,
        fields=asked.fields,
        rows=rows,
        found=found,
        left=sum(found.left.values()),
        took_ms=timer.ms,
        is_backward=isinstance(found.place, Backward),
        on=asked.address(place=found.place.to_text()) if not found.at_end or isinstance(found.place, Forward) else "",
        partitions=len(partitions),
        key_partition=partition_for_key(asked.fields["key"].encode(), len(partitions)) if asked.fields["key"] else None,
        problem="",
        starts=STARTS,
        counts=COUNTS,
        default_count=DEFAULT_COUNT,
        forms=FORMS,
    )


class _Timer:
    def __enter__(self) -> _Timer:
        self.ms, self._began_ns = 0, time.monotonic_ns()
        return self

    def __exit__(self, *_: object) -> None:
        self.ms = (time.monotonic_ns() - self._began_ns) // 1_000_000


async def look(consumer: AsyncConsumer, asked: Asked, bounds: Limits) -> Page:
    """Raises what reading raises, and BadPlace."""
    if asked.place:
        place = read_place(asked.place)
        if isinstance(place, Backward):
            return await newest(consumer, asked.topic, place, asked.where, bounds)
        return await search(consumer, asked.topic, place, asked.where, bounds)
    if asked.start == "newest":
        chosen = asked.partitions and await begin_at_end(consumer, asked.topic, asked.partitions)
        return await newest(consumer, asked.topic, chosen or None, asked.where, bounds)
    start: int | str = {"oldest": "earliest", "time": f"@{asked.time_ms}"}.get(asked.start, asked.offset)
    return await search(
        consumer, asked.topic, await begin(consumer, asked.topic, start, asked.partitions), asked.where, bounds
    )


def _form(request: Request, access: Access, topic: str, problem: str) -> Response:
    """The form again, filled as it was, and what is wrong with it."""
    fields = {name: request.query_params.get(name, "")[:400] for name in FIELDS}
    return render(
        request, "messages.html", f"Messages of {topic}", access, 400, asked=Asked(topic=topic, fields=fields),
        fields=fields, rows=[], found=None, left=0, took_ms=0, is_backward=False, on="", partitions=0,
        key_partition=None, problem=problem, starts=STARTS, counts=COUNTS, default_count=DEFAULT_COUNT, forms=FORMS,
    )  # fmt: skip
