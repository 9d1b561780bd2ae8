"""AllocateProducerIds: blocks never overlap, whichever broker asks and whichever controller answers."""

from __future__ import annotations

import pytest
from controller_world import World, cluster

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.controller import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from quorumlog.messages.metadata_records import ProducerIdsRecord
from quorumlog_quorum.controller.requests.producer_ids import MAX_PRODUCER_ID
from tests.rules import rule


def allocate(world: World, broker_id: int, broker_epoch: int | None = None) -> AllocateProducerIdsResponse:
    epoch = world.tip.brokers[broker_id].broker_epoch if broker_epoch is None else broker_epoch
    response = world.ask(AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch))
    assert isinstance(response, AllocateProducerIdsResponse)
    return response


@rule("kraft 7.14")
def test_blocks_follow_each_other() -> None:
    world = cluster(1, 2)
    blocks = [allocate(world, broker_id) for broker_id in (1, 2, 1)]
    assert [(block.first_producer_id, block.count) for block in blocks] == [(0, 1000), (1000, 1000), (2000, 1000)]
    assert world.tip.next_producer_id == 3000


@rule("kraft 7.14")
def test_the_next_controller_goes_on_behind_the_committed_blocks() -> None:
    world = cluster(1)
    allocate(world, 1)
    world.new_controller()
    assert allocate(world, 1).first_producer_id == 1000


@pytest.mark.parametrize(
    ("broker_id", "epoch", "want"),
    [(1, 99, ErrorCode.STALE_BROKER_EPOCH), (9, 0, ErrorCode.BROKER_ID_NOT_REGISTERED)],
    ids=["stale epoch", "unknown broker"],
)
def test_refused(broker_id: int, epoch: int, want: ErrorCode) -> None:
    world = cluster(1)
    with pytest.raises(ApiError) as refused:
        allocate(world, broker_id, epoch)
    assert refused.value.code is want and world.tip.next_producer_id == 0


def test_the_last_block() -> None:
    world = cluster(1)
    world.log.append(ProducerIdsRecord(broker_id=1, broker_epoch=0, next_producer_id=MAX_PRODUCER_ID - 999))
    delta_world(world)
    with pytest.raises(ApiError, match="used up"):
        allocate(world, 1)


def delta_world(world: World) -> None:
    """Take the log's last record into the state, as a claim of the next controller would."""
    from quorumlog_quorum.metadata.delta import Delta

    delta = Delta(world.tip)
    delta.replay(world.log[-1])
    world.core.tip = world.driver.replayed = delta.apply(len(world.log), 1)
