"""Asks a node for its state over its admin port.

Another cluster may use the same port. So a node counts as ready only if the answer comes from the process that was
started for it. A port that speaks TLS (`metrics.security.protocol=SSL`) is asked so, and its certificate is not looked
at: it is on this machine, it is shown no secret, and it says which process it is.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quorumlog.ids import NO_EPOCH, NO_NODE, Epoch, NodeId
from quorumlog.testing.ports import HOST

TIMEOUT_S = 1.0
METRICS_TIMEOUT_S = 10.0  # the first scrape of a node loads the library for it
_TLS_ALERT = "\x15\x03"  # how the answer to a request in clear begins


@dataclass(frozen=True, slots=True)
class Readiness:
    """ready: unfenced and caught up. reason: why not, in the node's words or ours.

    leader_id, leader_epoch: the quorum's, as a ready node knows them; -1: unknown.
    """

    ready: bool
    reason: str
    leader_id: NodeId = NO_NODE
    leader_epoch: Epoch = NO_EPOCH


def ask_ready(admin_port: int, pid: int) -> Readiness:
    """The node's /readyz. A node that does not answer, or is another process than `pid`, is not ready."""
    try:
        status, text = _get(admin_port, "/readyz")
        if status != http.client.OK:
            return Readiness(False, text)
        node = _parse(_get(admin_port, "/node")[1])
    except (OSError, http.client.HTTPException) as error:
        return Readiness(False, f"no answer from port {admin_port}: {error}")
    if node.get("pid") != pid:
        return Readiness(False, f"port {admin_port} belongs to another process ({node.get('pid')})")
    return Readiness(True, text, node.get("leader_id", NO_NODE), node.get("leader_epoch", NO_EPOCH))


KINDS = ("recovery", "offline", "problems", "opening", "index_checks")  # see `quorumlog_server.process.health.who`


def ask_findings(admin_port: int, pid: int) -> dict[str, list[str]]:
    """What this process tells of its disks, by KINDS, a text for each finding; empty lists where it does not answer."""
    try:
        node = _parse(_get(admin_port, "/node")[1])
    except (OSError, http.client.HTTPException):
        node = {}
    found = {kind: node.get(kind) for kind in KINDS if node.get("pid") == pid}
    return {kind: list(map(str, texts)) if isinstance(texts := found.get(kind), list) else [] for kind in KINDS}


def ask_cut_links(admin_port: int, pid: int) -> list[str] | None:
    """The addresses that this process cannot reach. None: it does not answer, or its links cannot be cut."""
    try:
        node = _parse(_get(admin_port, "/node")[1])
    except (OSError, http.client.HTTPException):
        return None
    found = node.get("cut_links")
    return [str(text) for text in found] if node.get("pid") == pid and isinstance(found, list) else None


def ask_metric(admin_port: int, name: str) -> float:
    """The value, now, of a metric without labels, by its whole name. Raises OSError, HTTPException, KeyError."""
    _, page = _get(admin_port, "/metrics/now", METRICS_TIMEOUT_S)
    values = dict(line.rsplit(" ", 1) for line in page.splitlines() if line and not line.startswith("#"))
    return float(values[name])


def ask_page(admin_port: int, path: str) -> str:
    """The text of a page that the node serves. Raises OSError, HTTPException; PermissionError where it says no."""
    status, text = _get(admin_port, path, METRICS_TIMEOUT_S)
    if status != http.client.OK:
        raise PermissionError(f"{path} answers {status}: {text[:200]}")
    return text


def _get(port: int, path: str, timeout_s: float = TIMEOUT_S) -> tuple[int, str]:
    try:
        return _ask(lambda: http.client.HTTPConnection(HOST, port, timeout=timeout_s), path)
    except http.client.BadStatusLine as error:
        if not str(error).startswith(_TLS_ALERT):
            raise
    import ssl

    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    return _ask(lambda: http.client.HTTPSConnection(HOST, port, timeout=timeout_s, context=tls), path)


def _ask(connect: Callable[[], http.client.HTTPConnection], path: str) -> tuple[int, str]:
    connection = connect()
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace").strip()
    finally:
        connection.close()


def _parse(text: str) -> dict[str, Any]:
    """Empty if the text is not a node's answer."""
    try:
        content = json.loads(text)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
