"""The code of a page, taken out of its Markdown and run as a reader runs it.

A block `console` has commands, `$ COMMAND`, and behind each, where the page shows it, what it prints; `…` stands for
any text. A block `python` whose first line is a comment with a file's name is that file.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from quorumlog.testing.layout import read_layout

DOCS = Path(__file__).resolve().parents[2] / "docs"
COMMAND_S = 120.0  # for a machine with other work
FIRST_SERVER = "localhost:9092"  # where pages say that `quorumlog up` serves: the first free port
INSTALLS = "pip install"  # done before a test begins
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w.]+\.py)\b")


@dataclass(frozen=True, slots=True)
class Code:
    language: str
    text: str

    @property
    def file(self) -> str:
        """The name that the first line gives to it; empty if there is none."""
        found = _FILE.match(self.text) if self.language == "python" else None
        return found[1] if found else ""


@dataclass(frozen=True, slots=True)
class Step:
    """shows: lines of the output as the page has them; none: the page shows nothing of it."""

    command: str
    shows: tuple[str, ...]


def section(page: str, heading: str) -> str:
    """What stands below a heading of the second level, up to the next one."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found is not None, f"there is no heading {heading!r}"
    return found[1]


def blocks(text: str) -> list[Code]:
    return [Code(language, code) for language, code in _BLOCK.findall(text)]


def block(page: str, heading: str, language: str) -> str:
    """The first block of code in this language below a heading."""
    found = next((one.text for one in blocks(section(page, heading)) if one.language == language), None)
    assert found is not None, f"no {language} below {heading!r}"
    return found


def steps(console: str) -> Iterator[Step]:
    """The commands of a block, without what installs."""
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, *shows = part.rstrip("\n").split("\n")
        if not command.startswith(INSTALLS):
            yield Step(re.sub(r"\s+# .*$", "", command), tuple(shows))


def shown(step: Step, output: str) -> bool:
    """Whether the output is what the page shows. Blanks at the ends of lines do not count."""
    want = r"\n".join(".*".join(map(re.escape, line.rstrip().split("…"))) for line in step.shows)
    return (
        re.fullmatch(want, "\n".join(line.rstrip() for line in output.rstrip("\n").split("\n")), re.DOTALL) is not None
    )


def run(command: list[str], folder: Path, limit_s: float = COMMAND_S) -> subprocess.CompletedProcess[str]:
    """In a folder of its own, with this environment's commands first on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path, "QUORUMLOG_HOME": str(folder / "home")},
        capture_output=True, text=True, timeout=limit_s, check=False,
    )  # fmt: skip


def run_python(code: str, servers: str, folder: Path, limit_s: float = COMMAND_S) -> str:
    """What the code prints, with the test's cluster in place of the first server. It must end without an error."""
    assert FIRST_SERVER in code
    done = run([sys.executable, "-c", code.replace(FIRST_SERVER, servers)], folder, limit_s)
    assert done.returncode == 0, f"{code}\n{done.stdout}{done.stderr}"
    return done.stdout


def follow(page: str, folder: Path, codes: Mapping[str, int]) -> dict[str, str]:
    """All blocks of a page in their order, in one folder: files are written, commands run.

    codes: exit codes other than 0, by the command. Returns what each command printed.
    """
    said: dict[str, str] = {}
    for code in blocks(page):
        if code.file:
            (folder / code.file).write_text(code.text.replace(FIRST_SERVER, _served(folder)))
        if code.language != "console":
            continue
        for step in steps(code.text):
            done = run(["bash", "-o", "pipefail", "-c", step.command], folder)
            told = f"{step.command}: {done.returncode}\n{done.stdout}{done.stderr}"
            assert done.returncode == codes.get(step.command, 0), told
            assert not step.shows or shown(step, done.stdout), f"{told}\nthe page shows {step.shows}"
            said[step.command] = done.stdout
    return said


def _served(folder: Path) -> str:
    return read_layout(folder / ".quorumlog").bootstrap_servers
