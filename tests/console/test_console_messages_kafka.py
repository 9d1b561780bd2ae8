"""The messages of the console before an unmodified Apache Kafka: the same records, the same digits, the same tail."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx
import pytest
from test_console_kafka import SMALL
from test_console_messages import ID, known, listening, offsets, path_of, prepare

from bench.peers.kafka_peer import KafkaPeer
from bench.peers.kafka_tools import Unavailable, get_kafka
from quorumlog.client.asynchronous import AsyncAdmin, AsyncProducer
from quorumlog.client.errors import QuorumlogError
from quorumlog.rpc.transport import RpcError
from quorumlog_console.app import make_app
from quorumlog_console.options import ConsoleOptions

START_S = 120
SMALL_TRANSACTIONS = {"transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        kafka = get_kafka()
    except Unavailable as error:
        pytest.skip(str(error))
    changes = {**SMALL, **SMALL_TRANSACTIONS}
    peer = KafkaPeer(kafka, tmp_path_factory.mktemp("messages-kafka") / "kafka", nodes=1, changes=changes)
    try:
        peer.start()
        asyncio.run(_ready(peer.bootstrap_servers))
        asyncio.run(prepare(peer.bootstrap_servers))
        yield peer.bootstrap_servers
    finally:
        peer.close()


async def _ready(servers: str) -> None:
    async with asyncio.timeout(START_S), AsyncAdmin(bootstrap_servers=servers) as admin:
        while True:
            try:
                await admin.create_topic("first", 1, 1, exist_ok=True)
                return
            except (QuorumlogError, RpcError):
                await asyncio.sleep(0.2)


@asynccontextmanager
async def browsing(servers: str) -> AsyncIterator[httpx.AsyncClient]:
    app = make_app(ConsoleOptions(client={"bootstrap_servers": servers}))
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 50_000))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as browser,
    ):
        await known(app.state.console)
        yield browser


def test_records_of_kafka(servers: str) -> None:
    async def do() -> None:
        async with browsing(servers) as browser:
            found = await browser.get(path_of("numbers", where=f"$.id = {ID}"))
            assert offsets(found) == [(0, 0)] and f'"id": {ID},' in html.unescape(found.text)
            newest = await browser.get(path_of("spread", n=10))
            by_time = sorted(range(50), key=lambda number: 37 * number % 50, reverse=True)
            assert [partition for partition, _ in offsets(newest)] == by_time[:10]
            older = re.search(r'href="([^"]+)" rel="next"', newest.text)
            assert older is not None
            second = await browser.get(html.unescape(older[1]))
            assert [partition for partition, _ in offsets(second)] == by_time[10:20]
            assert len(offsets(await browser.get(path_of("mixed", n=250)))) == 40
            assert len(offsets(await browser.get(path_of("mixed", n=250, uncommitted=1)))) == 60
            assert offsets(await browser.get(path_of("numbers", from_="time", time="2025-12-01")))[0] == (0, 1)

    asyncio.run(do())


def test_a_tail_of_kafka(servers: str) -> None:
    async def do() -> None:
        async with browsing(servers) as browser, AsyncProducer(bootstrap_servers=servers) as producer:
            async with listening(browser, path_of("live", "/stream")) as tail:
                for number in range(20):
                    await producer.send("live", f'{{"n": {ID}{number}}}'.encode(), partition=0)
                await producer.flush()
                await tail.until(lambda one: len(one.of("record")) == 20)
            assert [record["offset"] for record in tail.of("record")] == [str(number) for number in range(20)]

    asyncio.run(do())
