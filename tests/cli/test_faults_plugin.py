"""The faults of `@pytest.mark.quorumlog`: their plan, what they do to nodes, and which cluster a test gets."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.testing import faults as module
from quorumlog.testing.faults import KINDS, Fault, Faults, parse_kinds, plan
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.waiting import TimedOut, wait_until


@given(st.sets(st.sampled_from(KINDS), min_size=1).map(sorted), st.integers(2, 9), st.integers(0, 99))
def test_a_plan_follows_from_its_seed_and_strikes_a_minority(kinds: list[str], count: int, seed: int) -> None:
    nodes = list(range(1, count + 1))
    faults = list(islice(plan(kinds, nodes, seed), 30))
    assert faults == list(islice(plan(kinds, nodes, seed), 30)) != list(islice(plan(kinds, nodes, seed + 1), 30))
    for fault in faults:
        assert fault.kind in kinds and set(fault.nodes) <= set(nodes)
        assert len(fault.nodes) >= 1 and (2 * len(fault.nodes) < count or count == 2)
    assert {fault.kind for fault in islice(plan(kinds, nodes, seed), 99)} == set(kinds)


@pytest.mark.parametrize("text", ["partitions", "pause,", "", "kill,fire"])
def test_kinds_of_a_marker(text: str) -> None:
    if any(word not in KINDS for word in filter(None, text.split(","))):
        with pytest.raises(ValueError, match="is none of partition, pause, kill"):
            parse_kinds(text)
    else:
        assert parse_kinds(text) == tuple(filter(None, text.split(",")))


class Nodes:
    """ids 1 to 3. done: what was done to them. refuses: what raises."""

    ids = (1, 2, 3)

    def __init__(self, refuses: str = "", alive: bool = True) -> None:
        self.done: list[tuple[str, Any]] = []
        self._refuses, self._alive = refuses, alive

    def __getattr__(self, name: str) -> Any:
        def act(what: Any) -> bool:
            if name == self._refuses:
                raise TimedOut(name)
            self.done.append((name, what))
            return self._alive

        return act


ONE = {
    "partition": (("partition", (1, 2)), [("cut", (1, 2)), ("heal", (1, 2))]),
    "pause": (("pause", (2,)), [("pause", 2), ("resume", 2)]),
    "kill": (("kill", (3,)), [("kill", 3), ("start", [3])]),
}


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets the plan be one fault that would last for an hour."""

    def set_first(kind: str, nodes: tuple[int, ...]) -> None:
        fault = Fault(kind=kind, nodes=nodes, wait_ms=0, hold_ms=3_600_000)
        monkeypatch.setattr(module, "plan", lambda *_: iter([fault]))

    return set_first


@pytest.mark.parametrize(("fault", "want"), ONE.values(), ids=ONE)
def test_the_end_of_a_test_ends_the_fault_in_force(
    first: Any, fault: tuple[str, tuple[int, ...]], want: Sequence[tuple[str, Any]]
) -> None:
    first(*fault)
    nodes = Nodes()
    faults = Faults(cast(LocalNodes, nodes), KINDS, 7)
    faults.start()
    wait_until(lambda: len(faults.done) == 1, 5, "the fault")
    assert nodes.done == list(want[:1])
    faults.stop()
    faults.stop()
    assert nodes.done == list(want) and str(fault[1][0]) in faults.done[0]


def test_a_node_that_the_test_has_killed_is_not_started(first: Any) -> None:
    first("kill", (3,))
    nodes = Nodes(alive=False)
    faults = Faults(cast(LocalNodes, nodes), KINDS, 7)
    faults.start()
    wait_until(lambda: len(faults.done) == 1, 5, "the fault")
    faults.stop()
    assert nodes.done == [("kill", 3)] and faults.done[0].endswith("the test had struck it already")


def test_a_fault_that_cannot_be_made_fails_the_test(first: Any) -> None:
    first("partition", (1,))
    faults = Faults(cast(LocalNodes, Nodes(refuses="cut")), KINDS, 7)
    faults.start()
    time.sleep(0)
    with pytest.raises(TimedOut, match="cut"):
        wait_until(lambda: faults.stop(), 5, "its end")


CONFTEST = """
import quorumlog.testing.cluster as home
from quorumlog.testing import faults

made = []

class Cluster:
    faults = None
    def __init__(self, root, *, nodes, config, keep_data, tls):
        self.size, self.config, self.nodes, self.number, self.open = nodes, config, self, len(made), False
        self.ids = range(1, nodes + 1)
        made.append(self)
    def __enter__(self):
        self.open = True
        return self
    def __exit__(self, *_):
        self.open = False
    def pause(self, node): return True
    def resume(self, node): return True

home.LocalCluster = Cluster
faults.WAIT_MS = (0, 0)
"""
TESTS = """
import pytest, time
from conftest import made

def test_first(quorumlog_cluster):
    assert quorumlog_cluster.number == 0 and quorumlog_cluster.size == 4

@pytest.mark.quorumlog(nodes=5, faults="pause", seed=7, config={"a": "b"})
def test_own(quorumlog_cluster):
    c = quorumlog_cluster
    assert (c.number, c.size, c.config, c.open, made[0].open) == (1, 5, {"a": "b"}, True, True)
    while not c.faults.done:
        time.sleep(0.01)
    assert False, "on purpose"

def test_shared_again(quorumlog_cluster):
    assert quorumlog_cluster.number == 0 and quorumlog_cluster.open
    assert not made[1].open and not made[1].faults._thread.is_alive()

@pytest.mark.quorumlog(nodes=1)
def test_quiet(quorumlog_cluster):
    assert (quorumlog_cluster.number, quorumlog_cluster.size, quorumlog_cluster.faults) == (2, 1, None)

@pytest.mark.quorumlog(faults="rain")
def test_unknown(quorumlog_cluster): ...
"""


def test_a_marked_test_has_a_cluster_of_its_own_and_its_report_the_seed(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_application.py").write_text(TESTS)
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "quorumlog.testing.plugin",
        "--strict-markers",
        "--quorumlog-nodes=4",
    ]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *options,
            "--quorumlog-nodes=4",
            f"--basetemp={tmp_path / 'temporary'}",
            "test_application.py",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = done.stdout + done.stderr
    assert "1 failed, 3 passed, 1 error" in said, said
    assert "test_own[5 nodes pause seed 7]" in said and "on purpose" in said
    (line,) = [line for line in said.splitlines() if "s  pause of" in line]
    assert "quorumlog faults" in said and "seed 7" in said and " for " in line
    assert "faults='rain': 'rain' is none of partition, pause, kill" in said
