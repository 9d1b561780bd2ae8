"""The quotas in force at one node, and what clients have used of them: for its wires, broker and controller."""

from __future__ import annotations

from quorumlog.security.quota.clients import ClientUse
from quorumlog.security.quota.mutations import MutationUse
from quorumlog.security.quota.resolution import QuotaIndex


class NodeQuotas:
    """index: those of the newest metadata, which the node keeps up to date (`quotas_in_force.py`)."""

    def __init__(self) -> None:
        self.index = QuotaIndex()
        self.clients = ClientUse(lambda: self.index)
        self.mutations = MutationUse(lambda: self.index)
