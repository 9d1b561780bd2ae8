"""A user's first minutes: the commands of the README, in order, against real processes, from an empty folder.

Uses only the command line, so that what the README promises is what is tested.
"""

from __future__ import annotations

import itertools
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from quorumlog import Cluster
from quorumlog.testing.layout import read_layout
from quorumlog.testing.ports import HOST
from quorumlog.testing.processes import ProcessId
from quorumlog.testing.waiting import wait_until
from tests.live.free_ports import free_port
from tests.live.person import COMMAND_S, Person


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path)
    yield person
    person.leaves()


def test_the_first_minutes(person: Person) -> None:
    began = time.monotonic()
    person.types("up", "-d")
    print(f"up -d took {time.monotonic() - began:.1f} s")
    processes = person.processes()
    assert len(processes) == 3

    status = person.asks("status")
    assert status["healthy"] and [node["state"] for node in status["nodes"]] == ["running"] * 3

    person.types("topic", "create", "hello", "--partitions", "3")
    person.types("topic", "create", "hello", want=6)
    person.types("topic", "create", "hello", "--if-not-exists")
    assert [topic["topic"] for topic in person.asks("topic", "list")] == ["hello"]
    person.types("produce", "hello", stdin="hi\n")
    assert person.types("consume", "hello", "-e") == "hi\n"
    described = person.asks("topic", "describe", "hello")
    assert [len(partition["replicas"]) for partition in described["partitions"]] == [3, 3, 3]
    assert sum(partition["end_offset"] for partition in described["partitions"]) == 1

    before = person.asks("quorum", "wait-healthy")
    assert before["healthy"] and before["leader"] in (1, 2, 3)
    assert "TopicRecord" in person.types("metadata", "dump")
    segments = [str(path) for path in sorted(person.root.glob("n1/data/hello-*/*.log"))]
    assert "payload: hi" in person.types("log", "dump", *segments, "--print-data-log")

    victim = str(before["leader"])
    person.types("kill", victim)
    person.types("kill", victim, want=6)
    person.types("status", want=5)
    person.types("produce", "hello", "-K", ":", stdin="k:after\n")  # two of three are enough, whoever led
    assert sorted(person.types("consume", "hello", "-e").splitlines()) == ["after", "hi"]
    after = person.asks("quorum", "status")
    assert after["leader"] != before["leader"] and after["epoch"] > before["epoch"]

    person.types("restart", victim)
    wait_until(person.healthy, COMMAND_S, "the cluster to be healthy again")
    assert "READY" in person.types("logs", victim)

    processes += person.processes()
    person.types("down")
    assert not any(process.alive for process in processes)
    person.types("status", want=3)
    person.types("topic", "list", want=3)


def test_data_stays_when_a_cluster_comes_back(person: Person) -> None:
    person.types("up", "-d", "-n", "1")
    person.types("produce", "auto", stdin="kept\n")  # the topic is created automatically, as in Kafka
    person.types("down")
    person.types("up", "-d", "-n", "3", want=6)
    with socket.create_server((HOST, read_layout(person.root).nodes[0].ports.client)) as taken:
        port = taken.getsockname()[1]
        said = person.hears("up", "-d", want=6)
        assert f"port {port} of node 1 is in use by process {os.getpid()} " in said and "up --port" in said
        other = free_port()
        (node,) = person.asks("up", "-d", "--port", str(other))["nodes"]
        assert node["client"] == f"{HOST}:{other}"
        assert person.types("consume", "auto", "-e") == "kept\n"
        assert f"at ports from {other} on" in person.hears("up", "-d", "--port", str(port + 1000), want=6)
    document = person.types("consume", "auto", "-e", "-J")
    person.types("produce", "again", "-J", stdin=document)
    assert person.types("consume", "again", "-O", "-1", "-e", "-f", "%t %s") == "again kept"
    person.types("topic", "delete", "again", "nope", want=9)
    person.types("purge", "--yes")
    assert not person.root.exists()


@pytest.mark.timeout(240)
def test_one_node_has_groups_and_transactions(person: Person) -> None:
    """Their internal topics take the replicas that there are. No profile can be written here, and none is needed."""
    (person.folder / "file").write_text("")
    person.environment["QUORUMLOG_HOME"] = str(person.folder / "file")
    assert "cannot be written" in person.hears("up", "-d", "-n", "1", want=0)
    (node,) = person.asks("status")["nodes"]
    with Cluster(node["client"]) as cluster, cluster.producer(transactional_id="writer") as producer:
        with producer.transaction():
            producer.send("orders", b"whole")
        assert person.types("consume", "orders", "--group", "readers", "-e", "-n", "1") == "whole\n"
        internal = [topic for topic in cluster.admin.list_topics() if topic.name.startswith("__")]
        assert [topic.name for topic in internal] == ["__consumer_offsets", "__transaction_state"]
        assert {len(part.replicas) for topic in internal for part in topic.partitions} == {1}
    (row,) = person.asks("group", "describe", "readers")
    assert row["topic"] == "orders" and row["current_offset"] in (1, 2), "behind the record, or its marker as well"


def test_ctrl_c_in_the_foreground_leaves_nothing_behind(person: Person) -> None:
    nodes: list[ProcessId] = []
    told = interrupted(person, "up", "-n", "1", at="  Ctrl-C stops the nodes.", just_before=nodes)
    assert "quorumlog topic create hello" in told
    assert len(nodes) == 1 and not nodes[0].alive


def test_ctrl_c_after_attaching_to_a_detached_cluster_ends_the_view_only(person: Person) -> None:
    """The signal goes to all that the terminal runs in the foreground, as a typed Ctrl-C does."""
    person.types("up", "-d", "-n", "1")
    person.types("produce", "kept", stdin="before\n")
    before = person.processes()
    with in_a_terminal(person, "up") as (attached, terminal):
        said = read_until(terminal, b"Ctrl-C ends this view; the nodes run on")
        assert b"was running" in said and b"formatted" not in said
        os.write(terminal, CTRL_C)
        read_until(terminal, b"the nodes run on\r\n")
        assert attached.wait(COMMAND_S) == 130
    assert person.processes() == before and before[0].alive
    assert person.types("consume", "kept", "-e") == "before\n", "it was not even interrupted"
    assert interrupted(person, "up", at="  Ctrl-C ends this view;").startswith("  found "), (
        "nor by a signal to it alone"
    )
    assert person.processes() == before


@pytest.mark.timeout(240)
def test_ctrl_c_after_attaching_stops_the_nodes_that_it_started_only(person: Person) -> None:
    person.types("up", "-d")
    person.types("kill", "2")
    kept = person.processes()
    assert len(kept) == 2
    with in_a_terminal(person, "up") as (attached, terminal):
        read_until(terminal, b"Ctrl-C stops nodes 2; the others ran before, and run on")
        assert len(person.processes()) == 3
        os.write(terminal, CTRL_C)
        read_until(terminal, b"stopped")
        assert attached.wait(COMMAND_S) == 130
    assert person.processes() == kept and all(node.alive for node in kept)


def interrupted(person: Person, *words: str, at: str, just_before: list[ProcessId] | None = None) -> str:
    """What a command says before the line that begins with `at`; there it gets a Ctrl-C, and ends by it.

    just_before: gets the nodes that run then.
    """
    with subprocess.Popen(
        person.command(*words),
        cwd=person.folder,
        env=person.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            told = "".join(itertools.takewhile(lambda line: not line.startswith(at), process.stderr))
            if just_before is not None:
                just_before += person.processes()
            process.send_signal(signal.SIGINT)
            process.stderr.read()
            assert process.wait(COMMAND_S) == 130
        finally:
            process.kill()
    return told


CTRL_C = b"\x03"
OF_A_TERMINAL = """
import fcntl, sys, termios
from quorumlog_cli.main import main
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.exit(main())
"""


def test_a_closed_terminal_leaves_nothing_behind(person: Person) -> None:
    with in_a_terminal(person, "up", "-n", "1") as (process, terminal):
        read_until(terminal, b"Ctrl-C stops the nodes")
        nodes = person.processes()
        assert len(nodes) == 1
        os.close(terminal)  # the kernel sends SIGHUP, and writing fails from now on
        process.wait(COMMAND_S)
        assert not any(node.alive for node in nodes)


@contextmanager
def in_a_terminal(person: Person, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A command in the foreground of a terminal of its own, and the descriptor at which a person would sit."""
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", OF_A_TERMINAL, *words],
        cwd=person.folder,
        env=person.environment,
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    )
    os.close(inside)
    try:
        yield process, terminal
    finally:
        process.kill()
        process.wait()
        with suppress(OSError):  # the test has closed it
            os.close(terminal)


def read_until(terminal: int, words: bytes) -> bytes:
    """All that the terminal shows up to the words, which must come before it is closed or COMMAND_S are over."""
    said, until_s = b"", time.monotonic() + COMMAND_S
    while words not in said:
        assert select.select([terminal], [], [], max(0.0, until_s - time.monotonic()))[0], said.decode()
        more = b""
        with suppress(OSError):  # the last process of the terminal has ended
            more = os.read(terminal, 1_000)
        assert more, f"the command ended before it said {words!r}: {said.decode()}"
        said += more
    return said
