"""A cluster of three nodes that runs the code of one tree, in that tree's own virtual environment.

Started and stopped by that tree's own commands `up` and `down`, so that two trees may differ in anything.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from bench.measuring.start import FOLDERS
from bench.peers.peer import NODES

COMMAND_TIMEOUT_S = 120.0
WHERE = "import quorumlog; print(quorumlog.__file__)"


class TreeCluster:
    """Started on creation, with its data in `root`, which must not exist. tree: has `.venv`, as `./dev setup` makes it.

    Raises TreeError.
    """

    def __init__(self, tree: Path, root: Path) -> None:
        self.tree, self._root = tree.resolve(), root
        if not self._python.exists():
            raise TreeError(f"{self._python} does not exist; run ./dev setup in {self.tree}")
        module = Path(self._run("-c", WHERE).strip())
        if not module.is_relative_to(self.tree):
            raise TreeError(f"the environment of {self.tree} runs {module}; run ./dev setup in {self.tree}")
        self._run("-m", "compileall", "-q", *FOLDERS)
        self._state: dict[str, Any] = json.loads(self._quorumlog("up", "--detach", "-o", "json"))

    @property
    def bootstrap_servers(self) -> str:
        return str(self._state["bootstrap_servers"])

    def pids(self) -> list[int]:
        files = [self._root / f"n{number}" / "node.pid" for number in range(1, NODES + 1)]
        return [int(json.loads(file.read_text())["pid"]) for file in files]

    def close(self) -> None:
        self._quorumlog("down")

    @property
    def _python(self) -> Path:
        return self.tree / ".venv" / "bin" / "python"

    def _quorumlog(self, verb: str, *options: str) -> str:
        return self._run("-m", "quorumlog_cli.main", verb, "--data", str(self._root), *options)

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [str(self._python), "-P", *arguments], cwd=self.tree, text=True, capture_output=True,
            timeout=COMMAND_TIMEOUT_S, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise TreeError(
                f"{' '.join(arguments)} in {self.tree} ended with {done.returncode}: {done.stderr[-2_000:]}"
            )
        return done.stdout


class TreeError(Exception):
    """A tree that cannot run a cluster. The message says why."""
