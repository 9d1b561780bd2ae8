"""Drivers and tasks of several runs at once, with lost calls, failovers, compaction and time: what must always hold.

What is committed is read by a second, simpler reader, record by record. Numbers in brackets are the invariants of
decision 112.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from quorumlog.errors import ErrorCode as E
from quorumlog.messages.joint import JointChildRef, JointFact
from quorumlog.records.coordinator import TRANSACTION_TYPES, decode
from quorumlog.records.coordinator.joint import GivenUpKey, JointChild, JointKey, JointValue, unpack
from quorumlog.records.coordinator.transactions import TransactionStatus as S
from quorumlog.settings.transactions import JointConfig, TransactionConfig
from quorumlog_broker.coordinator.turn import Write
from tests.broker.coordinator.joint.joint_world import HERE, THERE, Child, JointWorld
from tests.broker.coordinator.transaction_world import A, B
from tests.parts import few

PREPARED = {S.PREPARE_COMMIT: True, S.PREPARE_ABORT: False}
COMPLETE = {S.COMPLETE_COMMIT: True, S.COMPLETE_ABORT: False}
SHORT_OR_LONG = st.sampled_from([60_000, 10**9])
Key = tuple[str, int, int]
"""A child: transactional id, producer id, epoch."""


@dataclass
class History:
    """What the committed records say, of one group. open: children that nothing has ended, by slot."""

    decisions: list[JointValue] = field(default_factory=list)  # since the group was forgotten
    told: dict[int, dict[str, int]] = field(default_factory=dict)  # the facts of each sequence
    children: dict[Key, JointChild] = field(default_factory=dict)
    open: dict[int, Key] = field(default_factory=dict)
    wanted: dict[Key, bool] = field(default_factory=dict)  # what a decision says of a child that was open
    ended: dict[Key, bool] = field(default_factory=dict)
    completed: set[Key] = field(default_factory=set)
    given_up: set[tuple[str, int]] = field(default_factory=set)  # run and sequence

    def read(self, write: Write) -> None:
        record = decode(TRANSACTION_TYPES, write.key, write.value)
        if isinstance(record.key, JointKey):
            self._forgotten() if record.value is None else self._decided(record.value)
            return
        if isinstance(record.key, GivenUpKey):
            self.given_up.add((record.key.run, record.key.sequence))
            return
        if record.value is None:
            open_ids = {key[0] for key in self.open.values()}
            assert record.key.transactional_id not in open_ids, "[5] an id is forgotten that is open"
            return
        name, value = record.key.transactional_id, record.value
        status, child = S(value.transaction_status), value.joint
        if status == S.ONGOING:
            key = (name, value.producer_id, value.producer_epoch)
            assert key not in self.ended, f"[5] {key} is open again"
            assert self.open.get(child.slot, key) == key, f"{key} has the slot of {self.open[child.slot]}"
            is_new = key not in self.children
            assert not is_new or (child.run, child.sequence) not in self.given_up, f"[8] {key} begins behind its abort"
            self.children[key], self.open[child.slot] = child, key
            return
        key = (name, value.producer_id, value.producer_epoch - 1)
        commits = PREPARED[status] if status in PREPARED else COMPLETE[status]
        assert self.ended.setdefault(key, commits) == commits, f"[2] {key} ends twice"
        assert commits == self.wanted.get(key, False), f"[2] {key} commits: {commits}"
        self.open.pop(child.slot, None)
        if status in COMPLETE:
            self.completed.add(key)

    def _forgotten(self) -> None:
        assert not self.open and {*self.wanted} <= self.completed, "a group is forgotten that is open"
        self.decisions = []

    def _decided(self, decision: JointValue) -> None:
        sequences = {one.sequence for one in self.decisions}
        assert decision.sequence not in sequences, f"[1] {decision.sequence} is decided twice"
        assert not sequences or decision.sequence > max(sequences), "[1] a sequence below the last"
        runs = [one.run for one in self.decisions]
        assert decision.run not in runs or runs[-1] == decision.run, f"[3] run {decision.run} was superseded"
        assert not self.unprepared, f"compaction may take a decision whose children are not prepared: {self.unprepared}"
        named = dict(unpack(decision.children))
        for slot, epoch in named.items():
            key = self.open.get(slot)
            assert key is not None and key[2] == epoch, f"[2] slot {slot} is named, and is not open"
            assert self.children[key].sequence == decision.sequence, f"[2] {key} is of another sequence"
        for slot, key in self.open.items():
            self.wanted[key] = slot in named
        self.decisions.append(decision)
        self.told[decision.sequence] = {fact.name: fact.value for fact in decision.facts}

    @property
    def unprepared(self) -> list[Key]:
        return [key for key in self.wanted if key not in self.ended]

    def expected(self, run: str, sequence: int, location: str, first_batch: int) -> E | str:
        """The answer of both calls, where nothing is pending."""
        following = 0
        if self.decisions:
            last = self.decisions[-1]
            if location != last.location:
                return E.CHECKPOINT_COPIED
            if run != last.run and run in {one.run for one in self.decisions}:
                return E.SUPERSEDED
            if sequence < last.sequence:
                return E.CHECKPOINT_ROLLED_BACK
            if sequence == last.sequence:
                return "decided"
            following = last.sequence + 1
        return "next" if sequence in (following, first_batch) else E.DECISION_MISSING


@dataclass
class Attempt:
    token: bytes
    run: str
    sequence: int
    location: str
    child: Child | None = None


def left_by_cleaner(log: list[Write], below: int, rng: Random) -> Iterator[int]:
    """Offsets that remain. Of four segments below `below` some are cleaned: the last record of each key remains in
    them; of a tombstone that may leave, too, once nothing is left that it hides."""
    last = {write.key: offset for offset, write in enumerate(log[:below])}
    cuts = [rng.randint(0, below) for _ in range(3)]
    cleaned = [rng.random() < 0.7 for _ in range(4)]
    left: set[bytes] = set()
    for offset, write in enumerate(log):
        is_cleaned = offset < below and cleaned[sum(cut <= offset for cut in cuts)]
        is_over = write.value is None and write.key not in left and rng.random() < 0.5
        if is_cleaned and (last[write.key] != offset or is_over):
            continue
        left.add(write.key)
        yield offset


class Joint(RuleBasedStateMachine):
    """high_watermark: what is committed; nothing undoes it."""

    @initialize(last_epoch=st.sampled_from([2, 1_000]), ids_last_ms=SHORT_OR_LONG, groups_last_ms=SHORT_OR_LONG)
    def start(self, last_epoch: int, ids_last_ms: int, groups_last_ms: int) -> None:
        self.patch = pytest.MonkeyPatch()
        for module in ("state.table", "state.states", "joint.begin"):
            self.patch.setattr(f"quorumlog_broker.coordinator.transactions.{module}.LAST_EPOCH", last_epoch)
        self.patch.setattr("quorumlog_broker.coordinator.transactions.joint.preparing.PREPARES_A_TURN", 2)
        self.patch.setattr("quorumlog_broker.coordinator.transactions.joint.commit.CHILDREN_A_STEP", 1)
        config = TransactionConfig(expiration_ms=ids_last_ms, joint=JointConfig(expiration_ms=groups_last_ms))
        self.world = JointWorld(config, autocommit=False, automark=False)
        self.loaded_end = 0  # until the high watermark is there, every call is refused
        self.history, self.high_watermark = History(), 0
        self.runs = ["run-0"]
        self.attempts: list[Attempt] = []
        self.begun: dict[int, Attempt] = {}
        self.commits: dict[int, tuple[int, dict[str, int]]] = {}
        self.aborts: dict[int, int] = {}
        self.of_token: dict[bytes, Child] = {}

    def teardown(self) -> None:
        """Everything ends, whatever has become of the drivers."""
        if not hasattr(self, "world"):
            return
        world = self.world
        world.autocommit = world.automark = True
        world.settle()
        world.pass_ms(400_000)
        self.high_watermark = len(world.log)
        self.read_committed()
        states = {name: world.described(name).state for name in world.listed()}
        assert not {"Ongoing", "PrepareCommit", "PrepareAbort"} & {*states.values()}, f"[5] {states}"
        assert not self.history.open and not self.history.unprepared, "[5]"
        assert self.history.completed == {*self.history.children}, "[5]"
        assert all(one.ending == 0 and not one.open for one in world.listed_groups().values())
        self.patch.undo()

    # --- what is known ---

    def last(self) -> int:
        return self.history.decisions[-1].sequence if self.history.decisions else -1

    def decision_is_pending(self) -> bool:
        tail = self.world.log[self.high_watermark :]
        return any(isinstance(decode(TRANSACTION_TYPES, write.key, None).key, JointKey | GivenUpKey) for write in tail)

    def read_committed(self) -> None:
        for write in self.world.log[self.read_to : self.high_watermark]:
            self.history.read(write)
        self.read_to = self.high_watermark
        self.look_at_answers()

    read_to = 0

    def look_at_answers(self) -> None:
        answers = self.world.answers
        for number in [number for number in self.begun if number in answers]:
            attempt, answer = self.begun.pop(number), answers[number]
            if answer.error_code == 0 and not answer.decided:
                self.given(attempt, self.world.child(number, attempt.token))
        for number in [number for number in self.commits if number in answers]:
            sequence, facts = self.commits.pop(number)
            if answers[number].error_code == 0:
                told = self.history.told.get(sequence)
                assert told == facts, f"[1] told that {sequence} is decided with {facts}: {told}"
        for number in [number for number in self.aborts if number in answers]:
            sequence = self.aborts.pop(number)
            if answers[number].error_code == 0:
                assert answers[number].decided == (sequence <= self.last()) or not answers[number].decided

    def given(self, attempt: Attempt, child: Child) -> None:
        key = (child.transactional_id, *child.producer)
        assert key in self.history.children, f"{key} is told and not committed"
        assert self.history.children[key].token == attempt.token, f"[4] {key} is of another token"
        before = self.of_token.get(attempt.token, child)
        if before != child:  # its slot was given to another attempt meanwhile
            ended = self.history.ended.get((before.transactional_id, *before.producer))
            assert ended is False, f"[4] a token has got {before} and {child}"
        self.of_token[attempt.token] = attempt.child = child

    def states(self) -> dict[str, Any]:
        return {name: self.world.shard._table.get(name) for name in self.world.listed()}

    # --- steps ---

    @rule()
    @precondition(lambda self: len(self.runs) < 5)
    def another_run_starts(self) -> None:
        self.runs.append(f"run-{len(self.runs)}")

    @rule(
        run=st.integers(0, 4),
        ahead=st.sampled_from([1, 1, 1, 1, 0, -1, 2, 5]),
        location=st.sampled_from([HERE] * 9 + [THERE]),
        is_first=st.sampled_from([False, False, False, True]),
    )
    def begin(self, run: int, ahead: int, location: str, is_first: bool) -> None:
        attempt = Attempt(
            b"token %d" % len(self.attempts), self.runs[-1 - run % len(self.runs)], self.last() + ahead, location
        )
        self.attempts.append(attempt)
        if attempt.sequence >= 0:
            self.ask_begin(attempt, attempt.sequence if is_first else -1)

    @rule(data=st.data())
    @precondition(lambda self: self.attempts)
    def begin_again(self, data: st.DataObject) -> None:
        """The answer was lost."""
        attempt = data.draw(st.sampled_from(self.attempts))
        if attempt.sequence >= 0:
            self.ask_begin(attempt, attempt.sequence)

    def ask_begin(self, attempt: Attempt, first_batch: int) -> None:
        world, before = self.world, self.states()
        want = self.wanted(attempt.run, attempt.sequence, attempt.location, first_batch)
        number = world.begin(
            attempt.sequence, attempt.token, run=attempt.run, location=attempt.location, first_batch=first_batch
        )
        self.begun[number] = attempt
        self.compare(number, want, {E.CHILD_NOT_OPEN})
        after = self.states()
        changed = [name for name in after if after[name] != before.get(name)]
        assert len(changed) <= 1, f"a BeginJoint has changed {changed}"
        for name in changed:
            assert before.get(name) is None or before[name].transaction_status in COMPLETE, f"{name} was open"
        self.look_at_answers()

    def wanted(self, run: str, sequence: int, location: str, first_batch: int) -> E | str:
        if self.high_watermark < self.loaded_end:
            return E.COORDINATOR_LOAD_IN_PROGRESS
        if self.decision_is_pending():
            return E.CONCURRENT_TRANSACTIONS
        return self.history.expected(run, sequence, location, first_batch)

    def is_answered_with(self, number: int, code: E) -> bool:
        answer = self.world.answers.get(number)
        return answer is not None and answer.error_code == code

    def compare(self, number: int, want: E | str, others: set[E]) -> None:
        answer = self.world.answers.get(number)
        code = E.NONE if answer is None else answer.error_code
        if isinstance(want, E):
            assert code == want
        elif want == "decided":
            assert code in (E.NONE, E.REPLAY_DIFFERS)
        else:
            assert code == E.NONE or code in others

    @rule(run=st.sampled_from([0, 0, 0, 1]), tasks=st.integers(1, 4), writes=st.booleans())
    def a_stage_begins(self, run: int, tasks: int, writes: bool) -> None:
        """All tasks of the next batch, as a driver that lives has it."""
        name, sequence = self.runs[-1 - run % len(self.runs)], self.last() + 1
        for _ in range(tasks):
            self.attempts.append(Attempt(b"token %d" % len(self.attempts), name, sequence, HERE))
            self.ask_begin(self.attempts[-1], -1)
        self.replicate(100)
        for attempt in self.attempts[-tasks:] if writes else ():
            if attempt.child:
                self.world.add(attempt.child.producer, A, transactional_id=attempt.child.transactional_id)
        self.replicate(100)

    @rule(
        run=st.sampled_from([0, 0, 0, 1]),
        tasks=st.integers(0, 4),
        strays=st.integers(0, 2),
        drops=st.integers(0, 1),
        records=st.integers(0, 8),
    )
    def a_batch(self, run: int, tasks: int, strays: int, drops: int, records: int) -> None:
        """From its first task to CommitJoint, beside tasks of an earlier run; the driver leaves `drops` out."""
        self.a_stage_begins(run, tasks, writes=True)
        self.a_stage_begins(1, strays, writes=strays > 1)
        self.commit(run, 1, HERE, 7, min(drops, max(tasks - 1, 0)), "", 0)
        self.replicate(records)

    @rule(data=st.data())
    @precondition(lambda self: any(one.child for one in self.attempts))
    def write(self, data: st.DataObject) -> None:
        attempt = data.draw(st.sampled_from([one for one in self.attempts if one.child]))
        assert attempt.child is not None
        partition = data.draw(st.sampled_from([A, B]))
        self.world.add(attempt.child.producer, partition, transactional_id=attempt.child.transactional_id)

    @rule(
        run=st.sampled_from([0, 0, 0, 1, 2]),
        ahead=st.sampled_from([1, 1, 1, 1, 1, 0, -1, 2]),
        location=st.sampled_from([HERE] * 9 + [THERE]),
        rows=st.sampled_from([7, 7, 7, 8]),
        drops=st.sampled_from([0, 0, 0, 1]),
        wrong=st.sampled_from(["", "", "", "", "token", "epoch", "other"]),
        wait_ms=st.sampled_from([0, 5_000]),
        between=st.sampled_from(["", "", "time", "records", "a partition", "markers"]),
    )
    def commit(
        self,
        run: int,
        ahead: int,
        location: str,
        rows: int,
        drops: int,
        wrong: str,
        wait_ms: int,
        between: str = "",
    ) -> None:
        name, sequence = self.runs[-1 - run % len(self.runs)], self.last() + ahead
        if sequence < 0:
            return
        mine = {
            one.child.slot: one.child
            for one in self.attempts
            if one.child and (one.run, one.sequence, one.location) == (name, sequence, location)
        }
        if not mine and drops == 0 and ahead == 1:
            return  # a batch without rows is decided now and then only
        refs = [child.ref for child in mine.values()][drops:]
        refs = [*self.spoilt(refs, wrong, sequence)]
        wants = [self.wanted(name, sequence, location, -1)]

        def between_steps() -> None:
            self.something_happens(between, [*mine.values()])
            wants.append(self.wanted(name, sequence, location, -1))

        facts = {"rows": rows}
        named = tuple(JointFact(name=fact, value=value) for fact, value in facts.items())
        number = self.world.commit_refs(
            sequence,
            refs,
            run=name,
            location=location,
            facts=named,
            commit_wait_ms=wait_ms,
            between=between_steps,
        )
        self.commits[number] = (sequence, facts)
        others = {E.CHILD_NOT_OPEN, E.CONCURRENT_TRANSACTIONS}
        want = wants[0]
        if want is E.CONCURRENT_TRANSACTIONS and not self.is_answered_with(number, want):
            want = next((one for one in wants if one is not want), want)  # committed while the request was read
        self.compare(number, want, others)
        if wrong and refs and want == "next":
            assert self.world.answers[number].error_code in (E.CHILD_NOT_OPEN, E.CONCURRENT_TRANSACTIONS)
        self.look_at_answers()

    def something_happens(self, what: str, children: list[Child]) -> None:
        """Between two steps of a CommitJoint, in which no other call of its group is taken."""
        if what == "time":
            self.world.pass_ms(10_000)
        elif what == "records":
            self.replicate(1)
        elif what == "markers":
            self.write_markers(100)
        elif what == "a partition" and children:
            child = children[-1]
            self.world.add(child.producer, B, transactional_id=child.transactional_id)

    def spoilt(self, refs: list[JointChildRef], wrong: str, sequence: int) -> Iterator[JointChildRef]:
        for number, ref in enumerate(refs):
            token, epoch = ref.token, ref.producer_epoch
            if wrong == "token" and number == 0:
                token = b"nobody's"
            elif wrong == "epoch" and number == 0:
                epoch += 1
            if not (wrong == "other" and number == 0):
                yield JointChildRef(slot=ref.slot, producer_epoch=epoch, token=token)
        if wrong == "other" and refs:
            yield JointChildRef(slot=10_000 + sequence, producer_epoch=0, token=b"nobody's")

    @rule(run=st.sampled_from([0, 0, 1, None]), ahead=st.sampled_from([1, 1, 0, -1]), often=st.integers(0, 2))
    def abort(self, run: int | None, ahead: int, often: int) -> None:
        if often:
            return
        sequence = self.last() + ahead
        name = "" if run is None else self.runs[-1 - run % len(self.runs)]
        number = self.world.abort(sequence, run=name)
        self.aborts[number] = sequence
        self.look_at_answers()

    @rule(records=st.sampled_from([1, 2, 3, 100, 100]))
    def replicate(self, records: int) -> None:
        self.high_watermark = min(len(self.world.log), self.high_watermark + records)
        self.world.commit_to(self.high_watermark)
        self.read_committed()

    @rule(count=st.sampled_from([1, 3, 100]))
    def write_markers(self, count: int) -> None:
        decided, self.world.decided = self.world.decided[:count], self.world.decided[count:]
        for one in decided:
            value = self.world.shard._table.get(one.transactional_id)
            assert value is not None
            key = (one.transactional_id, one.ending.producer_id, one.ending.producer_epoch - 1)
            assert self.history.ended.get(key) == one.ending.committed, f"[2] a marker of {key}, which is not committed"
            for partition in one.partitions:
                self.world.mark(one, partition)
        self.look_at_answers()

    @rule(ms=st.sampled_from([1, 1, 1_000, 30_000, 100_000]))
    def time_passes(self, ms: int) -> None:
        self.world.pass_ms(ms)
        self.look_at_answers()

    @rule(how=st.sampled_from(["", "", "", "by name", "by time"]))
    def what_rests_is_forgotten(self, how: str) -> None:
        """What was told of it is over: a token may get another child, and a sequence may be decided again."""
        if how == "by name":
            self.world.forget()
        elif how == "by time":
            self.world.pass_ms(100_000)
            self.world.step(self.world.shard.expire)
        if how:
            self.replicate(len(self.world.log))
        if how and not self.history.decisions:
            self.of_token = {}

    @rule(lost=st.integers(0, 100), compacts=st.integers(0, 100), seed=st.integers(0, 1_000_000))
    def another_coordinator_loads(self, lost: int, compacts: int, seed: int) -> None:
        """Of what is not committed some is lost. Of what is, a cleaner has been over a part."""
        world = self.world
        keep = max(self.high_watermark, len(world.log) - lost % 8)
        world.log, world.decided = world.log[:keep], []
        world.coordinator_epoch += 1
        world.shard = world._new_shard()
        for offset in left_by_cleaner(world.log, self.high_watermark * compacts // 100, Random(seed)):
            write = world.log[offset]
            world.shard.replay_bytes(offset, write.key, write.value)
        world.shard.loaded(len(world.log))
        self.loaded_end = len(world.log)
        self.begun.clear()
        self.commits.clear()
        self.aborts.clear()
        world.commit_to(self.high_watermark)
        world.step(world.shard.timers_due)

    @invariant()
    def live_and_loaded_hold_the_same(self) -> None:
        """[6]: what a core would load from the whole log is what the one that wrote it holds."""
        if not hasattr(self, "world"):
            return
        other = self.world._new_shard()
        for offset, write in enumerate(self.world.log):
            other.replay_bytes(offset, write.key, write.value)
        mine, loaded = self.world.shard._table, other._table
        assert dict(mine.items()) == dict(loaded.items())
        assert [*mine.given_up.items()] == [*loaded.given_up.items()]
        for name, group in mine.joint_groups.items():
            found = loaded.joint_groups[name]
            assert (group.decision, group.ids, group.tokens) == (found.decision, found.ids, found.tokens)
            for state in ("open", "preparing", "ending", "idle"):
                assert {*getattr(group, state)} == {*getattr(found, state)}, state
            assert group.has_commits_under_way == found.has_commits_under_way


TestJoint = Joint.TestCase
TestJoint.settings = settings(max_examples=few(100), stateful_step_count=40, deadline=None)
