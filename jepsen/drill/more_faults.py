"""Twenty faults beside the eight, of which a seed draws one: what else an operator meets.

Where no alert is right, `no_alert` says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from jepsen.drill.faults import (
    AWAY,
    BIG,
    BULK,
    EIGHT,
    HELD_GROUPS,
    OF_DIRECTORY,
    READY_S,
    Fault,
    Place,
    Step,
    Struck,
    certificate,
    feed,
    killed,
    lost,
    make_bulk,
)
from jepsen.drill.sights import Expected
from jepsen.live.disks.edge_control import NEARLY
from jepsen.live.plan import Blow
from quorumlog.client.administration.quotas import QuotaChange
from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import QuorumlogError
from quorumlog.client.offsets import LATEST
from quorumlog.rpc.transport import RpcError
from quorumlog.testing.waiting import wait_until

STALL_S = 2.0  # shorter than a session
ALONE, STRICT = "alone", "strict"


def _nearly_full(place: Place) -> Struck:
    node = place.victim
    expected = Expected(
        causes=("directory.nearly-full",),
        subject=f"directory/{place.cluster.extra(node)}",
        alerts=("QuorumlogDirectoryNearlyFull",),
    )
    return Struck(expected, place.cluster.order(node, NEARLY))


def _offline(blow: Blow) -> Callable[[Place], Struck]:
    def put(place: Place) -> Struck:
        node = place.victim
        end = place.cluster.order(node, blow.name)

        def lift() -> None:
            end()
            place.cluster.restart(node, READY_S)

        expected = Expected(
            causes=("directory.offline",),
            subject=f"directory/{place.cluster.extra(node)}",
            alerts=("QuorumlogDirectoryOffline",),
            consequences=OF_DIRECTORY | AWAY,
        )
        return Struck(expected, lift)

    return put


def _dead_controller(place: Place) -> Struck:
    node = place.cluster.controller
    return lost(node, killed(place, node))


def _paused(place: Place) -> Struck:
    node = place.victim
    place.cluster.pause(node)
    struck = lost(node, lambda: place.cluster.resume(node))
    besides = struck.expected.consequences | {"node.stalled"}  # it was held up, and says so afterwards
    return replace(struck, expected=replace(struck.expected, consequences=besides))


def _cut_off(place: Place) -> Struck:
    node = place.victim
    place.cluster.partition(node)
    return lost(node, place.cluster.heal)


def _no_majority(place: Place) -> Struck:
    nodes = place.cluster.others
    for node in nodes:
        place.cluster.kill(node)

    def lift() -> None:
        place.cluster.nodes.start(nodes)
        place.cluster.nodes.wait_ready(nodes, READY_S)

    expected = Expected(
        causes=("quorum.no-leader", "quorum.no-majority"),
        subject="quorum",
        no_alert="QuorumlogNoController waits 30 s on purpose, so that an election is no alert",
        consequences=AWAY | HELD_GROUPS | {"quorum.epochs-churn", "quorum.no-leader", "quorum.no-majority"},
    )
    return Struck(expected, lift)


def _stalled(place: Place) -> Struck:
    """For less than a session."""
    node = place.victim
    place.cluster.pause(node)
    time.sleep(STALL_S)
    place.cluster.resume(node)
    expected = Expected(
        causes=("node.stalled",), subject=f"broker/{node}", alerts=("QuorumlogLoopStall",), consequences=AWAY
    )
    return Struck(expected, lambda: None)


def _make_alone(place: Place) -> None:
    node = place.victim
    place.admin.create_topic(ALONE, assignment=[[node]], exist_ok=True)


def _no_leader(place: Place) -> Struck:
    lift = killed(place, place.admin.describe_topic(ALONE).partitions[0].leader_id)
    expected = Expected(
        causes=("leader.all-replicas-dead",),
        subject=f"partition/{ALONE}-0",
        alerts=("QuorumlogOfflinePartitions",),
        consequences=AWAY,
    )
    return Struck(expected, lift)


def _make_strict(place: Place) -> None:
    place.admin.create_topic(STRICT, 3, 3, {"min.insync.replicas": "3"}, exist_ok=True)


def _below_minimum(place: Place) -> Struck:
    lift = killed(place, place.victim)
    expected = Expected(
        causes=("isr.below-minimum",),
        subject=f"partition/{STRICT}-",
        alerts=("QuorumlogBrokerLost",),
        consequences=AWAY,
    )
    return Struck(expected, lift)


def _empty_group(place: Place) -> Struck:
    from quorumlog.client.group.offsets import CommittedOffset

    end = feed(place, BULK)
    wait_until(lambda: place.admin.list_offsets({(BULK, 0): LATEST})[BULK, 0].offset, 30, "records to be behind")
    place.admin.alter_group_offsets("nobody", {(BULK, 0): CommittedOffset(0)})

    def lift() -> None:
        end()
        place.admin.delete_group("nobody")

    expected = Expected(
        causes=("group.no-members",), subject="group/nobody", calm=True, no_alert="a notice: nothing is to be done"
    )
    return Struck(expected, lift)


def _throttled(place: Place) -> Struck:
    entity = {"client-id": "noisy"}
    place.admin.alter_client_quotas([QuotaChange(entity, {"producer_byte_rate": 20_000.0})])

    def send(_client: Cluster, is_over: Callable[[], bool], note: Step) -> None:
        with place.cluster.connect(client_id="noisy") as own, own.producer() as producer:
            while not is_over():
                for _ in range(50):
                    producer.send(BULK, BIG, partition=0)
                producer.flush(60)
                note()

    end = place.load.work("noisy", send)

    def lift() -> None:
        end()
        place.admin.alter_client_quotas([QuotaChange(entity, {"producer_byte_rate": None})])

    expected = Expected(
        causes=("quota.throttles",), subject="client/", calm=True, no_alert="a notice: the quota does what it is for"
    )
    return Struck(expected, lift)


def _failing_logins(place: Place) -> Struck:
    def fail(_client: Cluster, is_over: Callable[[], bool], _note: Step) -> None:
        while not is_over():
            try:
                with place.cluster.connect(sasl_password="wrong", default_api_timeout_ms=2_000) as stranger:
                    stranger.admin.describe_cluster()
            except (QuorumlogError, RpcError, TimeoutError):
                pass

    ends = [place.load.work(f"stranger {number}", fail) for number in range(12)]

    def lift() -> None:
        for end in ends:
            end()

    expected = Expected(
        causes=("logins.fail",),
        subject="",
        alerts=("QuorumlogLoginsFail",),
    )
    return Struck(expected, lift)


def _cordoned(place: Place) -> Struck:
    from quorumlog.client.admin import BROKER_RESOURCE

    node = str(place.victim)
    place.admin.alter_configs(node, {"cordoned.log.dirs": "*"}, resource_type=BROKER_RESOURCE)
    expected = Expected(
        causes=("broker.cordoned",), subject=f"broker/{node}", calm=True, no_alert="a notice: an operator did it"
    )
    return Struck(
        expected, lambda: place.admin.alter_configs(node, {"cordoned.log.dirs": None}, resource_type=BROKER_RESOURCE)
    )


MORE = (
    Fault("paused-node", "a node is stopped by SIGSTOP", _paused),
    Fault("cut-off-node", "a node reaches no other, and clients reach it", _cut_off),
    Fault("dead-controller", "the active controller is killed", _dead_controller),
    Fault("lost-quorum", "two of three nodes are killed", _no_majority),
    Fault("stalled-node", "a node stands still for two seconds", _stalled),
    Fault("failing-disk", "a disk fails each call", _offline(Blow.FAIL)),
    Fault("hung-disk", "a disk does not answer", _offline(Blow.HANG)),
    Fault("nearly-full-disk", "a tenth of a disk is left", _nearly_full),
    Fault("offline-partition", "the only replica's node is killed", _no_leader, _make_alone),
    Fault("below-minimum", "a partition needs three replicas in sync and has two", _below_minimum, _make_strict),
    Fault("group-without-members", "a group is behind, and nobody reads for it", _empty_group, make_bulk),
    Fault("throttled-client", "a client uses more than its quota", _throttled, make_bulk),
    Fault("failing-logins", "many logins fail", _failing_logins),
    Fault("cordoned-broker", "a broker's directories are cordoned", _cordoned),
    Fault(
        "expiring-certificate",
        "a node's certificate ends in five days",
        certificate("certificate.expires", "QuorumlogCertificateExpires", timedelta(days=5), 0.0, frozenset()),
    ),
)
BY_NAME = {one.name: one for one in (*EIGHT, *MORE)}
