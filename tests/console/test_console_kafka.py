"""The console before an unmodified Apache Kafka: it shows what the protocol tells, and says what it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bench.peers.kafka_peer import KafkaPeer
from bench.peers.kafka_tools import Unavailable, get_kafka
from quorumlog.client.asynchronous import AsyncAdmin, AsyncConsumer, AsyncProducer
from quorumlog.client.errors import QuorumlogError
from quorumlog.rpc.transport import RpcError
from quorumlog_console.app import make_app
from quorumlog_console.layout import NAVIGATION
from quorumlog_console.options import ConsoleOptions

START_S = 120
SMALL = {"default.replication.factor": 1, "offsets.topic.replication.factor": 1, "min.insync.replicas": 1}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        kafka = get_kafka()
    except Unavailable as error:
        pytest.skip(str(error))
    folder: Path = tmp_path_factory.mktemp("console-kafka")
    peer = KafkaPeer(kafka, folder / "kafka", nodes=1, changes=SMALL)
    try:
        peer.start()
        asyncio.run(_prepare(peer.bootstrap_servers))
        yield peer.bootstrap_servers
    finally:
        peer.close()


async def _prepare(servers: str) -> None:
    async with asyncio.timeout(START_S), AsyncAdmin(bootstrap_servers=servers) as admin:
        while True:
            try:
                await admin.create_topic("orders", 2, 1, {"retention.ms": "9223372036854775807"}, exist_ok=True)
                break
            except (QuorumlogError, RpcError):
                await asyncio.sleep(0.2)
    async with AsyncProducer(bootstrap_servers=servers) as producer:
        for number in range(30):
            await producer.send("orders", b"%d" % number, partition=number % 2)
        await producer.flush()
    async with AsyncConsumer(bootstrap_servers=servers, group_id="<b>billing</b>", enable_auto_commit=False) as reader:
        await reader.subscribe(["orders"])
        read = 0
        while read < 10:
            read += len(await reader.poll(timeout_ms=1_000, max_records=10 - read))
        await reader.commit()


def test_every_page_opens_before_a_kafka(servers: str) -> None:
    async def run() -> dict[str, str]:
        app = make_app(ConsoleOptions(client={"bootstrap_servers": servers, "default_api_timeout_ms": 10_000}))
        transport = httpx.ASGITransport(app)
        pages: dict[str, str] = {}
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=30) as browser,
        ):
            async with asyncio.timeout(30):
                while (await browser.get("/")).status_code != 200:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            for path in (*(href for _, href, _ in NAVIGATION), "/topics/orders", "/groups/one?id=<b>billing</b>"):
                answer = await browser.get(path)
                assert answer.status_code == 200, (path, answer.text)
                pages[path] = answer.text
        return pages

    pages = asyncio.run(run())
    assert "1/1</b> brokers serve" in pages["/"] and "are not shown" not in pages["/"]
    assert "this console has seen" in pages["/events"]
    assert ">leader</span>" in pages["/quorum"]
    assert "<code>9223372036854775807</code>" in pages["/topics/orders"]
    assert "&lt;b&gt;billing" in pages["/groups"] and "<b>billing" not in pages["/groups"]
    assert "<b>20</b> offsets behind" in pages["/groups/one?id=<b>billing</b>"]
    assert "The use of quotas is not shown" in pages["/rights"]
