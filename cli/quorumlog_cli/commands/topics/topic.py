"""`quorumlog topic`: create, list, describe, delete. alter, truncate and offsets have files of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog.ids import format_uuid
from quorumlog.topic_name import CONSUMER_OFFSETS, TRANSACTION_STATE, is_internal
from quorumlog_cli.commands.cluster.config_values import keys_and_values
from quorumlog_cli.commands.topics.replica_assignment import AssignmentOption, parse_assignment
from quorumlog_cli.commands.topics.topic_alter import alter
from quorumlog_cli.commands.topics.topic_create_file import create_from_file, read_file
from quorumlog_cli.commands.topics.topic_offsets import offsets
from quorumlog_cli.commands.topics.topic_ranges import ranges_of
from quorumlog_cli.commands.topics.topic_truncate import truncate
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit, exit_code
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.client.blocking import Cluster
    from quorumlog.messages.cluster import CreateTopicResult, PartitionMetadata, TopicMetadata

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Create, list, change and delete topics.")

TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC")]
SET_ON_TOPIC = 1  # Kafka's number for a config that is set on the topic
_HELD = {
    CONSUMER_OFFSETS: "every group, and every offset that one has committed",
    TRANSACTION_STATE: "the state of every transaction, and what fences an old producer",
}


@app.command()
def create(
    topic: Annotated[str | None, typer.Argument(metavar="[TOPIC]")] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "-f", "--file", metavar="FILE", help="Create all topics of a JSON or TOML file instead; -: standard input."
        ),
    ] = None,
    partitions: Annotated[int, typer.Option("--partitions", help="Number of partitions; -1: the default.")] = -1,
    replication: Annotated[
        int, typer.Option("-r", "--replication-factor", help="Replicas of each partition; -1: the default.")
    ] = -1,
    configs: Annotated[
        list[str] | None, typer.Option("-c", "--config", metavar="KEY=VALUE", help="A topic config; may be repeated.")
    ] = None,
    assignment: AssignmentOption = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Succeed if it exists already.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Let the controller check the change, but change nothing.")
    ] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Create a topic, or all topics of a file. Exit code 6 if it exists already.

    A file: {"topics":[{"topic":"orders","partitions":6,"replication_factor":3,"configs":{"retention.ms":86400000}}]},
    or [[topics]] in TOML; "assignment":[[1,2],[2,1]] instead of the two numbers names brokers. It may be what
    topic describe -o json has printed. All topics are checked before the first is created; what exists is not changed.
    """
    output.use(output_format)
    if file is not None:
        if topic or configs or assignment or (partitions, replication) != (-1, -1):
            raise CliError(Exit.USAGE, "--file says all of the topics; leave out TOPIC and what belongs to it")
        wanted = read_file(file)
        with connected(find_target(servers, profile, options)) as cluster:
            create_from_file(cluster, wanted, if_not_exists=if_not_exists, dry_run=dry_run)
        return
    if topic is None:
        raise CliError(Exit.USAGE, "name a topic, or a file of topics by -f FILE")
    values, placed = keys_and_values(configs or ()), parse_assignment(assignment)
    if placed is not None and (partitions, replication) != (-1, -1):
        raise CliError(
            Exit.USAGE, "--replica-assignment says how many partitions and replicas there are; leave out both"
        )
    with connected(find_target(servers, profile, options)) as cluster:
        result = cluster.admin.create_topic(
            topic,
            partitions,
            replication,
            values,
            assignment=placed,
            exist_ok=if_not_exists,
            validate_only=dry_run,
        )
    _show_created(result, dry_run)


def _show_created(result: CreateTopicResult, dry_run: bool) -> None:
    topic, existed = result.name, result.error_code != 0
    if output.is_json():
        output.show_json(
            {
                "topic": topic,
                "topic_id": format_uuid(result.topic_id) if result.topic_id else None,
                "partitions": result.num_partitions,
                "replication_factor": result.replication_factor,
                "created": not existed and not dry_run,
            }
        )
    elif existed:
        output.say(f"topic {topic!r} exists already")
    else:
        verb = "would create" if dry_run else "created"
        output.say(
            f"{verb} topic {topic!r}: {output.counted(result.num_partitions, 'partition')}, "
            f"{output.counted(result.replication_factor, 'replica')} each"
        )


@app.command("list")
def list_topics(
    internal: Annotated[bool, typer.Option("--internal", help="Also list the cluster's own topics.")] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """List topics by name."""
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        topics = [topic for topic in cluster.admin.list_topics() if internal or not topic.is_internal]
    rows = [_summary(topic) for topic in topics]
    output.show(
        ("TOPIC", "PARTITIONS", "REPLICAS", "STATE"),
        [[row["topic"], row["partitions"], row["replication_factor"], row["state"]] for row in rows],
        rows,
    )


@app.command()
def describe(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...")],
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show the partitions (leader, replicas, in-sync set, offsets) and the configs set on the topic.

    Exit code 5: a leader does not answer, and no other can be elected because the quorum is lost.
    """
    output.use(output_format)
    documents: list[dict[str, Any]] = []
    problems: list[str] = []
    hidden: list[str] = []
    with connected(find_target(servers, profile, options)) as cluster:
        for name in topics:
            found = cluster.admin.describe_topic(name)
            configs = _configs_of(cluster, name)
            if configs is None:
                hidden.append(name)
            ranges = ranges_of(cluster.admin, found)
            documents.append(_description(found, configs, ranges.found))
            problems += ranges.problems
    if output.is_json():
        output.show_json(documents if len(documents) > 1 else documents[0])
    else:
        for document in documents:
            _show_description(document)
    for name in hidden:
        output.say(f"hint  the configs of {name} are not shown: nobody has allowed DescribeConfigs on topic:{name}")
    for problem in dict.fromkeys(problems):
        output.say(f"hint  {problem}")
    if problems:
        raise typer.Exit(Exit.UNHEALTHY)


def _configs_of(cluster: Cluster, topic: str) -> dict[str, str | None] | None:
    """What is set on the topic. None: this client may describe the topic, and not its configs."""
    from quorumlog.client.errors import RequestFailed
    from quorumlog.errors import ErrorCode

    try:
        found = cluster.admin.describe_configs(topic).configs
    except RequestFailed as error:
        if error.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
        return None
    return {entry.name: entry.value for entry in found if entry.source == SET_ON_TOPIC}


@app.command()
def delete(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...")],
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Succeed if a topic does not exist.")] = False,
    unsafe: Annotated[
        bool,
        typer.Option("--unsafe", help="Yes: also the cluster's own topics, with all groups or transactions."),
    ] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Delete topics and their records. Exit code 9 if only some could be deleted."""
    from quorumlog.client.errors import RequestFailed

    output.use(output_format)
    if not unsafe:
        _refuse_internal(topics)
    deleted: list[str] = []
    failures: dict[str, RequestFailed] = {}
    target = find_target(servers, profile, options)
    with connected(target) as cluster:
        for name in topics:
            try:
                cluster.admin.delete_topic(name)
                deleted.append(name)
            except RequestFailed as error:
                if not (if_exists and exit_code(error) is Exit.NOT_FOUND):
                    failures[name] = error
    if failures and not deleted:
        raise next(iter(failures.values()))
    if output.is_json():
        output.show_json({"deleted": deleted, "failed": {name: str(error) for name, error in failures.items()}})
    elif deleted:
        output.say(f"deleted {', '.join(deleted)} of {target.name}")
    if failures:
        raise CliError(Exit.PARTIAL, "; ".join(f"{name}: {error}" for name, error in failures.items()))


def _refuse_internal(topics: Sequence[str]) -> None:
    """Raises CliError if one of them is the cluster's own, so that nothing is deleted."""
    for name in topics:
        if is_internal(name):
            raise CliError(
                Exit.USAGE,
                f"{name} is the cluster's own topic: with it goes {_HELD.get(name, 'what brokers keep there')}",
                "say --unsafe to accept that",
            )


app.command()(alter)
app.command()(truncate)
app.command()(offsets)


def _summary(topic: TopicMetadata) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topic_id": format_uuid(topic.topic_id),
        "partitions": len(topic.partitions),
        "replication_factor": max((len(partition.replicas) for partition in topic.partitions), default=0),
        "state": _state(topic.partitions),
    }


def _state(partitions: Sequence[PartitionMetadata]) -> str:
    """The worst state of any partition."""
    if any(partition.leader_id < 0 for partition in partitions):
        return "without leader"
    if any(partition.leader_recovery_state for partition in partitions):
        return "recovering"
    if any(len(partition.isr) < len(partition.replicas) for partition in partitions):
        return "under-replicated"
    return "ok"


def _description(
    topic: TopicMetadata, configs: dict[str, str | None] | None, offsets: dict[int, tuple[int, int]]
) -> dict[str, Any]:
    partitions = []
    for partition in topic.partitions:
        first, end = offsets.get(partition.index, (None, None))
        partitions.append(
            {
                "partition": partition.index,
                "leader": partition.leader_id if partition.leader_id >= 0 else None,
                "leader_epoch": partition.leader_epoch,
                "replicas": list(partition.replicas),
                "isr": list(partition.isr),
                "eligible_leaders": list(partition.eligible_leader_replicas),
                "last_known_leader": partition.last_known_elr[0] if partition.last_known_elr else None,
                "recovering": bool(partition.leader_recovery_state),
                "first_offset": first,
                "end_offset": end,
            }
        )
    return {**_summary(topic), "configs": configs, "partitions": partitions}


_COLUMNS = ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "IN SYNC", "FIRST", "END")
_FIELDS = ("partition", "leader", "leader_epoch", "replicas", "isr", "first_offset", "end_offset")


def _show_description(document: dict[str, Any]) -> None:
    configs = ",".join(f"{name}={value}" for name, value in (document["configs"] or {}).items()) or "—"
    said = f"{document['topic']}   id {document['topic_id']}   {document['state']}   configs {configs}"
    print(output.on_one_line(said))
    output.show_table(_COLUMNS, [[row[field] for field in _FIELDS] for row in document["partitions"]])
