"""`quorumlog quorum`: the metadata quorum of the controllers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog.explaining.thresholds import Thresholds
from quorumlog.watch.words import duration
from quorumlog_cli.commands.cluster.quorum_history import history
from quorumlog_cli.commands.cluster.quorum_verify import verify
from quorumlog_cli.commands.cluster.quorum_voters import add_controller, remove_controller, replication
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.messages.quorum import DescribeQuorumResponse, QuorumReplica

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="The metadata quorum: leader, lag, voters; hand it over."
)
app.command()(history)
app.command()(verify)
app.command("add-controller")(add_controller)
app.command("remove-controller")(remove_controller)
app.command("replication")(replication)
FETCH_LIMIT_MS = Thresholds().voter_silent_ms  # a voter that has not fetched for longer gets a hint
POLL_S = 0.2


@app.command()
def status(
    watch: Annotated[bool, typer.Option("-w", "--watch", help="Repeat every second until Ctrl-C.")] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show the leader, the epoch and the progress of each voter and observer.

    Exit code 0: there is a leader, and a majority of the voters fetch from it. Otherwise 5.
    """
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        while True:
            found, brokers = cluster.admin.describe_quorum(), cluster.admin.describe_cluster()
            document = _document(found, brokers.state_hash.hex()) | {"cluster_id": brokers.cluster_id}
            _show(document)
            if not watch:
                break
            time.sleep(1)
            print()
    if not document["healthy"]:
        raise typer.Exit(Exit.UNHEALTHY)


@app.command("transfer-leadership")
def transfer_leadership(
    to: Annotated[int, typer.Option("--to", metavar="ID", help="A voter. Default: the one that is ready first.")] = -1,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Let another voter lead the quorum, in some ten milliseconds. Exit code 10 if that voter had not caught up."""
    from quorumlog.client.errors import RequestFailed
    from quorumlog.errors import ErrorCode

    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        try:
            found = cluster.admin.transfer_leadership(to)
        except RequestFailed as error:
            if error.code is ErrorCode.REQUEST_TIMED_OUT:
                raise CliError(Exit.TIMED_OUT, str(error)) from error
            raise
    if output.is_json():
        output.show_json({"leader": found.leader_id, "epoch": found.leader_epoch})
    else:
        output.say(f"node {found.leader_id} leads the quorum, epoch {found.leader_epoch}")


@app.command("wait-healthy")
def wait_healthy(
    timeout_s: Annotated[float, typer.Option("--timeout", help="Seconds.")] = 30.0,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Wait until the quorum has a leader and every voter has caught up. Exit code 10 at the timeout."""
    from quorumlog.client.errors import QuorumlogError
    from quorumlog.rpc.transport import RpcError

    output.use(output_format)
    target = find_target(servers, profile, options)
    deadline = time.monotonic() + timeout_s
    last = ""
    while time.monotonic() < deadline:
        try:
            with connected(target, default_api_timeout_ms=2_000) as cluster:
                document = _document(cluster.admin.describe_quorum(), "")
        except (CliError, QuorumlogError, RpcError, TimeoutError) as error:
            last = str(error)
        else:
            if not document["hints"]:
                output.tell(f"healthy: leader {document['leader']}, epoch {document['epoch']}", document)
                return
            last = "; ".join(document["hints"])
        time.sleep(POLL_S)
    raise CliError(Exit.TIMED_OUT, f"not healthy after {timeout_s:g} s: {last}")


def _document(found: DescribeQuorumResponse, state_hash: str) -> dict[str, Any]:
    end = max((replica.log_end_offset for replica in found.voters), default=0)
    nodes = [_replica(replica, found.leader_id, end, True) for replica in found.voters]
    nodes += [_replica(replica, found.leader_id, end, False) for replica in found.observers]
    return {
        "cluster_id": found.cluster_id,
        "leader": found.leader_id,
        "epoch": found.leader_epoch,
        "high_watermark": found.high_watermark,
        "state_hash": state_hash,
        "healthy": _has_majority(found),
        "nodes": sorted(
            nodes, key=lambda node: (node["role"] != "leader", node["role"] == "observer", node["node_id"])
        ),
        "hints": _hints(found),
    }


def _replica(replica: QuorumReplica, leader_id: int, end: int, voter: bool) -> dict[str, Any]:
    role = "observer" if not voter else "leader" if replica.replica_id == leader_id else "follower"
    known = replica.log_end_offset >= 0
    return {
        "node_id": replica.replica_id,
        "role": role,
        "log_end": replica.log_end_offset if known else None,
        "lag": max(0, end - replica.log_end_offset) if known else None,
        "since_fetch_ms": replica.since_fetch_ms,
        "since_caught_up_ms": replica.since_caught_up_ms,
    }


def _fetches(replica: QuorumReplica, leader_id: int) -> bool:
    return replica.replica_id == leader_id or 0 <= replica.since_fetch_ms <= FETCH_LIMIT_MS


def _has_majority(found: DescribeQuorumResponse) -> bool:
    fetching = sum(_fetches(replica, found.leader_id) for replica in found.voters)
    return found.leader_id >= 0 and 2 * fetching > len(found.voters)


def _hints(found: DescribeQuorumResponse) -> list[str]:
    if found.leader_id < 0:
        return ["the quorum has no leader; topics cannot be created or changed until one is elected"]
    return [
        f"node {replica.replica_id} has not fetched for {duration(replica.since_fetch_ms)}"
        if replica.since_fetch_ms >= 0
        else f"node {replica.replica_id} has not fetched in this epoch"
        for replica in found.voters
        if not _fetches(replica, found.leader_id)
    ]


def _show(document: dict[str, Any]) -> None:
    if output.is_json():
        output.show_json(document)
        return
    health = "HEALTHY" if document["healthy"] and not document["hints"] else "DEGRADED"
    leader = document["leader"] if document["leader"] >= 0 else "none"
    print(
        f"CLUSTER {document['cluster_id']}   leader {leader}   epoch {document['epoch']}   "
        f"high watermark {document['high_watermark']}   image {document['state_hash'][:8] or '—'}   {health}"
    )
    output.show_table(("NODE", "ROLE", "LOG END", "LAG", "FETCHED", "CAUGHT UP"), [_row(n) for n in document["nodes"]])
    for hint in document["hints"]:
        output.say(f"hint  {hint}")


def _row(node: dict[str, Any]) -> list[Any]:
    leads = node["role"] == "leader"
    name = f"{node['node_id']} *" if leads else str(node["node_id"])
    since = ["—", "—"] if leads else [duration(node["since_fetch_ms"]), duration(node["since_caught_up_ms"])]
    return [name, node["role"], node["log_end"], node["lag"], *since]
