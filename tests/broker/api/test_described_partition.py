"""Which replicas clients are told are offline: those of brokers that are not alive, and of directories that are not."""

from __future__ import annotations

import pytest

from quorumlog.ids import Uuid
from quorumlog.messages.cluster import PartitionMetadata
from quorumlog_broker.api.described_partition import described
from quorumlog_quorum.metadata.registration import LOST, UNASSIGNED, BrokerRegistration, PartitionRegistration

ONLINE, OFFLINE = b"a" * 16, b"b" * 16


def broker(node_id: int, *online: Uuid) -> BrokerRegistration:
    return BrokerRegistration(
        broker_id=node_id, incarnation_id=bytes(16), broker_epoch=1, endpoints=(), rack=None, fenced=False,
        in_controlled_shutdown=False, log_directories=online,
    )  # fmt: skip


CASES = [
    ("online", ONLINE, (ONLINE,), ()),
    ("a directory that failed", OFFLINE, (ONLINE,), (2,)),
    ("one of which it is not known which", LOST, (ONLINE,), (2,)),
    ("not reported yet", UNASSIGNED, (ONLINE,), ()),
    ("of a broker that named none", OFFLINE, (), ()),
]


@pytest.mark.parametrize(("directory", "online", "offline"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_replica_of_an_offline_directory_is_offline(
    directory: Uuid, online: tuple[Uuid, ...], offline: tuple[int, ...]
) -> None:
    partition = PartitionRegistration(
        replicas=(1, 2, 3), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0,
        directories=(ONLINE, directory, ONLINE),
    )  # fmt: skip
    live = {1: broker(1, ONLINE), 2: broker(2, *online), 3: broker(3, ONLINE)}
    assert described(PartitionMetadata, 0, partition, live).offline_replicas == offline
    assert described(PartitionMetadata, 0, partition, {1: live[1]}).offline_replicas == (2, 3)
