"""What a node tells the service manager that has started it, against a manager that ends who is late."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.testing.ports import PortPicker
from quorumlog_server.config.config import load
from quorumlog_server.directories.format import format_node
from quorumlog_server.directories.secret import new_secret
from quorumlog_server.edge.random_uuid import random_uuid
from quorumlog_server.process.service_manager import (
    ALONE_S,
    EXTEND_S,
    LOOK_S,
    NodeView,
    Phase,
    Seen,
    ServiceManager,
    Telling,
    watchdog_s_of,
)
from quorumlog_storage.edge.disk import RealDisk

TIMEOUT_S = 90.0  # of the manager, for a start and for a stop


class Manager:
    """systemd's rules, as sd_notify(3) has them: a start or a stop ends in time, or asks for more before its time is
    over."""

    def __init__(self) -> None:
        self.until_s: float | None = TIMEOUT_S
        self.heard: list[str] = []
        self.has_killed = False

    def hear(self, lines: list[str], now_s: float) -> None:
        if self.until_s is not None and now_s > self.until_s:
            self.has_killed = True
        for line in lines:
            key, _, value = line.partition("=")
            self.heard.append(key)
            if key == "READY":
                self.until_s = None
            elif key == "STOPPING":
                self.until_s = now_s + TIMEOUT_S
            elif key == "EXTEND_TIMEOUT_USEC":
                assert self.until_s is not None, "nothing is timed"
                self.until_s = max(self.until_s, now_s + int(value) / 1_000_000)


def told(steps: list[Seen]) -> Manager:
    """One look a second."""
    manager, telling = Manager(), Telling()
    for second, seen in enumerate(steps):
        manager.hear(telling.look(seen), second * LOOK_S)
    return manager


STARTING, STOPPING = Phase.STARTING, Phase.STOPPING
READY = Seen(Phase.SERVING, "ready", "")


def recovery(phase: Phase, seconds: int, every: int) -> list[Seen]:
    """Some log is done every so many seconds."""
    return [Seen(phase, f"{second // every} logs", f"{second // every} logs") for second in range(seconds)]


@pytest.mark.parametrize("phase", [STARTING, STOPPING])
def test_three_minutes_with_progress_are_not_ended(phase: Phase) -> None:
    before = [READY] if phase is STOPPING else []
    manager = told([*before, *recovery(phase, 180, 50)])
    assert not manager.has_killed and manager.heard.count("EXTEND_TIMEOUT_USEC") == 4


@pytest.mark.parametrize("phase", [STARTING, STOPPING])
def test_what_hangs_is_ended(phase: Phase) -> None:
    before = [READY] if phase is STOPPING else []
    assert told([*before, *recovery(phase, 180, 1_000)]).has_killed


@given(st.lists(st.integers(1, 200), max_size=8), st.booleans())
def test_a_node_is_ended_exactly_where_it_gets_nowhere(waits: list[int], stops: bool) -> None:
    """waits: seconds between two progresses."""
    phase = STOPPING if stops else STARTING
    steps = [Seen(phase, "", str(number)) for number, seconds in enumerate(waits) for _ in range(seconds)]
    manager = told([*([READY] if stops else []), *steps])
    limit = max(TIMEOUT_S, EXTEND_S)
    assert manager.has_killed == any(
        seconds > (limit if number == 0 else EXTEND_S) + 1 and sum(waits[: number + 1]) > limit + 1
        for number, seconds in enumerate(waits)
    )


def test_a_state_is_told_once_and_a_node_that_is_fenced_later_stays_ready() -> None:
    fenced = Seen(STARTING, "broker is running, fenced", "fenced")
    manager = told([recovery(STARTING, 1, 1)[0], READY, READY, fenced, READY, *recovery(STOPPING, 3, 9)])
    assert manager.heard == [
        "STATUS", "EXTEND_TIMEOUT_USEC", "READY", "STATUS", "STATUS", "STATUS", "STOPPING", "STATUS",
        "EXTEND_TIMEOUT_USEC",
    ]  # fmt: skip


def test_a_watchdog_hears_of_each_look_and_there_are_three_in_its_time() -> None:
    telling = Telling(watchdog_s=1.5)
    assert telling.look_s == 0.5
    assert [lines[-1] for lines in (telling.look(READY), telling.look(READY))] == ["WATCHDOG=1"] * 2


@pytest.mark.parametrize(("text", "seconds"), [("30000000", 30.0), ("0", None), ("", None), ("-3", None), ("x", None)])
def test_the_time_of_the_watchdog(text: str, seconds: float | None) -> None:
    assert watchdog_s_of({"WATCHDOG_USEC": text}) == seconds


def test_a_status_is_one_line() -> None:
    assert Telling().look(Seen(STARTING, "a\nREADY=1\nb" + "c" * 999, ""))[0].startswith("STATUS=a READY=1 bccc")


# --- what it sees


def node(**others: Any) -> Any:
    """One without a leader of the quorum, which listens."""
    state: dict[str, Any] = {
        "ready": False, "stage": "", "broker": None, "addresses": {"CLIENT": 1}, "unanswered_directories": {},
        "loader": SimpleNamespace(active_controller=None),
    }  # fmt: skip
    return SimpleNamespace(**{**state, **others})


def test_a_node_that_lacks_only_the_others_is_up() -> None:
    now_s = 0.0
    view = NodeView(node(), lambda: False, lambda: now_s)
    assert view.look().phase is Phase.STARTING
    now_s = ALONE_S
    assert view.look() == Seen(Phase.SERVING, *["the leader of the quorum is unknown"] * 2)


def test_a_directory_that_does_not_answer_is_no_progress() -> None:
    one, later = (NodeView(node(unanswered_directories={"/d": ms}), lambda: False, lambda: 0.0) for ms in (100, 900))
    assert one.look().progress == later.look().progress and "/d has not answered for 900 ms" in later.look().status


def test_a_stop_says_what_it_waits_for() -> None:
    found = NodeView(node(stage="the metadata log"), lambda: True, lambda: 0.0).look()
    assert found == Seen(Phase.STOPPING, "stopping: the metadata log", "the metadata log")


# --- the socket


def test_nobody_listens(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The node goes on, with one line."""
    manager = ServiceManager(str(tmp_path / "none"))
    for _ in range(3):
        manager.send(["READY=1"])
    manager.close()
    assert len(caplog.records) == 1


def test_an_abstract_address() -> None:
    name = f"quorumlog-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ours:
        ours.bind(f"\0{name}")
        manager = ServiceManager(f"@{name}")
        manager.send(["READY=1", "STATUS=ready"])
        manager.close()
        assert ours.recv(100) == b"READY=1\nSTATUS=ready"


@pytest.fixture
def node_file(tmp_path: Path) -> Iterator[Path]:
    """Of a formatted node that is a cluster by itself."""
    picker = PortPicker()
    (ports,) = picker.pick(1)
    file = tmp_path / "server.properties"
    file.write_text(
        f"node.id=1\nlog.dirs={tmp_path}/a\nlisteners=CLIENT://127.0.0.1:0,INTERNAL://127.0.0.1:{ports.internal}\n"
        f"controller.quorum.voters=1@127.0.0.1:{ports.internal}\n"
    )
    format_node(
        load(str(file), file.read_text(), {}),
        cluster_id="c",
        secret=new_secret(bytes(range(32))),
        disk=RealDisk(),
        new_uuid=random_uuid,
        protect=lambda name: Path(name).chmod(0o600),
    )
    yield file
    picker.close()


def test_a_real_node_tells_its_life(tmp_path: Path, node_file: Path) -> None:
    """It is up, its watchdog is fed by the loop, and it stops in order."""
    address, heard = tmp_path / "notify", list[str]()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ours:
        ours.bind(str(address))
        ours.settimeout(20)
        environ = {**os.environ, "NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "300000"}
        command = [sys.executable, "-P", "-m", "quorumlog_server", "-c", str(node_file)]
        process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            while "READY=1" not in heard:
                heard += ours.recv(4_096).decode().splitlines()
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
        ours.setblocking(False)
        try:
            while True:
                heard += ours.recv(4_096).decode().splitlines()
        except BlockingIOError:
            pass
    assert process.returncode == 0, said
    assert heard.index("READY=1") < heard.index("STOPPING=1") and heard.count("WATCHDOG=1") >= 2
    assert any(line.startswith("STATUS=stopping") for line in heard)
