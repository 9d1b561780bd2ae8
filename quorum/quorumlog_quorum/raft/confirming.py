"""Confirmed reads: a leader answers a read only after a majority has followed it since the read began (Raft 6.4).

A leader that is cut off learns of its successor late. Until then it must not answer from its own state. So each read
begins a round (read_rounds.py): parked fetches of the voters are answered at once, and the read is confirmed when the
fetches of a majority, the leader included, name its round. That costs one round trip and needs no clock: the number
of a round reaches a voter after the read began, and a voter that names it was then still in this leader's epoch. The
arrival of a fetch alone proves nothing, because the network may have delayed it.

A read also waits until the first record of the epoch is committed: only then does the leader know all that is
committed (Raft 5.4.2).
"""

from __future__ import annotations

from quorumlog_quorum.raft.core import Core
from quorumlog_quorum.raft.effects import LeadershipConfirmed
from quorumlog_quorum.raft.leading import serve_parked
from quorumlog_quorum.raft.roles import Leader


def on_confirmation_requested(core: Core, token: int, now_ms: int) -> None:
    leader = core.role
    if not isinstance(leader, Leader):
        core.add_effect(LeadershipConfirmed(token, confirmed=False))
        return
    leader.rounds.begin(token)
    confirm_reads(core)
    serve_parked(core, now_ms)


def confirm_reads(core: Core) -> None:
    """A voter has named a round, or the high watermark may have passed the epoch's first record."""
    leader = core.role
    assert isinstance(leader, Leader)
    if not leader.rounds.awaited or core.high_watermark <= leader.epoch_start_offset:
        return
    others = tuple(leader.replicas.voters)
    confirmed = leader.rounds.answered_by(others, leader.replicas.majority - leader.replicas.leader_counts)
    for token in leader.rounds.take_confirmed(confirmed):
        core.add_effect(LeadershipConfirmed(token, confirmed=True))
