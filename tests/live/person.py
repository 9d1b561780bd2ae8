"""A person who types commands in a folder, with a home for the profiles, as in a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from quorumlog.testing.layout import has_cluster
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.processes import ProcessId
from tests.documents import check_document, command_of

COMMAND_S = 60.0


class Person:
    """Runs commands in a folder of its own. home: where the profiles are; default: in the folder."""

    def __init__(self, folder: Path, home: Path | None = None) -> None:
        self.folder = folder
        self.environment = {**os.environ, "QUORUMLOG_HOME": str(home or folder / "home")}
        self.root = folder / ".quorumlog"

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "quorumlog_cli.main", *arguments]

    def does(
        self, *arguments: str, stdin: str = "", at: str = ".", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """at: the directory below the folder in which the command is typed. environment: further variables."""
        return subprocess.run(
            self.command(*arguments),
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder / at,
            env={**self.environment, **environment},
            timeout=COMMAND_S,
            check=False,
        )

    def types(self, *arguments: str, stdin: str = "", want: int = 0, at: str = ".", **environment: str) -> str:
        """Returns stdout; the exit code must be `want`."""
        done = self.does(*arguments, stdin=stdin, at=at, **environment)
        assert done.returncode == want, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def hears(self, *arguments: str, want: int, at: str = ".", stdin: str = "", **environment: str) -> str:
        """Returns stderr; the exit code must be `want`."""
        done = self.does(*arguments, stdin=stdin, at=at, **environment)
        assert done.returncode == want, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stderr

    def asks(self, *arguments: str, want: int = 0, at: str = ".", **environment: str) -> Any:
        """The document that the command prints; it is as the command declares."""
        document = json.loads(self.types(*arguments, "-o", "json", want=want, at=at, **environment))
        check_document(command_of(arguments), document)
        return document

    def healthy(self) -> bool:
        """True if `status` exits with 0."""
        return self.does("status").returncode == 0

    def processes(self) -> list[ProcessId]:
        nodes = LocalNodes.open(self.root)
        return [process for node_id in nodes.ids if (process := nodes.process(node_id)) is not None]

    def leaves(self) -> None:
        """What a test does last, whatever has failed: nothing runs on."""
        if has_cluster(self.root):
            LocalNodes.open(self.root).stop(timeout_s=0)
