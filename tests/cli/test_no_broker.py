"""A server that is no broker is told as such, whatever it says or does not say."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quorumlog_cli.errors import Exit
from quorumlog_cli.main import main

HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
SERVERS = [
    ("http", HTTP, False, "an HTTP response"),
    ("ssh", b"SSH-2.0-OpenSSH_9.2\r\n", True, "SSH"),
    ("tls", bytes.fromhex("15030300020246"), False, "a TLS alert"),
    ("hangs up", b"", False, "the peer closed the connection"),
    ("says nothing", b"", True, "accepts connections, and has said nothing for"),
]


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


@pytest.mark.parametrize(("says", "stays", "want"), [row[1:] for row in SERVERS], ids=[row[0] for row in SERVERS])
def test_a_server_that_is_no_broker_is_told_as_such(
    says: bytes,
    stays: bool,
    want: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with server(says, stays) as port:
        assert (
            main(["topic", "list", "-b", f"127.0.0.1:{port}", "-X", "default.api.timeout.ms=2500"]) == Exit.UNREACHABLE
        )
    said = capsys.readouterr().err
    assert f"127.0.0.1:{port}" in said and want in said and "is it a broker?" in said
