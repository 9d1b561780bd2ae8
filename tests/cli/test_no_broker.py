"""A server that is no broker is told as such, whatever it says or does not say."""

from __future__ import annotations

import asyncio
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quorumlog.rpc.transport import Address
from quorumlog_cli.connecting.who_answers import ANSWER_TIMEOUT_S, why_no_broker, why_none_answers
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import Exit
from tests.scenarios.one_node import RealNode

HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
SERVERS = [
    ("http", HTTP, False, "an HTTP response"),
    ("ssh", b"SSH-2.0-OpenSSH_9.2\r\n", True, "SSH"),
    ("tls", bytes.fromhex("15030300020246"), False, "set security_protocol=SASL_SSL, or SSL"),
    ("hangs up", b"", False, "wants TLS or a login (security_protocol)"),
    ("another length", b"\0\0\0\x20" + b"\7" * 32, True, "is no answer of Kafka's protocol"),
]
SILENT = ("says nothing", b"", True, "accepts connections, and has said nothing for")
AT_ONCE_S = 2.5  # a command has 10 s for its calls otherwise


@contextmanager
def server(says: bytes, stays: bool) -> Iterator[int]:
    """Returns its port. stays: whether it keeps connections open."""
    over = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(says)
            if stays:
                over.wait()
            else:
                self.request.recv(1_000)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """The client has left."""

    with Server(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield made.server_address[1]
        finally:
            over.set()
            made.shutdown()


ROWS = [*SERVERS, SILENT]


@pytest.mark.parametrize(("says", "stays", "want"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_server_that_is_no_broker_is_told_as_such(
    says: bytes,
    stays: bool,
    want: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    began_s = time.monotonic()
    with server(says, stays) as port:
        assert main(["topic", "list", "-b", f"127.0.0.1:{port}"]) == Exit.UNREACHABLE
    assert time.monotonic() - began_s < AT_ONCE_S + (ANSWER_TIMEOUT_S if want == SILENT[3] else 0)
    said = capsys.readouterr().err
    assert f"127.0.0.1:{port}" in said and want in said and "is it a broker?" in said


def test_what_a_broker_and_a_grpc_listener_say_first() -> None:
    for said in (b"\0\0\1\0quor\0", b"\0\0\x18\4\0\0\0\0\0"):
        with server(said, True) as port:
            assert why_no_broker(Address("127.0.0.1", port), 2.0) == ""


def test_where_nothing_listens() -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as made:
        port = made.server_address[1]
    assert why_no_broker(Address("127.0.0.1", port), 2.0) == "Connection refused"


def test_what_is_no_name() -> None:
    (reason,) = why_none_answers([Address("a" * 70, 9092)], 2.0)
    assert "it is no host name" in reason


def test_each_listener_of_a_node_is_one(tmp_path: Path) -> None:
    at = RealNode(tmp_path)
    try:
        for name, address in at.node.addresses.items():
            assert at.do(asyncio.to_thread(why_no_broker, address, 2.0)) == "", name
    finally:
        at.close()
    assert at.crashes == []


def test_one_that_hangs_holds_nothing_up_beside_one_that_serves() -> None:
    with server(b"", True) as silent, server(b"\0\0\1\0quor\0", True) as serves, server(HTTP, False) as other:
        began_s = time.monotonic()
        assert why_none_answers([Address("127.0.0.1", port) for port in (silent, other, serves)], 2.0) == []
        assert time.monotonic() - began_s < ANSWER_TIMEOUT_S
        reasons = why_none_answers([Address("127.0.0.1", port) for port in (silent, other)], 2.0)
    assert [reason.partition(":")[0] for reason in reasons] == ["127.0.0.1", "127.0.0.1"]
    assert "has said nothing" in reasons[0] and "HTTP" in reasons[1]


def test_where_the_nodes_hang_a_lost_quorum_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "quorumlog_cli.connecting.connect._lost", lambda _target: ("the quorum is lost", "start the others")
    )
    with server(b"", True) as port:
        assert main(["topic", "list", "-b", f"127.0.0.1:{port}"]) == Exit.UNHEALTHY
    said = capsys.readouterr().err
    assert "the quorum is lost" in said and "has said nothing" in said and "start the others" in said
