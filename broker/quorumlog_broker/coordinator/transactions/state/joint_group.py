"""What a coordinator knows of a joint group: its last decision, and in which state each slot's transaction is.

Everything follows from the records, in the order of the log:

1. A decision prepares every transaction of its group that is open at that place. From there on such a child is told as
   prepared, whatever the last record of its id says, until a later record of the id takes over.
2. So a core that decides and one that loads any subset which compaction leaves hold the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.records.coordinator.joint import Cause, JointChild, JointValue, unpack
from quorumlog.records.coordinator.transactions import NO_PRODUCER_ID, TransactionStatus, TransactionValue
from quorumlog_storage.producers.producer_state import EPOCH_PER_TRANSACTION

ONGOING = TransactionStatus.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT


SHARED_TEXTS = 8  # the group's name, and runs and locations of its newest children


class Foreseen(NamedTuple):
    """What becomes of the open children: whether each commits, and how many do."""

    by_slot: dict[int, bool]
    committing: int


class JointGroup:
    """Slots by the state of their last transaction; each is in one of `open`, `preparing`, `ending`, `idle`.

    open: not decided. preparing: decided, and the Prepare record is not written: to commit or to abort. ending: with
    the markers under way, to commit or to abort. ids: of each slot. tokens: of each slot's last transaction.

    decision: without its children, which may be many and are of no more use once the slots are in `preparing`.

    open has the producer's epoch of each.

    prepared_end: exclusive end of the Prepare records of the last decision. They are all in the log below it, if
    `preparing` is empty.
    """

    def __init__(self) -> None:
        self.decision: JointValue | None = None
        self.ids: dict[int, str] = {}
        self.tokens: dict[bytes, int] = {}
        self.open: dict[int, int] = {}
        self.preparing: dict[int, bool] = {}
        self.ending: dict[int, bool] = {}
        self.idle: dict[int, None] = {}  # the one that has rested for longest first
        self.prepared_end: Offset = 0
        self._committing = 0  # of preparing and ending
        self._token_of: dict[int, bytes] = {}
        self.next_slot = 0  # no id of the group has it or a higher one; it begins anew when there is none
        self._texts: dict[str, str] = {}  # of its children's values, the oldest first
        self._foreseen: tuple[bytes, Foreseen] | None = None  # by the children of a decision that comes in this turn
        self._watching: list[set[int]] = []  # of calls that are under way; one at most, unless a test is the owner

    @property
    def is_empty(self) -> bool:
        return self.decision is None and not self.ids

    @property
    def is_at_rest(self) -> bool:
        """No transaction of it is open, and no marker is missing."""
        return not (self.open or self.preparing or self.ending)

    @property
    def has_commits_under_way(self) -> bool:
        """A marker of its commits may be missing."""
        return self._committing > 0

    def shared(self, child: JointChild) -> JointChild:
        """The same child, with the texts that others have, too: each record is decoded to texts of its own."""
        share = self._share
        return JointChild(
            share(child.group),
            child.slot,
            child.token,
            share(child.run),
            child.sequence,
            share(child.location),
            child.cause,
        )

    def _share(self, text: str) -> str:
        found = self._texts.setdefault(text, text)
        if len(self._texts) > SHARED_TEXTS:
            del self._texts[next(iter(self._texts))]
        return found

    @contextmanager
    def watch(self) -> Iterator[set[int]]:
        """Slots that have a new record since, in a set that the caller may empty. A decision is none of theirs."""
        changed: set[int] = set()
        self._watching.append(changed)
        try:
            yield changed
        finally:
            self._watching = [one for one in self._watching if one is not changed]

    def foresee(self, children: bytes, decided: Foreseen) -> None:
        """What a decision with these children, packed, will make of all that is open: whoever writes it next has
        computed that over several turns, since one would be too short for 100,000 children."""
        assert len(decided.by_slot) == len(self.open), f"{len(decided.by_slot)} of {len(self.open)} are foreseen"
        self._foreseen = (children, decided)

    # --- replay ---

    def decide(self, decision: JointValue) -> None:
        """All children change in this step. The first decision of a large batch that a core makes is foreseen; one
        that it loads is not."""
        self.decision = replace(decision, children=b"")
        foreseen, self._foreseen = self._foreseen, None
        if foreseen is not None and not self.preparing and foreseen[0] == decision.children:
            decided = foreseen[1]
        else:
            decided = self._decided_by(decision)
        self._committing += decided.committing
        if self.preparing:
            self.preparing.update(decided.by_slot)
        else:
            self.preparing = decided.by_slot
        self.open = {}

    def _decided_by(self, decision: JointValue) -> Foreseen:
        """As few steps for each child as can be: all of them are in one turn."""
        epoch_of = dict(unpack(decision.children)).get
        decided = {slot: epoch_of(slot) == epoch for slot, epoch in self.open.items()}
        return Foreseen(decided, sum(decided.values()))

    def put(self, transactional_id: str, child: JointChild, status: int, epoch: int) -> None:
        """The newest record of a child. epoch: of its producer."""
        slot = child.slot
        if self.ids.get(slot) == transactional_id:
            transactional_id = self.ids[slot]  # and not another text that says the same
        self.remove(slot)
        self.next_slot = max(self.next_slot, slot + 1)
        self.ids[slot], self.tokens[child.token], self._token_of[slot] = transactional_id, slot, child.token
        if status == ONGOING:
            self.open[slot] = epoch
        elif status in (PREPARE_COMMIT, PREPARE_ABORT):
            self.ending[slot] = status == PREPARE_COMMIT
            self._committing += status == PREPARE_COMMIT
        else:
            self.idle[slot] = None

    def remove(self, slot: int) -> None:
        """Its record is gone, or another one takes its place."""
        for changed in self._watching:
            changed.add(slot)
        self._committing -= self.preparing.pop(slot, False) + self.ending.pop(slot, False)
        self.open.pop(slot, None)
        self.idle.pop(slot, None)
        if self.ids.pop(slot, None) is not None:
            token = self._token_of.pop(slot)
            if self.tokens.get(token) == slot:  # it may be at another one since: cleaners leave older records
                del self.tokens[token]
            if not self.ids:
                self.next_slot = 0


def prepared(value: TransactionValue, *, commits: bool, at_ms: int, cause: Cause = Cause.NONE) -> TransactionValue:
    """The next state of an open child. Its markers have the next epoch, as those of every transaction of TV2."""
    assert value.joint is not None and value.transaction_status == ONGOING
    return replace(
        value,
        producer_epoch=value.producer_epoch + 1,
        transaction_status=PREPARE_COMMIT if commits else PREPARE_ABORT,
        transaction_last_update_timestamp_ms=at_ms,
        previous_producer_id=value.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        client_transaction_version=EPOCH_PER_TRANSACTION,
        joint=replace(value.joint, cause=cause),
    )
