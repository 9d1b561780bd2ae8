"""The messages of a topic before a real node: digits, filters, the newest over all partitions, and the live tail."""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from console_world import browse, options
from test_console_pages import known

from quorumlog.client.asynchronous import AsyncAdmin, AsyncProducer
from quorumlog.client.consumer import ConsumedRecord
from quorumlog.client.looking.forms import Form
from quorumlog.ids import ZERO_UUID
from quorumlog_console.console import Console
from quorumlog_console.messages.rows import row_of
from quorumlog_console.options import Limits
from tests.scenarios.one_node import LANE, RealNode

T = TypeVar("T")
ID = "73314510714175488"
VALUE = f'{{"id": {ID}, "far": 1e400, "no": NaN, "long": 0.{"1" * 29}7, "top": 9223372036854775807}}'
HOSTILE = "<img src=x onerror=alert(1)>\u202e"
ROW = re.compile(r'<td class="number">(\d+)</td><td class="number"><a [^>]*>(\d+)<')
QUICK = Limits(look_every_ms=600_000)


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    made = RealNode(tmp_path_factory.mktemp("messages"))
    made.do(prepare(str(made.node.addresses[LANE])))
    yield made
    made.close()
    assert made.crashes == []


async def prepare(servers: str) -> None:
    """numbers: digits that a float loses. spread: 50 partitions with one record each. mixed: some of it aborted."""
    async with AsyncAdmin(bootstrap_servers=servers) as admin:
        for name, partitions in (("numbers", 1), ("spread", 50), ("mixed", 2), ("empty", 1), ("many", 1), ("live", 2)):
            await admin.create_topic(name, partitions, 1)
    async with AsyncProducer(bootstrap_servers=servers) as producer:
        header = [("id", ID.encode()), (HOSTILE, HOSTILE.encode()), ("none", None)]
        await producer.send("numbers", VALUE.encode(), key=ID.encode(), headers=header, timestamp_ms=1_764_511_330_123)
        await producer.send("numbers", VALUE.replace(ID, "73314510714175490").encode(), key=b"73314510714175490")
        await producer.send("numbers", HOSTILE.encode(), key=b'"quoted"')
        await producer.send("numbers", b"\x00\xff\x10", key=None)
        await producer.send("numbers", None, key=b"gone")
        for number in range(50):
            time_ms = 1_700_000_000_000 + 37 * number % 50
            await producer.send("spread", b"%d" % time_ms, partition=number, timestamp_ms=time_ms)
        await producer.flush()
    async with AsyncProducer(bootstrap_servers=servers, transactional_id="mixed") as producer:
        for number, commits in enumerate((True, True, False)):
            await producer.begin()
            for at_ in range(20):
                await producer.send("mixed", b"%d-%d" % (number, at_), partition=at_ % 2)
            await producer.flush()
            await (producer.commit() if commits else producer.abort())


def visit(at: RealNode, do: Callable[[httpx.AsyncClient, Console], Awaitable[T]], limits: Limits = QUICK) -> T:
    async def ready(browser: httpx.AsyncClient, console: Console) -> T:
        await known(console)
        return await do(browser, console)

    return browse(at, options(at, limits=limits), ready)


def get(at: RealNode, *paths: str) -> list[httpx.Response]:
    async def do(browser: httpx.AsyncClient, _: Console) -> list[httpx.Response]:
        return [await browser.get(path) for path in paths]

    return visit(at, do)


def path_of(topic: str, page: str = "", **fields: Any) -> str:
    return f"/topics/{topic}/messages{page}?{urlencode({name.rstrip('_'): value for name, value in fields.items()})}"


def offsets(answer: httpx.Response) -> list[tuple[int, int]]:
    """Partition and offset of each row, as the page shows them."""
    assert answer.status_code == 200, answer.text
    return [(int(partition), int(offset)) for partition, offset in ROW.findall(answer.text)]


def test_numbers_are_shown_to_their_last_digit_everywhere(at: RealNode) -> None:
    listed, one, text, raw = get(
        at,
        path_of("numbers"),
        path_of("numbers", "/one", partition=0, offset=0),
        path_of("numbers", "/one", partition=0, offset=0, form="text"),
        path_of("numbers", "/bytes", partition=0, offset=0),
    )
    for answer in (listed, one):
        plain = html.unescape(re.sub("<[^>]+>", "", answer.text))
        for digits in (f'"id": {ID},\n', '"far": 1e400', '"no": NaN', "1" * 29 + "7", "9223372036854775807\n"):
            assert digits in plain, digits
    assert html.escape(VALUE) in text.text.replace("&#34;", "&quot;")
    assert raw.content == VALUE.encode() and raw.headers["content-type"] == "application/octet-stream"
    assert raw.headers["content-disposition"] == 'attachment; filename="numbers-0-0-value.bin"'
    assert "2025-11-30 14:02:10.123" in listed.text and "1764511330123" in one.text


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"key": ID}, [0]),
        ({"key": "73314510714175489"}, []),
        ({"key": '"quoted"'}, [2]),
        ({"where": f"$.id = {ID}"}, [0]),
        ({"where": "$.id > 73314510714175489"}, [1]),
        ({"where": "$.far = 10e399"}, [1, 0]),
        ({"value": ID}, [0]),
        ({"value": "\u202e"}, [2]),
        ({"value": "U+202E"}, []),
        ({"where": "value is null"}, [4]),
        ({"where": "value contains x'ff10'"}, [3]),
        ({"header": "id", "header_value": ID}, [0]),
        ({"header": "id", "header_value": "73314510714175490"}, []),
        ({"header": HOSTILE}, [0]),
        ({"where": "key ~ ^7331.*90$"}, [1]),
        ({"from": "offset", "offset": 3}, [3, 4]),
        ({"from": "time", "time": "2025-12-01"}, [1, 2, 3, 4]),
        ({"from": "oldest", "n": 10}, [0, 1, 2, 3, 4]),
    ],
)
def test_filters_go_by_the_bytes(at: RealNode, fields: dict[str, Any], want: list[int]) -> None:
    (answer,) = get(at, path_of("numbers", **fields))
    assert [offset for _, offset in offsets(answer)] == want


def test_the_newest_over_50_partitions_and_older_ones(at: RealNode) -> None:
    async def do(browser: httpx.AsyncClient, _: Console) -> list[list[tuple[int, int]]]:
        answer, found = await browser.get(path_of("spread", n=10)), list[list[tuple[int, int]]]()
        found.append(offsets(answer))
        while on := re.search(r'href="([^"]+)" rel="next"', answer.text):
            answer = await browser.get(html.unescape(on[1]))
            found.append(offsets(answer))
        return found

    pages = visit(at, do)
    by_time = sorted(range(50), key=lambda number: 37 * number % 50, reverse=True)
    assert [len(page) for page in pages] == [10] * 5
    assert [partition for page in pages for partition, _ in page] == by_time


def test_aborted_records_are_not_there_unless_asked_for(at: RealNode) -> None:
    committed, all_, one, other = get(
        at,
        path_of("mixed", n=250),
        path_of("mixed", n=250, uncommitted=1),
        path_of("mixed", "/one", partition=0, offset=24),
        path_of("mixed", "/one", partition=0, offset=24, uncommitted=1),
    )
    assert len(offsets(committed)) == 40 and len(offsets(all_)) == 60
    assert "of aborted transactions are among these" in all_.text
    assert one.status_code == 404 and "No record that a reader gets is at offset 24" in one.text
    assert other.status_code == 200 and "2-4" in other.text


def test_what_records_hold_is_text_and_what_is_asked_wrongly_says_so(at: RealNode) -> None:
    listed, one, *wrong = get(
        at,
        path_of("numbers"),
        path_of("numbers", "/one", partition=0, offset=2),
        path_of("numbers", where="<b>"),
        path_of("numbers", from_="time", time="<b>"),
        path_of("numbers", from_="<b>"),
        path_of("numbers", place="<b>"),
        path_of("numbers", partition="<b>"),
        path_of("none"),
        path_of("numbers", partition=7),
        path_of("numbers", "/one", partition=0, offset="<b>"),
        path_of("numbers", "/one", partition=0, offset=0, id="0" * 32),
    )
    for answer in (listed, one):
        assert "<img" not in answer.text.replace('<img src="/static/icon.svg"', "") and "\u202e" not in answer.text
        assert "&lt;img src=x onerror=alert(1)&gt;" in answer.text and '<span class="sign">U+202E</span>' in answer.text
    assert [answer.status_code for answer in wrong] == [400] * 5 + [404, 404, 404, 410]
    assert not any("<b>" in answer.text.replace("<b>&lt;", "") for answer in wrong)
    assert "known: .name" not in wrong[0].text and "A condition begins with" in wrong[0].text


def test_a_search_is_bounded_says_how_far_it_is_and_goes_on(at: RealNode) -> None:
    async def do(browser: httpx.AsyncClient, _: Console) -> list[httpx.Response]:
        found = [await browser.get(path_of("mixed", where="value = 0-3", n=10))]
        while on := re.search(r'href="([^"]+)" rel="next"', found[-1].text):
            found.append(await browser.get(html.unescape(on[1])))
            assert len(found) < 30
        return found

    pages = visit(at, do, Limits(look_every_ms=600_000, search_records=5))
    assert len(pages) > 1 and [row for page in pages for row in offsets(page)] == [(1, 1)]
    assert "Nothing that fits yet" in pages[0].text and "offsets in 2 of 2 partitions not looked at" in pages[0].text


def test_so_many_searches_at_a_time(at: RealNode) -> None:
    (busy,) = visit(at, lambda browser, _: _all(browser.get(path_of("numbers"))), Limits(searches=0))
    assert busy.status_code == 503 and "0 searches for records run already" in busy.text


async def _all(*asked: Awaitable[T]) -> list[T]:
    return list(await asyncio.gather(*asked))


# --- the live tail ---


@dataclass
class Listener:
    """A browser's EventSource before the application itself."""

    events: list[tuple[str, Any]] = field(default_factory=list)
    place: str = ""
    _rest: str = ""
    _gone: asyncio.Event = field(default_factory=asyncio.Event)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    async def receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        self._rest += message.get("body", b"").decode()
        while "\n\n" in self._rest:
            text, self._rest = self._rest.split("\n\n", 1)
            fields = dict(line.split(": ", 1) for line in text.splitlines())
            self.place = fields.get("id", self.place)
            self.events.append((fields["event"], json.loads(fields["data"])))
            self.came.set()

    def of(self, kind: str) -> list[Any]:
        return [data for name, data in self.events if name == kind]

    async def until(self, holds: Callable[[Listener], bool]) -> None:
        async with asyncio.timeout(15):
            while not holds(self):
                self.came.clear()
                await self.came.wait()


@asynccontextmanager
async def listening(
    browser: httpx.AsyncClient, path: str, last_id: str = "", *, cookie: str = ""
) -> AsyncIterator[Listener]:
    made, address = Listener(), urlsplit(path)
    given = {"host": "127.0.0.1:8080", "last-event-id": last_id, "cookie": cookie}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": address.path, "raw_path": address.path.encode(), "query_string": address.query.encode(),
        "root_path": "", "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 8080),
        "headers": [(name.encode(), text.encode()) for name, text in given.items() if text],
    }  # fmt: skip
    app = browser._transport.app  # type: ignore[attr-defined]
    task = asyncio.ensure_future(app(scope, made.receive, made.send))
    try:
        await made.until(lambda one: bool(one.events))
        yield made
    finally:
        made._gone.set()
        await asyncio.wait_for(task, 10)


def test_a_tail_shows_a_burst_once_in_order_or_counts_it(at: RealNode) -> None:
    async def do(browser: httpx.AsyncClient, console: Console) -> Listener:
        async with (
            AsyncProducer(bootstrap_servers=str(at.node.addresses[LANE])) as producer,
            listening(browser, path_of("live", "/stream")) as tail,
        ):
            for number in range(3_000):
                await producer.send("live", f'{{"n": {ID}{number}}}'.encode(), partition=number % 2)
            await producer.flush()
            await tail.until(lambda one: _given(one) == 3_000 and one.events[-1][1].get("waiting") == "0")
            return tail

    tail = visit(at, do, Limits(look_every_ms=600_000, tail_records_a_second=4_000, tail_buffer_records=400))
    records = tail.of("record")
    assert len(records) < 3_000 and tail.of("skipped")
    for partition in ("0", "1"):
        own = [int(record["offset"]) for record in records if record["partition"] == partition]
        assert own == sorted(set(own)) and own[-1] == 1_499
    for record in records[-3:]:
        number = int(record["offset"]) * 2 + int(record["partition"])
        assert record["value"]["pieces"] == [[f'{{\n  "n": {ID}{number}\n}}', 0]]


def _given(tail: Listener) -> int:
    return len(tail.of("record")) + sum(int(one["count"]) for one in tail.of("skipped"))


def test_aborted_records_do_not_come_and_a_pause_loses_nothing(at: RealNode) -> None:
    async def do(browser: httpx.AsyncClient, _: Console) -> tuple[Listener, Listener]:
        servers = str(at.node.addresses[LANE])
        async with AsyncProducer(bootstrap_servers=servers, transactional_id="tail") as producer:
            async with listening(browser, path_of("live", "/stream", value="x-")) as first:
                await write(producer, 1_000, aborts=True)
                await write(producer, 7)
                await first.until(lambda one: len(one.of("record")) == 7 and one.events[-1][0] == "state")
            await write(producer, 5)
            async with listening(browser, path_of("live", "/stream", value="x-"), first.place) as second:
                await second.until(lambda one: len(one.of("record")) == 5)
        return first, second

    async def write(producer: Any, count: int, *, aborts: bool = False) -> None:
        await producer.begin()
        for number in range(count):
            await producer.send("live", b"x-%d" % number, partition=1)
        await producer.flush()
        await (producer.abort() if aborts else producer.commit())

    first, second = visit(at, do)
    assert first.of("skipped") == second.of("skipped") == []
    seen = [int(record["offset"]) for tail in (first, second) for record in tail.of("record")]
    assert len(set(seen)) == 12 and seen == sorted(seen)


def test_so_many_tails_at_a_time_and_each_ends_with_its_page(at: RealNode) -> None:
    async def do(browser: httpx.AsyncClient, console: Console) -> list[Any]:
        async with listening(browser, path_of("live", "/stream")), listening(browser, path_of("live", "/stream")):
            async with listening(browser, path_of("live", "/stream")) as third:
                refused = third.of("end")
        assert browser._transport.app.state.console.tails.used == 0  # type: ignore[attr-defined]
        async with listening(browser, path_of("live", "/stream")) as again:
            return [refused, again.of("end")]

    refused, again = visit(at, do, Limits(tails=2))
    assert "2 live tails run already" in refused[0]["why"] and again == []


@pytest.mark.parametrize(("fields", "said"), [({"where": "x"}, "A condition begins"), ({"place": "b~-~~-"}, "forward")])
def test_a_tail_that_is_asked_wrongly_says_so(at: RealNode, fields: dict[str, str], said: str) -> None:
    async def do(browser: httpx.AsyncClient, _: Console) -> list[Any]:
        async with listening(browser, path_of("live", "/stream", **fields)) as tail:
            return tail.of("end")

    assert said.lower() in visit(at, do)[0]["why"].lower()


def test_the_page_of_a_tail_gives_its_fields_to_the_stream(at: RealNode) -> None:
    (page,) = get(at, path_of("live", "/tail", where="$.n > 5", key="<k>"))
    found = re.search(r'data-stream="([^"]+)"', page.text)
    assert found is not None
    address = urlsplit(html.unescape(found[1]))
    assert address.path == "/topics/live/messages/stream"
    assert parse_qs(address.query) == {"where": ["$.n > 5"], "key": ["<k>"]}


def test_a_key_that_is_no_text_is_one_line_of_a_list() -> None:
    """A hex dump, with its offsets and columns, would be broken into many."""
    short, long = (ConsumedRecord("t", 0, 0, 0, b"\xff" * size, b"", ()) for size in (2, 17))
    assert row_of(short, None, ZERO_UUID).key.text == "ff ff"
    shown = row_of(long, None, ZERO_UUID).key
    assert shown.text == " ".join(["ff"] * 16) and shown.cut and shown.size == 17
    assert "00000000" in row_of(short, Form.HEX, ZERO_UUID).key.text


def test_a_record_of_many_headers_is_a_small_page(at: RealNode) -> None:
    """Each of them as a row of a table takes a hundred times its bytes, and that for each record of the page."""
    many = [(f"h{number}", b"") for number in range(20_000)]

    async def prepare_many() -> None:
        async with AsyncProducer(bootstrap_servers=str(at.node.addresses[LANE])) as producer:
            await producer.send("many", b"v", headers=[*many, ("n" * 50_000, b"")][::-1])
            await producer.flush()

    at.do(prepare_many())
    listed, one = get(at, "/topics/many/messages", "/topics/many/messages/one?partition=0&offset=0")
    assert listed.status_code == one.status_code == 200
    assert "20,001 headers" in listed.text and "the first 20 of 20,001 headers" in listed.text
    assert "the first 500 of 20,001 headers" in one.text
    assert len(listed.text) < 30_000 and len(one.text) < 200_000
