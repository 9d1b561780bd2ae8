"""The console on a node's own listener: how it reaches the node, what is refused, and that it serves and ends."""

from __future__ import annotations

import asyncio
import urllib.request
from pathlib import Path

import pytest
from test_console_login import SECURED

from quorumlog.rpc.transport import Address
from quorumlog_console.options import Login
from quorumlog_server.config.config import NodeConfig, from_values
from quorumlog_server.config.properties import ConfigError
from quorumlog_server.process.console import NodeConsole, console_options
from tests.scenarios.one_node import LANE, RealNode

ADDRESSES = {"CLIENT": Address("0.0.0.0", 7), "GRPC": Address("::", 8), "SECURE": Address("127.0.0.1", 9)}


def config(**changes: str) -> NodeConfig:
    base = {
        "node.id": "1",
        "log.dirs": "/d",
        "listeners": "CLIENT://127.0.0.1:0,INTERNAL://127.0.0.1:5",
        "controller.quorum.voters": "1@127.0.0.1:5",
        "console.listener": "127.0.0.1:0",
    }
    return from_values(base | {key.replace("_", "."): value for key, value in changes.items()})


def secured() -> dict[str, str]:
    return {key: value.replace("{internal}", "5") for key, value in SECURED.items()}


def test_where_nobody_asks_it_uses_the_open_listener() -> None:
    options = console_options(config(), ADDRESSES)
    assert options.login is Login.NEVER
    assert options.client["bootstrap_servers"] == "127.0.0.1:7"


def test_where_a_listener_asks_it_uses_the_one_that_takes_passwords() -> None:
    options = console_options(config(**secured()), ADDRESSES)
    assert options.login is Login.ALWAYS
    assert options.client["bootstrap_servers"] == "127.0.0.1:9"
    assert options.client["security_protocol"] == "SASL_PLAINTEXT"


def test_a_port_of_metrics_that_asks_nobody_opens_no_console() -> None:
    """Prometheus may scrape without a login; people who open the console log in all the same."""
    open_metrics = secured() | {"metrics.port": "1", "allow.anonymous.listeners": "CLIENT,GRPC,METRICS"}
    assert not config(**open_metrics).asks_at_http
    options = console_options(config(**open_metrics), ADDRESSES)
    assert options.login is Login.ALWAYS
    assert options.client["bootstrap_servers"] == "127.0.0.1:9"


def test_a_file_says_how_it_is_reached_and_not_as_whom(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=h:1\nsecurity.protocol=SASL_SSL\nsasl.username=root\nsasl.password=x\n")
    client = console_options(config(**secured(), console_client_config=str(file)), ADDRESSES).client
    assert (client["bootstrap_servers"], client["security_protocol"]) == ("h:1", "SASL_SSL")
    assert not [name for name in client if name.startswith("sasl")]
    with pytest.raises(ConfigError, match=r"console.client.config: .*none cannot be used"):
        console_options(config(console_client_config=str(tmp_path / "none")), ADDRESSES)


@pytest.mark.parametrize("address", ["8080", "h:x", "h:99999", ":"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="is not HOST:PORT"):
        NodeConsole(config(console_listener=address)).start(ADDRESSES)


def test_without_a_listener_for_passwords_the_node_says_what_to_do() -> None:
    alone = {name: ADDRESSES[name] for name in ("CLIENT", "GRPC")}
    with pytest.raises(ConfigError, match=r"no listener takes passwords.*console\.client\.config"):
        console_options(config(**secured()), alone)


def test_it_serves_beside_the_node_and_ends_with_it(tmp_path: Path) -> None:
    at = RealNode(tmp_path, {"console.listener": "127.0.0.1:0"})
    console = NodeConsole(at.config)
    address = console.start({LANE: at.node.addresses[LANE]})["console"]

    def load() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{address.port}/nodes", timeout=20) as answer:
            return str(answer.read().decode())

    async def run() -> str:
        try:
            return await asyncio.to_thread(load)
        finally:
            await console.stop()

    assert "serving</span>" in at.do(run())
    with pytest.raises(OSError):
        load()
    at.close()
    assert at.crashes == []
