"""Asking a node how it is, over its admin port."""

from __future__ import annotations

import http.client
from dataclasses import dataclass

from quorumlog.testing.ports import HOST

TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True)
class Readiness:
    """ready: unfenced and caught up. reason: why not, in the node's words or ours."""

    ready: bool
    reason: str


def ask_ready(admin_port: int) -> Readiness:
    """What /readyz says; a node that does not answer is not ready."""
    connection = http.client.HTTPConnection(HOST, admin_port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException) as error:
        return Readiness(False, f"no answer from port {admin_port}: {error}")
    finally:
        connection.close()
    return Readiness(answer.status == http.client.OK, text)
