"""AbortJoint: ends the open children of a batch that is not decided, and the time-out of a child."""

from __future__ import annotations

from quorumlog.messages.joint import AbortJointRequest, AbortJointResponse
from quorumlog.records.coordinator.joint import Cause, GivenUpKey, JointChild, JointKind
from quorumlog.slices import Sliced, begin
from quorumlog_broker.coordinator.transactions.joint.checks import cannot_be_asked, invalid_abort
from quorumlog_broker.coordinator.transactions.joint.given_up import GivenUp
from quorumlog_broker.coordinator.transactions.joint.preparing import PREPARES_A_TURN, Preparing
from quorumlog_broker.coordinator.transactions.state.joint_group import JointGroup
from quorumlog_broker.coordinator.transactions.state.states import States, TransactionTurn
from quorumlog_broker.coordinator.transactions.state.table import TransactionTable
from quorumlog_broker.coordinator.turn import Call


class Abort:
    """given_up: batches that a run has aborted as a whole."""

    def __init__(
        self, turn: TransactionTurn, table: TransactionTable, states: States, preparing: Preparing, given_up: GivenUp
    ) -> None:
        self._turn, self._table, self._states, self._preparing = turn, table, states, preparing
        self._given_up = given_up

    def call(self, call: Call, request: AbortJointRequest) -> Sliced[None] | None:
        """In steps of `PREPARES_A_TURN` children. A child whose first record is not committed is aborted, too: in the
        log its abort comes behind it."""
        found = invalid_abort(request) or cannot_be_asked(request.group_id, self._states)
        group = self._table.joint_groups.get(request.group_id, JointGroup())
        if found is not None:
            response = AbortJointResponse(error_code=found.code, error_message=found.text)
            self._turn.answer(call.number, response)
        elif _is_decided(group, request.sequence):
            self._turn.answer(call.number, AbortJointResponse(decided=True))
        else:
            if request.run and not request.token:
                self._given_up.add(GivenUpKey(request.group_id, request.run, request.sequence))
            return begin(self._abort(call, request, group))
        return None

    def _abort(self, call: Call, request: AbortJointRequest, group: JointGroup) -> Sliced[None]:
        aborted = 0
        for number, slot in enumerate([*group.open]):
            if number and number % PREPARES_A_TURN == 0:
                yield
            child = self._open_child(group, slot)
            if child is not None and _is_meant(child, request):
                self._preparing.abort(group.ids[slot], Cause.ABORTED)
                aborted += 1
        self._turn.answer_after_commit(call.number, AbortJointResponse(aborted=aborted))

    def _open_child(self, group: JointGroup, slot: int) -> JointChild | None:
        """None: it has ended between two steps."""
        value = self._table.get(group.ids[slot]) if slot in group.open else None
        return None if value is None else value.joint


def _is_decided(group: JointGroup, sequence: int) -> bool:
    """Of a stream, also what lies below the last decision."""
    decision = group.decision
    if decision is None:
        return False
    return sequence == decision.sequence or (decision.kind == JointKind.STREAM and sequence < decision.sequence)


def _is_meant(child: JointChild, request: AbortJointRequest) -> bool:
    return (
        child.sequence == request.sequence
        and child.location == request.location
        and request.run in ("", child.run)
        and request.token in (b"", child.token)
    )
