"""The table of faults: how each is put into the cluster, and by what names an operator should hear of it.

`EIGHT` are put one after the other; `more_faults.py` has those of which a seed draws one. `put` returns what is
expected and how it is lifted. It may return the moment at which the fault begins, where it does not begin at once.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from jepsen.drill.load import PARTITIONS, PAYMENTS, Load
from jepsen.drill.sights import Expected
from jepsen.drill.world import DrillCluster
from jepsen.live.disks.edge_control import SLOWLY
from jepsen.live.plan import Blow
from quorumlog.client.blocking import Cluster
from quorumlog.ids import NodeId
from quorumlog.security.tls.issuing.certificates import MAX_LEAF_DAYS
from quorumlog.security.tls.issuing.folder import Folder
from quorumlog.security.tls.issuing.subjects import parse_node
from quorumlog.testing.ports import HOST
from quorumlog.testing.protected import FOLDER
from quorumlog.testing.waiting import wait_until

READY_S = 60.0
BETWEEN_S = 0.2  # two sends of a fault's load, so that it leaves the machine to the others
SILENT_S = 90.0  # within which all is silent again: events count for a minute
Step = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Struck:
    """begins_in_s: after the put, where the fault has to ripen."""

    expected: Expected
    lift: Step
    begins_in_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Place:
    cluster: DrillCluster
    load: Load

    @property
    def admin(self) -> Any:
        return self.cluster.client.admin

    @property
    def victim(self) -> NodeId:
        """The last node that does not lead the quorum."""
        return self.cluster.others[-1]


@dataclass(frozen=True, slots=True)
class Fault:
    """prepare: what has to be there before, as an empty topic; nobody looks for it yet."""

    name: str
    says: str
    put: Callable[[Place], Struck]
    prepare: Callable[[Place], None] = lambda _place: None
    silent_s: float = SILENT_S


# What follows from a broker that is gone or does not do its part.
REPLICAS = frozenset({"replica.broker-away", "replica.lagging", "isr.below-minimum", "broker.silent"})
AWAY = REPLICAS | {
    "broker.lost", "broker.fenced", "broker.starting", "broker.shut-down", "quorum.voter-silent",
    "quorum.voter-lagging", "group.no-coordinator", "group.coordinator-loading", "leader.all-replicas-dead",
}  # fmt: skip
OF_DISK = frozenset({"disk.slow", "replica.slow-disk", "replica.lagging", "isr.below-minimum"})
OF_DIRECTORY = frozenset({"replica.directory-offline", "leader.directory-offline", *OF_DISK})
HELD_GROUPS = frozenset({"group.commits-nothing", "group.lag", "group.lag-grows", "group.member-does-not-rejoin"})


# --- disks


def _full(place: Place) -> Struck:
    """Each write finds no room. The directory goes offline, because followers copy below the reserve, too."""
    node = place.victim
    end = place.cluster.order(node, Blow.FILL.name)

    def lift() -> None:
        end()
        place.cluster.bring_online(node, READY_S)

    expected = Expected(
        causes=("directory.full",),
        subject=f"directory/{place.cluster.extra(node)}",
        alerts=("QuorumlogDirectoryFull",),
        consequences=OF_DIRECTORY | {"directory.offline"},
    )
    return Struck(expected, lift)


def _slow(place: Place) -> Struck:
    node = place.victim
    expected = Expected(
        causes=("disk.slow",),
        subject=f"directory/{place.cluster.extra(node)}",
        alerts=("QuorumlogDiskSlow",),
        consequences=OF_DISK | HELD_GROUPS,
    )
    return Struck(expected, place.cluster.order(node, SLOWLY))


# --- nodes and links


def lost(node: NodeId, lift: Step, **more: Any) -> Struck:
    expected = Expected(
        causes=("broker.lost",), subject=f"broker/{node}", alerts=("QuorumlogBrokerLost",), consequences=AWAY, **more
    )
    return Struck(expected, lift)


def killed(place: Place, node: NodeId) -> Step:
    """What brings it back."""
    place.cluster.kill(node)
    return lambda: place.cluster.restart(node, READY_S)


def _dead(place: Place) -> Struck:
    node = place.victim
    return lost(node, killed(place, node))


def _lagging(place: Place) -> Struck:
    """The link between two brokers is cut; both reach the controller, so nobody fences them."""
    first, second = place.cluster.others
    place.cluster.partition(first, second)
    expected = Expected(
        causes=("replica.lagging",),
        subject="partition/",
        alerts=("QuorumlogFollowerBehind",),
        consequences=frozenset({"isr.below-minimum"}),
    )
    return Struck(expected, place.cluster.heal)


# --- clients, groups, transactions

HOT, SLOW, BULK = "hot", "slow", "bulk"
BIG = b"x" * 1_000
LEFT_S = 15.0  # a transaction of the load lasts for much less


def _make_hot(place: Place) -> None:
    place.admin.create_topic(HOT, 4, 3, exist_ok=True)


def _hot(place: Place) -> Struck:
    def send(client: Cluster, is_over: Callable[[], bool], note: Step) -> None:
        with client.producer() as producer:
            while not is_over():
                for _ in range(100):
                    producer.send(HOT, BIG, partition=1)
                producer.flush(20)
                note()
                time.sleep(BETWEEN_S)

    expected = Expected(causes=("partition.hot",), subject=f"partition/{HOT}-1", alerts=("QuorumlogHotPartition",))
    return Struck(expected, place.load.work("hot", send))


def _make_slow(place: Place) -> None:
    place.admin.create_topic(SLOW, 1, 3, exist_ok=True)


def feed(place: Place, topic: str) -> Step:
    def send(client: Cluster, is_over: Callable[[], bool], note: Step) -> None:
        with client.producer() as producer:
            while not is_over():
                producer.send(topic, b"1", partition=0)
                producer.flush(20)
                note()
                time.sleep(BETWEEN_S)

    return place.load.work(f"feed {topic}", send)


def _stuck(place: Place) -> Struck:
    """A member that goes on heartbeating and commits nothing, as one whose processing hangs in a thread of its own."""
    holding = threading.Event()

    def hold(client: Cluster, is_over: Callable[[], bool], note: Step) -> None:
        with client.consumer(SLOW, group="billing", enable_auto_commit=False) as consumer:
            while not is_over():
                if consumer.poll(timeout_ms=500):
                    if not holding.is_set():
                        consumer.commit()
                        holding.set()
                    note()

    ends = [feed(place, SLOW), place.load.work("hold", hold)]
    holding.wait(30)

    def lift() -> None:
        for end in ends:
            end()
        wait_until(lambda: not place.admin.describe_group("billing").group.members, 30, "the group to be empty")
        place.admin.delete_group("billing")

    expected = Expected(
        causes=("group.commits-nothing",),
        subject="group/billing",
        alerts=("QuorumlogGroupStuck",),
        consequences=frozenset({"group.lag", "group.lag-grows"}),
    )
    return Struck(expected, lift)


def make_bulk(place: Place) -> None:
    place.admin.create_topic(BULK, 1, 3, exist_ok=True)


def _hanging(place: Place) -> Struck:
    """A transaction whose coordinator has lost what it knew, as after a loss of `__transaction_state`. Its record is
    dated back by half an hour: the alert waits, as Kafka's figure does, for the longest time that a transaction may
    last and five minutes, so it fires for what has hung for so long, at once."""
    long_ago_ms = int((time.time() - 1_800) * 1_000)
    client = place.cluster.connect()
    producer = client.producer(transactional_id="drill-lost")
    transaction = producer.transaction()
    transaction.__enter__()
    producer.send(BULK, b"left open", partition=0, timestamp_ms=long_ago_ms).result(30)
    place.admin.delete_topic("__transaction_state")

    def lift() -> None:
        _abort_what_hangs(place)
        client.close()

    expected = Expected(
        causes=("transaction.hanging",),
        subject="transaction/",
        alerts=("QuorumlogTransactionHangs",),
        consequences=frozenset({"group.commits-nothing"}),
    )
    return Struck(expected, lift)


def _abort_what_hangs(place: Place) -> None:
    """That of the load, too, if one was open when the coordinator lost what it knew."""
    keys = [(BULK, 0), *((PAYMENTS, index) for index in range(PARTITIONS))]
    before_ms = (time.time() - LEFT_S) * 1_000
    for key, producers in place.admin.describe_producers(keys).items():
        for one in producers:
            if one.current_transaction_start_offset >= 0 and one.last_timestamp_ms < before_ms:
                place.admin.abort_transaction(key, one.producer_id, one.producer_epoch, one.coordinator_epoch)


# --- certificates


def _issue(place: Place, node: NodeId, ends: datetime) -> None:
    """A certificate that ends then, taken by the node at once."""
    folder = Folder(place.cluster.nodes.layout.root / FOLDER, ends - timedelta(days=MAX_LEAF_DAYS))
    folder.issue([parse_node(f"{node}={HOST}")], MAX_LEAF_DAYS, replace=True)
    process = place.cluster.nodes.process(node)
    assert process is not None
    process.send(signal.SIGHUP)


def certificate(
    cause: str, alert: str, left: timedelta, begins_in_s: float, consequences: frozenset[str]
) -> Callable[[Place], Struck]:
    def put(place: Place) -> Struck:
        node = place.victim
        _issue(place, node, datetime.now(UTC) + left)
        # Who refuses it cannot ask the node which listener it is: its broker is told.
        subjects = ("listener/", f"broker/{node}")
        expected = Expected(causes=(cause,), subject=subjects, alerts=(alert,), consequences=consequences)
        lift = lambda: _issue(place, node, datetime.now(UTC) + timedelta(days=MAX_LEAF_DAYS))  # noqa: E731
        return Struck(expected, lift, begins_in_s)

    return put


EXPIRES_IN_S = 12.0  # an expired one is refused when it is read, so it expires in use

EIGHT = (
    Fault("full-disk", "a disk has no room left", _full),
    Fault("slow-disk", "each call to a disk takes 0.7 s longer", _slow),
    Fault("dead-node", "a node is killed", _dead),
    Fault("lagging-follower", "the link between two brokers is cut", _lagging),
    Fault("hanging-transaction", "a transaction that no coordinator knows", _hanging, make_bulk),
    Fault("hot-partition", "one partition takes all records of its topic", _hot, _make_hot),
    Fault("stuck-group", "a member reads and commits nothing", _stuck, _make_slow),
    Fault(
        "expired-certificate",
        "a node's certificate expires in use",
        certificate(
            "certificate.expired", "QuorumlogCertificateExpired", timedelta(seconds=EXPIRES_IN_S), EXPIRES_IN_S,
            AWAY | {"certificate.expires"},
        ),
    ),
)  # fmt: skip
