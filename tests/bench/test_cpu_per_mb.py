"""Two trees beside each other: the ratio, the threads, the order."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.cpu_per_mb import medians, ratio_text, threads_text
from bench.kafka.java_load import Cost
from bench.measuring.processor_time import Spent
from bench.nodes.tree_cluster import TreeCluster, TreeError


def test_the_ratio_is_of_the_medians_and_shows_the_rounds() -> None:
    first = [Cost(10, 30, 10, 1), Cost(10, 60, 20, 2), Cost(10, 45, 15, 3)]
    second = [Cost(20, 15, 5, 1), Cost(20, 30, 10, 2), Cost(20, 45, 15, 3)]
    assert medians(first) == Cost(10, 45, 15, 2)
    assert ratio_text(first, second) == (
        "ms/MB 0.667, user 0.667, system 0.667, MB/s 2.000; "
        "ms/MB within a round 0.500 / 0.500 / 1.000, of the least disturbed rounds 0.500"
    )


def test_threads_are_named_by_what_they_used_since() -> None:
    before = {"main thread": Spent(10, 1), "a": Spent(1, 1)}
    after = {"a": Spent(1, 2), "main thread": Spent(15, 1.5), "new": Spent(0.25, 0)}
    assert threads_text(before, after) == (
        "main thread 5.0 user 0.5 system; a 0.0 user 1.0 system; new 0.2 user 0.0 system"
    )


def test_a_tree_without_an_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TreeError, match=r"run \./dev setup"):
        TreeCluster(tmp_path, tmp_path / "data")


def test_a_tree_whose_environment_runs_another_tree_is_refused(tmp_path: Path) -> None:
    """Two trees that share an environment would be compared with themselves."""
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    with pytest.raises(TreeError, match=r"the environment of .* runs "):
        TreeCluster(tmp_path, tmp_path / "data")
