"""A listener's certificate is read again when a client sets its path anew, by each wire; a bad one changes nothing."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.wire.transport import WireTransport
from quorumlog_server.metrics import connections
from quorumlog_server.metrics.reading import Reading, Source
from tests.scenarios.one_node import CALL_MS, GRPC, LANE, ProtectedNode
from tests.security.tls.certificates import Pair, authority, leaf

KEYSTORE = "listener.name.secure.ssl.keystore.location"
BROKER, TOPIC = 4, 2


class Renewed:
    def __init__(self, folder: Path) -> None:
        self.ca = authority()
        self.keys = folder / "node.pem"
        self.keys.touch(0o600)
        self.put(self.issue())
        self.at = ProtectedNode(folder, {
            "listeners": "CLIENT://127.0.0.1:0,GRPC://127.0.0.1:0,SECURE://127.0.0.1:0,INTERNAL://127.0.0.1:{internal}",
            "listener.security.protocol.map": "SECURE:SSL",
            "listener.name.secure.ssl.keystore.location": str(self.keys),
        })  # fmt: skip

    def issue(self, name: str = "node") -> Pair:
        return leaf(self.ca, name, dns=("localhost",), ip=("127.0.0.1",))

    def put(self, pair: Pair, key: Pair | None = None) -> None:
        self.keys.write_text((key or pair).key_pem() + pair.pem)

    def served(self) -> bytes:
        """DER of the certificate that a new connection gets."""
        context = ssl.create_default_context(cadata=self.ca.pem)

        async def shake_hands() -> bytes:
            port = self.at.node.addresses["SECURE"].port
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            found: Any = writer.get_extra_info("ssl_object")
            writer.close()
            der: bytes = found.getpeercert(binary_form=True)
            return der

        return self.at.do(shake_hands())

    async def look(self) -> None:
        """What happens from time to time."""
        await asyncio.to_thread(self.at.node.edges.listener_keys.by_listener["SECURE"].look)

    def alter(self, wire: str, *changes: tuple[str, str | None], resource: str = "1", **more: Any) -> tuple[int, str]:
        configs = tuple(AlterableConfig(name=name, operation=0, value=value) for name, value in changes)
        one = AlterConfigsResource(resource_type=BROKER, resource_name=resource, configs=configs)
        transport = GrpcTransport() if wire == GRPC else WireTransport()

        async def call() -> Any:
            connection = transport.connect(self.at.node.addresses[wire], internal=False, client_id="tester")
            try:
                return await connection.call(IncrementalAlterConfigsRequest(resources=(one,), **more), CALL_MS)
            finally:
                await connection.close()

        (result,) = self.at.do(call()).results
        return result.error_code, result.error_message


@pytest.fixture(scope="module")
def renewed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Renewed]:
    made = Renewed(tmp_path_factory.mktemp("renewed"))
    yield made
    made.at.close()


@pytest.mark.parametrize("wire", [GRPC, LANE])
def test_the_same_path_is_read_again_at_once(renewed: Renewed, wire: str) -> None:
    before = renewed.served()
    renewed.put(renewed.issue())
    same = (KEYSTORE, str(renewed.keys))
    assert renewed.alter(wire, same, validate_only=True) == (0, "") and renewed.served() == before
    beside = ("listener.name.secure.ssl.keystore.type", "PEM")
    assert renewed.alter(wire, same, beside, ("log.cleaner.threads", "2")) == (0, "")
    assert renewed.served() != before
    assert renewed.alter(wire, same) == (0, ""), "nothing has changed"
    around = renewed.keys.parent / "of-node-1" / ".." / renewed.keys.name
    assert renewed.alter(wire, (KEYSTORE, str(around))) == (0, ""), "`up` writes ../tls/... into its nodes' files"


@pytest.mark.parametrize("wire", [GRPC, LANE])
def test_a_bad_pair_is_refused_and_changes_nothing(renewed: Renewed, wire: str) -> None:
    before, other, good = renewed.served(), renewed.issue(), renewed.keys.read_text()
    for pair, key, says in ((renewed.issue(), other, "key"), (renewed.issue("another"), None, "another")):
        renewed.put(pair, key)
        code, message = renewed.alter(wire, (KEYSTORE, str(renewed.keys)))
        assert code == ErrorCode.INVALID_REQUEST and says in message and "in use stay" in message
        assert renewed.served() == before
    renewed.keys.write_text(good)


REFUSED = [
    ("another path", (KEYSTORE, "/other.pem"), "1", "in the node's file"),
    ("a listener that there is not", ("listener.name.more.ssl.keystore.location", "/x"), "1", "no such listener"),
    ("a listener without TLS", ("listener.name.client.ssl.keystore.location", "/x"), "1", "no such listener"),
    ("all listeners", ("ssl.keystore.location", "/x"), "1", "listener.name.NAME.ssl.keystore.location"),
    ("all brokers", (KEYSTORE, "/x"), "", "for one broker, not for all"),
    ("another broker", (KEYSTORE, "/x"), "2", "this is broker 1"),
    ("what is read at the start", ("listener.name.secure.ssl.client.auth", "required"), "1", "restart it"),
    ("logins", ("listener.name.secure.sasl.enabled.mechanisms", "PLAIN"), "1", "restart it"),
    ("another type", ("listener.name.secure.ssl.keystore.type", "JKS"), "1", "restart it"),
]


@pytest.mark.parametrize(("change", "resource", "says"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_what_cannot_be_changed_so_is_told(renewed: Renewed, change: tuple[str, str], resource: str, says: str) -> None:
    code, message = renewed.alter(GRPC, change, resource=resource)
    assert code == ErrorCode.INVALID_REQUEST and says in message, message


def test_metrics_tell_of_certificates_and_logins(renewed: Renewed) -> None:
    good = renewed.keys.read_text()
    renewed.put(renewed.issue(), renewed.issue())
    renewed.alter(GRPC, (KEYSTORE, str(renewed.keys)))
    renewed.at.do(renewed.look())
    renewed.keys.write_text(good)
    node, out, nothing = renewed.at.node, Reading(), Any
    connections.collect(Source(node, nothing, node.edges.clock.wall_ms(), 0), out)
    expiry_s = out.rows[connections.TLS_EXPIRY]["SECURE",]
    assert isinstance(expiry_s, float) and 29 * 86_400 < expiry_s < 31 * 86_400
    assert out.rows[connections.TLS_RELOAD_FAILURES]["SECURE",] >= 1  # type: ignore[operator]
    assert out.rows[connections.UNAUTHENTICATED] == {(): 0}
