"""Who sees the HTTP port of a node whose listeners ask who their clients are, over TLS and in clear."""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from authority import Authority, Pair, server_context
from door import wall_ms

from quorumlog.rpc.serving.logins import Logins, basic
from quorumlog.rpc.transport import Address
from quorumlog.security.principal import Principal
from quorumlog.security.sasl.mechanism import PLAIN
from quorumlog.security.sasl.mechanisms import LoginParts, mechanisms_of
from quorumlog.security.sasl.plain import PlainCache
from quorumlog.security.tls.mapping import parse_rules
from quorumlog.security.tls.peer import fingerprint, principal_of
from quorumlog.testing.probe import Readiness, ask_ready
from quorumlog_server.config.config import NodeConfig, from_values
from quorumlog_server.config.properties import ConfigError
from quorumlog_server.edge.fail_stop import stop_on_loop_errors
from quorumlog_server.edge.known_users import KnownUsers
from quorumlog_server.edge.listener_keys import read_keys
from quorumlog_server.process.http_access import Asking, AskingDoor, OpenDoor, is_own_machine
from quorumlog_server.process.http_admin import MAX_CONNECTIONS, HttpAdmin
from quorumlog_server.process.http_door import http_door
from quorumlog_server.process.http_page import Page
from tests.security.sasl.users import Users

ADA, BOB = Principal("User", "ada"), Principal("User", "bob")
USERS = Users(ada="ada-secret", bob="bob-secret")
OWN, ELSEWHERE = "127.0.0.1", "10.0.0.7"
SECRET = b"the leader of the quorum is unknown"


def door(refused: Callable[[str, str], None] = lambda _host, _reason: None, *, is_open: bool = True) -> AskingDoor:
    """ada may Describe the cluster, and others may not."""
    parts = LoginParts(credentials=USERS, secure_bytes=bytes, fake_key=b"k" * 32, plain_cache=PlainCache(b"c" * 32))
    logins = Logins(mechanisms_of((PLAIN,), parts), lambda: 0, delay_ms=0, is_open=lambda: is_open)
    rules = parse_rules("RULE:^CN=(.*)$/$1/,DEFAULT")
    return AskingDoor(
        principal_of=lambda der: principal_of(der, rules),
        may_see=lambda principal, _host: principal == ADA,
        refused=refused,
        logins=logins,
    )


def asking(path: str = "/metrics", peer: str = ELSEWHERE, tls: bool = True, host: str = "", *shown: str) -> Asking:
    return Asking(path=path, peer=peer, host=host, is_encrypted=tls, authorization=shown)


JUDGED = [
    ("from the machine", asking(peer=OWN, tls=False), None),
    ("from the machine, by a name that a browser was told", asking(peer=OWN, host="evil.example:9100"), 401),
    ("a stranger", asking(), 401),
    ("a stranger in clear", asking(tls=False), 403),
    ("a stranger asks for health", asking("/readyz"), 403),
    ("who may describe", asking("/metrics", ELSEWHERE, True, "", basic("ada", "ada-secret")), None),
    ("the same in clear", asking("/metrics", ELSEWHERE, False, "", basic("ada", "ada-secret")), 403),
    ("the same in clear on the machine", asking("/metrics", OWN, False, "", basic("ada", "ada-secret")), None),
    ("who may not", asking("/metrics", ELSEWHERE, True, "", basic("bob", "bob-secret")), 403),
    ("a wrong password", asking("/metrics", ELSEWHERE, True, "", basic("ada", "bob-secret")), 401),
    ("nobody", asking("/metrics", ELSEWHERE, True, "", basic("eve", "ada-secret")), 401),
    ("a wrong password on the machine", asking("/metrics", OWN, True, "", basic("ada", "x")), 401),
    ("two credentials", asking("/metrics", ELSEWHERE, True, "", *[basic("ada", "ada-secret")] * 2), 401),
    ("a token", asking("/metrics", ELSEWHERE, True, "", "Bearer abc"), 401),
    ("no base64", asking("/metrics", ELSEWHERE, True, "", "Basic ***"), 401),
]


@pytest.mark.parametrize(("asked", "status"), [case[1:] for case in JUDGED], ids=[case[0] for case in JUDGED])
def test_who_may_see_a_page(asked: Asking, status: int | None) -> None:
    """A page for debugging is none for strangers (CVE-2021-28235)."""
    refusal = asyncio.run(door().refusal(asked))
    assert (None if refusal is None else refusal.status) == status
    if refusal is not None and refusal.status == 401:
        assert refusal.headers[0][0] == "WWW-Authenticate"


def test_before_the_users_are_known_nobody_hears_that_a_password_is_wrong() -> None:
    refusal = asyncio.run(door(is_open=False).refusal(asking("/metrics", OWN, True, "", basic("ada", "ada-secret"))))
    assert refusal is not None and refusal.status == 503


def test_a_failed_login_is_told_to_the_log_without_its_password() -> None:
    told: list[tuple[str, str]] = []
    gate = door(lambda host, reason: told.append((host, reason)))
    asyncio.run(gate.refusal(asking("/metrics", ELSEWHERE, True, "", basic("ada", "canary-password"))))
    assert [host for host, _ in told] == [ELSEWHERE] and "canary" not in repr(told)


@pytest.mark.parametrize(
    ("peer", "host", "own"),
    [
        ("127.0.0.1", "", True),
        ("127.9.9.9", "127.0.0.1:9100", True),
        ("::1", "[::1]:9100", True),
        ("::1", "[::1]", True),
        ("::ffff:127.0.0.1", "LOCALHOST:80", True),
        ("127.0.0.1", "192.168.1.4:9100", True),
        ("127.0.0.1", "localhost.evil.example", False),
        ("127.0.0.1", "localhost:80:evil", False),
        ("127.0.0.1", "evil.example", False),
        ("10.0.0.1", "127.0.0.1", False),
        ("", "", False),
    ],
)
def test_the_machine_itself(peer: str, host: str, own: bool) -> None:
    assert is_own_machine(Asking(path="/", peer=peer, host=host)) is own


# --- over sockets

ROUTES = {
    "/readyz": lambda: Page(503, SECRET + b"\n"),
    "/healthz": lambda: Page(200, b"alive\n"),
    "/metrics": lambda: Page(200, b"m " * 200_000),
}


class FromElsewhere(AskingDoor):
    """As if all who ask came from another machine."""

    def __init__(self, of: AskingDoor) -> None:
        self._of = of

    async def refusal(self, asking: Asking) -> Page | None:
        return await self._of.refusal(
            Asking(
                path=asking.path,
                peer=ELSEWHERE,
                host=asking.host,
                is_encrypted=asking.is_encrypted,
                certificate=asking.certificate,
                authorization=asking.authorization,
            )
        )


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Authority, Pair]]:
    authority = Authority(tmp_path)
    yield authority, authority.issue("node")


def get(address: Address, context: ssl.SSLContext | None, path: str, **headers: str) -> tuple[int, bytes]:
    if context is None:
        link = http.client.HTTPConnection(address.host, address.port, timeout=10)
    else:
        link = http.client.HTTPSConnection(address.host, address.port, timeout=10, context=context)
    link.request("GET", path, headers=headers)
    answer = link.getresponse()
    return answer.status, answer.read()


def client_context(ca: Path, own: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(ca))
    if own is not None:
        context.load_cert_chain(own)
    return context


def serve(admin: HttpAdmin, ask: Callable[[Address], object]) -> list[BaseException]:
    """Ask it from a thread; what the loop was told of is returned."""
    crashes: list[BaseException] = []

    async def scenario() -> None:
        stop_on_loop_errors(asyncio.get_running_loop(), lambda _, error: crashes.append(error))
        address = await admin.start("127.0.0.1", 0)
        await asyncio.to_thread(ask, address)
        await admin.close()

    asyncio.run(scenario())
    return crashes


@pytest.mark.parametrize("header", ["X-Forwarded-For", "x-forwarded-host", "Forwarded", "Via", "X-Real-IP"])
def test_a_proxy_on_the_machine_is_not_the_machine(header: str) -> None:
    """Many name the node's own address as the host that they ask for."""
    found: list[int] = []

    def ask(address: Address) -> None:
        found.append(get(address, None, "/metrics")[0])
        found.append(get(address, None, "/metrics", **{header: "10.0.0.9"})[0])

    serve(HttpAdmin(ROUTES, door()), ask)
    assert found == [200, 403]


def test_over_tls_a_login_or_a_certificate_shows_the_page(pair: tuple[Authority, Pair]) -> None:
    authority, node = pair
    context = server_context(node, ssl.CERT_OPTIONAL)
    anonymous = client_context(authority.ca)
    ada, bob = (client_context(authority.ca, authority.issue(name).pem) for name in ("ada", "bob"))

    def ask(address: Address) -> None:
        assert get(address, anonymous, "/readyz") == (503, b"unavailable\n")
        assert get(address, anonymous, "/healthz") == (200, b"ok\n")
        assert get(address, anonymous, "/metrics")[0] == 401
        assert get(address, anonymous, "/readyz", Authorization=basic("ada", "ada-secret")) == (503, SECRET + b"\n")
        status, page = get(address, anonymous, "/metrics", Authorization=basic("ada", "ada-secret"))
        assert status == 200 and len(page) == 400_000
        assert get(address, ada, "/metrics")[0] == 200 and get(address, ada, "/readyz") == (503, SECRET + b"\n")
        assert get(address, bob, "/metrics")[0] == 403 and get(address, bob, "/readyz") == (503, b"unavailable\n")
        assert get(address, anonymous, "/readyz", Authorization=basic("ada", "bob-secret"))[0] == 401

    assert serve(HttpAdmin(ROUTES, FromElsewhere(door()), lambda: context), ask) == []


def test_who_shows_no_certificate_hears_which_key_asks_for_one() -> None:
    refusal = asyncio.run(door().refusal(asking()))
    assert refusal is not None and b"listener.name.metrics.ssl.client.auth=requested" in refusal.body


def test_quorumlog_up_asks_a_port_with_tls_over_tls(pair: tuple[Authority, Pair]) -> None:
    """It gave up after 30 s, and stopped the nodes."""
    routes = {"/readyz": lambda: Page(200, b"ready\n"), "/node": lambda: Page(200, b'{"pid": 77, "leader_id": 2}')}

    def ask(address: Address) -> None:
        assert ask_ready(address.port, 77) == Readiness(True, "ready", 2)
        assert "belongs to another process" in ask_ready(address.port, 78).reason

    assert serve(HttpAdmin(routes, door(), lambda: server_context(pair[1])), ask) == []


def test_a_new_certificate_counts_for_the_next_connection(pair: tuple[Authority, Pair], tmp_path: Path) -> None:
    authority, node = pair
    other = Authority(tmp_path, "other")
    contexts = [server_context(node), server_context(other.issue("node"))]

    def ask(address: Address) -> None:
        assert get(address, client_context(authority.ca), "/healthz") == (200, b"alive\n")
        contexts.pop(0)
        assert get(address, client_context(other.ca), "/healthz") == (200, b"alive\n")
        with pytest.raises(ssl.SSLCertVerificationError):
            get(address, client_context(authority.ca), "/healthz")

    assert serve(HttpAdmin(ROUTES, OpenDoor(), lambda: contexts[0]), ask) == []


def test_bytes_that_are_no_tls_and_peers_that_leave_harm_nothing(pair: tuple[Authority, Pair]) -> None:
    _, node = pair
    context = server_context(node)

    def ask(address: Address) -> None:
        for sent in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", b"\x16\x03\x01\x40\x00" + b"\xff" * 20_000):
            with socket.create_connection((address.host, address.port), timeout=10) as link:
                link.sendall(sent)
                if sent[:1] != b"\x16":
                    link.shutdown(socket.SHUT_WR)
                elif len(sent) == 3:
                    continue
                try:
                    while link.recv(4096):
                        pass
                except ConnectionResetError:
                    pass

    assert serve(HttpAdmin(ROUTES, OpenDoor(), lambda: context), ask) == []


def test_the_oldest_of_too_many_connections_goes() -> None:
    def ask(address: Address) -> None:
        silent = [socket.create_connection((address.host, address.port), timeout=10) for _ in range(MAX_CONNECTIONS)]
        try:
            assert get(address, None, "/healthz") == (200, b"alive\n")
            assert silent[0].recv(1) == b""
        finally:
            for link in silent:
                link.close()

    assert serve(HttpAdmin(ROUTES), ask) == []


# --- what a file says

BASE = {
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "listeners": "CLIENT://127.0.0.1:9092,INTERNAL://127.0.0.1:9093",
    "metrics.port": "9100",
    "metrics.host": "0.0.0.0",
}
SASL_SSL = {"listener.security.protocol.map": "CLIENT:SASL_SSL", "ssl.keystore.location": "/node.pem"}
SSL = {"metrics.security.protocol": "SSL", "listener.name.metrics.ssl.keystore.location": "/metrics.pem"}


def config(*changes: dict[str, str]) -> NodeConfig:
    return from_values(BASE | {key: value for change in changes for key, value in change.items()}, "file")


@pytest.mark.parametrize(
    ("changes", "asks", "has_tls", "warned"),
    [
        ([], False, False, "other machines reach the port of metrics, unauthenticated"),
        ([SSL], False, True, "unauthenticated"),
        ([SASL_SSL], True, False, "takes a login over TLS only"),
        ([SASL_SSL, SSL], True, True, ""),
        ([SASL_SSL, SSL, {"allow.anonymous.listeners": "METRICS"}], False, True, "unauthenticated"),
        ([SASL_SSL, {"metrics.host": "127.0.0.1"}], True, False, ""),
    ],
)
def test_a_port_that_asks(changes: list[dict[str, str]], asks: bool, has_tls: bool, warned: str) -> None:
    node = config(*changes)
    of_port = node.listener_security.get("METRICS")
    assert (node.asks_at_http, of_port is not None and of_port.tls is not None) == (asks, has_tls)
    told = [line for line in node.warnings if "metrics.host" in line]
    assert bool(told) == bool(warned) and all(warned in line for line in told)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"metrics.security.protocol": "SSL"}, "METRICS: ssl.keystore.location"),
        ({"listener.name.metrics.ssl.keystore.location": "/a.pem"}, "no listener has the name metrics"),
        ({**SSL, "listeners": "METRICS://127.0.0.1:9092,INTERNAL://127.0.0.1:9093"}, "give the listener another one"),
        (
            {**SSL, "listener.name.metrics.ssl.client.auth": "required", "ssl.truststore.location": "/ca.pem",
             "allow.anonymous.listeners": "METRICS"},
            "METRICS asks for certificates",
        ),
        ({"metrics.security.protocol": "SASL_SSL"}, "metrics.security.protocol"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_a_sentence(changes: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        config(changes)


def test_the_door_of_a_node_knows_its_certificates_and_those_that_are_denied(tmp_path: Path) -> None:
    """As the process makes it, by its file."""
    authority = Authority(tmp_path)
    node, ada, eve = (authority.issue(name) for name in ("node", "ada", "eve"))
    denied = tmp_path / "revoked.txt"
    denied.write_text(fingerprint(eve.der) + "\n")
    file = config(
        SASL_SSL | {"ssl.keystore.location": str(node.pem), "ssl.truststore.location": str(node.ca)},
        {"metrics.security.protocol": "SSL", "listener.name.metrics.ssl.client.auth": "requested"},
        {"ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/", "quorumlog.denied.certificates": str(denied)},
    )
    tls = {name: one.tls for name, one in file.listener_security.items() if one.tls is not None}
    keys = read_keys(tls, wall_ms, str(denied))
    gate = http_door(file, keys, KnownUsers(), lambda _principal, _host: True, wall_ms)

    def seen(pair: Pair) -> bool:
        asked = Asking(path="/metrics", peer=ELSEWHERE, is_encrypted=True, certificate=pair.der)
        return asyncio.run(gate.refusal(asked)) is None

    assert seen(ada) and not seen(eve) and keys.context_of("METRICS") is not None
    assert file.asks_at_http and not config().asks_at_http
