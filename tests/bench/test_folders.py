"""The folder of a run's logs, also below one that nobody has made yet."""

from __future__ import annotations

from pathlib import Path

from bench.measuring.start import new_folder


def test_a_folder_below_one_that_is_not_there(tmp_path: Path) -> None:
    first, second = (new_folder("x", tmp_path / "on" / "a disk") for _ in range(2))
    assert first != second and first.parent == second.parent == tmp_path / "on" / "a disk"
    assert first.is_dir() and first.name.startswith("quorumlog-x-")
