"""A whole node in this process, at whose listeners clients log in or show certificates, on both wires.

SECURE and GRPC_LOGINS ask for a login (SASL_SSL), CERTIFIED and GRPC_CERTIFIED for a certificate (SSL). CLIENT is
plain, and serves everybody.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from quorumlog.messages.credentials import AlterUserScramCredentialsRequest, ScramUpsertion
from quorumlog.rpc.transport import (
    Address,
    Connection,
    Handler,
    Identity,
    Listener,
    NotAuthenticated,
    NotDelivered,
    Server,
    Transport,
)
from quorumlog.security.required.asker import Rules
from quorumlog.security.sasl.mechanism import SCRAM_SHA_512
from quorumlog.security.sasl.scram_keys import HASHES, salted_password
from quorumlog.testing.ports import PortPicker
from quorumlog_server.edge.edges import Edges
from quorumlog_server.edge.real_edges import real_edges
from tests.scenarios.asking import errors_in
from tests.scenarios.one_node import CALL_MS, LANE, RealNode
from tests.security.sasl.tokens import AUDIENCE, ISSUER, claims, document, signed
from tests.security.tls.certificates import Pair, authority, leaf

USER, PASSWORD = "ops,eu=1", 'p"\\;,=%+ :ü'  # signs that some clients escape
SECURE, LOGINS, CERTIFIED, GRPC_CERTIFIED = "SECURE", "GRPC_LOGINS", "CERTIFIED", "GRPC_CERTIFIED"
HERE = {"dns": ("localhost",), "ip": ("127.0.0.1",)}
_SALT, _ITERATIONS = b"salt" * 4, 4_096


class Came(NamedTuple):
    listener: str
    request: str
    principal: str


class Noting:
    """A transport that notes what comes to listeners of clients."""

    def __init__(self, real: Transport, came: list[Came]) -> None:
        self._real, self._came = real, came

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def listen(self, listener: Listener, handler: Handler) -> Server:
        async def noted(context: Any, request: Any) -> Any:
            name = type(request).__name__.removesuffix("Request")
            self._came.append(Came(listener.name, name, str(context.principal)))
            return await handler(context, request)

        return await self._real.listen(listener, handler if listener.internal else noted)


class ProtectedNode(RealNode):
    """more: further settings. rules: as of a `RealNode`."""

    def requests(self, listener: str) -> dict[str, set[str]]:
        """By name, who has made them."""
        found: dict[str, set[str]] = {}
        for came in self.came:
            if came.listener == listener:
                found.setdefault(came.request, set()).add(came.principal)
        return found

    def __init__(self, folder: Path, more: dict[str, str] | None = None, rules: Rules | None = None) -> None:
        self.folder, self.ca = folder, authority()
        self.came: list[Came] = []  # what clients have asked
        self.ca_path = self.write("ca.pem", self.ca.pem)
        keys = folder / "jwks.json"
        keys.write_bytes(document("p256"))
        listeners = {
            LANE: "PLAINTEXT", SECURE: "SASL_SSL", LOGINS: "SASL_SSL", CERTIFIED: "SSL", GRPC_CERTIFIED: "SSL"
        }  # fmt: skip
        self._own_picker = PortPicker()
        (ports,) = self._own_picker.pick(1)
        internal = f"127.0.0.1:{ports.internal}"
        settings = {
            "listeners": ",".join(f"{name}://127.0.0.1:0" for name in listeners) + f",INTERNAL://{internal}",
            "controller.quorum.voters": f"1@{internal}",
            "listener.security.protocol.map": ",".join(f"{name}:{how}" for name, how in listeners.items()),
            "allow.anonymous.listeners": LANE,
            "ssl.keystore.location": self.issue("node"),
            "ssl.truststore.location": self.ca_path,
            "listener.name.certified.ssl.client.auth": "required",
            "listener.name.grpc_certified.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": f"file://{keys}",
            "sasl.oauthbearer.allowed.urls": f"file://{keys}",
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.clock.skew.seconds": "0",
        }
        super().__init__(folder, {**settings, **(more or {})}, rules)
        self.make_user(USER, PASSWORD)

    def close(self) -> None:
        super().close()
        self._own_picker.close()

    def _edges(self) -> Edges:
        real = real_edges(self.config)

        def transport(identity: Identity) -> Transport:
            return Noting(real.transport(identity), self.came)

        return dataclasses.replace(real, on_crash=self._on_crash, transport=transport)

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.touch(0o600)
        path.write_text(text)
        return str(path)

    def issue(self, name: str, issuer: Pair | None = None, **more: Any) -> str:
        """The path of a file with a key and its certificate."""
        pair = leaf(issuer or self.ca, name, **{**HERE, **more})
        return self.write(f"{name}.pem", pair.key_pem() + pair.pem)

    def address(self, listener: str) -> Address:
        return self.node.addresses[listener]

    def make_user(self, name: str, password: str) -> None:
        self.do(self.change_user(name, password))

    async def change_user(self, name: str, password: str) -> None:
        salted = salted_password(password, _SALT, _ITERATIONS, HASHES[SCRAM_SHA_512])
        user = ScramUpsertion(name=name, mechanism=2, iterations=_ITERATIONS, salt=_SALT, salted_password=salted)
        connection = self.connect(LANE)
        assert not errors_in(await delivered(connection, AlterUserScramCredentialsRequest(upsertions=(user,))))
        await connection.close()

    # --- options of clients

    def by_login(self, listener: str = SECURE, **more: Any) -> dict[str, Any]:
        return {
            "bootstrap_servers": str(self.address(listener)),
            "security_protocol": "SASL_SSL",
            "ssl_truststore_location": self.ca_path,
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": USER,
            "sasl_password": PASSWORD,
            **more,
        }

    def by_token(self, token: Callable[[], str], listener: str = SECURE, **more: Any) -> dict[str, Any]:
        common = {name: value for name, value in self.by_login(listener).items() if not name.startswith("sasl_")}
        return {**common, "sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token": token, **more}

    def by_certificate(self, keystore: str, listener: str = CERTIFIED, **more: Any) -> dict[str, Any]:
        return {
            "bootstrap_servers": str(self.address(listener)),
            "security_protocol": "SSL",
            "ssl_truststore_location": self.ca_path,
            "ssl_keystore_location": keystore,
            **more,
        }


async def delivered(connection: Connection, request: Any) -> Any:
    """The answer. The node shares this loop, and loads what it needs first: it may be reached too late."""
    for _ in range(5):
        try:
            return await connection.call(request, CALL_MS)
        except NotAuthenticated:
            raise
        except NotDelivered:
            continue
    raise AssertionError(f"never delivered: {request}")


def token(life_s: float = 300.0, **changes: Any) -> str:
    now_s = time.time()
    return signed(claims(iat=now_s - 1, exp=now_s + life_s, **changes))
