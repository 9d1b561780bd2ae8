"""Rows of plans, partitions and copies, for tables and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quorumlog.planner.cluster import ANYWHERE, Assignment
from quorumlog.planner.plan_file import as_document
from quorumlog_cli.terminal import output

if TYPE_CHECKING:
    from quorumlog.client.administration.partitions import Reassignment
    from quorumlog.messages.cluster import PartitionMetadata
    from quorumlog.planner.plan import Move, Plan
    from quorumlog_cli.commands.partitions.partition_progress import Copy

MOVE_COLUMNS = ("PARTITION", "FROM", "TO", "BYTES COPIED")
LIST_COLUMNS = ("PARTITION", "LEADER", "REPLICAS", "IN SYNC", "BYTES", "STATE", "ADDING", "REMOVING")
COPY_COLUMNS = ("PARTITION", "BROKER", "DIRECTORY", "DONE", "BYTES", "OF")
ROWS_SHOWN = 50  # of a plan, in a table; its file has all


def placed(where: Assignment) -> str:
    """Brokers, with the directories that are asked for: 1,2:/data/b."""
    pairs = zip(where.replicas, where.log_dirs, strict=True)
    return ",".join(str(node) if path == ANYWHERE else f"{node}:{path}" for node, path in pairs)


def show_plan(plan: Plan, *, quiet: bool = False) -> None:
    """The table of a plan on stdout, and its cost and notes on stderr. quiet: without the table."""
    if plan.moves and not quiet:
        output.show_table(MOVE_COLUMNS, [_move_row(move) for move in plan.moves[:ROWS_SHOWN]])
        if len(plan.moves) > ROWS_SHOWN:
            output.say(f"and {len(plan.moves) - ROWS_SHOWN:,} more")
    output.say(cost_text(plan))
    for note in plan.notes:
        output.say(f"note   {note}")


def _move_row(move: Move) -> list[Any]:
    return [f"{move.topic}-{move.index}", placed(move.back), placed(move.after), move.bytes_copied]


def cost_text(plan: Plan) -> str:
    if not plan.moves:
        return "nothing has to move: all of it is where it should be, or on its way there"
    parts = [output.counted(len(plan.moves), "partition")]
    if plan.replicas_added:
        parts.append(f"{output.counted(plan.replicas_added, 'replica')} to other brokers")
    if plan.between_directories:
        parts.append(f"{output.counted(plan.between_directories, 'replica')} to other directories")
    if plan.leaders_changed:
        parts.append(output.counted(plan.leaders_changed, "preferred leader"))
    return f"changes {', '.join(parts)}; {plan.bytes_copied:,} bytes are copied"


def plan_document(plan: Plan) -> dict[str, Any]:
    return {
        "plan": as_document(plan.assignments()),
        "rollback": as_document(plan.rollback()),
        "bytes_copied": plan.bytes_copied,
        "replicas_added": plan.replicas_added,
        "between_directories": plan.between_directories,
        "leaders_changed": plan.leaders_changed,
        "notes": list(plan.notes),
    }


def partition_row(
    topic: str, one: PartitionMetadata, size_bytes: int | None, moving: Reassignment | None
) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": one.index,
        "leader": one.leader_id if one.leader_id >= 0 else None,
        "replicas": list(one.replicas),
        "isr": list(one.isr),
        "last_known_leader": one.last_known_elr[0] if one.last_known_elr else None,
        "size_bytes": size_bytes,
        "state": state_of(one, moving),
        "preferred_leader": bool(one.replicas) and one.leader_id == one.replicas[0],
        "adding": list(moving.adding) if moving is not None else [],
        "removing": list(moving.removing) if moving is not None else [],
    }


def state_of(one: PartitionMetadata, moving: Reassignment | None) -> str:
    """The most urgent one."""
    if one.leader_id < 0:
        return "without leader"
    if one.leader_recovery_state:
        return "recovering"
    if moving is not None:
        return "moving"
    if len(one.isr) < len(one.replicas):
        return "under-replicated"
    return "ok" if one.leader_id == one.replicas[0] else "not preferred"


def copy_row(one: Copy) -> list[Any]:
    done = 100 * one.done_bytes // one.total_bytes if one.total_bytes else 100
    return [f"{one.topic}-{one.partition}", one.node_id, one.path or None, f"{done} %", one.done_bytes, one.total_bytes]
