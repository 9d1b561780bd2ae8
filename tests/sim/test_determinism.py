"""The same seed is the same simulation: in another process, with other string hashes, on another heap."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SEEDS = (3, 4)  # one sends its data over the lane, the other over gRPC


def traced(seed: int, file: Path, *, hash_seed: str, ballast: int) -> dict[str, Any]:
    """Runs one seed in its own process. Returns its result but for the one field that a real clock measures."""
    options = ["--seed", str(seed), "--seconds", "15", "--trace", str(file), "--ballast", str(ballast), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "jepsen", "sim", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result.pop("processor_s") > 0
    return result


@pytest.mark.parametrize("seed", SEEDS)
def test_two_processes_agree_line_by_line(seed: int, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    with ThreadPoolExecutor(2) as side_by_side:
        first = side_by_side.submit(traced, seed, one, hash_seed="1", ballast=0)
        again = side_by_side.submit(traced, seed, other, hash_seed="2", ballast=60_000 + 7_919 * seed)
    told, told_again = first.result(), again.result()
    with one.open() as lines, other.open() as others:
        for number, (line, same) in enumerate(zip_longest(lines, others), start=1):
            assert line == same, f"line {number} of seed {seed} differs"
    assert told == told_again


def test_other_seeds_are_other_simulations(tmp_path: Path) -> None:
    told = [traced(seed, tmp_path / str(seed), hash_seed="0", ballast=0) for seed in SEEDS]
    assert [one["wire"] for one in told] == ["lane", "grpc"]
    assert told[0]["trace"] != told[1]["trace"]
