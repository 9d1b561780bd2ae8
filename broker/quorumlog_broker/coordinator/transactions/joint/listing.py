"""Joint groups for people: what they have decided and what is open. And how their last decision is forgotten."""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.messages.joint import (
    ForgetJointRequest,
    ForgetJointResponse,
    JointFact,
    ListedJointGroup,
    OpenJointChild,
)
from quorumlog.records.coordinator.joint import JointKey
from quorumlog.slices import Pace, Sliced
from quorumlog_broker.coordinator.transactions.joint.checks import Refusal, cannot_be_asked
from quorumlog_broker.coordinator.transactions.joint.preparing import Preparing
from quorumlog_broker.coordinator.transactions.state.joint_group import JointGroup
from quorumlog_broker.coordinator.transactions.state.states import States, TransactionTurn
from quorumlog_broker.coordinator.transactions.state.table import TransactionTable
from quorumlog_broker.coordinator.turn import Call


class Listing:
    def __init__(
        self,
        turn: TransactionTurn,
        table: TransactionTable,
        states: States,
        preparing: Preparing,
    ) -> None:
        self._turn, self._table, self._states, self._preparing = turn, table, states, preparing

    def list(self) -> Sliced[tuple[ListedJointGroup, ...]]:
        """In slices: groups may come and go meanwhile. Also what is not committed yet."""
        found, pace = [], Pace()
        for name in [*self._table.joint_groups]:
            if pace.is_over():
                yield
            group = self._table.joint_groups.get(name)
            if group is None:
                continue
            children = []
            for slot in [*group.open]:
                if pace.is_over():
                    yield
                child = self._child(group, slot)
                if child is not None:
                    children.append(child)
            found.append(_listed(name, group, tuple(children)))
        return tuple(found)

    def _child(self, group: JointGroup, slot: int) -> OpenJointChild | None:
        """None: it has ended between two slices."""
        value = self._table.get(group.ids[slot]) if slot in group.open else None
        if value is None or value.joint is None:
            return None
        return OpenJointChild(
            transactional_id=group.ids[slot],
            run=value.joint.run,
            sequence=value.joint.sequence,
            started_at_ms=value.transaction_start_timestamp_ms,
            timeout_ms=value.transaction_timeout_ms,
            location=value.joint.location,
        )

    def forget(self, call: Call, request: ForgetJointRequest) -> None:
        """JOINT_GROUP_OPEN while anything is open, whether something is decided or not; GROUP_ID_NOT_FOUND if nothing
        is decided."""
        name = request.group_id
        group = self._table.joint_groups.get(name)
        found = cannot_be_asked(name, self._states)
        if found is None and group is not None and not self._preparing.is_at_rest(group):
            found = Refusal(ErrorCode.JOINT_GROUP_OPEN, self._not_at_rest(name, group))
        elif found is None and (group is None or group.decision is None):
            found = Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"no decision of {name!r} is known")
        if found is not None:
            self._turn.answer(call.number, ForgetJointResponse(error_code=found.code, error_message=found.text))
            return
        self._turn.delete(JointKey(name))
        self._turn.answer_after_commit(call.number, ForgetJointResponse())

    def _not_at_rest(self, name: str, group: JointGroup) -> str:
        """Why it is not forgotten: what is open, by an example."""
        slot = next(iter(group.open), None)
        child = None if slot is None else self._child(group, slot)
        open_text = f"{len(group.open)} open transactions" if group.open else "no open transaction"
        if child is not None:
            open_text += f", such as {child.transactional_id} of run {child.run}, sequence {child.sequence}"
        ending = len(group.preparing) + len(group.ending)
        return (
            f"{name} is not forgotten while anything of it is open: it has {open_text}, and {ending} whose markers are "
            "not all written; stop its query, and abort or wait for what is open"
        )


def _listed(name: str, group: JointGroup, children: tuple[OpenJointChild, ...]) -> ListedJointGroup:
    decision, ending = group.decision, len(group.preparing) + len(group.ending)
    if decision is None:
        return ListedJointGroup(group_id=name, open=children, ending=ending)
    return ListedJointGroup(
        group_id=name,
        sequence=decision.sequence,
        kind=decision.kind,
        run=decision.run,
        location=decision.location,
        decided_at_ms=decision.decided_at_ms,
        facts=tuple(JointFact(name=fact.name, value=fact.value) for fact in decision.facts),
        open=children,
        ending=ending,
    )
