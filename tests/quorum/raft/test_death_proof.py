"""Which probes prove that the process of a leader has ended, and of which epoch the proof is."""

from __future__ import annotations

import asyncio
from typing import Any

from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS, Scheduler
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, Answered, NoProof, ProbeResult, Refused
from quorumlog_quorum.node.death_proof import DeathProof

LEADER = 1
FIRST, SECOND = Answered(LEADER, b"first process.."), Answered(LEADER, b"second process.")


class Bench:
    """A proof whose probes the test answers, in the order in which they began."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(seed=1)
        self.loop = SimLoop(self.scheduler, "a")
        self.probes: list[asyncio.Future[ProbeResult]] = []
        self.dead: list[tuple[int, int]] = []
        bench: Any = self
        self.proof = DeathProof(
            transport=bench, peers=bench, nursery=Nursery(self._crash), on_dead=lambda *proof: self.dead.append(proof)
        )

    def address_of(self, node_id: int) -> Address:
        return Address("h", node_id)

    async def probe(self, address: Address, timeout_ms: int) -> ProbeResult:
        self.probes.append(self.loop.create_future())
        return await self.probes[-1]

    def learn(self, epoch: int) -> None:
        self._do(lambda: self.proof.learn_incarnation(LEADER, epoch))

    def suspect(self, epoch: int) -> None:
        self._do(lambda: self.proof.suspect(LEADER, epoch))

    def answer(self, result: ProbeResult) -> None:
        """To the oldest probe. Whatever follows within 60 ms happens."""
        self._do(lambda: self.probes.pop(0).set_result(result))

    def _do(self, action: Any) -> None:
        async def call() -> None:
            action()

        self.loop.run_until_complete(call())
        self.scheduler.run_for(60 * NS_PER_MS)

    def _crash(self, name: str, error: BaseException) -> None:
        raise AssertionError(name) from error


def reached(epoch: int, process: Answered = FIRST) -> Bench:
    bench = Bench()
    bench.learn(epoch)
    bench.answer(process)
    return bench


def test_two_refusals_prove_the_death_of_a_process_that_was_reached() -> None:
    bench = reached(5)
    bench.suspect(5)
    bench.answer(Refused())
    assert bench.dead == []
    bench.answer(Refused())
    assert bench.dead == [(LEADER, 5)]


def test_an_answer_of_another_process_proves_it_and_silence_proves_nothing() -> None:
    bench = reached(5)
    for result in (NoProof("silence"), FIRST, SECOND):
        assert bench.dead == []
        bench.suspect(5)
        bench.answer(result)
    assert bench.dead == [(LEADER, 5)]


def test_a_proof_is_of_the_epoch_in_which_its_probe_began() -> None:
    bench = reached(5)
    bench.suspect(5)
    bench.answer(Refused())
    bench.learn(7)  # between the two refusals: the node runs again, and was elected again
    bench.answer(Refused())
    assert bench.dead == [(LEADER, 5)]


def test_a_process_that_was_reached_in_an_earlier_epoch_says_nothing_about_the_leader() -> None:
    bench = reached(5, FIRST)
    bench.learn(7)
    bench.answer(NoProof("silence"))
    bench.suspect(7)
    bench.answer(SECOND)  # the process that was elected in epoch 7, and lives
    assert bench.dead == []
    bench.suspect(7)
    bench.answer(Refused())
    bench.answer(Refused())
    assert bench.dead == [(LEADER, 7)], "it has been reached in this epoch now"


def test_a_node_that_is_elected_again_during_a_probe_is_reached_in_its_new_epoch() -> None:
    bench = Bench()
    bench.learn(5)
    bench.learn(7)
    assert len(bench.probes) == 1
    bench.answer(FIRST)
    bench.answer(SECOND)
    bench.suspect(7)
    bench.answer(FIRST)
    assert bench.dead == [(LEADER, 7)]
    assert not bench.probes
