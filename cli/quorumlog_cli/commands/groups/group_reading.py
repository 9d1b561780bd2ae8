"""What the verbs of `quorumlog group` read of a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from quorumlog_cli.commands.groups.group_view import OffsetRow, offset_rows, partitions_of
from quorumlog_cli.terminal.errors import CliError, Exit

if TYPE_CHECKING:
    from quorumlog.client.administration.groups import GroupDescription
    from quorumlog.client.blocking import Cluster
    from quorumlog.ids import TopicPartition

NO_NAMES = "name a group, or give --all-groups"
NO_GROUP = "group {} does not exist"
GROUPS_HINT = "quorumlog group list shows those that do"
DEAD = "Dead"  # the state of a group that does not exist


def chosen_groups(cluster: Cluster, names: list[str] | None, all_groups: bool) -> list[str]:
    """Raises CliError unless exactly one of the two is given."""
    if bool(names) is all_groups:
        raise CliError(Exit.USAGE, "name groups or give --all-groups, not both" if names else NO_NAMES)
    return list(names or ()) or [group.group_id for group in cluster.admin.list_groups()]


def described(cluster: Cluster, group_id: str) -> GroupDescription:
    """Raises CliError(NOT_FOUND)."""
    found = cluster.admin.describe_group(group_id)
    if found.group.group_state == DEAD:
        raise CliError(Exit.NOT_FOUND, NO_GROUP.format(repr(group_id)), GROUPS_HINT)
    return found


def read_offsets(cluster: Cluster, description: GroupDescription, isolation_level: str) -> list[OffsetRow]:
    """isolation_level: with read_committed, the end is the last stable offset."""
    committed = cluster.admin.group_offsets(description.group.group_id)
    keys = partitions_of(description, committed)
    rows = offset_rows(description, committed, ends_of(cluster, keys, isolation_level))
    return _with_records(cluster, rows, isolation_level)


def _with_records(cluster: Cluster, rows: list[OffsetRow], isolation_level: str) -> list[OffsetRow]:
    """As they are where the cluster does not count records."""
    from quorumlog.client.errors import NoProtocol

    wanted = {(row.topic, row.partition): row.current_offset for row in rows if row.lag is not None}
    asked = {key: offset for key, offset in wanted.items() if offset is not None}
    try:
        found = cluster.admin.count_records(asked, isolation_level=isolation_level) if asked else {}
    except NoProtocol:
        return rows
    told = []
    for row in rows:
        one = found.get((row.topic, row.partition))
        if one is not None:
            behind_ms = one.age_ms if one.first_timestamp_ms >= 0 or not one.records else None
            row = row._replace(records=one.records, behind_ms=behind_ms, is_estimate=one.is_estimate)
        told.append(row)
    return told


def existing(cluster: Cluster, keys: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Those partitions that have not been deleted."""
    wanted = list(keys)
    counts = {topic.name: len(topic.partitions) for topic in cluster.admin.list_topics()} if wanted else {}
    return [key for key in wanted if key[1] < counts.get(key[0], 0)]


def ends_of(
    cluster: Cluster, keys: Iterable[TopicPartition], isolation_level: str = "read_uncommitted"
) -> dict[TopicPartition, int]:
    from quorumlog.client.offsets import LATEST

    wanted = dict.fromkeys(existing(cluster, keys), LATEST)
    found = cluster.admin.list_offsets(wanted, isolation_level=isolation_level) if wanted else {}
    return {key: one.offset for key, one in found.items()}
