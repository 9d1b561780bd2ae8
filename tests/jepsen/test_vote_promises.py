"""What a voter claims of its log was synced when it made the request, also if the request leaves later.

A request waits on its host until the connection is proven. `./dev sim --seed 980165 --profile elections --seconds 120`
has one: a leader that was paused for 8.6 s hears of two successors at once, and truncates for the second one before its
fetch from the first one leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.metadata.vote_promises import VotePromises
from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.network.message import Message, Phase
from quorumlog.ids import Epoch, Offset
from quorumlog.messages.quorum import QuorumFetchRequest, VoteRequest
from quorumlog.proof.call_proof import MAC_BYTES
from quorumlog.rpc.calls import BY_REQUEST, OLDER

HOST, EPOCH, SYNCED = "c2", 19, 405
FETCH, VOTE = "sync-before-quorum-fetch", "votes-on-synced-tail"


@dataclass
class Voter:
    """A voter in an epoch, whose log is synced up to some end."""

    epoch: Epoch = EPOCH - 1
    synced: Offset = SYNCED
    life: int = 1
    findings: Findings = field(default_factory=lambda: Findings(lambda: 0))

    def __post_init__(self) -> None:
        self.machine = SimpleNamespace(
            host=HOST, life=1, node_id=2, disk=SimDisk(), config=SimpleNamespace(is_controller=True)
        )
        mirror = SimpleNamespace(durable_end=lambda: self.synced)
        mirrors = SimpleNamespace(of=lambda _machine, _log: mirror)
        self.promises = VotePromises({HOST: self.machine}, mirrors, self.findings)  # type: ignore[arg-type, dict-item]
        self.step()
        self.step(epoch=EPOCH)

    def step(self, *, epoch: Epoch | None = None, synced: Offset | None = None, life: int = 1) -> None:
        """A step of its process, after which it is in this epoch and its log is synced so far."""
        self.epoch = self.epoch if epoch is None else epoch
        self.synced = self.synced if synced is None else synced
        self.machine.life = life
        self.machine.node = SimpleNamespace(driver=SimpleNamespace(core=SimpleNamespace(epoch=self.epoch)))
        self.promises.after_controller(self.machine)  # type: ignore[arg-type]

    def finds(self, request: QuorumFetchRequest | VoteRequest, *, older: bool = False) -> list[str]:
        """What is found of its log when this request leaves."""
        call = (OLDER if older else BY_REQUEST)[type(request)]
        mac = bytes(MAC_BYTES) if call.ordered else b""
        self.promises.on_message(
            Message(
                source=HOST,
                destination="c1",
                path=call.method.path,
                phase=Phase.REQUEST,
                ordered=call.ordered,
                data=mac + call.codec.encode_request(request),
            )
        )
        return [finding.name for finding in self.findings.found if finding.name in (FETCH, VOTE)]


def fetch(offset: Offset, epoch: Epoch = EPOCH) -> QuorumFetchRequest:
    return QuorumFetchRequest(
        replica_id=2,
        replica_directory_id=bytes(16),
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=EPOCH - 1,
        max_wait_ms=0,
        max_bytes=1,
        high_watermark=0,
        read_round=0,
    )


def candidacy(end: Offset, epoch: Epoch = EPOCH) -> VoteRequest:
    return VoteRequest(
        candidate_id=2,
        candidate_directory_id=bytes(16),
        voter_id=1,
        voter_directory_id=bytes(16),
        epoch=epoch,
        last_epoch=EPOCH - 1,
        last_epoch_end_offset=end,
        pre_vote=False,
    )


@pytest.mark.parametrize("older", [False, True])
def test_a_fetch_of_what_is_synced_is_sound(older: bool) -> None:
    assert Voter().finds(fetch(SYNCED), older=older) == []


@pytest.mark.parametrize("older", [False, True])
def test_a_fetch_of_more_is_found(older: bool) -> None:
    assert Voter().finds(fetch(SYNCED + 1), older=older) == [FETCH]


@pytest.mark.parametrize("epochs", [1, 2])
def test_a_fetch_may_leave_after_its_sender_has_truncated_for_a_later_leader(epochs: int) -> None:
    voter = Voter()
    voter.step(epoch=EPOCH + epochs)
    voter.step(synced=SYNCED - 1)
    assert voter.finds(fetch(SYNCED)) == []


def test_a_late_fetch_of_more_than_was_synced_in_its_epoch_is_found() -> None:
    voter = Voter()
    voter.step(epoch=EPOCH + 1)
    voter.step(synced=SYNCED + 1)
    voter.step(epoch=EPOCH + 2)
    voter.step(synced=SYNCED - 1)
    assert voter.finds(fetch(SYNCED + 1)) == [FETCH]


def test_a_truncation_excuses_no_fetch_of_the_epoch_of_now() -> None:
    voter = Voter()
    voter.step(epoch=EPOCH + 1)
    voter.step(synced=SYNCED - 1)
    assert voter.finds(fetch(SYNCED, EPOCH + 1)) == [FETCH]


def test_a_new_process_sends_nothing_of_the_one_before_it() -> None:
    voter = Voter()
    voter.step(epoch=EPOCH + 1)
    voter.step(synced=SYNCED - 1, life=2)
    assert voter.finds(fetch(SYNCED)) == [FETCH]


@pytest.mark.parametrize("epochs", [0, 1])
def test_a_candidacy_may_leave_after_its_loser_has_truncated(epochs: int) -> None:
    """Another candidate of the same epoch may have won, or one of a later epoch."""
    voter = Voter()
    voter.step(epoch=EPOCH + epochs)
    voter.step(synced=SYNCED - 1)
    assert voter.finds(candidacy(SYNCED)) == []


def test_a_candidacy_with_more_than_was_synced_is_found() -> None:
    voter = Voter()
    voter.step(synced=SYNCED - 1)
    assert voter.finds(candidacy(SYNCED + 1)) == [VOTE]
