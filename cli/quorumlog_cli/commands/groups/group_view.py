"""Rows that `quorumlog group` shows, in the columns of Kafka's kafka-consumer-groups. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from quorumlog.client.group.assigned import assigned, named
from quorumlog.client.group.protocol import Partitions
from quorumlog.messages.groups import (
    DescribedConsumerGroup,
    DescribedConsumerMember,
    DescribedMember,
)
from quorumlog.watch.words import duration

if TYPE_CHECKING:
    from quorumlog.client.administration.groups import GroupDescription
    from quorumlog.client.group.offsets import CommittedOffset
    from quorumlog.ids import TopicPartition
    from quorumlog.messages.cluster import ClusterBroker

CONSUMER_MEMBER = 1  # a member_type
OFFSET_COLUMNS = (
    "GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID",
)  # fmt: skip
LEADER_EPOCH_COLUMN = "LEADER-EPOCH"  # with --verbose, behind PARTITION
RECORD_COLUMNS = ("RECORDS", "BEHIND")  # with --records, behind LAG
INSTANCE_COLUMN = "GROUP-INSTANCE-ID"  # behind CONSUMER-ID, if a member has one
MEMBER_COLUMNS = ("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS")
EPOCH_COLUMNS = ("CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT")  # with --verbose
UPGRADED_COLUMN = "UPGRADED"  # with --verbose, while a group has members of both protocols
STATE_COLUMNS = ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
GROUP_EPOCH_COLUMNS = ("GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH")  # with --verbose, before #MEMBERS


class OffsetRow(NamedTuple):
    """None: there is none. current_offset: committed. lag: offsets from there to the end, never below 0, as Kafka's.

    leader_epoch: of the last record before the committed offset, if the member that committed it knew. records: that
    are to be read, at most so many where is_estimate; behind_ms: the age of the first of them. Both are None where the
    cluster cannot tell.
    """

    group: str
    topic: str
    partition: int
    current_offset: int | None
    log_end_offset: int | None
    lag: int | None
    consumer_id: str | None
    host: str | None
    client_id: str | None
    leader_epoch: int | None = None
    records: int | None = None
    behind_ms: int | None = None
    is_estimate: bool = False


class MemberRow(NamedTuple):
    """assignment: what it owns. The fields from current_epoch on are of the consumer protocol; None: there is none.

    upgraded: whether the member itself speaks the consumer protocol, in a group of it.
    """

    group: str
    consumer_id: str
    host: str
    client_id: str
    partitions: int
    assignment: Partitions
    instance_id: str | None
    current_epoch: int | None = None
    target_epoch: int | None = None
    target_assignment: Partitions | None = None
    upgraded: bool | None = None


class StateRow(NamedTuple):
    """coordinator: a broker's id. address: its own, HOST:PORT; None: it is not in the cluster any more. The epochs are
    of the consumer protocol; None: there is none."""

    group: str
    coordinator: int
    address: str | None
    assignment_strategy: str | None
    state: str
    members: int
    group_epoch: int | None
    target_assignment_epoch: int | None


def state_row(description: GroupDescription, addresses: Mapping[int, str]) -> StateRow:
    """addresses: of the brokers, by id."""
    group = description.group
    return StateRow(
        group.group_id,
        description.coordinator,
        addresses.get(description.coordinator),
        strategy_of(description),
        group.group_state,
        len(group.members),
        *epochs_of(description),
    )


def address_of(broker: ClusterBroker) -> str:
    """HOST:PORT of its first client listener, which speaks Kafka's protocol unless its operator chose otherwise."""
    first = broker.endpoints[0] if broker.endpoints else broker
    return f"{first.host}:{first.port}"


def strategy_of(description: GroupDescription) -> str | None:
    group = description.group
    return (group.assignor_name if isinstance(group, DescribedConsumerGroup) else group.protocol_data) or None


def epochs_of(description: GroupDescription) -> tuple[int, int] | tuple[None, None]:
    """Of the group, and of its target assignment; only the consumer protocol has them."""
    group = description.group
    return (group.group_epoch, group.assignment_epoch) if isinstance(group, DescribedConsumerGroup) else (None, None)


def assignment_of(description: GroupDescription, member: DescribedMember | DescribedConsumerMember) -> Partitions:
    """Empty for a group of another kind, whose bytes only its members understand."""
    return assigned(description.group, member) or {}


def partitions_of(description: GroupDescription, committed: Iterable[TopicPartition]) -> list[TopicPartition]:
    """What the group has committed or reads now, in order."""
    found = set(committed)
    for member in description.group.members:
        for topic, indexes in assignment_of(description, member).items():
            found.update((topic, index) for index in indexes)
    return sorted(found)


def offset_rows(
    description: GroupDescription,
    committed: Mapping[TopicPartition, CommittedOffset],
    ends: Mapping[TopicPartition, int],
) -> list[OffsetRow]:
    """ends: the log end of each partition that still exists."""
    readers = {
        (topic, index): member
        for member in description.group.members
        for topic, indexes in assignment_of(description, member).items()
        for index in indexes
    }
    rows = []
    for key in partitions_of(description, committed):
        at = committed[key].offset if key in committed else None
        end, member = ends.get(key), readers.get(key)
        rows.append(
            OffsetRow(
                description.group.group_id,
                *key,
                at,
                end,
                None if at is None or end is None else max(0, end - at),
                None if member is None else member.member_id,
                None if member is None else member.client_host,
                None if member is None else member.client_id,
                committed[key].leader_epoch if key in committed and committed[key].leader_epoch >= 0 else None,
            )
        )
    return rows


def member_rows(description: GroupDescription) -> list[MemberRow]:
    rows = []
    for member in description.group.members:
        assignment = assignment_of(description, member)
        count = sum(map(len, assignment.values()))
        rows.append(
            MemberRow(
                description.group.group_id,
                member.member_id,
                member.client_host,
                member.client_id,
                count,
                assignment,
                member.group_instance_id,
                *_epochs(description, member),
            )
        )
    return sorted(rows, key=lambda row: row.consumer_id)


def _epochs(
    description: GroupDescription, member: DescribedMember | DescribedConsumerMember
) -> tuple[int, int | None, Partitions, bool | None] | tuple[()]:
    if not isinstance(member, DescribedConsumerMember):
        return ()
    upgraded = None if member.member_type < 0 else member.member_type == CONSUMER_MEMBER
    return member.member_epoch, epochs_of(description)[1], named(member.target_assignment), upgraded


class Table(NamedTuple):
    columns: tuple[str, ...]
    rows: list[list[Any]]


def offset_table(rows: Iterable[OffsetRow], *, verbose: bool, records: bool = False) -> Table:
    """records: with the columns that Kafka's tool has not."""
    columns = (
        *OFFSET_COLUMNS[:3],
        *((LEADER_EPOCH_COLUMN,) if verbose else ()),
        *OFFSET_COLUMNS[3:6],
        *(RECORD_COLUMNS if records else ()),
        *OFFSET_COLUMNS[6:],
    )
    cells = [
        [
            *row[:3],
            *([row.leader_epoch] if verbose else []),
            *row[3:6],
            *(_records(row) if records else ()),
            *row[6 : len(OFFSET_COLUMNS)],
        ]
        for row in rows
    ]
    return Table(columns, [dashes(row) for row in cells])


def _records(row: OffsetRow) -> tuple[int | str | None, str | None]:
    """In the order of RECORD_COLUMNS."""
    records = f"≤{row.records}" if row.is_estimate else row.records
    return records, None if row.behind_ms is None else duration(row.behind_ms)


def member_table(members: Sequence[MemberRow], *, verbose: bool) -> Table:
    """Of all groups. As Kafka's tool, with the columns of instance ids and protocols only where they tell something."""
    instances = any(row.instance_id for row in members)
    mixed = verbose and {True, False} <= {row.upgraded for row in members}
    rows = [
        dashes(
            [
                *row[:2],
                *([row.instance_id] if instances else []),
                *row[2:5],
                *(epoch_columns(row) if verbose else []),
                *([None if row.upgraded is None else str(row.upgraded).lower()] if mixed else []),
            ]
        )
        for row in members
    ]
    columns = (
        *MEMBER_COLUMNS[:2],
        *([INSTANCE_COLUMN] if instances else []),
        *MEMBER_COLUMNS[2:],
        *(EPOCH_COLUMNS if verbose else ()),
        *([UPGRADED_COLUMN] if mixed else []),
    )
    return Table(columns, rows)


def state_table(states: Iterable[StateRow], *, verbose: bool) -> Table:
    rows = []
    for one in states:
        epochs = [one.group_epoch, one.target_assignment_epoch] if verbose else []
        where = f"{one.address or '-'} ({one.coordinator})"
        rows.append(dashes([one.group, where, one.assignment_strategy, one.state, *epochs, one.members]))
    columns = (*STATE_COLUMNS[:4], *(GROUP_EPOCH_COLUMNS if verbose else ()), STATE_COLUMNS[4])
    return Table(columns, rows)


def epoch_columns(row: MemberRow) -> list[Any]:
    """In the order of EPOCH_COLUMNS."""
    target = None if row.target_assignment is None else assignment_text(row.target_assignment)
    return [row.current_epoch, assignment_text(row.assignment), row.target_epoch, target]


def assignment_text(assignment: Partitions) -> str:
    """orders:0,1;users:3; a dash for nothing."""
    parts = [f"{topic}:{','.join(map(str, sorted(indexes)))}" for topic, indexes in sorted(assignment.items())]
    return ";".join(parts) or "-"


def dashes(row: Sequence[Any]) -> list[Any]:
    """Kafka's tools print a dash for what there is not."""
    return ["-" if value is None or value == "" else value for value in row]
