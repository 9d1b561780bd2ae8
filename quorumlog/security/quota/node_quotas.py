"""The quotas in force at one node, and what clients have used of them: for its wires, broker and controller."""

from __future__ import annotations

from quorumlog.security.quota.clients import ClientUse
from quorumlog.security.quota.mutations import MutationUse
from quorumlog.security.quota.rate import Rate
from quorumlog.security.quota.resolution import QuotaIndex


class NodeQuotas:
    """index: those of the newest metadata, which the node keeps up to date (`quotas_in_force.py`). exempt_time: of
    requests that have no quota, while some client has one (in percent of the loop)."""

    def __init__(self) -> None:
        self.index = QuotaIndex()
        self.clients = ClientUse(lambda: self.index)
        self.exempt_time = Rate()
        self.mutations = MutationUse(lambda: self.index)
