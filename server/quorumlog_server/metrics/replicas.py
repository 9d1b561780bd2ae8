"""Replicas of this node, and what this broker leads."""

from __future__ import annotations

from typing import Final

from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.series import Kind, Series
from quorumlog_server.process.offline import offline_replicas

UNREADABLE = Series("unreadable_replicas", Kind.GAUGE, "", (), "How many replicas cannot be read from their log?")
LEADERS = Series(
    "leaders",
    Kind.GAUGE,
    "",
    (),
    "How many partitions does this broker lead?",
    "kafka.server:type=ReplicaManager,name=LeaderCount",
)
SET_ASIDE = Series(
    "logs_set_aside_total", Kind.COUNTER, "", (), "How many logs began past where they parted from the leader's?"
)
LATE_TRANSACTIONS = Series(
    "late_transactions",
    Kind.GAUGE,
    "",
    (),
    "In how many partitions led here does a transaction hang?",
    "kafka.server:type=ReplicaManager,name=PartitionsWithLateTransactionsCount",
)
FENCED = Series("fenced", Kind.GAUGE, "", (), "Does the controller fence this broker?")
EPOCH = Series("broker_epoch", Kind.GAUGE, "", (), "Which registration of this broker counts?")

SERIES: Final = (UNREADABLE, LEADERS, SET_ASIDE, LATE_TRANSACTIONS, FENCED, EPOCH)


def collect(source: Source, out: Reading) -> None:
    broker = source.node.broker
    out.add(UNREADABLE, len(offline_replicas(source.node)))
    if broker is None:
        return
    plane = broker.data_plane
    out.add(LEADERS, sum(one.core.is_leader for one in out.each(plane.registry.replicas.values())))
    out.add(SET_ASIDE, plane.follower.logs_set_aside)
    timeouts = broker.transactions.open_timeouts
    found = timeouts.long_open(out.each(plane.registry.replicas.values()))
    out.add(LATE_TRANSACTIONS, out.on_loop(lambda: timeouts.late_of(found)))
    out.add(FENCED, broker.lifecycle.fenced)
    out.add(EPOCH, broker.lifecycle.broker_epoch)
