"""The ways out of a damaged metadata directory."""

from __future__ import annotations

import pytest
from test_format import SECRET, format_, make_config, make_disk

from jepsen.sim.machine.disk import SimDisk
from quorumlog_quorum.disk.metadata_log import METADATA_PARTITION
from quorumlog_quorum.raft.quorum_state import QuorumState, QuorumStateNotRenewed, read_quorum_state
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.directories.metadata_repair import accept_loss, renew
from quorumlog_storage.directory.directory import CLEAN_SHUTDOWN, LOCK_NAME, NotFormatted
from quorumlog_storage.directory.offset_files import LOST_OFFSETS, RECOVERY_POINTS, OffsetFile
from quorumlog_storage.files.disk import DirectoryLocked

PATH = "/data/a/__cluster_metadata-0"


def formatted() -> tuple[SimDisk, NodeConfig]:
    assert SECRET
    disk, config = make_disk(), make_config()
    format_(disk, config)
    disk.make_directory(PATH)
    return disk, config


def test_votes_begin_after_every_epoch_that_another_voter_knows() -> None:
    disk, config = formatted()
    disk.open(f"{PATH}/leader-epoch-checkpoint", create=True).pwritev([b"0\n1\n6 0\n"], 0)
    with pytest.raises(QuorumStateNotRenewed, match="epoch 5 is below 6"):
        renew(disk, config, 5)
    assert renew(disk, config, 9).epoch == 10
    assert read_quorum_state(disk, f"{PATH}/quorum-state") == QuorumState(epoch=10)
    with pytest.raises(QuorumStateNotRenewed, match="can be read"):
        renew(disk, config, 20)


def test_a_loss_that_is_accepted_does_not_come_back() -> None:
    disk, config = formatted()
    files = {name: OffsetFile(disk, f"{PATH}/{name}") for name in (LOST_OFFSETS, RECOVERY_POINTS)}
    for file in files.values():
        file.update({METADATA_PARTITION: 40})
    assert accept_loss(disk, config) == 40
    assert [OffsetFile(disk, f"{PATH}/{name}").get(METADATA_PARTITION) for name in files] == [0, 0]
    assert accept_loss(disk, config) == 0


def test_without_a_loss_nothing_changes() -> None:
    disk, config = formatted()
    OffsetFile(disk, f"{PATH}/{RECOVERY_POINTS}").update({METADATA_PARTITION: 40})
    assert accept_loss(disk, config) == 0
    assert OffsetFile(disk, f"{PATH}/{RECOVERY_POINTS}").get(METADATA_PARTITION) == 40


def test_a_running_node_is_left_alone() -> None:
    disk, config = formatted()
    disk.lock(f"/data/a/{LOCK_NAME}")
    for repair in (lambda: renew(disk, config, 1), lambda: accept_loss(disk, config)):
        with pytest.raises(DirectoryLocked):
            repair()


def test_the_marker_of_a_clean_stop_stays() -> None:
    disk, config = formatted()
    disk.open(f"/data/a/{CLEAN_SHUTDOWN}", create=True).pwritev([b"{}"], 0)
    accept_loss(disk, config)
    assert disk.exists(f"/data/a/{CLEAN_SHUTDOWN}")
    disk.lock(f"/data/a/{LOCK_NAME}").release()


def test_directories_that_are_not_formatted_are_refused() -> None:
    with pytest.raises(NotFormatted):
        accept_loss(make_disk(), make_config())
