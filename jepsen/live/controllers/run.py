"""One run: start three nodes and the clients, strike the active controller again and again, stop, read the logs."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from jepsen.checkers.findings import Finding
from jepsen.live.cluster.away import KILLED, PAUSED, away
from jepsen.live.controllers.changes import Clients, Ledger
from jepsen.live.controllers.evidence import Log, Strike, check_changes, check_logs, check_strikes, read_log
from jepsen.live.evidence.audited import audit_nodes
from quorumlog.client import real_edges as edge
from quorumlog.client.admin import AsyncAdmin
from quorumlog.rpc.transport import Address
from quorumlog.testing.cluster import LocalCluster
from quorumlog.testing.nodes import LocalNodes

KINDS = (KILLED, PAUSED)  # in turn
WRITERS = 3
ENOUGH = 10  # changes acknowledged before each fault and after it, at least
WAIT_S = 30.0
REPORT = "report.json"
Say = Callable[[str], None]


@dataclass(slots=True)
class Outcome:
    strikes: list[Strike] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    acknowledged: int = 0
    unknown: int = 0
    took_s: float = 0.0

    @property
    def valid(self) -> bool:
        return not self.findings

    def as_facts(self, logs: list[Log]) -> dict[str, Any]:
        return {
            "verdict": "VALID" if self.valid else "INVALID",
            "took_s": round(self.took_s, 1),
            "acknowledged": self.acknowledged,
            "unknown": self.unknown,
            "findings": [asdict(finding) for finding in self.findings],
            "strikes": [asdict(strike) for strike in self.strikes],
            "leaders": {log.node: log.leaders for log in logs},
        }


def carry_out(count: int, folder: Path, say: Say) -> Outcome:
    """count: of faults. Writes the report into `folder`. Raises TimedOut, NodeEnded, TimeoutError."""
    began = time.monotonic()
    outcome = Outcome()
    with tempfile.TemporaryDirectory(prefix="quorumlog-controllers-") as root:
        cluster = LocalCluster(Path(root) / "cluster", keep_data=True).start()
        try:
            nodes = cluster.nodes
            places = [(f"node {n.node_id}", n.data / "__cluster_metadata-0") for n in nodes.layout.nodes]
            ledger = asyncio.run(_strike(nodes, count, outcome, say))
        finally:
            cluster.close()
        logs = [read_log(node, place) for node, place in places]
        outcome.findings += audit_nodes([place.parent for _, place in places])[0]
    outcome.acknowledged = ledger.acknowledged
    outcome.unknown = len(ledger.changes) - ledger.acknowledged
    longest = max(logs, key=lambda log: log.end)
    outcome.findings += check_logs(logs)
    outcome.findings += check_changes(longest, ledger.changes)
    outcome.findings += check_strikes(longest, outcome.strikes, ENOUGH)
    outcome.took_s = time.monotonic() - began
    folder.mkdir(parents=True, exist_ok=True)
    (folder / REPORT).write_text(json.dumps(outcome.as_facts(logs), indent=1) + "\n")
    return outcome


async def _strike(nodes: LocalNodes, count: int, outcome: Outcome, say: Say) -> Ledger:
    ledger = Ledger()
    addresses = [Address("127.0.0.1", node.ports.grpc) for node in nodes.layout.nodes]
    clients = Clients(addresses, WRITERS, ledger)
    admin = edge.admin({"bootstrap.servers": nodes.layout.bootstrap_servers}, request_timeout_ms=2_000)
    try:
        await clients.make_topics()
        clients.start()
        since = ledger.acknowledged
        for number in range(count):
            await _acknowledged(ledger, since + ENOUGH)
            strike = await _one(nodes, admin, KINDS[number % len(KINDS)], ledger, since)
            since = ledger.acknowledged - strike.after
            outcome.strikes.append(strike)
            counts = f"{strike.before} changes acknowledged before it, {strike.after} after"
            say(f"{number + 1:>3} {strike.kind} of node {strike.node_id}, epoch {strike.epoch}: {counts}")
    finally:
        await clients.stop()
        await admin.close()
    return ledger


async def _one(nodes: LocalNodes, admin: AsyncAdmin, kind: str, ledger: Ledger, since: int) -> Strike:
    found = await admin.describe_quorum()  # a confirmed read: this node leads now
    strike = Strike(
        kind=kind,
        node_id=found.leader_id,
        epoch=found.leader_epoch,
        at_s=time.time(),
        before=ledger.acknowledged - since,
        after=0,
    )
    async with away(nodes, strike.node_id, kind):
        struck = ledger.acknowledged
        await _acknowledged(ledger, struck + ENOUGH)
    return replace(strike, after=ledger.acknowledged - struck)


async def _acknowledged(ledger: Ledger, count: int) -> None:
    """Wait until so many changes are acknowledged. Raises TimeoutError."""
    async with asyncio.timeout(WAIT_S):
        while ledger.acknowledged < count:  # noqa: ASYNC110  # polled: the clients only note what they see
            await asyncio.sleep(0.01)
