"""No process outlives the command that has started it, whatever ends the command.

`python -m tests.jepsen.test_ends_with_parent FOLDER` runs the test in FOLDER as the mutants' killer does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from jepsen.mutation.killers import passes
from jepsen.tree import ROOT, runs_from
from quorumlog.testing.waiting import wait_until
from tests.jepsen.ended_processes import has_ended

pytestmark = pytest.mark.timeout(300)

LIMIT_S = 100.0  # for whatever is waited for: the imports alone take a minute where all processors are taken
SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGKILL]
LONG = ["--profile", "calm", "--seconds", "1000000"]

KILLER = """
import os, pathlib, subprocess, sys, time
def test_that_does_not_end():
    node = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
    pathlib.Path("pids.tmp").write_text(f"{os.getpid()} {node.pid}")
    pathlib.Path("pids.tmp").rename("pids")
    time.sleep(1000)
"""

MUTANT = "530-unknowing-leader-granted"  # of the simulation
Begin = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Starts `python -m WORDS`, whose errors go into the file `errors`; ends what the test leaves."""
    begun: list[subprocess.Popen[bytes]] = []
    theirs: list[psutil.Process] = []

    def start(*words: str) -> subprocess.Popen[bytes]:
        with (tmp_path / "errors").open("wb") as errors:
            command = [sys.executable, "-m", *words]
            environment = runs_from(ROOT, os.environ)
            begun.append(
                subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
            )  # fmt: skip
        return begun[-1]

    yield start
    for process in begun:
        theirs.extend(below(process))
        process.kill()
        process.wait()
    for one in theirs:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()


def below(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(process.pid).children(recursive=True)
    return []


def until(holds: Callable[[], bool]) -> None:
    wait_until(holds, LIMIT_S, "the processes")


def all_end(processes: list[psutil.Process]) -> None:
    """Fails, and ends them, where they do not end."""
    try:
        until(lambda: all(has_ended(one) for one in processes))
    finally:
        for one in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()


SIMULATIONS = [
    ("swarm, SIGTERM", ["swarm", *LONG], 4, signal.SIGTERM),
    ("swarm, SIGINT", ["swarm", *LONG], 4, signal.SIGINT),
    ("swarm, SIGKILL", ["swarm", *LONG], 4, signal.SIGKILL),
    ("swarm --functions, SIGINT", ["swarm", "--functions", *LONG], 4, signal.SIGINT),
    ("sim --shrink, SIGINT", ["sim", "--shrink", "--seed", "1", *LONG], 2, signal.SIGINT),
]


@pytest.mark.parametrize(
    ("words", "processes", "number"), [one[1:] for one in SIMULATIONS], ids=[one[0] for one in SIMULATIONS]
)
def test_simulations_end_with_their_command(
    words: list[str], processes: int, number: signal.Signals, begin: Begin
) -> None:
    """Templates and their children, whose seeds would take days. SIGINT is caught, and Python ends in its own way."""
    command = begin("jepsen", *words)
    until(lambda: len(below(command)) >= processes or command.poll() is not None)
    theirs = below(command)
    assert len(theirs) == processes
    command.send_signal(number)
    all_end(theirs)
    command.wait(LIMIT_S)


def test_a_simulation_ends_with_a_mutant_that_is_tried(begin: Begin) -> None:
    """Stopped, so that its seed does not end by itself."""
    command = begin("jepsen", "mutants", MUTANT, "--processes", "1")
    until(lambda: len(below(command)) >= 2 or command.poll() is not None)
    template, simulation = below(command)
    simulation.suspend()
    command.send_signal(signal.SIGTERM)
    all_end([template, simulation])


@pytest.mark.parametrize("number", SIGNALS, ids=lambda one: one.name)
def test_a_killer_and_its_nodes_end_with_the_command(number: signal.Signals, begin: Begin, tmp_path: Path) -> None:
    (tmp_path / "test_killer.py").write_text(KILLER)
    command = begin("tests.jepsen.test_ends_with_parent", str(tmp_path))
    until(lambda: (tmp_path / "pids").exists() or command.poll() is not None)
    theirs = [psutil.Process(int(pid)) for pid in (tmp_path / "pids").read_text().split()]
    assert len(theirs) == 2 and not any(has_ended(one) for one in theirs)
    command.send_signal(number)
    all_end(theirs)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda one: one.name)
def test_a_sweep_over_crashes_ends_in_the_middle_of_a_chunk(
    number: signal.Signals, begin: Begin, tmp_path: Path
) -> None:
    """A worker that finishes its chunk finds nobody to take it, and says so."""
    command = begin("jepsen", "crash-sweep")
    until(lambda: sum(one.cpu_times().user > 2 for one in below(command)) >= 2 or command.poll() is not None)
    theirs = below(command)
    assert len(theirs) == 3  # with the tracker of semaphores
    command.send_signal(number)
    all_end(theirs)
    assert "BrokenPipeError" not in (tmp_path / "errors").read_text()


def test_a_simulation_ends_with_its_template(begin: Begin) -> None:
    """As when memory runs out. The seed is BROKEN, and the command goes on to its end."""
    command = begin("jepsen", "swarm", "--seeds", "1", "--processes", "1", *LONG)
    until(lambda: len(below(command)) >= 2 or command.poll() is not None)
    template, simulation = below(command)
    template.kill()
    all_end([simulation])
    assert command.wait(LIMIT_S) == 1


def main() -> int:
    return 0 if passes(Path(sys.argv[1]), "test_killer.py") else 1


if __name__ == "__main__":
    sys.exit(main())
