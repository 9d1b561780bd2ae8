"""Messages whose schema a registry knows: decoded, escaped, and within bounds; nobody else's address is asked."""

from __future__ import annotations

import asyncio
import html
import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from console_world import browse, options
from test_console_messages import QUICK, path_of
from test_console_pages import known

from quorumlog.client.asynchronous import AsyncAdmin, AsyncProducer
from quorumlog.client.consumer import ConsumedRecord
from quorumlog.ids import Offset
from quorumlog.schemas import AvroSerializer, SchemaRegistry
from quorumlog_console import decoding
from quorumlog_console.console import Console
from quorumlog_console.decoding import MAX_ASKED, Decoding
from tests.scenarios.one_node import LANE, RealNode
from tests.schemas.http_registry import HttpRegistry, serving

AVRO = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "note", "type": "string"}]})
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    made = RealNode(tmp_path_factory.mktemp("schemas"))
    yield made
    made.close()
    assert made.crashes == []


@pytest.fixture
def http() -> Iterator[HttpRegistry]:
    with serving(HttpRegistry()) as made:
        yield made


def record(value: bytes, offset: int = 0) -> ConsumedRecord:
    return ConsumedRecord("t", 0, Offset(offset), 0, None, value, ())


def test_a_page_shows_what_the_schema_says_and_the_bytes_where_they_are_asked_for(
    at: RealNode, http: HttpRegistry
) -> None:
    async def write() -> None:
        servers = str(at.node.addresses[LANE])
        async with AsyncAdmin(bootstrap_servers=servers) as admin:
            await admin.create_topic("orders", 1, 1)
        write = AvroSerializer(SchemaRegistry(http.url), AVRO)
        async with AsyncProducer(bootstrap_servers=servers, value_serializer=write) as producer:
            await producer.send("orders", {"note": HOSTILE})
        async with AsyncProducer(bootstrap_servers=servers) as producer:
            await producer.send("orders", b"\0\0\0\0\x63 no such schema")
            await producer.send("orders", b"text")

    async def look(browser: httpx.AsyncClient, console: Console) -> list[str]:
        await known(console)
        paths = [path_of("orders"), *(path_of("orders", "/one", partition=0, offset=at_) for at_ in (0, 1, 2))]
        paths.append(path_of("orders", "/one", partition=0, offset=0, form="hex"))
        return [(await browser.get(path)).text for path in paths]

    at.do(write())
    listed, decoded, unknown, text, raw = browse(
        at, options(at, limits=QUICK, registry={"schema.registry.url": http.url}), look
    )
    for shown in (listed, decoded):
        assert HOSTILE not in shown
        plain = html.unescape(re.sub("<[^>]+>", "", shown))
        assert f'"note": "{HOSTILE}"' in plain and "value by its schema" in plain
    assert "value as bytes: the schema registry answered 40403" in unknown
    assert "schema" not in re.sub("<[^>]+>", "", text).replace("/topics", "") and "note" not in raw


def test_records_that_name_many_schemas_cost_a_bounded_number_of_requests(http: HttpRegistry) -> None:
    made = Decoding({"schema.registry.url": http.url})
    try:
        records = [record(b"\0" + number.to_bytes(4) + b"x", number) for number in range(1, 10 * MAX_ASKED)]
        found = asyncio.run(made.of(records))
    finally:
        made.close()
    assert len(http.asked) == MAX_ASKED and [one.record for one in found] == records
    assert "as often as it may" in found[-1].note


def test_a_registry_that_hangs_holds_up_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    hangs = threading.Event()

    class Hanging(HttpRegistry):
        def answer(self, *given: Any) -> Any:
            hangs.wait(20)
            return super().answer(*given)

    monkeypatch.setattr(decoding, "PAGE_S", 0.05)
    with serving(Hanging()) as http:
        made = Decoding({"schema.registry.url": http.url})
        try:
            (found,) = asyncio.run(made.of([record(b"\0\0\0\0\1x")]))
            assert found.record.value == b"\0\0\0\0\1x" and "took more than 0.05 s" in found.note
        finally:
            hangs.set()
            made.close()
