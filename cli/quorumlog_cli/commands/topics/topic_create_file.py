"""`quorumlog topic create -f FILE`: all topics of a file, each checked by the controller before the first is made.

What exists already is never changed: the table says how it differs from the file.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from quorumlog.errors import ErrorCode
from quorumlog.ids import format_uuid
from quorumlog_cli.commands.topics.topic_file import DEFAULT, WantedTopic, wanted_topics
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit

if TYPE_CHECKING:
    from quorumlog.client.admin import NewTopic
    from quorumlog.client.blocking import Cluster
    from quorumlog.messages.cluster import CreateTopicResult

SET_ON_TOPIC = 1  # Kafka's number for a config that is set on the topic
_MOST_SHOWN = 20  # problems


class Row(NamedTuple):
    """done: created, would create, exists, or exists and differs."""

    topic: str
    done: str
    topic_id: str | None
    partitions: int
    replication_factor: int
    differences: tuple[str, ...] = ()


def create_from_file(cluster: Cluster, wanted: Sequence[WantedTopic], *, if_not_exists: bool, dry_run: bool) -> None:
    """Raises CliError: PRECONDITION if one is refused, of all that are refused, and then none was made; PARTIAL if the
    cluster refuses one only when it is made, since something has changed meanwhile."""
    new = {one.name: _new(one) for one in wanted}
    checked = {one.name: one for one in cluster.admin.create_topics(new.values(), validate_only=True)}
    existing = {name for name, one in checked.items() if one.error_code == ErrorCode.TOPIC_ALREADY_EXISTS}
    refused = [one for one in checked.values() if one.error_code and not (if_not_exists and one.name in existing)]
    if refused:
        _refuse(refused, len(wanted))
    rows = {one.name: _existing(cluster, one) for one in wanted if one.name in existing}
    to_make = [new[one.name] for one in wanted if one.name not in existing]
    results = [checked[one.name] for one in to_make] if dry_run or not to_make else cluster.admin.create_topics(to_make)
    failed = [one for one in results if one.error_code]
    made = [one for one in results if not one.error_code]
    rows.update((one.name, _made(one, dry_run)) for one in made)
    _show([rows[one.name] for one in wanted if one.name in rows])
    if failed:
        _complain(failed)
        raise CliError(Exit.PARTIAL, f"{len(made)} of {output.counted(len(to_make), 'topic')} were created")


def read_file(file: str) -> list[WantedTopic]:
    """file: -: standard input. Raises CliError."""
    if file == "-":
        return wanted_topics(sys.stdin.read(), "standard input")
    try:
        text = Path(file).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CliError(Exit.NOT_FOUND, f"there is no file {file}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(Exit.DATA_INVALID, f"{file} cannot be read: {error}") from error
    return wanted_topics(text, file)


def _new(one: WantedTopic) -> NewTopic:
    from quorumlog.client.admin import NewTopic

    return NewTopic(
        name=one.name,
        partitions=one.partitions,
        replication=one.replication,
        configs=one.configs,
        assignment=one.assignment,
    )


def _refuse(refused: Sequence[CreateTopicResult], count: int) -> None:
    _complain(refused)
    only_there = all(one.error_code == ErrorCode.TOPIC_ALREADY_EXISTS for one in refused)
    raise CliError(
        Exit.PRECONDITION,
        f"{len(refused)} of {output.counted(count, 'topic')} cannot be created; nothing was changed",
        "--if-not-exists leaves out those that exist already" if only_there else "",
    )


def _complain(refused: Sequence[CreateTopicResult]) -> None:
    for one in refused[:_MOST_SHOWN]:
        output.complain(f"topic {one.name!r}: {one.error_message or ErrorCode(one.error_code).name}")
    if len(refused) > _MOST_SHOWN:
        output.complain(f"and {len(refused) - _MOST_SHOWN} more")


def _made(result: CreateTopicResult, dry_run: bool) -> Row:
    topic_id = format_uuid(result.topic_id) if result.topic_id and not dry_run else None
    done = "would create" if dry_run else "created"
    return Row(result.name, done, topic_id, result.num_partitions, result.replication_factor)


def _existing(cluster: Cluster, wanted: WantedTopic) -> Row:
    found = cluster.admin.describe_topic(wanted.name)
    configs = {
        one.name: one.value for one in cluster.admin.describe_configs(wanted.name).configs if one.source == SET_ON_TOPIC
    }
    replicas = [list(one.replicas) for one in found.partitions]
    most = max(map(len, replicas), default=0)
    differences = tuple(differs(wanted, replicas, configs))
    done = "exists, differs" if differences else "exists"
    return Row(wanted.name, done, format_uuid(found.topic_id), len(replicas), most, differences)


def differs(wanted: WantedTopic, replicas: Sequence[Sequence[int]], configs: Mapping[str, str | None]) -> list[str]:
    """What a topic has otherwise than the file says, a text for each. The cluster's defaults differ from nothing.

    replicas: of each partition, by its number. configs: that are set on the topic.
    """
    count, most = len(replicas), max(map(len, replicas), default=0)
    found = []
    if wanted.assignment is not None:
        if [sorted(one) for one in wanted.assignment] != [sorted(one) for one in replicas]:
            found.append("other brokers")
    else:
        if wanted.partitions not in (DEFAULT, count):
            found.append(f"{output.counted(count, 'partition')}, not {wanted.partitions}")
        if wanted.replication not in (DEFAULT, most):
            found.append(f"{output.counted(most, 'replica')}, not {wanted.replication}")
    for name, value in wanted.configs.items():
        if configs.get(name) != value:
            found.append(f"{name}={configs[name]}, not {value}" if name in configs else f"{name} is not set")
    return found


def _show(rows: Sequence[Row]) -> None:
    documents: list[dict[str, Any]] = [
        {**row._asdict(), "created": row.done == "created", "differences": list(row.differences)} for row in rows
    ]
    for one in documents:
        del one["done"]
    output.show(
        ("TOPIC", "PARTITIONS", "REPLICAS", "DONE", "DIFFERS BY"),
        [[row.topic, row.partitions, row.replication_factor, row.done, "; ".join(row.differences)] for row in rows],
        documents,
    )
