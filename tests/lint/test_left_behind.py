"""What a test leaves to the garbage collector fails it, or its module's last test: tests/conftest.py and pytest's
settings in pyproject.toml."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULE = """
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import Scheduler

class Circle:
    def __init__(self, held):
        self.held, self.own = held, self

async def call():
    pass

def test_drops_a_coroutine():
    call()

def test_leaves_a_simulated_process():
    loop = SimLoop(Scheduler(1), "n1")
    Circle(loop.create_task(call()))

def test_leaves_a_circle_that_holds_a_coroutine():
    Circle(call())

def test_of_the_modules_end():
    pass
"""


def test_a_dropped_coroutine_is_an_error_and_a_dropped_simulation_is_none(tmp_path: Path) -> None:
    module = tmp_path / "tests" / "left" / "test_left.py"
    module.parent.mkdir(parents=True)
    module.write_text(MODULE)
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [*command, "-p", "tests.conftest", "-p", "no:cacheprovider", "-q", "--tb=no", str(module)],
        cwd=ROOT, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    told = done.stdout + done.stderr
    assert re.search(r"FAILED \S+::test_drops_a_coroutine", told), told
    assert re.search(r"ERROR \S+::test_of_the_modules_end", told), told
    assert "1 failed, 3 passed, 1 error" in told, told
