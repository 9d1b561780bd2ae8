"""`quorumlog status`: the local nodes and, through them, the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from quorumlog.in_sync import is_under_replicated
from quorumlog.testing.cuts import cut_links, described
from quorumlog.testing.nodes import LocalNodes, NodeState
from quorumlog.testing.probe import KINDS
from quorumlog_cli.commands.cluster.hold import HELD, is_held
from quorumlog_cli.commands.nodes.status_readers import line_of, readers_held_back
from quorumlog_cli.connecting.connect import connected
from quorumlog_cli.connecting.find import DataOption, find_nodes, name_of, target_of, where_of
from quorumlog_cli.local.ready import hint_to_start, missing_quorum
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.client.administration.partitions import Reassignment
    from quorumlog.ids import TopicPartition
    from quorumlog.messages.cluster import TopicMetadata

app = typer.Typer(add_completion=False)
COLUMNS = ("NODE", "STATE", "READY", "PID", "CLIENTS", "ADMIN", "NOTE")
ASK_TIMEOUT_MS = 3_000
CUT = "cut by net cut"
_MENDS = {NodeState.STOPPED.value: "restart", NodeState.PAUSED.value: "resume"}
FOUND_NOTHING = ("since the start: 0", "no pass has ended yet")  # of indexes: -o json has these, too


@app.command()
def status(data: DataOption = None, output_format: OutputOption = Format.TABLE) -> None:
    """Show each local node, whether it serves, and the state of the cluster.

    Also shows what each node found when it opened its logs (what was cut, and where it is kept), which of its
    directories and replicas are offline, which directories are short of free space, and how far the opening of a
    node's logs has come. And which writers of batches have held readers of committed records back for over 5 minutes;
    and whether retention and expiry are held, as after a restore.
    Exit code 0: all nodes serve and every partition is in sync. 5: something is missing. 3: no node runs.
    """
    output.use(output_format)
    nodes = find_nodes(data)
    with ThreadPoolExecutor(max_workers=len(nodes.ids)) as pool:  # nodes that hang take their time side by side
        rows = list(pool.map(partial(_node, nodes), nodes.ids))
    cluster = _cluster(nodes) if nodes.in_state(NodeState.RUNNING) else {"error": "no node runs"}
    problems = [*_problems(rows, cluster), *(f"{CUT}: {text}" for text in described(cut_links(nodes.layout)))]
    if output.is_json():
        document = {"healthy": not problems, "problems": problems, **where_of(nodes), "nodes": rows, "cluster": cluster}
        output.show_json(document)
    else:
        _show(nodes, rows, cluster, problems)
    if problems:
        nothing = not nodes.in_state(NodeState.RUNNING)
        raise typer.Exit(Exit.UNREACHABLE if nothing else Exit.UNHEALTHY)


def _node(nodes: LocalNodes, node_id: int) -> dict[str, Any]:
    files, process = nodes.layout.node(node_id), nodes.process(node_id)
    state, readiness = nodes.state(node_id), nodes.readiness(node_id)
    found = nodes.findings(node_id) if state is NodeState.RUNNING else {kind: [] for kind in KINDS}
    return {
        "node_id": node_id,
        "state": state.value,
        "ready": readiness.ready,
        "pid": process.pid if process else None,
        "client": files.client_address,
        "admin_port": files.ports.admin,
        **found,
        "reason": "" if readiness.ready or state is not NodeState.RUNNING else readiness.reason,
    }


def _cluster(nodes: LocalNodes) -> dict[str, Any]:
    from quorumlog.client.errors import QuorumlogError
    from quorumlog.rpc.transport import RpcError

    try:
        target = target_of(nodes)
        kind = str(target.options.get("transport", "lane"))  # it carries all of this, and gRPC takes long to load
        with connected(target, default_api_timeout_ms=ASK_TIMEOUT_MS, transport=kind) as client:
            quorum = client.admin.describe_quorum()
            topics = client.admin.list_topics()
            moving = client.admin.list_partition_reassignments()
            held_back = _or([], lambda: readers_held_back(client, round(time.time() * 1_000)))
            held = _or(False, lambda: is_held(client))
    except (CliError, QuorumlogError, RpcError, TimeoutError) as error:
        return {"error": missing_quorum(nodes) or str(error)}
    return {
        "cluster_id": nodes.layout.cluster_id,
        "leader": quorum.leader_id,
        "epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "topics": len(topics),
        **partition_counts(topics, moving),
        "readers_held_back": held_back,
        "retention_held": held,
    }


def partition_counts(topics: Iterable[TopicMetadata], moving: Mapping[TopicPartition, Reassignment]) -> dict[str, int]:
    """moving: the reassignments under way. A replica that one of them is adding is not missed."""
    parts = [(topic.name, one) for topic in topics for one in topic.partitions]
    adding = {key: one.adding for key, one in moving.items()}
    return {
        "partitions": len(parts),
        "under_replicated": sum(
            is_under_replicated(one.replicas, one.isr, adding.get((name, one.index), ())) for name, one in parts
        ),
        "without_leader": sum(one.leader_id < 0 for _, one in parts),
    }


def _or(missing: Any, ask: Callable[[], Any]) -> Any:
    """`missing` where the cluster cannot say so: what is wrong with it is told by other lines."""
    from quorumlog.client.errors import QuorumlogError
    from quorumlog.rpc.transport import RpcError

    try:
        return ask()
    except (QuorumlogError, RpcError, TimeoutError):
        return missing


def _problems(rows: list[dict[str, Any]], cluster: dict[str, Any]) -> list[str]:
    found = [f"node {row['node_id']} is {row['state']}" for row in rows if row["state"] != NodeState.RUNNING.value]
    found += [f"node {row['node_id']}: {text}" for row in rows for text in row["offline"]]
    found += [f"node {row['node_id']} is not ready: {row['reason']}" for row in rows if row["reason"]]
    found += [f"node {row['node_id']}: {problem}" for row in rows for problem in row["problems"]]
    if "error" in cluster:
        return [*found, cluster["error"]]
    if cluster["leader"] < 0:
        found.append("the quorum has no leader")
    found += [f"partitions {text}: {cluster[key]}" for key, text in _COUNTED.items() if cluster[key]]
    return found


_COUNTED = {"under_replicated": "with replicas that are not in sync", "without_leader": "without a leader"}


def _next_steps(rows: list[dict[str, Any]], cluster: dict[str, Any], problems: list[str]) -> list[str]:
    """None where the quorum is missing: how to start what is stopped is said with it."""
    if "error" in cluster:
        return []
    found = ["quorumlog net heal"] if any(one.startswith(CUT) for one in problems) else []
    found += [f"quorumlog {_MENDS[row['state']]} {row['node_id']}" for row in rows if row["state"] in _MENDS]
    unexplained = len(problems) and not found
    return ["quorumlog explain   says what is wrong, since when, and what to do"] if unexplained else found


def _word(nodes: LocalNodes, problems: list[str]) -> str:
    if not problems:
        return "HEALTHY"
    return "DEGRADED" if nodes.in_state(NodeState.RUNNING) else "DOWN"


def _show(nodes: LocalNodes, rows: list[dict[str, Any]], cluster: dict[str, Any], problems: list[str]) -> None:
    fields = {"cluster": name_of(nodes).removeprefix("cluster ")}
    if "error" not in cluster:
        names = ("leader", "epoch", "topics", "partitions")
        fields |= {name: cluster[name] for name in names}
    print("   ".join(f"{name} {value}" for name, value in fields.items()), f"  {_word(nodes, problems)}")
    output.show_table(
        COLUMNS,
        [
            [row["node_id"], row["state"], row["ready"], row["pid"], row["client"], row["admin_port"], row["reason"]]
            for row in rows
        ],
    )
    for row in rows:
        for found in row["recovery"]:
            print(f"found at the start of node {row['node_id']}: {found}")
        for progress in row["opening"]:
            print(f"node {row['node_id']} opens its logs: {progress}")
        for check in (text for text in row["index_checks"] if not text.endswith(FOUND_NOTHING)):
            print(f"node {row['node_id']} has checked its indexes: {check}")
    for found in cluster.get("readers_held_back", []):
        print(line_of(found))
    if cluster.get("retention_held"):
        print(HELD)
    for problem in problems:
        output.say(f"hint  {problem}")
    for step in _next_steps(rows, cluster, problems):
        output.say(f"do    {step}")
    if "error" in cluster and missing_quorum(nodes):
        output.say(f"hint  {hint_to_start(nodes)}")
