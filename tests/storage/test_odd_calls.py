"""Calls that a program should not make, one by one: the simulated disk answers each as the real one does.

A disk that forgives what a real one refuses hides the mistake until a machine meets it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jepsen.sim.machine.disk import SimDisk
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.files.disk import Disk, DiskError, FileMissing

Call = Callable[[Disk, str], object]  # the disk, and the directory in which the world lies

PLACES = {
    "missing": "missing",
    "file": "file",
    "other file": "other-file",
    "empty directory": "empty",
    "full directory": "full",
    "other full directory": "other-full",
    "in a missing directory": "missing/name",
    "below a file": "file/name",
    "deep below a file": "file/name/name",
    "in a directory": "full/inner",
    "a name that is too long": "n" * 256,
    "below a name that is too long": "n" * 256 + "/name",
}


def _build(disk: Disk, root: str) -> None:
    for name in ("empty", "full", "other-full"):
        disk.make_directory(f"{root}/{name}")
    for name in ("file", "other-file", "full/inner", "other-full/inner"):
        disk.open(f"{root}/{name}", create=True).pwritev([name.encode()], 0)


def _on_one_path(path: str) -> dict[str, Call]:
    return {
        "open": lambda disk, root: disk.open(f"{root}/{path}").size(),
        "create": lambda disk, root: disk.open(f"{root}/{path}", create=True).size(),
        "list": lambda disk, root: disk.list(f"{root}/{path}"),
        "exists": lambda disk, root: disk.exists(f"{root}/{path}"),
        "is_directory": lambda disk, root: disk.is_directory(f"{root}/{path}"),
        "identity": lambda disk, root: len(disk.identity(f"{root}/{path}")),
        "make_directory": lambda disk, root: disk.make_directory(f"{root}/{path}"),
        "unlink": lambda disk, root: disk.unlink(f"{root}/{path}"),
        "remove_tree": lambda disk, root: disk.remove_tree(f"{root}/{path}"),
        "sync_directory": lambda disk, root: disk.sync_directory(f"{root}/{path}"),
        "read_bytes": lambda disk, root: disk.read_bytes(f"{root}/{path}"),
        "free_bytes": lambda disk, root: disk.free_bytes(f"{root}/{path}") > 0,
        "total_bytes": lambda disk, root: disk.total_bytes(f"{root}/{path}") > 0,
        "lock": lambda disk, root: disk.lock(f"{root}/{path}").release(),
    }


def _on_two_paths(first: str, second: str) -> dict[str, Call]:
    calls: dict[str, Call] = {
        "copy_modified": lambda disk, root: disk.copy_modified(f"{root}/{first}", f"{root}/{second}"),
    }
    if first.rpartition("/")[0] == second.rpartition("/")[0]:  # nothing is renamed into another directory
        calls["rename"] = lambda disk, root: disk.rename(f"{root}/{first}", f"{root}/{second}")
    return calls


def _pread(position: int, length: int) -> Call:
    return lambda disk, root: disk.open(f"{root}/file").pread(position, length)


def _renamed_over_an_open_file(disk: Disk, root: str) -> object:
    file = disk.open(f"{root}/file")
    disk.rename(f"{root}/other-file", f"{root}/file")
    file.pwritev([b"old"], 0)
    return file.pread(0, 99), disk.read_bytes(f"{root}/file")


def _renamed_while_open(disk: Disk, root: str) -> object:
    file = disk.open(f"{root}/full/inner")
    disk.rename(f"{root}/full", f"{root}/renamed")
    file.pwritev([b"new"], 0)
    return disk.read_bytes(f"{root}/renamed/inner")


def _removed_while_open(disk: Disk, root: str) -> object:
    file = disk.open(f"{root}/full/inner")
    disk.remove_tree(f"{root}/full")
    file.pwritev([b"more"], file.size())
    file.sync()
    return file.pread(0, 99), disk.exists(f"{root}/full/inner")


def _made_again_while_open(disk: Disk, root: str) -> object:
    file = disk.open(f"{root}/file")
    disk.unlink(f"{root}/file")
    disk.open(f"{root}/file", create=True).pwritev([b"second"], 0)
    return file.pread(0, 99), disk.read_bytes(f"{root}/file")


ON_FILES: dict[str, Call] = {
    "read before the start": _pread(-1, 3),
    "read less than nothing": _pread(0, -3),
    "read nothing": _pread(0, 0),
    "read past the end": _pread(99, 3),
    "write before the start": lambda disk, root: disk.open(f"{root}/file").pwritev(
        [b"x"], -2
    ),  # -1: Linux takes its own
    "write nothing": lambda disk, root: disk.open(f"{root}/file").pwritev([], 0),
    "write empty buffers": lambda disk, root: disk.open(f"{root}/file").pwritev([b"", b""], 50),
    "truncate below nothing": lambda disk, root: disk.open(f"{root}/file").truncate(-1),
    "rename over an open file": _renamed_over_an_open_file,
    "rename the directory of an open file": _renamed_while_open,
    "remove the directory of an open file": _removed_while_open,
    "make a file again that is open": _made_again_while_open,
}


def _cases() -> dict[str, Call]:
    cases = dict(ON_FILES)
    for what, path in PLACES.items():
        cases.update({f"{name}: {what}": call for name, call in _on_one_path(path).items()})
        for other, second in PLACES.items():
            cases.update({f"{name}: {what} -> {other}": call for name, call in _on_two_paths(path, second).items()})
    return cases


CASES = _cases()


def _outcome(disk: Disk, root: str, call: Call) -> object:
    """What the call answers or raises, and what is there afterwards. Which of two paths is at fault, too."""
    try:
        answer: object = call(disk, root)
    except DiskError as error:
        answer = (type(error) is FileMissing, error.errno, error.op, error.path.removeprefix(root))
    return answer, _tree(disk, root)


def _tree(disk: Disk, path: str) -> object:
    if not disk.is_directory(path):
        return disk.read_bytes(path)
    return {name: _tree(disk, f"{path}/{name}") for name in disk.list(path)}


@pytest.mark.parametrize("name", CASES)
def test_the_simulated_disk_answers_as_the_real_one(name: str, tmp_path: Path) -> None:
    real, sim = RealDisk(), SimDisk()
    sim.make_directory("/data")
    _build(real, str(tmp_path))
    _build(sim, "/data")
    assert _outcome(sim, "/data", CASES[name]) == _outcome(real, str(tmp_path), CASES[name])


def test_the_table_has_every_call_of_a_disk() -> None:
    names = {name.partition(":")[0] for name in CASES}
    calls = {name for name in dir(Disk) if not name.startswith("_") and name != "resources"}
    assert calls <= names, f"no odd calls of {sorted(calls - names)}"


def test_a_directory_takes_the_name_of_an_empty_one_only() -> None:
    disk = SimDisk()
    disk.make_directory("/data")
    _build(disk, "/data")
    with pytest.raises(DiskError, match="ENOTEMPTY"):
        disk.rename("/data/full", "/data/other-full")
    assert disk.list("/data/other-full") == ["inner"]
    disk.rename("/data/full", "/data/empty")
    assert disk.list("/data/empty") == ["inner"]
