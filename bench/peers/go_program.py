"""A peer's program that is built with Go from one source file beside this one, and the modules that it names."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from bench.peers.kafka_tools import Unavailable, alone

BUILD_TIMEOUT_S = 1_200.0


def build(source: Path, modules: str, name: str, folder: Path) -> Path:
    """The program `name` in the folder, built if it is not there yet or its source has changed. Raises Unavailable.

    modules: the text of go.mod. name: with the version, so that another one is built anew.
    """
    go = shutil.which("go")
    if go is None:
        raise Unavailable("no go")
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder / "lock"):
        built, main = folder / name, folder / "main.go"
        if not built.exists() or not main.exists() or main.read_bytes() != source.read_bytes():
            shutil.copyfile(source, main)
            (folder / "go.mod").write_text(modules)
            _run([go, "mod", "tidy"], folder)
            _run([go, "build", "-o", built.name, "."], folder)
    return built


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{' '.join(command)} did not finish within {BUILD_TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(command)} failed: {done.stderr[-1_000:].strip()}")
