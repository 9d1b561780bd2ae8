"""BeginJoint: a child for each attempt. It opens one, or gives the same one again by its token, and aborts nobody.

Ids of children: the ordinary hash of each gives the partition of its group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count, product

from quorumlog.errors import ErrorCode
from quorumlog.messages.joint import BeginJointRequest, BeginJointResponse
from quorumlog.records.coordinator.joint import Cause, GivenUpKey, JointChild
from quorumlog.records.coordinator.transactions import TransactionValue
from quorumlog.settings.transactions import TransactionConfig
from quorumlog_broker.coordinator.placement import java_hash, kafka_abs, partition_of
from quorumlog_broker.coordinator.transactions.joint.checks import (
    Refusal,
    cannot_be_asked,
    check,
    invalid_begin,
    no_room,
    too_low,
)
from quorumlog_broker.coordinator.transactions.joint.given_up import GivenUp
from quorumlog_broker.coordinator.transactions.state.joint_group import JointGroup
from quorumlog_broker.coordinator.transactions.state.states import States, TransactionTurn
from quorumlog_broker.coordinator.transactions.state.table import LAST_EPOCH, ONGOING, TransactionTable
from quorumlog_broker.coordinator.turn import Call
from quorumlog_quorum.metadata.features import JOINT_BEGINS
from quorumlog_storage.producers.producer_state import EPOCH_PER_TRANSACTION

PREFIX = "joint"
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def child_id(group: str, slot: int, partitions: int) -> str:
    """`joint:<group>:<slot>:<salt>`. partitions: that `__transaction_state` has. The same id for the same arguments.

    What follows the group may hold anything: whose child an id is, its record says, and never its name.
    """
    wanted = partition_of(group, partitions)
    begin = f"{PREFIX}:{group}:{slot}:"
    begun = java_hash(begin)
    for length in count(1):
        for salt in product(DIGITS, repeat=length):
            if kafka_abs(_hash_on(begun, salt)) % partitions == wanted:
                return begin + "".join(salt)
    raise AssertionError("salts of every length are there")


def _hash_on(begun: int, text: Iterable[str]) -> int:
    """`java_hash` of what has this hash and the text behind it, of one-unit characters. An id tries 50 salts."""
    for character in text:
        begun = (31 * begun + ord(character)) & 0xFFFF_FFFF
    return begun - (1 << 32) if begun >> 31 else begun


MAX_SLOTS_TRIED = 64  # by one call; 0.1 ms each
CAUSES: dict[int, str] = {  # newer software may know others
    Cause.TIMED_OUT: "it was open for longer than transactionTimeout",
    Cause.ABORTED: "AbortJoint has aborted it",
    Cause.NOT_NAMED: "a decision of the group did not name it",
}


class Begin:
    """new_producer_id: see `InitProducer`. partitions: that `__transaction_state` has. given_up: see `Abort`."""

    def __init__(
        self,
        turn: TransactionTurn,
        config: TransactionConfig,
        table: TransactionTable,
        states: States,
        new_producer_id: Callable[[], int | None],
        partitions: Callable[[], int],
        given_up: GivenUp,
    ) -> None:
        self._turn, self._config, self._table, self._states = turn, config, table, states
        self._new_producer_id, self._partitions, self._given_up = new_producer_id, partitions, given_up

    def call(self, call: Call, request: BeginJointRequest) -> None:
        found = invalid_begin(request, self._config.joint.max_timeout_ms)
        found = found or cannot_be_asked(request.group_id, self._states)
        group = self._table.joint_groups.get(request.group_id)
        decided = found or check(None if group is None else group.decision, request)
        if isinstance(decided, Refusal):
            self._refuse(call, decided)
        elif decided:
            self._turn.answer(call.number, BeginJointResponse(decided=True))
        elif group is not None and request.token in group.tokens:
            self._again(call, request, group.ids[group.tokens[request.token]])
        else:
            self._open(call, request, group or JointGroup())

    def _refuse(self, call: Call, refusal: Refusal) -> None:
        self._turn.answer(call.number, BeginJointResponse(error_code=refusal.code, error_message=refusal.text))

    # --- a token that is known ---

    def _again(self, call: Call, request: BeginJointRequest, transactional_id: str) -> None:
        value = self._table.get(transactional_id)
        assert value is not None and value.joint is not None
        child = value.joint
        if (child.run, child.sequence, child.location) != (request.run, request.sequence, request.location):
            text = f"the token is of run {child.run}, sequence {child.sequence}; draw one for each attempt"
            self._refuse(call, Refusal(ErrorCode.INVALID_REQUEST, text))
        elif value.transaction_status != ONGOING:
            self._refuse(call, Refusal(ErrorCode.CHILD_NOT_OPEN, not_open(transactional_id, value)))
        else:
            self._states.answer_read(transactional_id, call.number, _given(transactional_id, value, child))

    # --- a new token ---

    def _open(self, call: Call, request: BeginJointRequest, group: JointGroup) -> None:
        found = too_low(self._states, JOINT_BEGINS)
        if GivenUpKey(request.group_id, request.run, request.sequence) in self._given_up:
            text = (
                f"run {request.run} has aborted sequence {request.sequence} of {request.group_id}: its driver is done"
            )
            found = Refusal(ErrorCode.CHILD_NOT_OPEN, text)
        if found is None and group.is_empty:
            found = no_room(len(self._table.joint_groups), self._config.joint.max_groups)
        if found is not None:
            self._refuse(call, found)
            return
        given = self._slot(request.group_id, group)
        if isinstance(given, Refusal):
            self._refuse(call, given)
            return
        slot, transactional_id = given
        before = self._table.get(transactional_id)
        if before is None and len(self._table) >= self._config.max_ids:
            text = (
                f"there are {len(self._table)} ids here, the limit (transaction.coordinator.max.ids); each task of a "
                "batch needs one: write with fewer tasks, or raise it"
            )
            self._refuse(call, Refusal(ErrorCode.POLICY_VIOLATION, text))
            return
        producer = self._next_producer(before)
        if producer is None:
            text = "no producer id is at hand; try again soon"
            self._refuse(call, Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, text))
            return
        child = JointChild(request.group_id, slot, request.token, request.run, request.sequence, request.location)
        value = TransactionValue(
            *producer,
            request.timeout_ms,
            ONGOING,
            (),
            self._turn.wall_ms,
            self._turn.wall_ms,
            previous_producer_id=producer[0] if before is None else before.producer_id,
            client_transaction_version=EPOCH_PER_TRANSACTION,
            joint=child,
        )
        self._states.put(transactional_id, value)
        self._turn.answer_after_commit(call.number, _given(transactional_id, value, child))

    def _slot(self, name: str, group: JointGroup) -> tuple[int, str] | Refusal:
        """One whose last transaction has ended for good: if that of the first one has not, neither has another. Else a
        new one, unless somebody else has an id of its name."""
        slot = next(iter(group.idle), None)
        if slot is not None and not self._turn.is_pending(group.ids[slot]):
            return slot, group.ids[slot]
        partitions = self._partitions()
        for slot in range(group.next_slot, group.next_slot + MAX_SLOTS_TRIED):
            transactional_id = child_id(name, slot, partitions)
            if self._table.get(transactional_id) is None and not self._turn.is_pending(transactional_id):
                return slot, transactional_id
            group.next_slot = slot + 1  # so that no other call tries it
        text = (
            f"{MAX_SLOTS_TRIED} ids that slots of {name} would have, {transactional_id} the last one, are somebody "
            "else's; give the group another name (a sinkId or writeId)"
        )
        return Refusal(ErrorCode.POLICY_VIOLATION, text)

    def _next_producer(self, before: TransactionValue | None) -> tuple[int, int] | None:
        """Id and epoch: that of the last markers, which no batch has. Behind the last epoch, another id."""
        if before is not None and before.producer_epoch <= LAST_EPOCH:
            return before.producer_id, before.producer_epoch
        producer_id = self._new_producer_id()
        return None if producer_id is None else (producer_id, 0)


def not_open(transactional_id: str, value: TransactionValue | None) -> str:
    """Why a child is of no use any more."""
    if value is None or value.joint is None:
        return f"{transactional_id} is not known"
    why = CAUSES.get(value.joint.cause, "it has ended")
    return f"{transactional_id} of sequence {value.joint.sequence} is not open: {why}"


def _given(transactional_id: str, value: TransactionValue, child: JointChild) -> BeginJointResponse:
    return BeginJointResponse(
        slot=child.slot,
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
    )
