"""The readiness of a local node, by the answers of its admin port."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from quorumlog.testing.probe import Readiness, ask_ready

NODE = {"node_id": 1, "pid": 77, "leader_id": 2, "leader_epoch": 5}
CASES = [
    ("ready", 200, "ready", json.dumps(NODE), Readiness(True, "ready", 2, 5)),
    ("names no leader", 200, "ready", '{"pid": 77}', Readiness(True, "ready", -1, -1)),
    ("not ready", 503, "fenced", json.dumps(NODE), Readiness(False, "fenced")),
    ("another process", 200, "ready", '{"pid": 78}', Readiness(False, "belongs to another process (78)")),
    ("not a node", 200, "ready", "<html>", Readiness(False, "belongs to another process (None)")),
    ("no object", 200, "ready", "[]", Readiness(False, "belongs to another process (None)")),
]


@contextmanager
def admin_port(status: int, ready: str, node: str) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, text = (status, ready) if self.path == "/readyz" else (200, node)
            self.send_response(code)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            """Silent."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(("status", "ready", "node", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_readiness(status: int, ready: str, node: str, want: Readiness) -> None:
    with admin_port(status, ready, node) as port:
        found = ask_ready(port, 77)
    assert (found.ready, found.leader_id, found.leader_epoch) == (want.ready, want.leader_id, want.leader_epoch)
    assert want.reason in found.reason


def test_an_unused_port_is_not_ready() -> None:
    with admin_port(200, "ready", "{}") as port:
        pass
    assert not ask_ready(port, 77).ready
