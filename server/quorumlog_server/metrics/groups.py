"""Groups and transactions that this broker coordinates."""

from __future__ import annotations

from typing import Final

from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.series import Kind, Series

JOINT = Series("joint_groups", Kind.GAUGE, "", (), "How many writers of batches (Spark) are coordinated here?")
JOINT_OPEN = Series(
    "joint_open_transactions", Kind.GAUGE, "", (), "How many of their transactions are open and not decided?"
)

SERIES: Final = (JOINT, JOINT_OPEN)


def collect(source: Source, out: Reading) -> None:
    broker = source.node.broker
    if broker is None:
        return
    counts = [one.joint_counts for one in out.each(broker.transactions.coordinators.all)]
    out.add(JOINT, sum(one[0] for one in counts))
    out.add(JOINT_OPEN, sum(one[1] for one in counts))
