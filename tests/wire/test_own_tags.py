"""Our fields in Kafka's messages: clients of ours have them, others send and see nothing of them (KIP-482)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from lane import request_bytes, serving

from quorumlog.messages.cluster import MetadataRequest, MetadataResponse
from quorumlog.messages.fetch import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from quorumlog.rpc.transport import Context
from quorumlog.wire.protocol.apis import BY_REQUEST

FIRST_WITH_TAGS = {MetadataRequest: 9, ListOffsetsRequest: 6}
TAG = bytes([0xEC, 0xE2, 0x01])  # 0x716C as an unsigned varint


def asked(topic_id: bytes) -> ListOffsetsRequest:
    part = ListOffsetsPartition(index=3, timestamp_ms=-1)
    return ListOffsetsRequest(topics=(ListOffsetsTopic(name="t", topic_id=topic_id, partitions=(part,)),))


class Echo:
    def __init__(self) -> None:
        self.requests: list[Any] = []

    async def __call__(self, context: Context, request: Any) -> Any:
        self.requests.append(request)
        if isinstance(request, MetadataRequest):
            return MetadataResponse(cluster_id="c1", metadata_offset=1_234_567_890_123)
        return ListOffsetsResponse()


def test_our_client_hears_how_far_metadata_reach_and_names_topics_by_id() -> None:
    asyncio.run(_our_client())


async def _our_client() -> None:
    echo = Echo()
    async with serving(echo) as served:
        connection = served.transport.connect(served.address, internal=False)
        answer = await connection.call(MetadataRequest(all_topics=True, wants_metadata_offset=True), 5_000)
        assert answer.metadata_offset == 1_234_567_890_123
        assert (await connection.call(MetadataRequest(all_topics=True), 5_000)).metadata_offset == -1
        for topic_id in (b"i" * 16, b""):
            await connection.call(asked(topic_id), 5_000)
            assert echo.requests[-1].topics[0].topic_id == topic_id
        await connection.close()
    assert not served.crashes


@pytest.mark.parametrize("kind", FIRST_WITH_TAGS)
def test_others_see_nothing_of_it_in_any_version(kind: type) -> None:
    """A request without our field is Kafka's to the byte, and so is its answer."""
    asyncio.run(_others(kind))


async def _others(kind: type) -> None:
    api = BY_REQUEST[kind]
    request: Any = MetadataRequest(all_topics=True) if kind is MetadataRequest else asked(b"")
    async with serving(Echo()) as served:
        wire = await served.socket()
        for version in range(api.oldest, api.newest + 1):
            sent = request_bytes(request, version=version)
            assert TAG not in sent
            wire.send(sent)
            assert TAG not in await wire.frame()
        wire.close()


@pytest.mark.parametrize("kind", FIRST_WITH_TAGS)
def test_versions_without_tags_do_not_have_it(kind: type) -> None:
    request: Any = asked(b"i" * 16)
    if kind is MetadataRequest:
        request = MetadataRequest(all_topics=True, wants_metadata_offset=True)
    api = BY_REQUEST[kind]
    for version in range(api.oldest, api.newest + 1):
        assert (TAG in request_bytes(request, version=version)) == (version >= FIRST_WITH_TAGS[kind])
