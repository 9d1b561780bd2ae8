"""`quorumlog broker unregister`: the cluster forgets a broker that is gone for good, once its cost is plain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.commands.brokers.broker_view import FENCED, state_of
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.confirm import confirmed
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.messages.cluster import ClusterBroker, TopicMetadata

NAMED = 5  # partitions that a message names


@dataclass(frozen=True, slots=True)
class Holdings:
    """Of one broker, as `topic-partition`. replicas: what stays assigned to it. alone: those of them that no other
    broker has in sync: they have no leader until this one comes back.
    """

    replicas: list[str]
    alone: list[str]


def holdings(broker_id: int, topics: Iterable[TopicMetadata]) -> Holdings:
    replicas, alone = [], []
    for topic in topics:
        for partition in topic.partitions:
            if broker_id in partition.replicas:
                name = f"{topic.name}-{partition.index}"
                replicas.append(name)
                if not set(partition.isr) - {broker_id}:
                    alone.append(name)
    return Holdings(replicas, alone)


def unregister(
    broker_id: Annotated[int, typer.Argument(metavar="ID", help="Its node.id.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would happen, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also a broker that runs, or that has the only copy of a partition.")
    ] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Let the cluster forget a broker that is gone for good.

    Its replicas stay assigned to it until a reassignment moves them. A broker that runs registers again by itself: stop
    it first. A controller is removed from the quorum with quorum remove-controller.

    Exit code 6: it runs, or has the only copy of a partition that is in sync. Exit code 7: it is not registered.
    """
    output.use(output_format)
    target = find_target(servers, profile, options)
    with connected(target) as cluster:
        brokers = {one.node_id: one for one in cluster.admin.describe_cluster().brokers}
        if broker_id not in brokers:
            raise CliError(Exit.NOT_FOUND, f"broker {broker_id} is not registered; the brokers are {sorted(brokers)}")
        broker = brokers[broker_id]
        held = holdings(broker_id, cluster.admin.list_topics())
        if not force:
            check(broker, held)
        if not dry_run:
            if not yes and not _confirmed(broker_id, held, target.name):
                raise CliError(Exit.FAILED, "nothing was changed", "--yes skips the question")
            cluster.admin.unregister_broker(broker_id, broker.broker_epoch)
    _report(broker, held, dry_run)


def check(broker: ClusterBroker, held: Holdings) -> None:
    """Raises CliError(PRECONDITION)."""
    if state_of(broker) != FENCED:
        raise CliError(
            Exit.PRECONDITION,
            f"broker {broker.node_id} is {state_of(broker)}, and would register again by itself",
            "stop it, and wait until quorumlog broker list shows it as fenced",
        )
    if held.alone:
        raise CliError(
            Exit.PRECONDITION,
            f"broker {broker.node_id} has the only copy that is in sync of {_named(held.alone)}",
            "start it again; if it is lost for good, --force forgets it, and these partitions stay without a leader",
        )


def _confirmed(broker_id: int, held: Holdings, cluster: str) -> bool:
    if held.replicas:
        output.say(f"still assigned to it: {output.counted(len(held.replicas), 'replica')} ({_named(held.replicas)})")
    return confirmed(f"Forget broker {broker_id} of {cluster}?")


def _report(broker: ClusterBroker, held: Holdings, dry_run: bool) -> None:
    if output.is_json():
        output.show_json(
            {
                "dry_run": dry_run,
                "broker_id": broker.node_id,
                "broker_epoch": broker.broker_epoch,
                "state": state_of(broker),
                "replicas": held.replicas,
                "without_other_copy": held.alone,
            }
        )
        return
    output.say(f"broker {broker.node_id} {'would be' if dry_run else 'is'} unregistered")
    if held.replicas:
        output.say(f"still assigned to it: {output.counted(len(held.replicas), 'replica')} ({_named(held.replicas)})")
    if held.alone:
        output.say(f"without a leader until it comes back: {_named(held.alone)}")


def _named(partitions: list[str]) -> str:
    shown = ", ".join(partitions[:NAMED])
    return shown if len(partitions) <= NAMED else f"{shown} and {len(partitions) - NAMED} more"
