"""A node takes its clients from PLAINTEXT to SASL_SSL by two restarts: a second listener, then without the first.

Three processes under load go the same way in tests/live/test_clients_to_sasl_ssl_live.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.administration.users import SetPassword
from quorumlog.client.asynchronous import AsyncAdmin, AsyncConsumer, AsyncProducer
from quorumlog.client.errors import QuorumlogError
from quorumlog.errors import ErrorCode
from quorumlog.rpc.transport import RpcError
from tests.scenarios.one_node import GRPC, LANE, ProtectedNode
from tests.security.tls.certificates import authority, leaf

NAME, PASSWORD = "ada", "a long and random one"
BATCH = 50


class Moving:
    def __init__(self, folder: Path) -> None:
        ca = authority()
        pair = leaf(ca, "node", dns=("localhost",), ip=("127.0.0.1",))
        self._keys = folder / "node.pem"
        self._keys.touch(0o600)
        self._keys.write_text(pair.key_pem() + pair.pem)
        self._trusted = folder / "ca.pem"
        self._trusted.write_text(ca.pem)
        self.at = ProtectedNode(folder)
        self.sent: list[bytes] = []

    def restart(self, listeners: tuple[str, ...]) -> None:
        """INTERNAL keeps its port, the others get new ones."""
        internal = self.at.node.addresses["INTERNAL"].port
        ports = dict.fromkeys(listeners, 0) | {"INTERNAL": internal}
        anonymous = ",".join(name for name in listeners if name != "SECURE")
        more = {
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
            "listener.security.protocol.map": "SECURE:SASL_SSL",
            "listener.name.secure.ssl.keystore.location": str(self._keys),
            **({"allow.anonymous.listeners": anonymous} if anonymous else {}),
        }
        self.at.configure(more)
        self.at.restart()

    def client(self, listener: str) -> dict[str, Any]:
        servers = {"bootstrap_servers": str(self.at.node.addresses[listener])}
        if listener != "SECURE":
            return servers
        return servers | {
            "security_protocol": "SASL_SSL", "ssl_cafile": str(self._trusted), "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": NAME, "sasl_password": PASSWORD,
        }  # fmt: skip

    def write(self, listener: str) -> None:
        async def run() -> None:
            values = [b"%d" % (len(self.sent) + number) for number in range(BATCH)]
            async with AsyncProducer(**self.client(listener)) as producer:
                for value in values:
                    await producer.send("t", value)
                await producer.flush()
            self.sent += values

        self.at.do(run())

    def read(self, listener: str) -> list[bytes]:
        async def run() -> list[bytes]:
            found: list[bytes] = []
            async with AsyncConsumer(**self.client(listener)) as consumer:
                await consumer.assign_topic("t", start="earliest")
                while len(found) < len(self.sent):
                    found += [record.value for record in await consumer.poll()]
                found += [record.value for record in await consumer.poll()]
            return found

        return self.at.do(run())

    def ask(self, listener: str, do: Callable[[AsyncAdmin], Awaitable[Any]], **options: Any) -> Any:
        async def run() -> Any:
            async with AsyncAdmin(**self.client(listener) | options) as admin:
                return await do(admin)

        return self.at.do(run())


def test_clients_move_to_sasl_ssl_and_no_record_is_lost_or_doubled(tmp_path: Path) -> None:
    moving = Moving(tmp_path)
    moving.ask(LANE, lambda admin: admin.create_topic("t", 1, 1))
    moving.write(LANE)
    moving.restart((LANE, GRPC, "SECURE"))
    moving.write(LANE)
    outcomes = moving.ask(LANE, lambda admin: admin.alter_user_scram_credentials([SetPassword(NAME, PASSWORD)]))
    assert [one.error for one in outcomes.values()] == [ErrorCode.NONE]
    moving.write("SECURE")
    moving.write(LANE)  # both are served
    moving.restart(("SECURE",))
    moving.write("SECURE")
    assert moving.read("SECURE") == moving.sent and len(moving.sent) == 5 * BATCH
    assert set(moving.at.node.addresses) == {"SECURE", "INTERNAL"}
    stranger = {"security_protocol": "PLAINTEXT", "default_api_timeout_ms": 3_000}
    only = {"bootstrap_servers": moving.client("SECURE")["bootstrap_servers"]}

    async def by_nobody() -> None:
        async with AsyncAdmin(**only, **stranger) as admin:
            await admin.list_topics()

    with pytest.raises((QuorumlogError, RpcError)):
        moving.at.do(by_nobody())
    counts = moving.at.node.edges.logins.counts
    assert counts["SCRAM-SHA-512", False] >= 2 and not any(failed for _, failed in counts), counts
    moving.at.close()
    assert not moving.at.crashes
