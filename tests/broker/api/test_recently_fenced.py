"""Metadata still lists a broker that was fenced a moment ago: its address, and nothing that it leads."""

from __future__ import annotations

import asyncio

import pytest
from broker_fakes import FakeContext, Fakes, broker_record, image_of, usual_image

from quorumlog.messages.cluster import MetadataRequest
from quorumlog.messages.metadata_records import UnregisterBrokerRecord
from quorumlog_broker.api.handlers import HANDLERS
from quorumlog_broker.api.recently_fenced import STILL_LISTED_MS, RecentlyFenced
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.frame import MetadataRecord
from quorumlog_quorum.metadata.image import EMPTY, Image


def step(recently_fenced: RecentlyFenced, base: Image, records: list[MetadataRecord], now_ms: int) -> Image:
    delta = Delta(base)
    for record in records:
        delta.replay(record)
    image = delta.apply(base.offset + len(records), 1)
    recently_fenced.on_image(delta, image, now_ms)
    return image


def ids(recently_fenced: RecentlyFenced, image: Image, now_ms: int) -> list[int]:
    return [broker.broker_id for broker in recently_fenced.brokers(image, now_ms)]


FENCED_2 = broker_record(2, fenced=True)
CASES: list[tuple[str, list[MetadataRecord], list[int]]] = [
    ("fenced and nothing more", [], [2]),
    ("fenced again", [FENCED_2], [2]),
    ("back", [broker_record(2)], []),
    ("gone for good", [UnregisterBrokerRecord(broker_id=2, broker_epoch=2)], []),
    ("another one too", [broker_record(1, fenced=True)], [1, 2]),
]


@pytest.mark.parametrize(("after", "listed"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_broker_that_was_unfenced_and_is_fenced_now_is_listed_for_a_while(
    after: list[MetadataRecord], listed: list[int]
) -> None:
    recently_fenced = RecentlyFenced()
    image = step(recently_fenced, usual_image(), [FENCED_2], 1_000)
    assert ids(recently_fenced, image, 1_000) == [2]
    image = step(recently_fenced, image, after, 1_000)
    assert ids(recently_fenced, image, 1_000 + STILL_LISTED_MS - 1) == listed
    assert ids(recently_fenced, image, 1_000 + STILL_LISTED_MS) == []


def test_a_broker_that_was_fenced_in_the_first_image_is_not_listed() -> None:
    recently_fenced = RecentlyFenced()
    image = step(recently_fenced, EMPTY, [broker_record(1), FENCED_2], 0)
    assert ids(recently_fenced, image, 0) == []


def test_metadata_names_its_address_but_no_leader_there() -> None:
    fakes = Fakes()
    services = fakes.services()
    fakes.subscription.image = step(services.recently_fenced, usual_image(), [FENCED_2], fakes.clock.now_ms())

    async def asked() -> tuple[list[int], list[int], tuple[int, ...]]:
        response = await HANDLERS[MetadataRequest](services, FakeContext(), MetadataRequest(all_topics=True))
        partitions = response.topics[0].partitions
        brokers = [broker.node_id for broker in response.brokers]
        return brokers, [part.leader_id for part in partitions], partitions[0].offline_replicas

    assert asyncio.run(asked()) == ([1, 2], [1, -1], (2, 3))
    fakes.clock.time_ms += STILL_LISTED_MS
    assert asyncio.run(asked()) == ([1], [1, -1], (2, 3))
    assert [broker.broker_id for broker in image_of([], usual_image()).sorted_brokers()] == [1, 2, 3]
