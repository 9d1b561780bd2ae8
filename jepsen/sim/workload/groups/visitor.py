"""A committer that belongs to no group: its offsets expire when the clock of their coordinator jumps.

Nothing fences it. So after a commit whose outcome is not known it goes on under another name.
"""

from __future__ import annotations

import asyncio

from jepsen.checkers.group_history import Commit
from jepsen.sim.workload.groups.group_calls import ASIDE, UNITS, UNITS_OF, Calls, Gone, fetch
from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic
from quorumlog.rpc.transport import NotDelivered, RpcError

GAP_S = 0.5


async def visit(calls: Calls) -> None:
    """Commit higher and higher offsets, and look at them. Raises Gone when it does not know what it has done."""
    group, rng = calls.group, calls.group.rng
    newest = 0
    while not group.stopping:
        await asyncio.sleep(rng.expovariate(1 / GAP_S))
        unit = rng.randrange(UNITS)
        if rng.random() < 0.3:
            await fetch(calls, (unit,))
        newest += 1
        commit = Commit(unit, newest, -1, group.now_ns())
        group.history.commits.append(commit)
        partitions = (OffsetCommitPartition(index=unit, committed_offset=newest),)
        topics = (OffsetCommitTopic(name=UNITS_OF, partitions=partitions),)
        try:
            response = await calls.once(OffsetCommitRequest(group_id=group.group_id, topics=topics))
        except NotDelivered:
            commit.ended_ns = group.now_ns()
            continue
        except RpcError as error:
            raise Gone from error
        codes = {response.error_code, *(one.error_code for topic in response.topics for one in topic.partitions)}
        if codes & set(ASIDE):
            raise Gone  # it may yet be committed
        commit.ended_ns, commit.acked = group.now_ns(), codes == {ErrorCode.NONE}
        group.count("group commits")
