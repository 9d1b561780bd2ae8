"""A virtual environment with packages of an index, made once in a folder of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.peers.kafka_tools import FETCH_TIMEOUT_S, Unavailable

COMPLETE = "complete"  # a file in an environment that nothing is missing from


def is_complete(folder: Path) -> bool:
    return (folder / COMPLETE).exists()


def make_environment(folder: Path, requirements: Sequence[str], what: str) -> None:
    """Replaces what is in the folder. what: the packages, for messages. Raises Unavailable."""
    _call([sys.executable, "-m", "venv", "--clear", str(folder)], "no virtual environment could be made")
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-input"]
    _call([*pip, *requirements], f"pip could not install {what}")
    (folder / COMPLETE).touch()


def _call(command: list[str], failure: str) -> None:
    """Raises Unavailable with the end of the output."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{failure} within {FETCH_TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        raise Unavailable(f"{failure}: {' '.join(last)[-300:]}")
