"""Clients that join, sync, commit, die and come back in any order, while the coordinator moves: what must always hold.

The clients follow the protocol as real ones do. The high watermark lags behind the log, and a failover cuts what is
above it. Numbers in brackets are the invariants that the text of a failure names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.settings.groups import GroupConfig
from quorumlog_broker.coordinator.groups.shard import GroupShard
from tests.broker.coordinator.group_world import REBALANCE_MS, SESSION_MS, G, GroupWorld, replay

STEPS, CLIENTS = 720, 4
PARKED_MS = 2 * REBALANCE_MS + 5 * SESSION_MS + 300_000  # [9] a new member's longest wait is part of it


@dataclass
class Client:
    """instance: of a static member. call: what it waits for: kind, number, since when."""

    name: str
    instance: str | None
    member_id: str = ""
    generation: int = -1
    is_synced: bool = False
    call: tuple[str, int, int] | None = None
    said: int = 0

    def forget(self) -> None:
        """Its process has ended, or it was told that its place is gone."""
        self.member_id, self.generation, self.is_synced, self.call = "", -1, False, None


@dataclass
class Transaction:
    """Of one producer. offset: the newest one in the open transaction. decision: its marker is on its way.

    is_broken: a write of it was lost, so it can only be aborted. decided: the offsets of those that were committed.
    reads: call -> acknowledged when it was asked.
    """

    offset: int | None = None
    next_offset: int = 0
    decision: bool | None = None
    is_broken: bool = False
    call: int | None = None
    acknowledged: int = -1
    decided: set[int] = field(default_factory=lambda: {-1})
    reads: dict[int, int] = field(default_factory=dict)

    def lose(self, parked: set[int]) -> None:
        if self.call in parked:
            self.call = None
            self.is_broken = self.decision is None
        for number in parked:
            self.reads.pop(number, None)


class Run:
    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.world = GroupWorld(GroupConfig(initial_rebalance_delay_ms=self.rng.choice([0, 3_000])), autocommit=False)
        self.clients = [Client(f"c{n}", f"i{n}" if n % 2 else None) for n in range(CLIENTS)]
        self.high_watermark = 0
        self.sent: dict[int, dict[str, bytes]] = {}  # generation -> what its leader assigned, once it was told
        self.offered: dict[int, list[dict[str, bytes]]] = {}
        self.leaders: dict[int, set[str]] = {}
        self.members: dict[tuple[str, int], Any] = {}  # what a leader of a generation was told
        self.newest_told = 0
        self.committing: dict[int, int] = {}  # call -> offset
        self.acknowledged = -1
        self.fetches: dict[int, int] = {}  # call -> acknowledged when it was asked
        self.next_offset = 0
        self.transaction = Transaction()
        self.counts = dict.fromkeys(("generations", "commits", "failovers", "reads", "transactions", "aborts"), 0)

    # --- one step ---

    def step(self) -> None:
        action = self.rng.choices(
            [self.act, self.commit_some, self.pass_time, self.fail_over, self.kill, self.read, self.transact],
            weights=[120, 40, 20, 1, 2, 16, 30],
        )[0]
        action()
        self.collect()
        self.check()

    def act(self) -> None:
        client = self.rng.choice(self.clients)
        if client.call is not None:
            return
        world, more = self.world, {"group_instance_id": client.instance}
        if client.generation < 0:
            self.join(client)
        elif not client.is_synced:
            self.sync(client)
        elif self.rng.random() < 0.1 and client.generation > 1:
            code = world.commit({("t", 0): 0}, client.member_id, client.generation - 1, **more)
            assert world.answers[code].topics[0].partitions[0].error_code != E.NONE, "[17] of an old generation"
        elif self.rng.random() < 0.5:
            self.next_offset += 1
            number = world.commit({("t", 0): self.next_offset}, client.member_id, client.generation, **more)
            client.call = ("commit", number, world.now_ms)
            self.committing[number] = self.next_offset
        elif self.rng.random() < 0.1:
            client.said += 1  # its subscription has changed
            client.generation, client.is_synced = -1, False
        else:
            self.heard(client, world.heartbeat(client.member_id, client.generation, **more))

    def join(self, client: Client) -> None:
        number = self.world.join(client.member_id, protocols=f"range:{client.said}", group_instance_id=client.instance)
        client.call = ("join", number, self.world.now_ms)

    def sync(self, client: Client) -> None:
        world = self.world
        assignments: dict[str, bytes] = {}
        if client.member_id in self.leaders.get(client.generation, set()):
            ids = [one.member_id for one in self.members[client.member_id, client.generation]]
            assignments = {one: f"{client.generation}:{one}".encode() for one in ids}
            self.offered.setdefault(client.generation, []).append(assignments)
        number = world.sync(client.member_id, client.generation, assignments, group_instance_id=client.instance)
        client.call = ("sync", number, world.now_ms)

    def commit_some(self) -> None:
        end = len(self.world.log)
        self.high_watermark = self.rng.randint(self.high_watermark, end)
        self.world.commit_to(self.high_watermark)

    def pass_time(self) -> None:
        self.world.pass_ms(self.rng.choice([100, 1_000, SESSION_MS // 2]))

    def fail_over(self) -> None:
        parked = set(self.world.shard.resigned())
        waiting = {client.call[1] for client in self.clients if client.call is not None}
        assert waiting - set(self.world.answers) <= parked, "[9] a call is lost"
        keep = self.rng.randint(self.high_watermark, len(self.world.log))
        self.world.fail_over(keep=keep)
        self.high_watermark = keep
        self.counts["failovers"] += 1
        for client in self.clients:
            if client.call is not None and client.call[1] in parked:
                client.call = None  # it asks again at the new coordinator
        self.transaction.lose(parked)
        for number in parked:
            self.committing.pop(number, None)
            self.fetches.pop(number, None)

    def kill(self) -> None:
        self.rng.choice(self.clients).forget()

    def read(self) -> None:
        self.fetches[self.world.fetch(("t", 0))] = self.acknowledged

    def transact(self) -> None:
        """A producer that commits offsets of another partition, one transaction after the other."""
        one, world = self.transaction, self.world
        if one.call is not None:
            return
        if one.decision is not None:  # its marker was lost: the coordinator of the transaction sends it again
            one.call = world.end(committed=one.decision)
        elif one.offset is None or self.rng.random() < 0.3:
            one.next_offset += 1
            one.offset = one.next_offset
            one.call = world.commit_in_transaction({("t", 1): one.offset})
        else:
            one.decision = self.rng.random() < 0.6 and not one.is_broken
            if one.decision:
                one.decided.add(one.offset)
            one.call = world.end(committed=one.decision)

    # --- answers ---

    def collect(self) -> None:
        answers = self.world.answers
        self.collect_transaction()
        for client in self.clients:
            if client.call is not None and client.call[1] in answers:
                kind, number, _ = client.call
                client.call = None
                getattr(self, f"on_{kind}")(client, number, answers[number])
        for number in [one for one in self.fetches if one in answers]:
            offset = answers[number].topics[0].partitions[0].committed_offset
            assert offset >= self.fetches.pop(number), "[4] an acknowledged commit is not read"
            self.counts["reads"] += 1

    def collect_transaction(self) -> None:
        one, answers = self.transaction, self.world.answers
        for number in [number for number in one.reads if number in answers]:
            read, known = answers[number].topics[0].partitions[0], one.reads.pop(number)
            if read.error_code != E.UNSTABLE_OFFSET_COMMIT:
                assert read.committed_offset >= known, "[31] a transaction has ended, and its offset is not read"
                assert read.committed_offset in one.decided, "[5] an offset of no committed transaction is read"
                one.acknowledged = max(one.acknowledged, read.committed_offset)  # [5] nothing that was read is undone
        if one.call is None or one.call not in answers:
            if self.rng.random() < 0.1:
                number = self.world.fetch(("t", 1), stable=self.rng.random() < 0.5)
                one.reads[number] = one.acknowledged
            return
        one.call, answer = None, answers[one.call]
        if one.decision is None:
            assert answer.topics[0].partitions[0].error_code == E.NONE
            return
        assert answer == E.NONE
        self.counts["transactions" if one.decision else "aborts"] += 1
        if one.decision and one.offset is not None:
            one.acknowledged = max(one.acknowledged, one.offset)
        one.offset, one.decision, one.is_broken = None, None, False

    def on_join(self, client: Client, _number: int, answer: Any) -> None:
        if answer.error_code == E.MEMBER_ID_REQUIRED:
            client.member_id = answer.member_id
        elif answer.error_code != E.NONE:
            self.heard(client, answer.error_code)
        else:
            client.member_id, client.generation = answer.member_id, answer.generation_id
            if answer.members or answer.leader == answer.member_id:
                self.leaders.setdefault(answer.generation_id, set()).add(answer.member_id)
                self.members[answer.member_id, answer.generation_id] = answer.members

    def on_sync(self, client: Client, _number: int, answer: Any) -> None:
        if answer.error_code != E.NONE:
            self.heard(client, answer.error_code)
            return
        client.is_synced = True
        generation = client.generation
        assert generation >= self.newest_told or client.instance or generation in self.sent, "[6] an old generation"
        if generation not in self.sent:
            assert generation > max(self.sent, default=0), "[6] a stable generation is older than another"
            self.counts["generations"] += 1
            self.sent[generation] = {}
        told = self.sent[generation]
        if answer.assignment:
            assert answer.assignment in [one.get(member, b"") for one in self.offered[generation] for member in one], (
                "[8] no leader assigned this"
            )
            owner = answer.assignment.decode().split(":", 1)[1]
            known = told.setdefault(owner, client.name.encode())
            assert known == client.name.encode(), "[8] two clients have one member's assignment"
        self.newest_told = max(self.newest_told, generation)

    def on_commit(self, client: Client, number: int, answer: Any) -> None:
        code = answer.topics[0].partitions[0].error_code
        offset = self.committing.pop(number)
        if code == E.NONE:
            assert client.is_synced, "[17] a member without a place has committed"
            self.acknowledged = offset if offset > self.acknowledged else self.acknowledged
            self.counts["commits"] += 1
        else:
            self.heard(client, code)

    def heard(self, client: Client, code: int) -> None:
        if code in (E.REBALANCE_IN_PROGRESS, E.ILLEGAL_GENERATION):
            client.generation, client.is_synced = -1, False
        elif code in (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID):
            client.forget()
        else:
            assert code == E.NONE, f"an answer that no client lives with: {code}"

    # --- what must hold ---

    def check(self) -> None:
        for client in self.clients:
            if client.call is not None:
                assert self.world.now_ms - client.call[2] <= PARKED_MS, f"[9] {client.call} is parked for ever"
        group = self.world.shard._groups.get(G)
        if group is not None:
            assert bool(group.members) or group.state.value in ("Empty", "Dead", "PreparingRebalance"), "[10]"
            assert not group.members or group.state.value != "Empty", "[10] an empty group has members"
            assert group.waiting_joins == sum(one.join is not None for one in group.members.values())
            assert group.leader is None or group.leader in group.members
            assert set(group.static.values()) <= set(group.members)

    def check_replay(self) -> None:
        """[2] What is durable follows from the log alone."""
        fresh = GroupShard(self.world.config, str)
        replay(self.world.log, fresh)
        live = self.world.shard
        assert fresh._values == live._values
        assert fresh._offsets._groups == live._offsets._groups
        assert fresh._offsets.pending._producers == live._offsets.pending._producers, "[29]"
        assert fresh._offsets.pending._groups == live._offsets.pending._groups, "[29]"


@pytest.mark.parametrize("seed", range(60))
def test_what_must_always_hold(seed: int) -> None:
    run = Run(seed)
    for _ in range(STEPS):
        run.step()
    run.check_replay()
    settle(run)


def settle(run: Run) -> None:
    """[9, 15] Once nothing fails any more, every client has a place in one stable generation."""
    for _ in range(400):
        run.high_watermark = len(run.world.log)
        run.world.commit_to(run.high_watermark)
        for client in run.clients:
            if client.call is not None:
                continue
            if client.is_synced:
                code = run.world.heartbeat(client.member_id, client.generation, group_instance_id=client.instance)
                run.heard(client, code)
            elif client.generation >= 0:
                run.sync(client)
            else:
                run.join(client)
        run.world.commit_to(len(run.world.log))
        run.collect()
        run.check()
        run.world.pass_ms(1_000)
    assert {client.generation for client in run.clients} == {max(run.sent)}, run.clients
    assert all(client.is_synced for client in run.clients)


def test_the_runs_exercise_what_they_check() -> None:
    total: dict[str, int] = {}
    for seed in range(20):
        run = Run(seed)
        for _ in range(STEPS):
            run.step()
        for name, count in run.counts.items():
            total[name] = total.get(name, 0) + count
    assert total["generations"] >= 100 and total["commits"] >= 100, total
    assert total["failovers"] >= 50 and total["reads"] >= 100, total
    assert total["transactions"] >= 100 and total["aborts"] >= 50, total
