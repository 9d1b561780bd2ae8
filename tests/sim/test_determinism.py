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
    options = ["--seed", str(seed), "--seconds", "10", "--trace", str(file), "--ballast", str(ballast), "--json"]
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


Told = tuple[dict[str, Any], Path]  # what a run tells, and its trace


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[Told, Told]]:
    """For each seed two runs of it, one after the other, while the other seed's run on the other processor."""
    folder = tmp_path_factory.mktemp("traces")

    def pair(seed: int) -> tuple[Told, Told]:
        files = folder / f"{seed}-one", folder / f"{seed}-other"
        first = traced(seed, files[0], hash_seed="1", ballast=0)
        again = traced(seed, files[1], hash_seed="2", ballast=60_000 + 7_919 * seed)
        return (first, files[0]), (again, files[1])

    with ThreadPoolExecutor(len(SEEDS)) as side_by_side:
        return dict(zip(SEEDS, side_by_side.map(pair, SEEDS), strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_two_processes_agree_line_by_line(seed: int, pairs: dict[int, tuple[Told, Told]]) -> None:
    (told, one), (told_again, other) = pairs[seed]
    with one.open() as lines, other.open() as others:
        for number, (line, same) in enumerate(zip_longest(lines, others), start=1):
            assert line == same, f"line {number} of seed {seed} differs"
    assert told == told_again


def test_other_seeds_are_other_simulations(pairs: dict[int, tuple[Told, Told]]) -> None:
    told = [pairs[seed][0][0] for seed in SEEDS]
    assert [one["wire"] for one in told] == ["lane", "grpc"]
    assert told[0]["trace"] != told[1]["trace"]
