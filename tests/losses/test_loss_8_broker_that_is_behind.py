"""Loss 8: a broker that is behind moves a reader.

A topic is deleted and made again while its former leader is cut off from the cluster, but not from clients. That broker
still names the former topic, leads it, and answers for it. A client that knows the new topic must neither read nor
write there, whichever broker it asks for metadata, and one that begins there is told of the new topic by name. Nor is
it moved where the topic is the same, and that broker was its leader in an older epoch.
"""

from __future__ import annotations

from typing import Any

import pytest

from quorumlog.client.consumer import AsyncConsumer
from quorumlog.client.errors import QuorumlogError
from quorumlog.client.producer import AsyncProducer
from tests.losses.cluster_world import NotPrepared, World, world

FORMER, LEADER, OTHER = 13, 11, 12
BEHIND = "b3"
TOPIC = "t"
OLD, NEW = [f"old-{number}" for number in range(35)], [f"new-{number}" for number in range(81)]


def make_anew_while_it_is_cut_off(w: World) -> None:
    for host in w.cluster.machines:
        if host != BEHIND:
            w.cluster.network.cut_both(BEHIND, host)
    w.prepare(lambda: w.partition(TOPIC).leader != FORMER, "another broker leads")
    w.delete(TOPIC)
    w.create(TOPIC, [LEADER, OTHER])
    w.produce(TOPIC, NEW)


async def ask_the_one_that_is_behind(client: Any) -> None:
    """As if it were its turn to be asked. Raises NotPrepared if it is not behind."""
    link = client._link
    link._next = next(i for i, address in enumerate(link._candidates()) if address.host == BEHIND) + link._next
    former = await link.metadata([TOPIC])
    if former.topics[0].topic_id == link.cache.topics[TOPIC].topic_id:
        raise NotPrepared(f"{BEHIND} knows the new topic")
    link.cache.update(former)


async def begin_with_the_one_that_is_behind(client: Any, count: int) -> None:
    """So many of its first questions about topics go there. Raises NotPrepared if it is not behind."""
    link, left = client._link, [count]
    ask = link.metadata
    link._next = next(i for i, address in enumerate(link._candidates()) if address.host == BEHIND) + link._next
    former = await ask([TOPIC])
    if former.topics[0].partitions[0].leader_id != FORMER:
        raise NotPrepared(f"{BEHIND} knows the new leader")

    async def metadata(*what: Any, **how: Any) -> Any:
        left[0] -= 1
        return former if left[0] >= 0 else await ask(*what, **how)

    link.metadata = metadata


async def take(consumer: AsyncConsumer, count: int) -> list[str]:
    """Values, in their order. An error ends them, and is the last one."""
    found: list[str] = []
    for _ in range(60):
        try:
            found += [(record.value or b"").decode() for record in await consumer.poll(timeout_ms=500)]
        except QuorumlogError as error:
            return [*found, f"{type(error).__name__}: {error}"]
        if len(found) >= count:
            break
    return found


@pytest.mark.parametrize("reset", ["earliest", "latest", "none"])
def test_a_reader_is_not_moved(reset: str) -> None:
    with world() as w:
        w.create(TOPIC, [FORMER, LEADER, OTHER])
        w.produce(TOPIC, OLD)
        make_anew_while_it_is_cut_off(w)
        consumer = AsyncConsumer(**w._options(), auto_offset_reset=reset)

        async def begin() -> list[str]:
            await consumer.assign([(TOPIC, 0, 0)])
            return await take(consumer, len(NEW))

        async def hear_of_the_former_topic() -> list[str]:
            await ask_the_one_that_is_behind(consumer)
            return await take(consumer, 1)

        read = [*w.do(begin()), *w.do(hear_of_the_former_topic())]
        w.produce(TOPIC, ["last"])
        read += w.do(take(consumer, 1))
        w.do(consumer.close())
    assert read == [*NEW, "last"]


@pytest.mark.parametrize("reset", ["earliest", "latest", "none"])
def test_a_member_is_not_moved_back_by_a_former_leader(reset: str) -> None:
    """The topic is the same. Its former leader is cut off, and its log ends before what the group has committed."""
    with world() as w:
        w.create(TOPIC, [FORMER, LEADER, OTHER])
        w.produce(TOPIC, OLD)
        for host in w.cluster.machines:
            if host != BEHIND:
                w.cluster.network.cut_both(BEHIND, host)
        w.prepare(lambda: w.partition(TOPIC).leader != FORMER, "another broker leads")
        w.produce(TOPIC, NEW)
        first = AsyncConsumer(**w._options(), group="g", auto_offset_reset="earliest")
        second = AsyncConsumer(**w._options(), group="g", auto_offset_reset=reset)

        async def read_and_commit() -> list[str]:
            await first.subscribe([TOPIC])
            read = await take(first, len(OLD) + len(NEW))
            await first.close()
            return read

        async def go_on() -> list[str]:
            await begin_with_the_one_that_is_behind(second, 6)
            await second.subscribe([TOPIC])
            return await take(second, 1)

        read = [*w.do(read_and_commit()), *w.do(go_on())]
        w.produce(TOPIC, ["last"])
        read += w.do(take(second, 1))
        w.do(second.close())
    assert read == [*OLD, *NEW, "last"]


def test_a_reader_of_the_former_topic_is_told_by_name() -> None:
    with world() as w:
        w.create(TOPIC, [FORMER, LEADER, OTHER])
        w.produce(TOPIC, OLD)
        consumer = AsyncConsumer(**w._options())

        async def begin() -> list[str]:
            await consumer.assign([(TOPIC, 0, 0)])
            return await take(consumer, len(OLD))

        async def go_on() -> tuple[list[str], list[str]]:
            return await take(consumer, 1), await take(consumer, len(NEW))

        read = w.do(begin())
        make_anew_while_it_is_cut_off(w)
        w.cluster.network.heal_all()
        told, read_then = w.do(go_on())
        w.do(consumer.close())
    assert read == OLD and read_then == NEW
    assert len(told) == 1 and told[0].startswith(f"TopicReplaced: topic '{TOPIC}' was deleted and made again")


def test_a_producer_does_not_write_to_the_former_topic() -> None:
    with world() as w:
        w.create(TOPIC, [FORMER, LEADER, OTHER])
        w.produce(TOPIC, OLD)
        make_anew_while_it_is_cut_off(w)
        producer = AsyncProducer(**w._options(), acks="1")

        async def write() -> list[int]:
            first = await (await producer.send(TOPIC, "before", partition=0))
            await ask_the_one_that_is_behind(producer)
            return [first.offset, (await (await producer.send(TOPIC, "after", partition=0))).offset]

        offsets = w.do(write())
        w.do(producer.close())
        found = w.read(TOPIC)
    assert offsets == [len(NEW), len(NEW) + 1]
    assert [found.get(offset) for offset in offsets] == ["before", "after"]
