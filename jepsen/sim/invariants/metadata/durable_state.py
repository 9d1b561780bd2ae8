"""What a voter has promised, as a power cut now would leave it."""

from __future__ import annotations

from jepsen.sim.machine.disk import file_at
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import METADATA_LOG
from quorumlog_quorum.raft.quorum_state import QUORUM_STATE_NAME, CorruptQuorumState, QuorumState, decode_quorum_state

STATE_PATH = f"{METADATA_LOG}/{QUORUM_STATE_NAME}"


def durable_state(machine: Machine) -> QuorumState:
    """The voter's state after a power cut now. An unreadable file promises nothing."""
    content = file_at(machine.disk, STATE_PATH, durable=True)
    try:
        return QuorumState() if content is None else decode_quorum_state(STATE_PATH, content)
    except CorruptQuorumState:
        return QuorumState()
