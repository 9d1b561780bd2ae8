"""CommitJoint: one record decides which children commit, that all others abort, and which run is the current one.

The answer waits for the record, and for the markers as long as the caller wishes. Whatever becomes of the caller, the
coordinator carries the decision out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from quorumlog.errors import ErrorCode
from quorumlog.messages.joint import CommitJointRequest, CommitJointResponse, JointChildRef
from quorumlog.records.coordinator.joint import CHILD, Fact, JointKey, JointValue, pack
from quorumlog.settings.transactions import JointConfig
from quorumlog.slices import Sliced, begin
from quorumlog_broker.coordinator.transactions.joint.begin import not_open
from quorumlog_broker.coordinator.transactions.joint.checks import (
    MAX_CHILDREN,
    MAX_COMMIT_WAIT_MS,
    MAX_SUPERSEDED,
    Refusal,
    cannot_be_asked,
    check,
    invalid_commit,
    no_room,
    too_low,
)
from quorumlog_broker.coordinator.transactions.joint.preparing import Preparing
from quorumlog_broker.coordinator.transactions.state.joint_group import Foreseen, JointGroup
from quorumlog_broker.coordinator.transactions.state.states import States, TransactionTurn, WaitEnds
from quorumlog_broker.coordinator.transactions.state.table import ONGOING, TransactionTable
from quorumlog_broker.coordinator.turn import Call
from quorumlog_quorum.metadata.features import JOINT_ENDS

GIVEN_AWAY = (
    "is a child of another attempt: if its slot was given away, the one that is named had ended before, by "
    "transactionTimeout or by AbortJoint"
)


CHILDREN_A_STEP = 512  # 1 ms
OPEN_A_STEP = 4_096  # 1 ms: of those whose state a decision changes
UNDECIDED = Refusal(ErrorCode.NONE, "")


class _Wait(NamedTuple):
    group_id: str
    until_ms: int


class Commit:
    """waiting: calls whose answers wait for a decision or its markers."""

    def __init__(
        self,
        turn: TransactionTurn,
        config: JointConfig,
        table: TransactionTable,
        states: States,
        preparing: Preparing,
    ) -> None:
        self._turn, self._config, self._table = turn, config, table
        self._states, self._preparing = states, preparing
        self.waiting: dict[int, _Wait] = {}

    def call(self, call: Call, request: CommitJointRequest) -> Sliced[None] | None:
        """Children are looked at in steps of `CHILDREN_A_STEP`; the decision is a step of its own if they are more."""
        return begin(self._call(call, request))

    def _call(self, call: Call, request: CommitJointRequest) -> Sliced[None]:
        found, refs = invalid_commit(request), dict[int, JointChildRef]()
        if found is None:
            for some in _parts(request.children):
                refs.update((ref.slot, ref) for ref in some)
                if some is not request.children:
                    yield
            if len(refs) < len(request.children):
                found = Refusal(ErrorCode.INVALID_REQUEST, "a child is named twice; name each one once")
        if found is None:
            found = yield from self._settle(request, refs)
        if found is None:
            self._wait(call, request)
            if len(refs) > CHILDREN_A_STEP:
                yield  # what was noted of many children is freed in a step of its own: 4 ms of 100,000
        else:
            self._turn.answer(call.number, CommitJointResponse(error_code=found.code, error_message=found.text))

    def _settle(self, request: CommitJointRequest, refs: Mapping[int, JointChildRef]) -> Sliced[Refusal | None]:
        """None: the sequence is decided, now or before. refs: the named children by their slots."""
        group = self._table.joint_groups.get(request.group_id, JointGroup())
        packed: list[bytes] = []
        with group.watch() as changed:
            for some in _parts(request.children):
                found = self._judge(request, group, some)
                if found is not UNDECIDED:
                    return found
                packed.append(pack((ref.slot, ref.producer_epoch) for ref in some))
                if some is not request.children:
                    yield
            if len(packed) == 1 and len(group.open) <= OPEN_A_STEP:
                return self._decide(request, group, packed[0])
            foreseen = yield from _foresee(group, refs)
            found = yield from self._judge_again(request, group, refs, changed, foreseen)
            if found is not UNDECIDED:
                return found
        children = b"".join(packed)
        group.foresee(children, Foreseen(foreseen, sum(foreseen.values())))
        return self._decide(request, group, children)

    def _judge(self, request: CommitJointRequest, group: JointGroup, refs: Iterable[JointChildRef]) -> Refusal | None:
        """As `_settle`; `UNDECIDED`: nothing speaks against a decision with these children."""
        found = self._look(request, group)
        if isinstance(found, Refusal):
            return found
        if found:
            return _replayed(request, group.decision)
        for ref in refs:
            refusal = self._unfit(request, group, ref)
            if refusal is not None:
                return refusal
        return UNDECIDED

    def _look(self, request: CommitJointRequest, group: JointGroup) -> Refusal | bool:
        """What is quick to look at: whether the group can be asked, and whether the sequence is decided or can be."""
        found = cannot_be_asked(request.group_id, self._states) or check(group.decision, request)
        if found is not False:
            return found
        level = too_low(self._states, JOINT_ENDS)
        if level is not None:
            return level
        if len(request.children) > MAX_CHILDREN:
            return _too_many(len(request.children), MAX_CHILDREN)
        full = no_room(len(self._table.joint_groups), self._config.max_groups) if group.is_empty else None
        if full is not None:
            return full
        if not self._preparing.is_prepared(group):
            text = f"the last decision of {request.group_id} is being carried out; try again soon"
            return Refusal(ErrorCode.CONCURRENT_TRANSACTIONS, text)
        return False

    # --- deciding ---

    def _judge_again(
        self,
        request: CommitJointRequest,
        group: JointGroup,
        refs: Mapping[int, JointChildRef],
        changed: set[int],
        foreseen: dict[int, bool],
    ) -> Sliced[Refusal | None]:
        """`_judge` of what may be different since the first step, and `foreseen` likewise. It ends in the turn that
        decides, so that nothing comes between. changed: slots of the group that have a new record since.

        A named child that has changed and is still fit was given a partition, which ends when its task does.
        """
        while True:
            some = [changed.pop() for _ in range(min(len(changed), CHILDREN_A_STEP))]
            found = self._judge(request, group, [refs[slot] for slot in some if slot in refs])
            if found is not UNDECIDED:
                return found
            for slot in some:
                foreseen.pop(slot, None)
            _foresee_some(group, refs, some, foreseen)
            if not changed:
                return UNDECIDED
            yield

    def _decide(self, request: CommitJointRequest, group: JointGroup, children: bytes) -> Refusal | None:
        """children: packed. All of it in one step."""
        decision = self._decision(request, group, children)
        if not self._turn.fits(JointKey(request.group_id), decision):
            return _too_many(len(request.children), self._turn.largest_record_bytes // CHILD.size)
        self._turn.write(JointKey(request.group_id), decision)
        self._preparing.decided(self._table.joint_groups[request.group_id])
        return None

    def _unfit(self, request: CommitJointRequest, group: JointGroup, ref: JointChildRef) -> Refusal | None:
        """Why nothing can be decided with this child. The group itself is not pending: 2 us each."""
        transactional_id = group.ids.get(ref.slot, "")
        value = self._table.get(transactional_id)
        child = None if value is None else value.joint
        if value is None or child is None:
            text = f"{request.group_id} has no child in slot {ref.slot}; nothing was decided"
            return Refusal(ErrorCode.CHILD_NOT_OPEN, text)
        if (child.token, child.sequence) != (ref.token, request.sequence):
            text = f"{transactional_id} {GIVEN_AWAY}; nothing was decided"
            return Refusal(ErrorCode.CHILD_NOT_OPEN, text)
        if value.transaction_status != ONGOING or value.producer_epoch != ref.producer_epoch:
            text = f"{not_open(transactional_id, value)}; nothing was decided"
            return Refusal(ErrorCode.CHILD_NOT_OPEN, text)
        if self._turn.is_pending(transactional_id):
            text = f"{transactional_id} is being changed; try again soon"
            return Refusal(ErrorCode.CONCURRENT_TRANSACTIONS, text)
        return None

    def _decision(self, request: CommitJointRequest, group: JointGroup, children: bytes) -> JointValue:
        before = group.decision
        superseded = () if before is None else before.superseded
        if before is not None and before.run != request.run:
            superseded = (*superseded, before.run)[-MAX_SUPERSEDED:]
        return JointValue(
            request.kind,
            request.location,
            request.run,
            superseded,
            request.sequence,
            _facts(request),
            children,
            self._turn.wall_ms,
        )

    # --- answering ---

    def _wait(self, call: Call, request: CommitJointRequest) -> None:
        wait_ms = min(max(request.commit_wait_ms, 0), MAX_COMMIT_WAIT_MS)
        self.waiting[call.number] = _Wait(request.group_id, self._turn.now_ms + wait_ms)
        self._turn.timers.arm(WaitEnds(call.number), self._turn.now_ms + wait_ms)
        self._turn.after_commit(self.look)
        self.look()

    def wait_ended(self) -> None:
        """Of a call. Another record of the group may be on its way, such as one of a batch that is given up."""
        self._turn.after_commit(self.look)
        self.look()

    def look(self) -> None:
        """Answer whose decision is committed and whose markers are written, or who has waited long enough."""
        for number, wait in [*self.waiting.items()]:
            group = self._table.joint_groups.get(wait.group_id)
            complete = group is None or not group.has_commits_under_way
            if self._turn.is_pending(wait.group_id) or not (complete or wait.until_ms <= self._turn.now_ms):
                continue
            del self.waiting[number]
            self._turn.timers.cancel(WaitEnds(number))
            self._turn.answer(number, CommitJointResponse(complete=complete))

    def dropped_calls(self) -> list[int]:
        """The leadership has ended."""
        calls, self.waiting = [*self.waiting], {}
        return calls


def _parts(children: Sequence[JointChildRef]) -> Iterator[Sequence[JointChildRef]]:
    """Of one step each; the children themselves, where one is enough."""
    if len(children) <= CHILDREN_A_STEP:
        yield children
        return
    for first in range(0, len(children), CHILDREN_A_STEP):
        yield children[first : first + CHILDREN_A_STEP]


def _foresee(group: JointGroup, refs: Mapping[int, JointChildRef]) -> Sliced[dict[int, bool]]:
    """Of all that is open now: whether it commits. What changes meanwhile is looked at again."""
    foreseen: dict[int, bool] = {}
    slots = [*group.open]
    for first in range(0, len(slots), OPEN_A_STEP):
        _foresee_some(group, refs, slots[first : first + OPEN_A_STEP], foreseen)
        yield
    return foreseen


def _foresee_some(
    group: JointGroup, refs: Mapping[int, JointChildRef], slots: Iterable[int], foreseen: dict[int, bool]
) -> None:
    for slot in slots:
        epoch = group.open.get(slot)
        if epoch is not None:
            ref = refs.get(slot)
            foreseen[slot] = ref is not None and ref.producer_epoch == epoch


def _facts(request: CommitJointRequest) -> tuple[Fact, ...]:
    return tuple(Fact(fact.name, fact.value) for fact in sorted(request.facts, key=lambda fact: fact.name))


def _replayed(request: CommitJointRequest, decision: JointValue | None) -> Refusal | None:
    """A decided sequence changes nothing, whatever its children are now."""
    assert decision is not None
    facts = _facts(request)
    if facts == decision.facts or request.replay_mismatch == request.sequence:
        return None
    was, now = (", ".join(f"{fact.name}={fact.value}" for fact in some) for some in (decision.facts, facts))
    text = (
        f"sequence {request.sequence} of {request.group_id} was decided with {was or 'no facts'}, and is replayed with "
        f"{now or 'none'}: its source is not the same any more. What was decided stays; to go on behind it, set "
        f"replayMismatch={request.sequence}"
    )
    return Refusal(ErrorCode.REPLAY_DIFFERS, text)


def _too_many(count: int, limit: int) -> Refusal:
    text = f"{count} children are more than one decision holds, {limit}; write with fewer tasks. Nothing was decided"
    return Refusal(ErrorCode.TOO_MANY_CHILDREN, text)
