"""A real node starts while one of its disks does not answer: it opens a named pipe that nobody writes to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from quorumlog.client import real_edges as edge
from quorumlog.testing import node_config
from quorumlog.testing.layout import NodeFiles
from quorumlog.testing.nodes import LocalNodes, NodeEnded
from quorumlog.testing.ports import PortPicker
from quorumlog_server.directories.secret import SECRET_NAME
from quorumlog_storage.directory.meta_properties import META_PROPERTIES
from tests.live.timed import until
from tests.rules import rule

NODE = 1
PARTITIONS = 6
START_S = 60.0
SLOW_S = 20.0


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalNodes]:
    """One node of both roles, with two log directories; the second one, `more`, does not hold the metadata log."""
    usual = node_config.properties_of

    def with_two(node: NodeFiles, nodes: Sequence[NodeFiles], changes: Mapping[str, str]) -> str:
        return usual(node, nodes, {**changes, "log.dirs": f"{node.data},{node.folder / 'more'}"})

    monkeypatch.setattr("quorumlog.testing.nodes.properties_of", with_two)
    picker = PortPicker()
    made = LocalNodes.create(tmp_path / "cluster", 1, {}, picker)
    yield made
    made.stop()
    picker.close()


def start(nodes: LocalNodes) -> None:
    nodes.start()
    nodes.wait_ready(timeout_s=START_S)


def hang(directory: Path, name: str) -> None:
    (directory / name).rename(directory / "kept")
    os.mkfifo(directory / name)


async def _make_and_fill(address: str) -> None:
    async with edge.admin({"bootstrap.servers": address}) as admin:
        await admin.create_topic("orders", PARTITIONS, 1)
    async with edge.producer({"bootstrap.servers": address}) as producer:
        for index in range(PARTITIONS):
            await (await producer.send("orders", b"first", partition=index))


@rule("storage 3.20")
@pytest.mark.timeout(240)
def test_it_serves_what_its_other_directory_holds(nodes: LocalNodes) -> None:
    start(nodes)
    node = nodes.layout.node(NODE)
    asyncio.run(_make_and_fill(node.client_address))
    more = node.folder / "more"
    assert nodes.stop() == [], "it stopped in time"
    hang(more, META_PROPERTIES)
    nodes.start()
    seen: list[str] = []

    def is_told() -> bool:
        seen.extend(nodes.opening(NODE))
        return nodes.readiness(NODE).ready

    until(is_told, START_S, "the node to serve")
    assert any(str(more) in text and "has not answered" in text for text in seen), seen
    (why,) = nodes.offline(NODE)
    assert str(more) in why and "opening" in why and "has not returned" in why
    log = nodes.log_tail(NODE)
    assert nodes.process(NODE) is not None, log

    async def write() -> int:
        async with edge.producer({"bootstrap.servers": node.client_address}, request_timeout_ms=3_000) as producer:
            written = 0
            for index in range(PARTITIONS):
                if (node.data / f"orders-{index}").is_dir():
                    await (await producer.send("orders", b"second", partition=index))
                    written += 1
            return written

    assert 0 < asyncio.run(write()) < PARTITIONS
    assert nodes.stop(timeout_s=SLOW_S + START_S) == [], "a thread that hangs does not keep it from ending"


@pytest.mark.timeout(180)
def test_it_says_why_it_cannot_start_without_the_metadata_directory(nodes: LocalNodes) -> None:
    start(nodes)
    node = nodes.layout.node(NODE)
    assert nodes.stop() == []
    hang(Path(node.data), SECRET_NAME)
    nodes.start()
    with pytest.raises(NodeEnded) as ended:
        nodes.wait_ready(timeout_s=START_S)
    assert "cannot start" in ended.value.tail and "has not returned" in ended.value.tail
