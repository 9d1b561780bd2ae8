"""A partition of `__transaction_state` whose ids are children of joint groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from quorumlog.messages.joint import (
    AbortJointRequest,
    BeginJointRequest,
    BeginJointResponse,
    CommitJointRequest,
    ForgetJointRequest,
    JointChildRef,
    JointFact,
    ListedJointGroup,
)
from quorumlog.slices import Sliced, at_once, begin
from quorumlog_broker.coordinator.transactions.state.completion import DecidedTransaction
from quorumlog_broker.coordinator.transactions.state.table import Partition
from quorumlog_broker.coordinator.turn import Call
from tests.broker.coordinator.transaction_world import TransactionWorld

G = "spark/q"
HERE, THERE = "/checkpoints/q", "/checkpoints/copy"
R1, R2, R3 = "run-1", "run-2", "run-3"
ROWS = {"rows": 7}


class Child(NamedTuple):
    """As its task knows it."""

    transactional_id: str
    slot: int
    producer: tuple[int, int]
    token: bytes

    @property
    def ref(self) -> JointChildRef:
        return JointChildRef(slot=self.slot, producer_epoch=self.producer[1], token=self.token)


class JointWorld(TransactionWorld):
    """Calls return their number, as those of the world that it extends."""

    def begin(self, sequence: int, token: bytes, run: str = R1, **more: Any) -> int:
        options = {"group_id": G, "location": HERE, "timeout_ms": 60_000, **more}
        return self.call("begin_joint", BeginJointRequest(run=run, sequence=sequence, token=token, **options))

    def commit(
        self, sequence: int, *children: Child, run: str = R1, facts: dict[str, int] | None = None, **more: Any
    ) -> int:
        options = {"group_id": G, "location": HERE, **more}
        named = tuple(JointFact(name=name, value=value) for name, value in (ROWS if facts is None else facts).items())
        refs = [child.ref for child in children]
        return self.commit_refs(sequence, refs, run=run, facts=named, **options)

    def commit_refs(self, sequence: int, refs: list[JointChildRef], run: str = R1, **more: Any) -> int:
        options = {"group_id": G, "location": HERE, **more}
        between = options.pop("between", None)
        request = CommitJointRequest(run=run, sequence=sequence, children=tuple(refs), **options)
        return self.call_long("commit_joint", request, between)

    def abort(self, sequence: int, **more: Any) -> int:
        options = {"group_id": G, "location": HERE, **more}
        return self.call_long("abort_joint", AbortJointRequest(sequence=sequence, **options))

    def forget(self, group_id: str = G) -> int:
        return self.call("forget_joint", ForgetJointRequest(group_id=group_id))

    def call_long(self, method: str, request: Any, between: Callable[[], None] | None = None) -> int:
        """All steps at once, unless something comes between them."""
        number = next(self._calls)
        call = Call(number, "c", "/127.0.0.1")
        if between is None:
            self.step(lambda: at_once(getattr(self.shard, method)(call, request) or iter(())))
            return number
        rest: list[Sliced[None] | None] = []
        self.step(lambda: rest.append(getattr(self.shard, method)(call, request)))
        while rest[0] is not None:
            between()
            if not self.run_step(rest[0]):
                break
        return number

    def abort_in_steps(self, sequence: int) -> tuple[int, Sliced[None]]:
        return self._in_steps("abort_joint", AbortJointRequest(group_id=G, location=HERE, sequence=sequence))

    def commit_in_steps(
        self, sequence: int, *children: Child, facts: dict[str, int] = ROWS
    ) -> tuple[int, Sliced[None]]:
        named = tuple(JointFact(name=name, value=value) for name, value in facts.items())
        refs = tuple(child.ref for child in children)
        request = CommitJointRequest(
            group_id=G, location=HERE, run=R1, sequence=sequence, children=refs, facts=named, commit_wait_ms=0
        )
        return self._in_steps("commit_joint", request)

    def _in_steps(self, method: str, request: Any) -> tuple[int, Sliced[None]]:
        """The call's first step, its number, and the others."""
        call = Call(next(self._calls), "c", "/127.0.0.1")
        rest: list[Sliced[None] | None] = []
        self.step(lambda: rest.append(getattr(self.shard, method)(call, request)))
        assert rest[0] is not None
        return call.number, rest[0]

    def run_step(self, steps: Sliced[None]) -> bool:
        """One of them; false: it was the last one."""
        rest: list[Sliced[None] | None] = []
        self.step(lambda: rest.append(begin(steps)))
        return rest[0] is not None

    def finish_steps(self, begun: tuple[int, Sliced[None]]) -> object:
        number, steps = begun
        self.step(at_once, steps)
        return self.answers[number]

    def decided_transactions(self) -> list[DecidedTransaction]:
        """Those whose markers are asked for, since the last look."""
        decided, self.decided = self.decided, []
        return decided

    def mark(self, one: DecidedTransaction, partition: Partition) -> None:
        """The leader has written the marker."""
        self.step(self.shard.marker_written, one.transactional_id, one.ending.producer_epoch, partition)

    # --- answers ---

    def told(self, number: int) -> int | None:
        """The code of a call; None: it waits."""
        return self.code(number) if number in self.answers else None

    def child(self, number: int, token: bytes) -> Child:
        answer = self.answers[number]
        assert isinstance(answer, BeginJointResponse) and answer.error_code == 0 and not answer.decided, answer
        return Child(answer.transactional_id, answer.slot, (answer.producer_id, answer.producer_epoch), token)

    def opened(self, sequence: int, token: bytes, **more: Any) -> Child:
        return self.child(self.begin(sequence, token, **more), token)

    def decide(self, sequence: int, *children: Child, **more: Any) -> None:
        assert self.code(self.commit(sequence, *children, **more)) == 0

    def listed_groups(self) -> dict[str, ListedJointGroup]:
        self._at()
        return {one.group_id: one for one in at_once(self.shard.list_joint())}

    def last(self) -> int:
        """The last sequence of the group; -1: none."""
        found = self.listed_groups().get(G)
        return -1 if found is None else found.sequence

    def describe_all(self, *children: Child) -> None:
        for child in children:
            self.call("describe", child.transactional_id)

    def state_of(self, child: Child) -> str:
        return self.described(child.transactional_id).state
