"""The calls that only nodes of this cluster make, at internal listeners. No rule lets a client make one."""

from __future__ import annotations

from quorumlog.messages.services import METHODS

INTERNAL_SERVICES = frozenset({"quorumlog.v1.Quorum", "quorumlog.v1.Controller"})
NODES_ONLY: frozenset[type] = frozenset(one.request for one in METHODS if one.service in INTERNAL_SERVICES)
