"""The `range` assignor: members share each topic in contiguous ranges. Members at the same place of two topics with
equal numbers of partitions get equal indexes, which joins rely on. What was assigned before plays no part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quorumlog.ids import Uuid
from quorumlog.slices import Sliced
from quorumlog_broker.coordinator.groups.consumer.assignor import SLICE, Assignment, Subject


def assign_range(members: Sequence[Subject], partitions: Mapping[Uuid, int]) -> Sliced[Assignment]:
    """Of P partitions of a topic each of its M subscribers gets P div M, the first P mod M one more.

    Members are taken by their instance ids, those without one behind them, by their ids.
    """
    ordered = sorted(members, key=lambda one: (one.instance_id is None, one.instance_id or "", one.member_id))
    found: Assignment = {one.member_id: {} for one in ordered}
    done = 0
    for topic_id, count in partitions.items():
        subscribers = [one.member_id for one in ordered if topic_id in one.topics]
        if not subscribers:
            continue
        quota, more = divmod(count, len(subscribers))
        begin = 0
        for place, member_id in enumerate(subscribers):
            end = begin + quota + (place < more)
            if end > begin:
                found[member_id][topic_id] = list(range(begin, end))
            begin = end
        done += len(ordered) + count
        if done >= SLICE:
            done = 0
            yield
    return found
