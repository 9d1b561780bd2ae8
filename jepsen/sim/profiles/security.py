"""A cluster that knows its clients: production's logins, access rules and quotas, changed all the time.

Over the lane clients log in by SCRAM, and their logins end after some seconds. Over gRPC the network tells who they
are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from jepsen.checkers.findings import Finding
from jepsen.sim.profiles.feature import Feature
from jepsen.sim.users import ROOT
from jepsen.sim.workload.activity import Aside
from jepsen.sim.workload.groups.groups import SETTINGS
from jepsen.sim.workload.security.officer import GIVEN, Officer
from jepsen.sim.workload.security.tenants import Tenants
from jepsen.sim.workload.workload import Workload
from quorumlog.nursery import Nursery
from quorumlog.settings.rights import AUTHORIZER


class _Rights(Aside):
    def __init__(self, clients: Workload) -> None:
        super().__init__(clients, "tenants")
        self._clients = clients
        cluster = clients.cluster
        self._officer = Officer(cluster, clients.rng("officer"), partial(clients.admin, "officer"))
        self._tenants = Tenants(
            clients.rng,
            lambda user: clients.transport(self.loop, user),
            clients.clock,
            lambda: cluster.bootstrap,
            lambda: self._officer.is_ready,
        )

    def start_beside(self, nursery: Nursery) -> None:
        nursery.start(self._officer.run(), "officer")

    async def run(self, nursery: Nursery) -> None:
        await self._tenants.run(nursery)

    def stop(self) -> None:
        self._officer.stopping = self._tenants.stopping = True

    def check(self) -> list[Finding]:
        return self._officer.check()

    def exercised_enough(self, seconds: int) -> bool:
        return self._officer.counts[GIVEN] >= seconds / 4

    @property
    def counts(self) -> Mapping[str, int]:
        return {**self._officer.counts, **self._tenants.counts}


SECURITY = Feature(
    extra="security",
    settings={**SETTINGS, "authorizer.class.name": AUTHORIZER, "super.users": f"User:{ROOT}"},
    secured=True,
    activity=_Rights,
)
