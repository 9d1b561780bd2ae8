"""Readers of the ledger, and of the offsets that transactions commit."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from jepsen.checkers.transactional.events import NO_OFFSET, NOT_IN_ONE, OffsetShown, Poll
from jepsen.transactions.calls import GROUP, WAIT_S, Calls
from jepsen.transactions.reading import read
from jepsen.transactions.recorder import Recorder
from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import (
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
    OffsetFetchTopics,
)
from quorumlog.rpc.transport import RpcError

LEDGER, PIPE = "ledger", "pipe"  # the topic, and the group that takes from it
LEDGER_CONFIGS = {"retention.ms": "-1"}  # clocks jump, and the records' times are of a clock that does not
BACK_MAX = 5_000  # a reader goes back by so much at most: in a long run it would never come to the end otherwise
MakeCalls = Callable[[str], Calls]


async def follow(name: str, partition: int, recorder: Recorder, calls_of: MakeCalls, rng: random.Random) -> None:
    """Read one partition from its start and go on, now and then from an earlier place, until the recorder stops."""
    position = 0
    while not recorder.stopping:
        calls = calls_of(name)
        if rng.random() < 0.5:
            position = rng.randint(max(0, position - BACK_MAX), position)
        try:
            for _ in range(rng.randint(5, 40)):
                found = await read(calls, LEDGER, partition, position)
                if found is None:
                    break
                if found.next > position:
                    _note(recorder, partition, position, found.next, found.offsets, found.values)
                    position = found.next
                await asyncio.sleep(rng.uniform(0, 0.2))
        finally:
            await calls.close()
        await asyncio.sleep(WAIT_S)


async def follow_offsets(name: str, unit: int, recorder: Recorder, calls_of: MakeCalls, rng: random.Random) -> None:
    """Look at the stable offset of a unit again and again, as one who takes part in none of its transactions."""
    while not recorder.stopping:
        calls = calls_of(name)
        try:
            for _ in range(rng.randint(5, 40)):
                await fetch_offset(calls, recorder, unit)
                await asyncio.sleep(rng.expovariate(1 / 0.15))
        finally:
            await calls.close()


async def read_everything(calls: Calls, recorder: Recorder, partitions: int, units: int) -> None:
    """The final reads: every partition up to its end, once no transaction is open there; and every unit's offset."""
    for partition in range(partitions):
        position = 0
        while True:
            found = await read(calls, LEDGER, partition, position)
            recorder.waiting_for = f"partition {partition} at {position}: {found and found[3:]} (stable, committed)"
            if found is None:
                await asyncio.sleep(WAIT_S)
                continue
            if found.next > position:
                _note(recorder, partition, position, found.next, found.offsets, found.values, final=True)
                position = found.next
            elif position == found.stable == found.high_watermark:
                break
            else:
                await asyncio.sleep(WAIT_S)
    for unit in range(units):
        recorder.waiting_for = f"the offset of unit {unit}"
        while True:
            if await fetch_offset(calls, recorder, unit, final=True) is not None:
                break


def _note(
    recorder: Recorder, partition: int, start: int, end: int, offsets: list[int], values: list[int], *,
    final: bool = False,
) -> None:  # fmt: skip
    recorder.poll(Poll(partition, start, end, offsets, values, recorder.now_ns(), final=final))


async def read_some(
    calls: Calls, recorder: Recorder, rng: random.Random, partition: int, *, transaction: int = NOT_IN_ONE
) -> None:
    """A read of a transaction, from somewhere near the end that is known."""
    known = recorder.ends.get(partition, 0)
    start = rng.randint(max(known - 40, 0), known)
    found = await read(calls, LEDGER, partition, start, wait_ms=0)
    if found is not None:
        poll = Poll(partition, start, found.next, found.offsets, found.values, recorder.now_ns(), transaction)
        recorder.poll(poll)


async def fetch_offset(calls: Calls, recorder: Recorder, unit: int, *, final: bool = False) -> int | None:
    """The stable offset of a unit, NO_OFFSET if there is none; None without an answer."""
    topics = OffsetFetchTopics(topics=(OffsetFetchTopic(name=LEDGER, partitions=(unit,)),))
    request = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id=PIPE, topics=topics),), require_stable=True)
    invoked_ns = recorder.now_ns()
    try:
        response: OffsetFetchResponse = await calls.to_coordinator(GROUP, PIPE, request)
    except RpcError:
        await asyncio.sleep(WAIT_S)
        return None
    if response.error_code != ErrorCode.NONE:  # of the whole call: then it names no group
        calls.forget_coordinator(GROUP, PIPE)
        await asyncio.sleep(WAIT_S)
        return None
    (group,) = response.groups
    codes = [group.error_code, *(one.error_code for topic in group.topics for one in topic.partitions)]
    if any(code != ErrorCode.NONE for code in codes):
        if codes[0] != ErrorCode.NONE:
            calls.forget_coordinator(GROUP, PIPE)
        await asyncio.sleep(WAIT_S)
        return None
    ((found,),) = (topic.partitions for topic in group.topics)
    offset = found.committed_offset if found.committed_offset >= 0 else NO_OFFSET
    recorder.shown(OffsetShown(unit, offset, invoked_ns, recorder.now_ns(), final))
    return offset
