"""Decides batches by records of a topic. Pure; docs/spark-on-kafka.md has the rules.

What a driver knows of its group is in `Run`, from its start to its end. One call at a time: the shell sees to it.

`check` says what a group's last decision says to a batch. The coordinator of joint transactions has the same checks in
the same order (decision 112); a test compares them. The order is part of the contract: a copied checkpoint must hear
that it is a copy, not that its sequence was decided. Refusals have the codes of joint transactions: RequestFailed.

Whoever meets a decision ends its transactions. The first child decides for all: it is ended before the others. If it
was aborted by time, nothing has committed and nothing will: the others are aborted, and the batch can be decided anew.
Its fate is one and the same for everybody who looks, so two that do this at once never work against each other. The
first is the one whose time is over first, so a mixture needs a process that dies between the first end and the last,
and nobody who comes back in time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from quorumlog.client.errors import QuorumlogError, RequestFailed, refused
from quorumlog.errors import ErrorCode
from quorumlog.records.coordinator.joint import JointKind
from quorumlog.spark.write.kafka.decisions import (
    MAX_GIVEN_UP,
    MAX_SUPERSEDED,
    NOTHING,
    Child,
    Decision,
    GivenUp,
    prefix_of,
    run_tag,
    to_drop,
    to_fence,
)
from quorumlog.spark.write.kafka.steps import (
    Commit,
    Describe,
    Described,
    Drop,
    End,
    Fate,
    Fates,
    Fence,
    ListOpen,
    Now,
    Read,
    Steps,
    TakeOver,
    Verdict,
    Wait,
    Write,
)
from quorumlog.spark.write.sending.delivery import Attempt, BatchOf

TOLD = 10  # places in a text


class DecisionsRefused(QuorumlogError):
    """The topic of decisions is not one that may be trusted, or cannot be read to its end."""


class RunOver(QuorumlogError):
    """This run decides nothing any more: another one has taken over, or it is not known what its last write did."""


class NotEnded(QuorumlogError):
    """A decided batch has transactions that did not end in time. It stays decided: the next start ends them."""


class DecidedTransactionLost(QuorumlogError):
    """A decided batch has transactions that committed, and others that the cluster aborted, or has no trace of.

    lost: those that are not known to have committed.
    """

    def __init__(self, group: str, sequence: int, lost: Sequence[Child], timeout_advice: str) -> None:
        places = [
            f"{part.topic}-{part.partition} offsets {part.first} to {part.last}" for one in lost for part in one.written
        ]
        more = f" and {len(places) - TOLD} more" if len(places) > TOLD else ""
        super().__init__(
            f"batch {sequence} of {group} was decided, and part of it is readable and part never will be: lost are the "
            f"rows at {', '.join(places[:TOLD])}{more}. {timeout_advice} Write the rows again by hand if they "
            f"are needed, then set acceptLost={sequence}: the batch counts as written from then on"
        )
        self.group, self.sequence, self.lost = group, sequence, tuple(lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What the user has excused, each by name; -1 and "" excuse nothing.

    first_batch: that no decision is there for the sequence before this one. checkpoint_moved: that the last decision is
    of this location. replay_mismatch: that the totals of this sequence differ. accept_lost: that part of this sequence
    is lost.
    """

    first_batch: int = -1
    checkpoint_moved: str = ""
    replay_mismatch: int = -1
    accept_lost: int = -1


def check(decision: Decision | None, batch: BatchOf, excused: Overrides) -> bool:
    """True: the sequence is decided. False: it is the next one. Raises JointRefused, as the
    coordinator of joint groups does."""
    if decision is None or decision.sequence == NOTHING:
        _check_following(batch, NOTHING, excused)
        return False
    if batch.kind != decision.kind:
        raise refused(
            ErrorCode.INVALID_REQUEST,
            f"{batch.group} is a group of kind {decision.kind}; a writer of another kind needs another name",
        )
    if batch.location != decision.location and excused.checkpoint_moved != decision.location:
        raise refused(
            ErrorCode.CHECKPOINT_COPIED,
            f"{batch.group} was last decided from {decision.location!r}, and this is {batch.location!r}: a copy has "
            "the same query id, and its rows would vanish. Give the copy a sinkId of its own; if the checkpoint was "
            f"moved, set checkpointMoved={decision.location}",
        )
    if batch.run in decision.superseded:
        raise refused(
            ErrorCode.SUPERSEDED,
            f"run {batch.run} of {batch.group} is over: run {decision.run} has decided sequence {decision.sequence}; "
            "stop this one",
        )
    if batch.sequence < decision.sequence:
        raise refused(
            ErrorCode.CHECKPOINT_ROLLED_BACK,
            f"{batch.group} is at sequence {decision.sequence}, and {batch.sequence} is below it: a checkpoint was "
            "rolled back or begun anew; give the sink a new sinkId or writeId, and it begins anew",
        )
    if batch.sequence == decision.sequence:
        return True
    _check_following(batch, decision.sequence, excused)
    return False


def check_totals(decision: Decision, batch: BatchOf, totals: Mapping[str, int], excused: Overrides) -> None:
    """Of a batch that is decided. Raises ReplayDiffers."""
    if dict(decision.totals) == dict(totals) or excused.replay_mismatch == batch.sequence:
        return
    raise refused(
        ErrorCode.REPLAY_DIFFERS,
        f"batch {batch.sequence} of {batch.group} was decided with {_told(decision.totals)}, and is {_told(totals)} "
        "now: its rows are not the same when they are computed again. What is in the topic stays; if that is right, "
        f"set replayMismatch={batch.sequence}",
    )


def _check_following(batch: BatchOf, last: int, excused: Overrides) -> None:
    if batch.kind != JointKind.STREAM or batch.sequence in (last + 1, excused.first_batch):
        return
    known = "no decision" if last == NOTHING else f"sequence {last} as the last one"
    raise refused(
        ErrorCode.DECISION_MISSING,
        f"{batch.group} has {known}, and this is sequence {batch.sequence}. If what lies between was written elsewhere "
        f"or is not wanted, set firstBatch={batch.sequence}",
    )


def _told(totals: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {totals[name]}" for name in sorted(totals)) or "no totals"


ADVICE = "Nobody came back to end them within transactionTimeout; a longer one leaves more time."


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """min_left_ms: of each transaction's time, when a batch is decided. end_timeout_ms: of all ends of a decision."""

    min_left_ms: int = 60_000
    end_timeout_ms: int = 60_000
    first_wait_ms: int = 20
    max_wait_ms: int = 1_000
    max_children: int = 10_000


def settle(decision: Decision | None, group: str, excused: Overrides, limits: Limits) -> Steps[Decision | None]:
    """The last decision that stands; nothing of it is open any more. Raises DecidedTransactionLost, NotEnded."""
    if decision is None or decision.ended:
        return decision
    fates = yield from _end_all(decision, group, limits)
    found = set(fates.values())
    if found == {Fate.ABORTED}:
        return decision.as_void()
    if found <= {Fate.COMMITTED} or excused.accept_lost == decision.sequence:
        return decision.as_ended()
    lost = [one for one in decision.children if fates[one.transactional_id] is not Fate.COMMITTED]
    raise DecidedTransactionLost(group, decision.sequence, lost, ADVICE)


def _end_all(decision: Decision, group: str, limits: Limits) -> Steps[Mapping[str, Fate]]:
    what = f"batch {decision.sequence} of {group}"
    first, rest = decision.children[:1], decision.children[1:]
    fates = yield from _end(first, True, what, limits)
    if rest:
        commits = Fate.ABORTED not in fates.values()
        fates = {**fates, **(yield from _end(rest, commits, what, limits))}
    return fates


def _end(children: tuple[Child, ...], commit: bool, what: str, limits: Limits) -> Steps[dict[str, Fate]]:
    """Until each has a fate. What is asked for twice changes nothing."""
    fates: dict[str, Fate] = {}
    began_ms = yield Now()
    wait_ms, pending = limits.first_wait_ms, children
    while pending:
        verdicts: Mapping[str, Verdict] = yield End(pending, commit)
        as_asked = Fate.COMMITTED if commit else Fate.ABORTED
        fates.update((name, as_asked) for name, verdict in verdicts.items() if verdict is Verdict.ENDED)
        unclear = tuple([one for one in pending if verdicts[one.transactional_id] is Verdict.UNCLEAR])
        if unclear:
            told: Mapping[str, Fate] = yield Fates(unclear)
            fates.update((name, fate) for name, fate in told.items() if fate is not Fate.OPEN)
        pending = tuple([one for one in pending if one.transactional_id not in fates])
        if pending:
            waited_ms = (yield Now()) - began_ms
            if waited_ms > limits.end_timeout_ms:
                raise NotEnded(
                    f"{what} is decided, and {len(pending)} of its transactions did not end in {waited_ms} ms, such as "
                    f"{pending[0].transactional_id}: see whether the cluster is healthy, and start the query again"
                )
            yield Wait(wait_ms)
            wait_ms = min(2 * wait_ms, limits.max_wait_ms)
    return fates


OPEN, UNUSED = "Ongoing", "Empty"


@dataclass(slots=True)
class Run:
    """One start of a query, as its driver knows it.

    taken: it is the group's driver; that comes once. decision: the group's last one; nobody else can change it while
    this run is not over. named: ids of the last decision of this run. has_fenced: this run has closed what earlier ones
    left open. over: why it decides nothing more; "": it does.
    """

    taken: bool = False
    decision: Decision | None = None
    named: tuple[str, ...] = field(default=())
    has_fenced: bool = False
    over: str = ""


# --- a task ---


def begin(batch: BatchOf, excused: Overrides, limits: Limits) -> Steps[bool]:
    """True: the batch is decided, and the task sends nothing. Raises RequestFailed, and what `settle` raises."""
    try:
        return (yield from _look(batch, excused, limits, patient=False))
    except (RequestFailed, DecidedTransactionLost):
        return (yield from _look(batch, excused, limits, patient=True))


def _look(batch: BatchOf, excused: Overrides, limits: Limits, *, patient: bool) -> Steps[bool]:
    """An earlier decision than the last one does no harm here: the task sends what its driver will not decide."""
    decision = yield Read(batch.group, patient)
    decision = yield from settle(decision, batch.group, excused, limits)
    if check(decision, batch, excused):
        return True
    _check_run_goes_on(decision, batch)
    return False


def check_wanted(batch: BatchOf, excused: Overrides, limits: Limits) -> Steps[None]:
    """Of a task whose transaction is open now, before it goes on: whether its driver still waits for it. Either this
    read finds the driver's record, or the driver's list, which comes behind the record, finds the transaction.

    A decision of this batch that came to nothing, since time has aborted all that it names, is none.
    Raises RequestFailed, CHILD_NOT_OPEN among them, and what `settle` raises; then the task aborts its transaction.
    """
    decision = last = yield Read(batch.group, patient=True)
    if last is not None and last.sequence == batch.sequence:
        decision = yield from settle(last, batch.group, excused, limits)
    if check(decision, batch, excused):
        raise refused(
            ErrorCode.CHILD_NOT_OPEN,
            f"batch {batch.sequence} of {batch.group} was decided while this task began, by other attempts; nothing of "
            "this one counts",
        )
    _check_run_goes_on(last, batch)


def _check_run_goes_on(last: Decision | None, batch: BatchOf) -> None:
    """Raises RequestFailed: CHILD_NOT_OPEN."""
    if last is not None and GivenUp(run_tag(batch.run), batch.sequence) in last.given_up:
        raise refused(
            ErrorCode.CHILD_NOT_OPEN,
            f"run {batch.run} has aborted batch {batch.sequence} of {batch.group}: its driver is done. Start the query "
            "again",
        )


# --- the driver ---


def commit(
    run: Run,
    batch: BatchOf,
    attempts: Sequence[Attempt],
    totals: Mapping[str, int],
    excused: Overrides,
    limits: Limits,
) -> Steps[None]:
    """Decide the batch, unless it is. Raises RequestFailed, RunOver, NotEnded, DecidedTransactionLost."""
    yield from _get_ready(run, batch, excused, limits)
    if check(run.decision, batch, excused):
        assert run.decision is not None
        check_totals(run.decision, batch, totals, excused)
        if not run.has_fenced:
            yield from _fence_others(run, batch)
        return
    _check_not_given_up(run.decision, batch, attempts)
    yield from _decide(run, batch, attempts, totals, limits)
    yield from _finish(run, batch, excused, limits)
    if run.decision is None or run.decision.sequence != batch.sequence:
        raise refused(
            ErrorCode.CHILD_NOT_OPEN,
            f"batch {batch.sequence} of {batch.group} was decided, and then its transactions aborted before they could "
            "be ended: nothing of it is readable. Start the query again, and raise transactionTimeout",
        )
    yield from _fence_others(run, batch)
    if batch.kind == JointKind.SINGLE:
        yield from _forget_single(run, batch)


def abort(
    run: Run, batch: BatchOf, attempts: Sequence[Attempt] | None, excused: Overrides, limits: Limits
) -> Steps[None]:
    """As `commit` at first: what is decided is finished. Else the batch's attempts abort. A run that is over does
    nothing. Raises as `commit`."""
    if run.over:
        return
    yield from _get_ready(run, batch, excused, limits)
    if run.decision is not None and run.decision.sequence >= batch.sequence:
        return
    open_ids = yield ListOpen(prefix_of(batch.group))
    left = tuple(to_drop(open_ids, batch.group, batch.sequence, batch.run))
    known = tuple([_child_of(one) for one in attempts or ()])
    ids = tuple(dict.fromkeys([*[one.transactional_id for one in known], *left]))[: limits.max_children]
    if not ids and attempts is not None:
        return  # all tasks have told, so none of them begins any more
    # Said before it is done: a commit of this run in another process either reads it, or has taken the group away.
    yield from _write(run, batch.group, _given_up(run.decision, batch, ids))
    if known:
        yield End(known, commit=False)
    if left:
        yield Fence(left)


def abort_open(run: Run, group: str, excused: Overrides, limits: Limits) -> Steps[int]:
    """For people: finish what is decided, and abort all else that the group has open; how many. Whoever drives the
    group now is fenced, so that no decision comes between. Raises as `commit`."""
    yield TakeOver(group)
    run.taken = True
    run.decision = yield Read(group, patient=True)
    anybody = BatchOf(group=group, kind=JointKind.STREAM, location="", run="", sequence=NOTHING)
    yield from _finish(run, anybody, excused, limits)
    open_ids = tuple((yield ListOpen(prefix_of(group))))[: limits.max_children]
    if open_ids:
        yield from _write(run, group, _given_up(run.decision, anybody, open_ids))
        yield Fence(open_ids)
    return len(open_ids)


def forget(run: Run, group: str) -> Steps[bool]:
    """False: nothing is known of the group. The next run begins anew. Raises RequestFailed: JOINT_GROUP_OPEN, also
    where nothing is decided yet."""
    decision = yield Read(group, patient=True)
    open_ids = yield ListOpen(prefix_of(group))
    if open_ids or (decision is not None and not decision.ended):
        what = f"{len(open_ids)}, such as {open_ids[0]}" if open_ids else f"those of batch {decision.sequence}"
        raise refused(
            ErrorCode.JOINT_GROUP_OPEN,
            f"{group} has transactions that are open or not ended ({what}), and is not forgotten while it has: let its "
            "query finish, abort them, or wait for their time-out",
        )
    if decision is None:
        return False
    yield TakeOver(group)
    decision = yield Read(group, patient=True)
    if decision is None or not decision.ended:
        raise refused(ErrorCode.JOINT_GROUP_OPEN, f"{group} was written to a moment ago: stop its query first")
    run.taken = True
    yield from _write(run, group, None)
    return True


def _get_ready(run: Run, batch: BatchOf, excused: Overrides, limits: Limits) -> Steps[None]:
    """Be the group's driver, know its last decision, and have it carried out."""
    if run.over:
        raise RunOver(run.over)
    if not run.taken:
        # A copy of the checkpoint, or a run that is superseded, must not take the group from its driver.
        try:
            check((yield Read(batch.group, patient=False)), batch, excused)
        except RequestFailed:
            check((yield Read(batch.group, patient=True)), batch, excused)
        try:
            yield TakeOver(batch.group)
        except RunOver as error:
            run.over = str(error)
            raise
        run.taken = True
        run.decision = yield Read(batch.group, patient=True)
    yield from _finish(run, batch, excused, limits)


def _decide(
    run: Run, batch: BatchOf, attempts: Sequence[Attempt], totals: Mapping[str, int], limits: Limits
) -> Steps[None]:
    """The record is written before the children are looked at: its transaction is over soon, so a process that sleeps
    between the look and the commit decides nothing."""
    if len(attempts) > limits.max_children:
        raise refused(
            ErrorCode.TOO_MANY_CHILDREN,
            f"batch {batch.sequence} of {batch.group} has {len(attempts)} tasks with rows; {limits.max_children} are "
            "the limit of a decision: coalesce the frame before it is written",
        )
    ids = tuple([one.transactional_id for one in attempts])
    looked: Mapping[str, Described] = (yield Describe(ids)) if ids else {}
    used = [one for one in attempts if one.written or not _is_unused(looked.get(one.transactional_id))]
    used.sort(key=lambda one: _deadline_ms(looked.get(one.transactional_id)))
    decision = _decision(run.decision, batch, tuple([_child_of(one) for one in used]), totals)
    look = _check_all_open(decision, batch, limits) if decision.children else None
    yield from _write(run, batch.group, decision, look)
    run.named = ids


def _write(run: Run, group: str, decision: Decision | None, look: Steps[None] | None = None) -> Steps[None]:
    """In one transaction. look: what has to hold before it is committed."""
    try:
        yield Write(group, decision)
        if look is not None:
            yield from look
        yield Commit()
    except RunOver as error:
        run.over = str(error)
        raise
    except QuorumlogError:
        yield Drop()
        raise
    run.decision = decision


def _check_all_open(decision: Decision, batch: BatchOf, limits: Limits) -> Steps[None]:
    """Raises RequestFailed: CHILD_NOT_OPEN."""
    told: Mapping[str, Described] = yield Describe(tuple([one.transactional_id for one in decision.children]))
    now_ms = yield Now()
    for child in decision.children:
        _check_open(child, told.get(child.transactional_id), batch, now_ms, limits)


def _finish(run: Run, batch: BatchOf, excused: Overrides, limits: Limits) -> Steps[None]:
    """End what the last decision names, and record that it has ended: compaction keeps the last record only."""
    before = run.decision
    found = yield from settle(before, batch.group, excused, limits)
    if before is None or before.ended or found is None:
        return
    if found.sequence == before.sequence:
        yield from _write(run, batch.group, found)
    run.decision = found


def _fence_others(run: Run, batch: BatchOf) -> Steps[None]:
    """The batch has been decided and has ended. If the cluster does not answer here, what is open ends by its time-out,
    or after the next batch."""
    try:
        open_ids = yield ListOpen(prefix_of(batch.group))
    except QuorumlogError:
        return
    ids = to_fence(open_ids, batch.group, batch.sequence, run.named)
    if ids:
        yield Fence(tuple(ids))
    run.has_fenced = True


def _forget_single(run: Run, batch: BatchOf) -> Steps[None]:
    """Nobody comes back to it: its name was drawn for this write. Otherwise the topic would grow with every write."""
    try:
        yield from _write(run, batch.group, None)
    except QuorumlogError:
        pass  # the batch is there all the same; the record stays


# --- pure helpers ---


def _decision(
    last: Decision | None, batch: BatchOf, children: tuple[Child, ...], totals: Mapping[str, int]
) -> Decision:
    superseded = () if last is None else last.superseded
    if last is not None and last.run != batch.run:
        superseded = (*superseded, last.run)[-MAX_SUPERSEDED:]
    return Decision(
        kind=batch.kind,
        location=batch.location,
        run=batch.run,
        superseded=superseded,
        sequence=batch.sequence,
        totals=dict(totals),
        children=children,
        ended=not children,
        before=NOTHING if last is None else last.sequence,
        before_totals={} if last is None else last.totals,
        given_up=() if last is None else last.given_up,
    )


def _given_up(last: Decision | None, batch: BatchOf, ids: tuple[str, ...]) -> Decision:
    """batch: its run has given it up; without a run, nobody's has."""
    known = () if last is None else last.given_up
    one = GivenUp(run_tag(batch.run), batch.sequence)
    if batch.run and one not in known:
        known = (*known, one)[-MAX_GIVEN_UP:]
    if last is not None:
        return replace(last, dropped=ids, given_up=known)
    return Decision(
        kind=batch.kind,
        location=batch.location,
        run=batch.run,
        sequence=NOTHING,
        totals={},
        ended=True,
        before_totals={},
        dropped=ids,
        given_up=known,
    )


def _check_not_given_up(last: Decision | None, batch: BatchOf, attempts: Sequence[Attempt]) -> None:
    """Raises RequestFailed: CHILD_NOT_OPEN."""
    dropped = frozenset(() if last is None else last.dropped)
    found = [one.transactional_id for one in attempts if one.transactional_id in dropped]
    if found:
        raise refused(
            ErrorCode.CHILD_NOT_OPEN,
            f"batch {batch.sequence} of {batch.group} was not decided: it was aborted while it was committed, and "
            f"transaction {found[0]} with it. Start the query again",
        )


def _child_of(attempt: Attempt) -> Child:
    return Child(
        transactional_id=attempt.transactional_id,
        producer_id=attempt.producer_id,
        producer_epoch=attempt.producer_epoch,
        written=attempt.written,
    )


def _is_unused(found: Described | None) -> bool:
    """A task that began and had no rows."""
    return found is not None and found.state == UNUSED


def _deadline_ms(found: Described | None) -> int:
    return 0 if found is None else found.started_at_ms + found.timeout_ms


def _check_open(child: Child, found: Described | None, batch: BatchOf, now_ms: int, limits: Limits) -> None:
    """Raises RequestFailed: CHILD_NOT_OPEN."""
    why = ""
    if not child.written:
        why = "its task did not tell what it has written; report this as a bug"
    elif found is None:
        why = "the cluster has forgotten it"
    elif (found.producer_id, found.producer_epoch) != (child.producer_id, child.producer_epoch):
        why = f"it was ended by somebody else, or was open for longer than transactionTimeout: {found.timeout_ms} ms"
    elif found.state != OPEN:
        why = f"it is {found.state}, most likely because transactionTimeout, {found.timeout_ms} ms, was over"
    elif (left_ms := found.started_at_ms + found.timeout_ms - now_ms) < limits.min_left_ms:
        why = (
            f"{max(left_ms, 0)} ms are left of its transactionTimeout, {found.timeout_ms} ms, and a decision needs "
            f"{limits.min_left_ms}"
        )
    if why:
        raise refused(
            ErrorCode.CHILD_NOT_OPEN,
            f"batch {batch.sequence} of {batch.group} was not decided: transaction {child.transactional_id} cannot be "
            f"committed: {why}. The batch can be written again; raise transactionTimeout if batches take so long, and "
            "the brokers' transaction.max.timeout.ms with it",
        )
