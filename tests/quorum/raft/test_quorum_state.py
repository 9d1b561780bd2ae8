"""quorum-state: a written state is read back, and a damaged file is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepsen.sim.machine.disk import SimDisk
from quorumlog.settings.quorum import RaftConfig
from quorumlog_quorum.raft.quorum_state import (
    CorruptQuorumState,
    QuorumState,
    QuorumStateNotRenewed,
    decode_quorum_state,
    encode_quorum_state,
    read_quorum_state,
    renew_quorum_state,
    write_quorum_state,
)
from quorumlog_quorum.raft.voters import VoterKey
from tests.parts import few
from tests.rules import rule

STATES = st.builds(
    QuorumState,
    epoch=st.integers(0, 2**31 - 1),
    leader_id=st.none() | st.integers(0, 2**31 - 1),
    voted=st.none() | st.builds(VoterKey, st.integers(0, 2**31 - 1), st.binary(min_size=16, max_size=16)),
)


@rule("kraft 1.7", "storage 10.10")
@given(STATES)
def test_round_trip(state: QuorumState) -> None:
    assert decode_quorum_state("q", encode_quorum_state(state)) == state


@rule("kraft 1.12")
@given(STATES, st.data())
@settings(max_examples=few(200))
def test_no_damage_is_read_as_another_state(state: QuorumState, data: st.DataObject) -> None:
    good = encode_quorum_state(state)
    position = data.draw(st.integers(0, len(good) - 1))
    bad = bytearray(good)
    bad[position] ^= 1 << data.draw(st.integers(0, 7))
    for content in (bytes(bad), good[:position]):
        try:
            read = decode_quorum_state("q", content)
        except CorruptQuorumState:
            continue
        # Only damage to the name of the checksum field goes unnoticed, and then the other fields are intact.
        assert read == state


@given(st.binary(max_size=200))
def test_any_bytes_give_a_state_or_a_typed_error(content: bytes) -> None:
    try:
        decode_quorum_state("q", content)
    except CorruptQuorumState:
        pass


KAFKA_V0 = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1}],"data_version":0}'
)
KAFKA_V1 = b'{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"AAECAwQFBgcICQoLDA0ODw","data_version":1}'


def test_kafkas_own_files() -> None:
    assert decode_quorum_state("q", KAFKA_V0) == QuorumState(epoch=2, leader_id=1)
    assert decode_quorum_state("q", KAFKA_V1) == QuorumState(epoch=2, voted=VoterKey(1, bytes(range(16))))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        KAFKA_V1.replace(b"2", b"-2", 1),
        KAFKA_V1.replace(b"2", b"2.0", 1),
        KAFKA_V1.replace(b"2", b"true", 1),
        KAFKA_V1.replace(b'"data_version":1', b'"data_version":2'),
        KAFKA_V1.replace(b"AAECAwQ", b"AAECAw*"),
        KAFKA_V1.replace(b"{", b'{"leaderEpoch":9,', 1),
        KAFKA_V1.replace(b"}", b',"crc32c":1}'),
        b"[" * 5_000,
    ],
)
def test_what_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptQuorumState):
        decode_quorum_state("q", content)


def test_a_missing_file_has_promised_nothing_and_a_written_one_survives_a_power_cut() -> None:
    from random import Random

    disk = SimDisk()
    disk.make_directory("/d")
    disk.sync_directory("/")
    assert read_quorum_state(disk, "/d/quorum-state") == QuorumState()
    state = QuorumState(epoch=3, leader_id=2)
    write_quorum_state(disk, "/d/quorum-state", state)
    disk.crash(Random(1))
    assert read_quorum_state(disk, "/d/quorum-state") == state


@rule("kraft 3.14")
@pytest.mark.parametrize(
    ("position", "candidates", "want_ms"),
    [(None, 0, 1_000), (None, 3, 1_000), (0, 1, 0), (0, 4, 0), (1, 2, 500), (1, 4, 125), (2, 4, 250), (3, 4, 500)],
)
def test_successors_wait_by_their_position(position: int | None, candidates: int, want_ms: int) -> None:
    assert RaftConfig().successor_delay_ms(position, candidates) == want_ms


@rule("kraft 1.13")
def test_it_may_be_missing_beside_an_empty_log_only() -> None:
    disk = SimDisk()
    disk.make_directory("/m")
    assert read_quorum_state(disk, "/m/q", has_records=False) == QuorumState()
    with pytest.raises(CorruptQuorumState, match=r"missing beside a log.*quorumlog storage renew-quorum-state"):
        read_quorum_state(disk, "/m/q", has_records=True)


def test_a_renewed_one_promises_nothing_in_an_epoch_in_which_it_may_have_voted() -> None:
    disk = SimDisk()
    disk.make_directory("/m")
    assert renew_quorum_state(disk, "/m/q", others_epoch=7, last_epoch=6) == QuorumState(epoch=8)
    assert read_quorum_state(disk, "/m/q", has_records=True) == QuorumState(epoch=8)


def test_one_that_can_be_read_is_never_renewed() -> None:
    disk = SimDisk()
    disk.make_directory("/m")
    state = QuorumState(epoch=3, voted=VoterKey(2, bytes(16)))
    write_quorum_state(disk, "/m/q", state)
    with pytest.raises(QuorumStateNotRenewed, match="can be read: epoch 3"):
        renew_quorum_state(disk, "/m/q", others_epoch=7, last_epoch=3)
    assert read_quorum_state(disk, "/m/q") == state


def test_one_that_cannot_be_read_is_kept() -> None:
    disk = SimDisk()
    disk.make_directory("/m")
    disk.open("/m/q", create=True).pwritev([b"?"], 0)
    renew_quorum_state(disk, "/m/q", others_epoch=7, last_epoch=-1)
    assert disk.read_bytes("/m/q.unreadable") == b"?"


@rule("kraft 1.10")
def test_an_epoch_below_the_logs_own_is_refused() -> None:
    disk = SimDisk()
    disk.make_directory("/m")
    with pytest.raises(QuorumStateNotRenewed, match="below 8"):
        renew_quorum_state(disk, "/m/q", others_epoch=7, last_epoch=8)
    assert not disk.exists("/m/q")
