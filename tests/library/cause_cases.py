"""For each cause a cluster in which it holds: facts as they would be read. A healthy one beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from quorumlog.explaining.facts import (
    BrokerFact,
    DirectoryFact,
    EndsFact,
    Facts,
    GroupFact,
    GroupSample,
    OpenTransactionFact,
    PartitionFact,
    QuorumFact,
    QuotaFact,
    VoterFact,
)
from quorumlog.messages.events import Event

NOW_MS = 1_800_000_000_000
KEY = ("orders", 0)


def event(kind: str, subject: str, text: str, ago_ms: int = 5_000, node_id: int = 1, offset: int = -1) -> Event:
    record = "" if offset < 0 else "PartitionChangeRecord"
    return Event(
        at_ms=NOW_MS - ago_ms,
        node_id=node_id,
        number=1_000_000_000 - ago_ms,
        kind=kind,
        subject=subject,
        text=text,
        offset=offset,
        record=record,
    )


def partition(index: int = 0, **what: Any) -> PartitionFact:
    base = {"leader": 1, "replicas": (1, 2, 3), "isr": (1, 2, 3), "min_isr": 2}
    return PartitionFact(topic="orders", index=index, **{**base, **what})


def sample(lag: int, ago_ms: int = 0, committed: int = 100) -> GroupSample:
    return GroupSample(at_ms=NOW_MS - ago_ms, committed={KEY: committed}, lag={KEY: lag})


def group(**what: Any) -> GroupFact:
    base = {"members": ("reader (10.0.0.9)",), "samples": (sample(0, 10_000, 90), sample(0))}
    return GroupFact(group_id="billing", **{**base, **what})


def healthy(**what: Any) -> Facts:
    """Three brokers, a topic, a quorum, a group that keeps up."""
    base: dict[str, Any] = {
        "brokers": tuple(BrokerFact(node_id=one) for one in (1, 2, 3)),
        "partitions": tuple(partition(one) for one in range(3)),
        "directories": tuple(
            DirectoryFact(node_id=one, path=f"/data/{one}", total=1_000, usable=500, reserve=50) for one in (1, 2, 3)
        ),
        "quorum": QuorumFact(
            leader=1,
            epoch=3,
            high_watermark=100,
            voters=tuple(VoterFact(node_id=one, end_offset=100, since_fetch_ms=20) for one in (1, 2, 3)),
        ),
        "groups": (group(),),
        "events": (event("quorum.leader", "quorum", "leader 1 in epoch 3", 600_000),),
        "ends": EndsFact(seconds=1.0, moved={("orders", one): 1_000 for one in range(3)}),
    }
    events = (*base["events"], *what.pop("more_events", ()))
    return Facts(at_ms=NOW_MS, **{**base, "events": tuple(sorted(events, key=lambda one: one.at_ms)), **what})


def brokers(*fenced: int, **third: Any) -> tuple[BrokerFact, ...]:
    found = tuple(BrokerFact(node_id=one, fenced=one in fenced) for one in (1, 2, 3))
    return (*found[:2], replace(found[2], **third)) if third else found


FENCED = event("broker.fenced", "broker/3", "fenced: it leads nothing and is in no ISR", 4_000, offset=71)
LEAVING = event("broker.leaving", "broker/3", "in controlled shutdown", 4_500, offset=70)
REGISTERED = event("broker.registered", "broker/3", "registered", 5_000, offset=69)
SHRUNK = event("partition.isr", "partition/orders-0", "ISR [1,2,3] -> [1,2]", 4_000, offset=68)
OFFLINE = DirectoryFact(node_id=3, path="/data/3", error="EIO at a sync")
LOST = {"brokers": brokers(3), "more_events": (FENCED, SHRUNK)}


def without_leader(replicas: tuple[int, ...] = (2, 3), **what: Any) -> tuple[PartitionFact, ...]:
    return (partition(leader=-1, isr=(), replicas=replicas, **what), partition(1))


def transaction(**what: Any) -> OpenTransactionFact:
    base = {"producer_id": 7, "last_ms": NOW_MS - 60_000, "start_offset": 40, "stable": 40, "high_watermark": 90}
    return OpenTransactionFact(topic="orders", index=0, **{**base, **what})


def directory(**what: Any) -> tuple[DirectoryFact, ...]:
    return (DirectoryFact(node_id=3, path="/data/3", total=1_000, reserve=50, **what),)


def quorum(*voters: VoterFact, leader: int = 1) -> QuorumFact:
    return QuorumFact(leader=leader, epoch=3, high_watermark=100, voters=voters)


def voters(*silent: int, ends: int = 100) -> tuple[VoterFact, ...]:
    return tuple(
        VoterFact(node_id=one, end_offset=ends if one == 3 else 100, since_fetch_ms=9_000 if one in silent else 20)
        for one in (1, 2, 3)
    )


def rebalances(count: int, every_ms: int = 5_000) -> list[Event]:
    """The newest now."""
    texts = [f"generation {9 - number} with 2 members" for number in range(count)]
    return [event("group.rebalance", "group/billing", text, number * every_ms) for number, text in enumerate(texts)]


CASES: dict[str, Callable[[], Facts]] = {
    "cluster.unreachable": lambda: Facts(at_ms=NOW_MS, unreachable="connection refused"),
    "quorum.no-leader": lambda: healthy(quorum=None, unknown={"quorum": "TimeoutError: no leader"}),
    "quorum.no-majority": lambda: healthy(quorum=quorum(*voters(2, 3))),
    "quorum.voter-silent": lambda: healthy(quorum=quorum(*voters(3))),
    "quorum.voter-lagging": lambda: healthy(
        quorum=quorum(VoterFact(node_id=1, end_offset=9_000, since_fetch_ms=0), *voters()[1:])
    ),
    "quorum.epochs-churn": lambda: healthy(
        more_events=[event("quorum.leader", "quorum", f"leader 1 in epoch {n}", 1_000 * n) for n in range(4, 9)]
    ),
    "broker.starting": lambda: healthy(brokers=brokers(3), more_events=(REGISTERED,)),
    "broker.shut-down": lambda: healthy(brokers=brokers(3), more_events=(REGISTERED, LEAVING, FENCED)),
    "broker.lost": lambda: healthy(brokers=brokers(3), more_events=(REGISTERED, FENCED)),
    "broker.fenced": lambda: healthy(brokers=brokers(3), events=(), has_events=False),
    "broker.leaving": lambda: healthy(brokers=brokers(leaving=True), more_events=(LEAVING,)),
    "broker.silent": lambda: healthy(brokers=brokers(silent="no answer in 3000 ms")),
    "broker.cordoned": lambda: healthy(brokers=brokers(cordoned=True)),
    "node.stalled": lambda: healthy(more_events=[event("loop.stall", "node/3", "held up for 2500 ms", node_id=3)]),
    "directory.offline": lambda: healthy(directories=(OFFLINE,)),
    "directory.full": lambda: healthy(directories=directory(usable=20)),
    "directory.nearly-full": lambda: healthy(directories=directory(usable=100)),
    "directory.damaged": lambda: healthy(
        more_events=[event("directory.damaged", "directory//data/3", "orders-0 at byte 70", node_id=3)]
    ),
    "disk.slow": lambda: healthy(more_events=[event("disk.slow", "directory//data/3", "a sync is open", node_id=3)]),
    "leader.all-replicas-dead": lambda: healthy(
        brokers=brokers(2, 3), partitions=without_leader(elr=(3,)), more_events=(FENCED,)
    ),
    "leader.eligible-replicas-dead": lambda: healthy(
        brokers=brokers(3), partitions=without_leader(elr=(3,)), more_events=(FENCED,)
    ),
    "leader.directory-offline": lambda: healthy(
        partitions=without_leader(elr=(3,)),
        directories=(OFFLINE,),
        more_events=[event("directory.offline", "directory//data/3", "EIO", node_id=3)],
    ),
    "leader.unclean-needed": lambda: healthy(
        brokers=brokers(3), partitions=without_leader(last_known_elr=(3,)), more_events=(FENCED,)
    ),
    "leader.unclean-election": lambda: healthy(
        more_events=[event("partition.unclean", "partition/orders-0", "broker 2 was elected", 60_000, offset=5)]
    ),
    "isr.below-minimum": lambda: healthy(partitions=(partition(isr=(1,)),)),
    "replica.broker-away": lambda: healthy(partitions=(partition(isr=(1, 2)),), **LOST),
    "replica.directory-offline": lambda: healthy(partitions=(partition(isr=(1, 2)),), directories=(OFFLINE,)),
    "replica.slow-disk": lambda: healthy(
        partitions=(partition(isr=(1, 2)),),
        more_events=[SHRUNK, event("disk.slow", "directory//data/3", "a sync is open", node_id=3)],
    ),
    "replica.throttled": lambda: healthy(partitions=(partition(isr=(1, 2), removing=(1,), throttled=True),)),
    "replica.lagging": lambda: healthy(
        partitions=(partition(isr=(1, 2), lags={3: 5_000}),), more_events=[replace_ago(SHRUNK, 60_000)]
    ),
    "reassignment.running": lambda: healthy(partitions=(partition(replicas=(1, 2, 3, 4), isr=(1, 2, 3), adding=(4,)),)),
    "reassignment.cannot-end": lambda: healthy(
        brokers=brokers(3), partitions=(partition(replicas=(1, 2, 3), isr=(1, 2), adding=(3,)),), more_events=(FENCED,)
    ),
    "group.coordinator-loading": lambda: healthy(groups=(group(coordinator_error="COORDINATOR_LOAD_IN_PROGRESS"),)),
    "group.no-coordinator": lambda: healthy(groups=(group(coordinator_error="NOT_COORDINATOR: none"),)),
    "group.member-does-not-rejoin": lambda: healthy(
        groups=(group(state="PreparingRebalance"),),
        more_events=[event("group.rebalance", "group/billing", "a rebalance began", 40_000)],
    ),
    "group.rebalancing": lambda: healthy(
        groups=(group(state="PreparingRebalance"),),
        more_events=[event("group.rebalance", "group/billing", "a rebalance began", 2_000)],
    ),
    "group.rebalances-often": lambda: healthy(more_events=rebalances(6)),
    "group.commits-nothing": lambda: healthy(groups=(group(samples=(sample(50, 10_000), sample(80))),)),
    "group.lag-grows": lambda: healthy(groups=(group(samples=(sample(20_000, 10_000, 90), sample(30_000))),)),
    "group.lag": lambda: healthy(groups=(group(samples=(sample(30_000, 10_000, 90), sample(20_000))),)),
    "group.no-members": lambda: healthy(groups=(group(members=(), state="Empty", samples=(sample(9),)),)),
    "transaction.hanging": lambda: healthy(transactions=(transaction(),)),
    "transaction.late": lambda: healthy(
        transactions=(transaction(name="app-1", known=True, started_ms=NOW_MS - 900_000, timeout_ms=60_000),)
    ),
    "partition.hot": lambda: healthy(
        ends=EndsFact(
            seconds=11.0,
            moved={("orders", 0): 9_000, ("orders", 1): 10, ("orders", 2): 10},
            grown={("orders", 0): 9_000_000, ("orders", 1): 10_000, ("orders", 2): 10_000},
        )
    ),
    "quota.throttles": lambda: healthy(
        quotas=(QuotaFact(node_id=1, key="producer_byte_rate", who="ada", rate=20.0, quota=10.0, throttled_ms=900),)
    ),
    "certificate.expired": lambda: healthy(more_events=[event("tls.expiry", "listener/CLIENT", "it has expired")]),
    "certificate.expires": lambda: healthy(more_events=[event("tls.expiry", "listener/CLIENT", "expires in 3 days")]),
    "certificate.not-taken": lambda: healthy(
        more_events=[event("tls.trouble", "listener/CLIENT", "the certificates in use stay: the key does not fit")]
    ),
    "logins.fail": lambda: healthy(more_events=[event("login.failed", "listener/CLIENT", "10 logins have failed")]),
}


def replace_ago(one: Event, ago_ms: int) -> Event:
    return event(one.kind, one.subject, one.text, ago_ms, one.node_id, one.offset)
