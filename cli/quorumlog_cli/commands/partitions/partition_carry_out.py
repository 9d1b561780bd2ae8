"""Carries a plan out: checks it, shows it, saves the way back, begins it, and waits for its end if asked to."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

import typer

from quorumlog.errors import ErrorCode
from quorumlog.planner.cluster import ANYWHERE, CannotPlan, UnknownName
from quorumlog.planner.faults import faults, told
from quorumlog.planner.plan_file import write_plan
from quorumlog_cli.commands.partitions import partition_progress, partition_throttle
from quorumlog_cli.commands.partitions.partition_reading import ASK_TIMEOUT_MS, with_min_isr
from quorumlog_cli.commands.partitions.partition_view import plan_document, show_plan
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit, exit_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorumlog.client.administration.partitions import PartitionOutcome
    from quorumlog.client.blocking_admin import Admin
    from quorumlog.planner.cluster import Assignment, Cluster, TopicPartition
    from quorumlog.planner.plan import Plan

POLL_S = 0.5
TOLD_EVERY_S = 5.0
SILENCE_S = 60.0  # for so long a cluster that does not answer is asked again
Found = TypeVar("Found")
_PASSING = (Exit.UNREACHABLE, Exit.TIMED_OUT, Exit.UNHEALTHY)

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show the plan, and change nothing.")]
WaitOption = Annotated[bool, typer.Option("--wait", "-w", help="Wait until everything has moved.")]
TimeoutOption = Annotated[
    float, typer.Option("--timeout", metavar="S", help="Wait so many seconds at most, then exit with 10.")
]
RollbackOption = Annotated[
    Path | None, typer.Option("--rollback", metavar="FILE", help="Write the plan that brings all back to this file.")
]
ThrottleOption = Annotated[
    int | None,
    typer.Option(
        "--throttle",
        metavar="BYTES",
        min=1,
        help="Bytes per second that each broker copies at most, also for what is moving already.",
    ),
]
TIMEOUT_S = 24 * 3600.0


class Wish(NamedTuple):
    """throttle: bytes per second of each broker. rollback: where the present assignments are written."""

    dry_run: bool = False
    wait: bool = False
    timeout_s: float = TIMEOUT_S
    throttle: int | None = None
    rollback: Path | None = None


def planned(make: Callable[[], Plan]) -> Plan:
    """The plan. Raises CliError where none can be made."""
    try:
        return make()
    except UnknownName as error:
        raise CliError(Exit.NOT_FOUND, str(error)) from None
    except CannotPlan as error:
        raise CliError(Exit.PRECONDITION, str(error)) from None


def checked(admin: Admin, picture: Cluster, wanted: dict[TopicPartition, Assignment]) -> None:
    """Raises CliError(PRECONDITION) for assignments that must not be applied."""
    found = faults(with_min_isr(admin, picture, wanted), wanted)
    if found:
        raise CliError(Exit.PRECONDITION, told(found), "quorumlog partition list and log-dirs list show what there is")


def carry_out(admin: Admin, plan: Plan, wish: Wish) -> None:
    """Prints what it does. Raises CliError: PARTIAL if some could not begin, TIMED_OUT, UNHEALTHY."""
    if not output.is_json():
        show_plan(plan)
    if not wish.dry_run and wish.throttle is not None:
        _throttle(admin, plan, wish.throttle)
    if not wish.dry_run and plan.moves:
        _save_rollback(plan, wish.rollback)
        failed = begin(admin, plan)
    else:
        failed = {}
    if output.is_json():
        refused = {f"{topic}-{index}": outcome.message for (topic, index), outcome in failed.items()}
        output.show_json({**plan_document(plan), "dry_run": wish.dry_run, "failed": refused})
    if wish.dry_run or not plan.moves:
        return
    if failed:
        (topic, index), outcome = next(iter(failed.items()))
        text = f"{len(failed)} of {len(plan.moves)} partitions were refused; {topic}-{index}: {outcome.message}"
        raise CliError(Exit.PARTIAL if len(failed) < len(plan.moves) else Exit.FAILED, text)
    if not wish.wait:
        ends = "" if wish.throttle is None else "; with --finish it removes the throttle at the end"
        output.say(f"begun; quorumlog partition status -w shows how far it is{ends}")
        return
    wait(admin, plan.assignments(), wish.timeout_s)
    if wish.throttle is not None:
        _end_throttle(admin, plan)
    output.say("done: everything lies where it should")


def _throttle(admin: Admin, plan: Plan, bytes_per_s: int) -> None:
    """Of the plan, and of all that is under way."""
    moving = partition_throttle.of_moves(admin.list_partition_reassignments())
    if moving and not output.is_json():
        count = output.counted(len(moving), "partition")
        output.say(f"{bytes_per_s:,} bytes per second are also the limit of {count} under way from now on")
    partition_throttle.put(admin, [*partition_throttle.of_plan(plan), *moving], bytes_per_s)


def _end_throttle(admin: Admin, plan: Plan) -> None:
    """A rate is of a broker: it stays while others use it."""
    if partition_throttle.of_moves(admin.list_partition_reassignments()):
        output.say("other partitions still move, so the throttle stays: quorumlog partition status -w --finish")
        return
    partition_throttle.remove(admin, {move.topic for move in plan.moves})


def _save_rollback(plan: Plan, path: Path | None) -> None:
    text = write_plan(plan.rollback())
    if path is not None:
        path.write_text(text)
        output.say(f"{path} brings everything back: quorumlog partition apply {path}")
    elif not output.is_json():
        output.say(f"this plan brings everything back; save it for quorumlog partition apply:\n{text.rstrip()}")


def begin(admin: Admin, plan: Plan) -> dict[TopicPartition, PartitionOutcome]:
    """Begin every move. Returns those that were refused. Raises RequestFailed for a directory that was."""
    from quorumlog.client.administration.partitions import failures

    _choose_directories(admin, plan)
    changed = {move.key: move.after.replicas for move in plan.moves if move.changes_replicas}
    return failures(admin.alter_partition_reassignments(changed)) if changed else {}


def _choose_directories(admin: Admin, plan: Plan) -> None:
    """Before the reassignment: a broker that has no replica yet notes the directory, and makes it there (KIP-113)."""
    from quorumlog.client.errors import RequestFailed

    there = {(*move.key, node_id): path for move in plan.moves for node_id, path in move.between_directories}
    if there:
        admin.alter_replica_log_dirs(there)
    for move in plan.moves:
        for node_id, path in zip(move.after.replicas, move.after.log_dirs, strict=True):
            if path == ANYWHERE or node_id not in move.added:
                continue
            try:
                admin.alter_replica_log_dirs({(*move.key, node_id): path})
            except RequestFailed as error:
                if error.code != ErrorCode.REPLICA_NOT_AVAILABLE:  # which says that it is noted
                    raise


def wait(admin: Admin, wanted: dict[TopicPartition, Assignment] | None, timeout_s: float) -> None:
    """Until nothing of `wanted` is under way, telling how far it is; nothing at all if None.

    Raises CliError: TIMED_OUT; UNHEALTHY if it ended elsewhere.
    """
    began_s = time.monotonic()
    patience = _Patience(began_s + timeout_s)
    first = patience.ask(lambda: look(admin, wanted))
    found, told_s = first, began_s - TOLD_EVERY_S
    while not found.is_over:
        now_s = time.monotonic()
        if now_s - told_s >= TOLD_EVERY_S:
            speed = partition_progress.rate(first, found, now_s - began_s)
            output.say(partition_progress.sentence(found, speed))
            told_s = now_s
        if now_s - began_s >= timeout_s:
            raise CliError(
                Exit.TIMED_OUT,
                f"not done after {timeout_s:g} s: {partition_progress.sentence(found, 0)}",
                "it goes on: quorumlog partition status -w; quorumlog partition cancel ends it",
            )
        time.sleep(POLL_S)
        found = patience.ask(lambda: look(admin, wanted))
    amiss = [] if wanted is None else patience.ask(lambda: not_as_wanted(admin, wanted))
    if amiss:
        raise CliError(Exit.UNHEALTHY, f"{len(amiss)} partitions are not where they should be: {told(amiss)}")


class _Patience:
    """A move goes on while a broker dies, or another controller takes over: who waits for it waits on, too."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s

    def ask(self, question: Callable[[], Found]) -> Found:
        """The answer. Raises what the question raises, once it has for SILENCE_S or until the deadline."""
        began_s, told = time.monotonic(), False
        while True:
            try:
                return question()
            except Exception as error:
                now_s = time.monotonic()
                passing = exit_code(error) in _PASSING
                if not passing or now_s - began_s >= SILENCE_S or now_s >= self._deadline_s:
                    raise
                if not told:
                    output.say(f"asking again: {error}")
                    told = True
            time.sleep(POLL_S)


def look(admin: Admin, wanted: dict[TopicPartition, Assignment] | None = None) -> partition_progress.Sample:
    """What is under way; of these partitions only, unless None."""
    described = admin.describe_log_dirs(timeout_ms=ASK_TIMEOUT_MS, silent={})
    keys = None if wanted is None else list(wanted)
    found = partition_progress.sample(admin.list_partition_reassignments(keys), described)
    copies = tuple(one for one in found.copies if wanted is None or one[:2] in wanted)
    taking = {one.node_id for one in copies}
    for after in (wanted or {}).values():
        taking.update(node for node, path in zip(after.replicas, after.log_dirs, strict=True) if path != ANYWHERE)
    return found._replace(copies=copies, away=tuple(sorted(taking - described.keys())))


def not_as_wanted(admin: Admin, wanted: dict[TopicPartition, Assignment]) -> list[str]:
    """Which partitions lie elsewhere, and where."""
    from quorumlog_cli.commands.partitions.partition_reading import read_picture

    picture = read_picture(admin)
    amiss = []
    for key, after in sorted(wanted.items()):
        name, partition = f"{key[0]}-{key[1]}", picture.partitions.get(key)
        if partition is None:
            amiss.append(f"{name} does not exist any more")
        elif partition.replicas != after.replicas:
            amiss.append(f"{name} is on {list(partition.replicas)}, not on {list(after.replicas)}")
        else:
            amiss += [
                f"{name} is in {partition.path_on(node_id)} of broker {node_id}, not in {path}"
                for node_id, path in zip(after.replicas, after.log_dirs, strict=True)
                if path != ANYWHERE and partition.path_on(node_id) != path
            ]
    return amiss
