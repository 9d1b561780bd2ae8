"""Where a mirror keeps its file: a folder; an address, by Spark's Hadoop; half a file of a writer that was killed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.errors import ConfigError
from quorumlog.spark.mirror.checkpoint import VERSIONS_KEPT, Checkpoint, is_address, open_checkpoint

pytestmark = pytest.mark.timeout(600)  # Spark starts
TEXT, NEXT = '{"v": 1}\n', '{"v": 1, "x": "é"}\n'


def check_checkpoint(made: Checkpoint, again: Checkpoint) -> None:
    """again: of the same place, in another process."""
    assert made.read() is None
    made.keep(TEXT)
    assert made.read() == again.read() == TEXT
    for _ in range(3):
        made.keep(NEXT)
    assert again.read() == NEXT
    again.keep(TEXT)
    assert made.read() == TEXT


@pytest.mark.parametrize(
    ("place", "is_one"),
    [("s3a://b/c", True), ("hdfs:///c", True), ("file:///c", True), ("/c", False), ("c", False), ("c:/d", False)],
)
def test_what_is_an_address(place: str, is_one: bool) -> None:
    assert is_address(place) is is_one


def test_a_folder(tmp_path: Path) -> None:
    place = str(tmp_path / "new" / "c")
    made, again = (open_checkpoint(place, None) for _ in range(2))  # type: ignore[arg-type]  # a folder needs no Spark
    check_checkpoint(made, again)
    assert made.for_spark == f"{place}/spark"
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "file").touch()
    with pytest.raises(ConfigError, match="has files, and none of a mirror"):
        open_checkpoint(str(tmp_path / "others"), None).read()  # type: ignore[arg-type]


def test_what_is_kept_in_a_folder_survives_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file before it has its name, the folder behind, and each new folder in the one above it."""
    real, synced = os.fsync, list[str]()

    def fsync(handle: int) -> None:
        synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{handle}"), tmp_path))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    open_checkpoint(str(tmp_path / "new" / "c"), None).keep(TEXT)  # type: ignore[arg-type]
    assert synced == [".", "new", "new/c/mirror.new", "new/c"]


def test_a_mirror_that_died_before_its_first_file_had_its_name(tmp_path: Path) -> None:
    (tmp_path / "mirror.new").write_text('{"v')
    made = open_checkpoint(str(tmp_path), None)  # type: ignore[arg-type]
    assert made.read() is None
    made.keep(TEXT)
    assert made.read() == TEXT


def test_an_address(spark: Any, tmp_path: Path) -> None:
    place = f"file://{tmp_path}/c"
    made, again = (open_checkpoint(place, spark) for _ in range(2))
    check_checkpoint(made, again)
    assert made.for_spark == f"{place}/spark"
    files = sorted(file.name for file in (tmp_path / "c").glob("mirror-*.json"))
    assert len(files) == VERSIONS_KEPT
    (tmp_path / "c" / files[-1]).write_text("")  # a writer died in the middle, on a file system that shows it
    (tmp_path / "c" / f".{files[-1]}.crc").unlink(missing_ok=True)
    assert made.read() == NEXT
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "file").touch()
    with pytest.raises(ConfigError, match="has files, and none of a mirror"):
        open_checkpoint(f"file://{tmp_path}/others", spark).read()


def test_an_address_that_spark_cannot_open_says_what_it_needs(spark: Any) -> None:
    with pytest.raises(ConfigError, match=r"no FileSystem|No FileSystem|cannot open it .*--packages"):
        open_checkpoint("nowhere://bucket/c", spark)
