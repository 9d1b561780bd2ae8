"""How a live run strikes disks, each way by itself: the test's own Disk edge, strace, a volume, and the guard."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jepsen.live.disks.edge_control import ORDER, EdgeFault, Order, read_order
from jepsen.live.disks.strace import StraceFault, why_not_usable
from jepsen.live.disks.struck_disk import Strikes, StruckDisk
from jepsen.live.disks.volume import Volume, why_not_mountable
from jepsen.live.disks.ways import EDGE, STRACE, TMPFS, Ways
from jepsen.live.guard import Guard, end_what_is_left
from jepsen.live.plan import Blow
from quorumlog.testing.processes import ProcessId, start, write_pid_file
from quorumlog.testing.waiting import wait_until
from quorumlog_storage.files.disk import DiskError

WAIT_S = 15.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[StruckDisk]:
    """With its thread that follows orders in tmp_path; ordinary files in tmp_path/volume and tmp_path/other."""
    strikes = Strikes(tmp_path)
    StruckDisk.strikes = strikes
    for name in ("volume", "other"):
        (tmp_path / name).mkdir()
    thread = threading.Thread(target=strikes.follow, daemon=True)
    thread.start()
    yield StruckDisk()
    strikes.stop()
    thread.join()


def strike(tmp_path: Path, disk: StruckDisk, blow: Blow) -> EdgeFault:
    fault = EdgeFault(blow, tmp_path, tmp_path / "volume")
    wait_until(lambda: disk.strikes.follows(blow), WAIT_S, "the order to be read")
    return fault


@pytest.mark.parametrize(("blow", "number"), [(Blow.FAIL, errno.EIO), (Blow.FILL, errno.ENOSPC)])
def test_the_edge_fails_writes_below_its_directory_until_it_ends(
    tmp_path: Path, disk: StruckDisk, blow: Blow, number: int
) -> None:
    struck, spared = (disk.open(f"{tmp_path}/{name}/file", create=True) for name in ("volume", "other"))
    fault = strike(tmp_path, disk, blow)
    with pytest.raises(DiskError) as caught:
        struck.pwritev([b"x"], 0)
    assert caught.value.errno == number
    assert spared.pwritev([b"x"], 0) == 1
    wait_until(lambda: fault.struck() == 1, WAIT_S, "the count")
    fault.end()
    wait_until(lambda: disk.strikes.follows(None), WAIT_S, "the end")
    assert struck.pwritev([b"x"], 0) == 1


def test_the_edge_tells_a_full_disk_as_full(tmp_path: Path, disk: StruckDisk) -> None:
    strike(tmp_path, disk, Blow.FILL)
    assert disk.free_bytes(f"{tmp_path}/volume") == 0
    assert disk.free_bytes(f"{tmp_path}/other") > 0


def test_the_edge_tells_a_low_disk_and_lets_it_be_written(tmp_path: Path, disk: StruckDisk) -> None:
    file = disk.open(f"{tmp_path}/volume/file", create=True)
    fault = strike(tmp_path, disk, Blow.LOW)
    assert disk.free_bytes(f"{tmp_path}/volume") == 1
    assert file.pwritev([b"x"], 0) == 1
    wait_until(lambda: fault.struck() == 1, WAIT_S, "the count")


def test_the_edge_holds_calls_up_until_it_ends(tmp_path: Path, disk: StruckDisk) -> None:
    file = disk.open(f"{tmp_path}/volume/file", create=True)
    fault = strike(tmp_path, disk, Blow.HANG)
    done = threading.Event()
    thread = threading.Thread(target=lambda: (file.pwritev([b"x"], 0), done.set()))
    thread.start()
    wait_until(lambda: fault.struck() == 1, WAIT_S, "the call to hang")
    assert not done.is_set()
    fault.end()
    thread.join(WAIT_S)
    assert done.is_set() and file.size() == 1


def test_no_order_is_no_blow(tmp_path: Path) -> None:
    assert read_order(tmp_path) == Order()
    EdgeFault(Blow.FAIL, tmp_path, tmp_path / "d").end()
    assert read_order(tmp_path) == Order() and (tmp_path / ORDER).exists()


WRITER = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
print("open", flush=True)
while True:
    try:
        os.pwritev(fd, [b"x"], 0)
    except OSError as error:
        print(error.errno, flush=True)
        break
    time.sleep(0.01)
"""


def test_strace_fails_the_calls_of_a_running_process(tmp_path: Path) -> None:
    if why_not := why_not_usable(tmp_path):
        assert shutil.which("strace") is None or "cannot attach" in why_not
        return  # live runs use the edge on this machine, which is tested above
    (tmp_path / "volume").mkdir()
    command = [sys.executable, "-c", WRITER, str(tmp_path / "volume" / "file")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "open\n"
            fault = StraceFault(Blow.FAIL, process.pid, tmp_path / "volume", tmp_path / "lines")
            assert process.stdout.readline() == f"{errno.EIO}\n"
            fault.end()
            assert fault.struck() == 1
        finally:
            process.kill()


def test_a_volume_is_filled_and_emptied(tmp_path: Path) -> None:
    if why_not_mountable(tmp_path):
        assert Ways.of_this_machine(tmp_path).name(Blow.FILL) == EDGE
        return  # live runs use the edge on this machine, which is tested above
    volume = Volume(tmp_path / "volume")
    volume.root.mkdir()
    volume.mount(4 << 20)
    try:
        (volume.root / "kept").write_text("here")
        volume.fill(leave_bytes=2 << 20)
        assert 0 < volume.free_bytes() <= 2 << 20
        volume.fill()
        assert volume.free_bytes() == 0
        volume.empty()
        assert volume.free_bytes() > 0
    finally:
        volume.unmount(keep=True)
    assert (volume.root / "kept").read_text() == "here"
    assert not volume.root.is_mount()


def test_a_machine_that_allows_nothing_uses_the_edge_for_everything(tmp_path: Path) -> None:
    ways = Ways.of_this_machine(tmp_path, edge_only=True)
    assert ways.needs_edge
    assert {ways.name(blow) for blow in (Blow.FAIL, Blow.HANG, Blow.FILL)} == {EDGE}
    both = Ways(strace=True, tmpfs=True)
    assert not both.needs_edge
    assert [both.name(blow) for blow in (Blow.FAIL, Blow.FILL)] == [STRACE, TMPFS]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[ProcessId]:
    """A process that a run left behind."""
    folder = tmp_path / "cluster" / "n1"
    folder.mkdir(parents=True)
    child, process = start([sys.executable, "-c", "import time; time.sleep(600)"], folder / "log", {})
    write_pid_file(folder / "node.pid", process)
    yield process
    child.kill()
    child.wait()


def test_the_guard_ends_nodes_once_the_run_is_gone(tmp_path: Path, node: ProcessId) -> None:
    guard = Guard(tmp_path)
    assert node.alive
    guard.close()
    wait_until(lambda: not node.alive, WAIT_S, "the node to end")


def test_the_guard_does_nothing_after_an_ordinary_end(tmp_path: Path) -> None:
    assert end_what_is_left(tmp_path) == []
