"""Reads past the page cache give the bytes of the file, from any position and whatever the machine refuses."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog_storage.edge import page_cache
from quorumlog_storage.edge.disk import RealDisk, RealFile
from quorumlog_storage.edge.page_cache import ALIGNMENT, DIRECT_FROM_BYTES
from quorumlog_storage.files.disk import DiskError

CONTENT = os.urandom(DIRECT_FROM_BYTES + 3 * ALIGNMENT + 77)
SIZE = len(CONTENT)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has O_DIRECT")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> RealFile:
    return made(tmp_path_factory.mktemp("direct"))


def made(folder: Path) -> RealFile:
    """With CONTENT, of which the second half is not synced."""
    file = RealDisk().open(f"{folder}/log", create=True)
    file.pwritev([CONTENT[: SIZE // 2]], 0)
    file.sync()
    file.pwritev([CONTENT[SIZE // 2 :]], SIZE // 2)
    return file


POSITIONS = st.integers(0, SIZE + ALIGNMENT)
LENGTHS = st.one_of(st.integers(0, 3 * ALIGNMENT), st.integers(0, SIZE + ALIGNMENT))


@given(wanted=st.lists(st.tuples(POSITIONS, LENGTHS), min_size=1, max_size=6))
def test_any_read_gives_the_bytes_of_the_file(file: RealFile, wanted: list[tuple[int, int]]) -> None:
    reader = file.past_cache()
    for position, length in wanted:
        assert reader.pread(position, length) == CONTENT[position : position + length]


def test_the_file_may_have_another_name_by_now(tmp_path: Path) -> None:
    file = made(tmp_path)
    os.rename(tmp_path / "log", tmp_path / "renamed")
    (tmp_path / "log").write_bytes(bytes(SIZE))
    assert file.past_cache().pread(5, 100) == CONTENT[5:105]


def test_a_small_file_gets_no_second_descriptor(tmp_path: Path) -> None:
    file = RealDisk().open(f"{tmp_path}/log", create=True)
    file.pwritev([b"small"], 0)
    assert file.past_cache() is file


def test_dropping_it_closes_its_descriptor(file: RealFile) -> None:
    before = os.listdir("/proc/self/fd")
    reader = file.past_cache()
    reader.pread(0, SIZE)
    del reader
    assert os.listdir("/proc/self/fd") == before


Refusal = Callable[[pytest.MonkeyPatch], None]


def _at_the_open(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def opened(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "no such reads here")
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", opened)


def _at_the_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "preadv", _fails_with(errno.EINVAL))


def _fails_with(number: int) -> Callable[[int, Sequence[memoryview], int], int]:
    def preadv(_fd: int, _buffers: Sequence[memoryview], _position: int) -> int:
        raise OSError(number, os.strerror(number))

    return preadv


def _without_the_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "_FLAG", 0)


@pytest.mark.parametrize("refuse", [_at_the_open, _at_the_read, _without_the_flag])
def test_a_machine_that_refuses_such_reads_reads_as_ever(
    file: RealFile, monkeypatch: pytest.MonkeyPatch, refuse: Refusal
) -> None:
    refuse(monkeypatch)
    reader = file.past_cache()
    assert reader.pread(1, SIZE) == CONTENT[1:]
    assert reader.pread(SIZE - 3, 10) == CONTENT[-3:]


def test_a_sick_disk_is_told(file: RealFile, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = file.past_cache()
    monkeypatch.setattr(os, "preadv", _fails_with(errno.EIO))
    with pytest.raises(DiskError) as raised:
        reader.pread(0, 100)
    assert (raised.value.op, raised.value.errno) == ("read", errno.EIO)
