"""The same seed gives the same trace, in another process and with another hash order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from one_trace import trace_of

PROGRAM = Path(__file__).with_name("one_trace.py")


def in_another_process(seed: int, hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, str(PROGRAM), str(seed)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_seed_gives_the_same_trace_in_every_process() -> None:
    here, lines = trace_of(11)
    assert lines > 1_000
    assert here == trace_of(11)[0]
    assert here == in_another_process(11, "1") == in_another_process(11, "2")


def test_different_seeds_give_different_traces() -> None:
    assert len({trace_of(seed, seconds=1)[0] for seed in range(5)}) == 5
