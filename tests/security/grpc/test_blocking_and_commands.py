"""Our blocking clients and our commands by gRPC at a protected node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from protected_node import LOGINS, SECURE, USER, ProtectedNode

from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import AuthenticationFailed
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import Exit
from quorumlog_storage.files.properties import render_properties


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProtectedNode]:
    made = ProtectedNode(tmp_path_factory.mktemp("node"))
    yield made
    made.close()
    assert not made.crashes


@pytest.fixture
def node(shared: ProtectedNode) -> ProtectedNode:
    shared.came.clear()
    return shared


def beside(node: ProtectedNode, blocks: Callable[[], Any]) -> Any:
    """The node serves while that runs in a thread."""
    return node.do(asyncio.to_thread(blocks))


def test_blocking_clients(node: ProtectedNode) -> None:
    given = {**node.by_login(transport="grpc")}
    address = given.pop("bootstrap_servers")

    def blocks() -> None:
        with Cluster(address, **given) as cluster:
            cluster.admin.create_topic("blocking", partitions=1, replication=1)
            with cluster.producer() as sender:
                sent = [sender.send("blocking", b"%d" % number) for number in range(100)]
                assert [one.result(10).offset for one in sent] == list(range(100))
            with cluster.consumer("blocking", group="g", stop="latest", stream_chunks=True) as reader:
                assert [record.value for record in reader] == [b"%d" % number for number in range(100)]
        with Cluster(address, **{**given, "sasl_password": "wrong"}) as cluster:
            with pytest.raises(AuthenticationFailed, match="sasl_password"):
                cluster.admin.list_topics()

    beside(node, blocks)
    assert {"CreateTopics", "Produce", "FetchChunk", "JoinGroup"} <= set(node.requests(LOGINS))
    assert set().union(*node.requests(LOGINS).values()) == {f"User:{USER}"}


def test_commands(node: ProtectedNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {name.replace("_", "."): value for name, value in node.by_login().items()}
    address = given.pop("bootstrap.servers")
    file = tmp_path / "client.properties"
    file.write_bytes(render_properties(given))
    words = ["-b", str(address), "--command-config", str(file), "-X", "transport=grpc"]

    def run(*arguments: str) -> int:
        return int(beside(node, lambda: main([arguments[0], arguments[1], *words, *arguments[2:]])))

    assert run("topic", "create", "commands", "--partitions", "1", "--replication-factor", "1") == 0
    assert run("topic", "list") == 0
    assert "commands" in capsys.readouterr().out
    assert set(node.requests(SECURE)) == set()
    assert {"CreateTopics", "Metadata"} <= set(node.requests(LOGINS))
    assert run("topic", "list", "-X", "sasl.password=wr0ng") == Exit.NOT_AUTHORISED
    told = capsys.readouterr().err
    assert "sasl_password" in told and "wr0ng" not in told
