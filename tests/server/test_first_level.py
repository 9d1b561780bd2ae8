"""The level of metadata.version that a new cluster begins with: in its file, and in the log of the first activation."""

from __future__ import annotations

import pytest
from test_format import format_, make_config

from jepsen.sim.machine.disk import SimDisk
from quorumlog_quorum.metadata.features import LATEST_LEVEL
from quorumlog_server.directories.directories import DirectoryProblem, open_directories
from quorumlog_server.directories.first_level import BOOTSTRAP_NAME, BadFirstLevel, read_first_level, write_first_level
from quorumlog_server.directories.first_voters import FormatRefused
from quorumlog_storage.files.atomic import write_atomically
from tests.rules import rule


@rule("kraft 12.11")
@pytest.mark.parametrize("level", range(1, LATEST_LEVEL + 1))
def test_a_level_is_kept_for_the_first_activation(level: int) -> None:
    disk, config = SimDisk(), make_config()
    format_(disk, config, first_level=level)
    assert open_directories(disk, config).first_level == level


def test_without_one_there_is_no_file() -> None:
    disk, config = SimDisk(), make_config()
    format_(disk, config)
    assert open_directories(disk, config).first_level is None and not disk.exists(f"/data/a/{BOOTSTRAP_NAME}")


@pytest.mark.parametrize("level", [0, LATEST_LEVEL + 1])
def test_a_level_that_this_software_lacks_is_refused(level: int) -> None:
    disk = SimDisk()
    with pytest.raises(FormatRefused, match=f"metadata.version {level}: this software supports metadata.version from"):
        format_(disk, make_config(), first_level=level)
    assert disk.list("/") == []


def test_a_damaged_file_stops_the_start() -> None:
    disk, config = SimDisk(), make_config()
    format_(disk, config, first_level=2)
    path = f"/data/a/{BOOTSTRAP_NAME}"
    whole = disk.read_bytes(path)
    for content in (whole[:-1], whole[:70] + b"x" + whole[71:], b""):
        write_atomically(disk, path, content)
        with pytest.raises(BadFirstLevel):
            read_first_level(disk, "/data/a")
        with pytest.raises(DirectoryProblem, match=BOOTSTRAP_NAME):
            open_directories(disk, config)
    write_first_level(disk, "/data/a", 1)
    assert open_directories(disk, config).first_level == 1
