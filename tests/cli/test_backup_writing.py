"""A backup's folder while it is made: what an interrupted run leaves, and when another one may go on with it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from quorumlog.backup.compaction_pause import PAUSE_MS, PauseEnded
from quorumlog.backup.manifest import MANIFEST, UNFINISHED, BadBackup
from quorumlog.client.administration.export_partition import ExportedPart
from quorumlog.records import Record, encode_batch
from quorumlog_cli.commands.cluster.backup_copying import Pace
from quorumlog_cli.commands.cluster.backup_writing import BackupFolder, Begun
from quorumlog_cli.terminal.errors import CliError
from quorumlog_server.restoring.backup_folder import read_backup
from quorumlog_storage.edge.disk import RealDisk

NOW = 1_700_000_000_000
KEYS = [("keyed", 0), ("plain", 0)]


def begun(folder: BackupFolder) -> Begun:
    one = Begun(
        cluster_id="c",
        metadata_offset=5,
        began_ms=NOW,
        cut_ms=NOW,
        held_ms=10,
        topics={"keyed": bytes(16), "plain": bytes(15) + b"\x01"},
        compacted=("keyed",),
        ends=dict.fromkeys(KEYS, 2),
        producers={7: "id"},
    )
    folder.pause.renewed(NOW + PAUSE_MS)
    folder.begin(one, b"snapshot")
    return one


def copy(folder: BackupFolder, key: tuple[str, int]) -> None:
    file = folder.partition(key, 2, {7: "id"})
    records = encode_batch([Record(n, NOW, b"k", b"v", ()) for n in range(2)], leader_epoch=1)
    file.take(ExportedPart(records, 0, 2))
    folder.add(file.finish())


def test_a_run_that_was_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    folder = BackupFolder.make(tmp_path / "b")
    first = begun(folder)
    copy(folder, KEYS[0])
    again, found = BackupFolder.resume(tmp_path / "b")
    assert found == first and list(again.done) == KEYS[:1]
    assert again.pause.until_ms == NOW + PAUSE_MS
    copy(again, KEYS[1])
    manifest = again.finish(found, {}, NOW, "test")
    assert [(one.topic, one.start, one.end) for one in manifest.partitions] == [("keyed", 0, 2), ("plain", 0, 2)]
    assert not (tmp_path / "b" / UNFINISHED).exists()


def test_a_line_that_its_run_did_not_finish_is_copied_again(tmp_path: Path) -> None:
    folder = BackupFolder.make(tmp_path / "b")
    begun(folder)
    copy(folder, KEYS[0])
    path = tmp_path / "b" / UNFINISHED
    path.write_bytes(path.read_bytes()[:-20])
    again, _ = BackupFolder.resume(tmp_path / "b")
    assert not again.done
    for key in KEYS:
        copy(again, key)
    once_more, _ = BackupFolder.resume(tmp_path / "b")
    assert list(once_more.done) == KEYS


@pytest.mark.parametrize(("copied", "later_ms", "goes_on"), [
    (KEYS[:1], PAUSE_MS, True),  # compaction can take nothing of what is left
    ([], PAUSE_MS - 1, True),
    ([], PAUSE_MS, False),
    (KEYS[1:], PAUSE_MS, False),
])  # fmt: skip
def test_compaction_has_run_meanwhile(
    copied: list[tuple[str, int]], later_ms: int, goes_on: bool, tmp_path: Path
) -> None:
    folder = BackupFolder.make(tmp_path / "b")
    begun(folder)
    for key in copied:
        copy(folder, key)
    again, found = BackupFolder.resume(tmp_path / "b")
    if goes_on:
        again.check_pause(found, NOW + later_ms)
        assert again.pause.due(NOW + later_ms) is not None, "it is paused anew, or for longer"
    else:
        with pytest.raises(PauseEnded):
            again.check_pause(found, NOW + later_ms)


def test_without_a_manifest_it_is_no_backup(tmp_path: Path) -> None:
    folder = BackupFolder.make(tmp_path / "b")
    begun(folder)
    for key in KEYS:
        copy(folder, key)
    assert not (tmp_path / "b" / MANIFEST).exists()
    with pytest.raises(BadBackup, match="--resume"):
        read_backup(RealDisk(), str(tmp_path / "b"))


def test_nothing_is_written_beside_other_files(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(CliError, match="is not empty, and nothing was written"):
        BackupFolder.make(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("content", [None, "", "{", "[]\n", "{}\n"])
def test_there_is_nothing_to_go_on_with(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / UNFINISHED).write_text(content)
    with pytest.raises(CliError, match="holds no interrupted backup"):
        BackupFolder.resume(tmp_path)


def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    folder = BackupFolder.make(tmp_path / "b")
    begun(folder)
    copy(folder, KEYS[0])
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "b").rglob("*") if path.is_file()}
    assert modes == {0o600}
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o700


def test_a_pace_is_of_all_partitions_together() -> None:
    now_s = 100.0
    pace = Pace(1_000, lambda: now_s)
    assert pace.wait_s(500) == pytest.approx(0.5)
    assert pace.wait_s(500) == pytest.approx(1.0), "another partition's"
    now_s = 100.9
    assert pace.wait_s(0) == pytest.approx(0.1)
    now_s = 200.0
    assert pace.wait_s(100) == pytest.approx(0.1), "what was not used is not made up for"
    assert Pace(0).wait_s(10**12) == 0
