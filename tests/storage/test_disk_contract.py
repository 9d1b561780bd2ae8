"""One contract for every disk: the real one and the simulated one answer alike."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from jepsen.sim.machine.disk import SimDisk
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.edge.page_cache import DIRECT_FROM_BYTES, UNCACHED_FROM_BYTES
from quorumlog_storage.edge.watched_disk import WatchedDisk
from quorumlog_storage.files.atomic import remove_durably, write_atomically
from quorumlog_storage.files.disk import DirectoryLocked, Disk, DiskError, FileMissing, name_of, parent_of, write_fully


def _sim(tmp_path: Path) -> tuple[Disk, str]:
    disk = SimDisk()
    disk.make_directory("/data")
    return disk, "/data"


def _real(tmp_path: Path) -> tuple[Disk, str]:
    return RealDisk(), str(tmp_path)


def _watched(tmp_path: Path) -> tuple[Disk, str]:
    return WatchedDisk(RealDisk()), str(tmp_path)


MAKERS: list[Callable[[Path], tuple[Disk, str]]] = [_real, _sim, _watched]


@pytest.fixture(params=MAKERS, ids=["real", "sim", "watched"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Disk, str]:
    make: Callable[[Path], tuple[Disk, str]] = request.param
    return make(tmp_path)


def test_written_bytes_are_read_back(place: tuple[Disk, str]) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    assert file.pwritev([b"hello ", bytearray(b"wor"), memoryview(b"ld")], 0) == 11
    assert file.pread(0, 11) == b"hello world"
    assert file.pread(6, 100) == b"world"
    assert file.pread(11, 5) == b""
    assert file.size() == 11
    file.begin_sync()
    file.sync()
    file.close()
    file.close()
    assert disk.read_bytes(f"{root}/a") == b"hello world"


def test_room_that_is_reserved_changes_no_byte_and_no_size(place: tuple[Disk, str]) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.pwritev([b"abc"], 0)
    file.reserve(1 << 20)
    assert file.size() == 3 and file.pread(0, 10) == b"abc"
    file.pwritev([b"def"], 3)
    file.reserve(0)
    assert file.size() == 6 and disk.read_bytes(f"{root}/a") == b"abcdef"
    file.close()
    file.reserve(1 << 20)  # says nothing, as a hint does


def test_dropping_what_is_cached_loses_nothing_written(place: tuple[Disk, str]) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.pwritev([b"synced "], 0)
    file.sync()
    file.pwritev([b"written"], 7)
    file.drop_cached()
    assert (file.size(), file.pread(0, 100)) == (14, b"synced written")
    file.sync()
    assert disk.read_bytes(f"{root}/a") == b"synced written"


@pytest.mark.parametrize("size", [10, DIRECT_FROM_BYTES + 7])
def test_a_pass_past_the_cache_shows_what_was_written(place: tuple[Disk, str], size: int) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    content = bytes(range(256)) * (size // 256 + 1)
    write_fully(file, "a", [content[:size]], 0)
    read = file.past_cache()
    assert read.pread(3, size) == content[3:size]
    assert read.pread(size, 5) == b""
    write_fully(file, "a", [b"more"], size)
    assert read.pread(size - 1, 9) == content[size - 1 : size] + b"more"


@pytest.mark.parametrize("size", [10, UNCACHED_FROM_BYTES, 3 * UNCACHED_FROM_BYTES + 7])
@pytest.mark.parametrize("count", [1, 5000])
def test_what_is_not_read_soon_is_read_back_all_the_same(place: tuple[Disk, str], size: int, count: int) -> None:
    disk, root = place
    file = disk.open(f"{root}/log", create=True)
    content = bytes(range(256)) * (size // 256 + 1)
    pieces = [content[:size]] if count == 1 else [content[at * 7 % 256 :][:20] for at in range(count)]
    wanted = b"".join(pieces)
    assert file.pwritev(pieces, 0, read_soon=False) == len(wanted)
    assert file.pread(0, len(wanted)) == wanted
    file.sync()
    assert file.pwritev([b"more"], len(wanted), read_soon=False) == 4
    file.sync()
    assert file.pread(0, len(wanted) + 9) == wanted + b"more"


def test_a_write_beyond_the_end_leaves_zeroes_before_it(place: tuple[Disk, str]) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.pwritev([b"xy"], 3)
    assert file.pread(0, 9) == b"\0\0\0xy"


def test_more_buffers_than_one_system_call_takes(place: tuple[Disk, str]) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    buffers = [bytes([n % 256]) * 3 for n in range(2500)]
    assert write_fully(file, "a", buffers, 5) == 7500
    assert file.pread(5, 7500) == b"".join(buffers)


def test_truncate_shortens_and_lengthens(place: tuple[Disk, str]) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.pwritev([b"abcdef"], 0)
    file.truncate(2)
    assert file.size() == 2
    file.truncate(4)
    assert file.pread(0, 10) == b"ab\0\0"


def test_names(place: tuple[Disk, str]) -> None:
    disk, root = place
    for name in ("b", "a", "c"):
        disk.open(f"{root}/{name}", create=True).close()
    disk.make_directory(f"{root}/d")
    disk.make_directory(f"{root}/d")
    assert disk.list(root) == ["a", "b", "c", "d"]
    disk.rename(f"{root}/a", f"{root}/b")
    disk.unlink(f"{root}/c")
    disk.sync_directory(root)
    assert disk.list(root) == ["b", "d"]
    assert disk.exists(f"{root}/b") and not disk.exists(f"{root}/a")
    assert disk.is_directory(f"{root}/d") and not disk.is_directory(f"{root}/b")
    assert not disk.exists(f"{root}/b/under-a-file")


def test_remove_tree(place: tuple[Disk, str]) -> None:
    disk, root = place
    disk.make_directory(f"{root}/d")
    disk.open(f"{root}/d/x", create=True).close()
    disk.remove_tree(f"{root}/d")
    assert disk.list(root) == []


@pytest.mark.parametrize(
    "op", ["open", "list", "rename", "copy_modified", "unlink", "read_bytes", "remove_tree", "sync_directory"]
)
def test_what_is_missing_is_said_to_be_missing(place: tuple[Disk, str], op: str) -> None:
    disk, root = place
    arguments = [f"{root}/missing", f"{root}/new"] if op in ("rename", "copy_modified") else [f"{root}/missing"]
    with pytest.raises(FileMissing) as caught:
        getattr(disk, op)(*arguments)
    assert caught.value.path == f"{root}/missing"
    assert caught.value.errno == errno.ENOENT


def test_a_directory_is_not_a_file(place: tuple[Disk, str]) -> None:
    disk, root = place
    disk.make_directory(f"{root}/d")
    disk.open(f"{root}/f", create=True).close()
    with pytest.raises(DiskError):
        disk.open(f"{root}/d")
    with pytest.raises(DiskError):
        disk.make_directory(f"{root}/f")
    with pytest.raises(DiskError):
        disk.list(f"{root}/f")


def test_a_file_outlives_its_name(place: tuple[Disk, str]) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.pwritev([b"still here"], 0)
    disk.unlink(f"{root}/a")
    assert file.pread(0, 10) == b"still here"


def test_one_holder_of_a_lock(place: tuple[Disk, str]) -> None:
    disk, root = place
    lock = disk.lock(f"{root}/.lock")
    with pytest.raises(DirectoryLocked, match="another process"):
        disk.lock(f"{root}/.lock")
    lock.release()
    lock.release()
    disk.lock(f"{root}/.lock").release()


def test_free_bytes_is_a_number(place: tuple[Disk, str]) -> None:
    disk, root = place
    assert 0 < disk.free_bytes(root) <= disk.total_bytes(root)


def test_atomic_replace(place: tuple[Disk, str]) -> None:
    disk, root = place
    write_atomically(disk, f"{root}/m", b"a longer first text")
    disk.open(f"{root}/m.tmp", create=True).pwritev([b"left by an interrupted attempt, longer than the next"], 0)
    write_atomically(disk, f"{root}/m", b"second")
    assert disk.read_bytes(f"{root}/m") == b"second"
    assert disk.list(root) == ["m"]
    remove_durably(disk, f"{root}/m")
    assert disk.list(root) == []


def test_a_short_write_is_an_error() -> None:
    class Short:
        def pwritev(self, buffers: object, position: int, *, read_soon: bool = True) -> int:
            return 3

    with pytest.raises(DiskError, match=r"short write: 3 of 5 bytes\); free space"):
        write_fully(Short(), "/x", [b"hello"], 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(("path", "parent", "name"), [("/a/b", "/a", "b"), ("/a", "/", "a"), ("a", ".", "a")])
def test_paths(path: str, parent: str, name: str) -> None:
    assert (parent_of(path), name_of(path)) == (parent, name)


def test_the_real_disk_says_which_limit_it_met(tmp_path: Path) -> None:
    with pytest.raises(DiskError) as caught:
        RealDisk().open(str(tmp_path), create=True)
    assert caught.value.errno == errno.EISDIR
    assert str(tmp_path) in str(caught.value)
