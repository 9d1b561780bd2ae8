"""Every command of docs/log-files.md runs, on the directories of three nodes that hold the same topic."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from test_log_commands import made_directory

from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import Exit
from tests.rules import rule

PAGE = Path(__file__).resolve().parents[2] / "docs" / "log-files.md"
COMMANDS = [
    line.removeprefix("$ quorumlog ").partition("  #")[0].partition(" # ")[0].strip()
    for line in PAGE.read_text().splitlines()
    if line.startswith("$ quorumlog ")
]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the page's names stand for."""
    root = tmp_path_factory.mktemp("nodes")
    names = {f"DATA{number if number > 1 else ''}": number for number in (1, 2, 3)}
    made = {name: made_directory(root / name, number, topic="hello") for name, number in names.items()}
    return {**{name: str(path) for name, path in made.items()},
            "SEGMENT": str(made["DATA"] / "hello-0" / f"{0:020d}.log")}  # fmt: skip


def test_the_page_has_commands() -> None:
    assert len(COMMANDS) == 9


@rule("storage 12.5")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_runs(command: str, nodes: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([_path(word, nodes) for word in shlex.split(command)]) == Exit.DONE
    assert capsys.readouterr().out


def _path(word: str, nodes: dict[str, str]) -> str:
    name, slash, rest = word.partition("/")
    return nodes[name] + slash + rest if name in nodes else word
