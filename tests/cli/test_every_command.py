"""What every command has, whatever it does: output for programs."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quorumlog.ids import parse_uuid
from quorumlog_cli import spark_session
from quorumlog_cli.command_tree import Command, all_commands
from quorumlog_cli.commands.cluster import quorum
from quorumlog_cli.commands.nodes import up
from quorumlog_cli.connecting import connect
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.examples import LINES

COMMANDS = [command for command in all_commands() if not command.is_group]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.path))
def test_every_command_has_output_for_programs(command: Command) -> None:
    (found,) = [option for option in command.options if "--output" in option.names]
    assert found.names == ("--output", "-o") and found.choices == ("table", "json")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """The one document that a command prints, and nothing else."""
    assert main([*words, "-o", "json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def test_profiles_and_ids_are_told_to_programs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUORUMLOG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    file = str(tmp_path / "config.toml")
    nobody = ("-b", "127.0.0.1:1")
    assert said(capsys, "profile", "create", "a", *nobody) == {"current": "a", "file": file, "cluster_id": None}
    assert said(capsys, "profile", "create", "b", *nobody, "-X", "cluster.id=I")["cluster_id"] == "I"
    assert said(capsys, "profile", "use", "a") == {"current": "a", "file": file}
    assert said(capsys, "profile", "delete", "a") == {"deleted": "a", "file": file}
    assert len(parse_uuid(said(capsys, "storage", "random-uuid")["cluster_id"])) == 16


def test_a_profile_that_cannot_be_written_says_where_it_could_be(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QUORUMLOG_HOME", str(tmp_path / "file"))
    assert main(["profile", "create", "a", "-b", "127.0.0.1:1"]) == Exit.PRECONDITION
    said = capsys.readouterr().err
    assert f"{tmp_path}/file/config.toml cannot be written" in said and "QUORUMLOG_HOME=DIR" in said


@pytest.mark.parametrize(("words", "want"), [([], []), (["-o", "json"], ["-X", "log.format=json"])])
def test_a_node_logs_for_programs(words: list[str], want: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda path, command: begun.append(command))
    assert main(["server", "start", "-c", "server.properties", *words]) == 0
    assert begun == [[sys.executable, "-P", "-m", "quorumlog_server", "-c", "server.properties", *want]]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.path))
def test_every_command_shows_examples(command: Command) -> None:
    title, *examples = command.epilog.split("\n\n")
    assert title == ("Examples:" if len(examples) > 1 else "Example:") and examples
    assert all(arguments_of(line)[: len(command.path)] == command.path for line in examples)


def nobody_answers(*_: object, **_more: object) -> None:
    raise CliError(Exit.UNREACHABLE, "nobody answers")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the examples are typed: their files are there, no broker answers, no process starts."""
    monkeypatch.setenv("QUORUMLOG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(connect, "reach", nobody_answers)
    monkeypatch.setattr(up, "_find_or_create", nobody_answers)
    monkeypatch.setattr(os, "execv", nobody_answers)
    monkeypatch.setattr(os, "execve", nobody_answers)
    monkeypatch.setattr(spark_session, "session", nobody_answers)
    monkeypatch.setattr(
        quorum, "time", SimpleNamespace(monotonic=itertools.count(step=10).__next__, sleep=lambda _: None)
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    for folder in (".", "node1", "node3"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "server.properties").write_text(
            "process.roles=broker,controller\nnode.id=3\nlog.dirs=data\nmetadata.log.dir=node1/meta\n"
            "listeners=CLIENT://127.0.0.1:9092,INTERNAL://127.0.0.1:9093\n"
            "controller.quorum.bootstrap.servers=127.0.0.1:9093\n"
        )
    (tmp_path / "cluster.secret").write_text("x" * 64)
    (tmp_path / "acls.json").write_text('{"version": 1, "acls": []}')
    (tmp_path / "topics.toml").write_text('[[topics]]\ntopic = "orders"\n')
    (tmp_path / "plan.json").write_text('{"version": 1, "partitions": []}')
    return tmp_path


@pytest.mark.parametrize("line", LINES)
@pytest.mark.usefixtures("place")
def test_a_command_takes_its_examples(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They are read by the rules of a shell; whatever a command then says, it is not that it was called wrongly."""
    code = main(list(arguments_of(line.replace("$ID", "AAAAAAAAAAAAAAAAAAAAAQ"))))
    said = capsys.readouterr().err
    if line.startswith("quorumlog check"):  # whose codes are Nagios'
        assert "See: quorumlog" not in said, said
    else:
        assert code not in (Exit.USAGE, Exit.FAILED), said


def arguments_of(line: str) -> tuple[str, ...]:
    """Of the one call of quorumlog in a line of shell."""
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    parts: list[list[str]] = [[]]
    for word in words:
        if set(word) <= set("|<>&;"):
            parts.append([])
        else:
            parts[-1].append(word)
    ((_, *arguments),) = [part for part in parts if part[:1] == ["quorumlog"]]
    return tuple(arguments)


def test_every_example_belongs_to_a_command() -> None:
    shown = [line.replace(r"\[", "[") for command in COMMANDS for line in command.epilog.split("\n\n")[1:]]
    assert sorted(re.sub(" +# ", " # ", one) for one in shown) == sorted(re.sub(" +# ", " # ", one) for one in LINES)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.path))
def test_help_is_broken_by_the_terminal_alone(command: Command) -> None:
    """A docstring is broken at its own width: in 80 columns each of its lines would be broken once more."""
    assert all(one == " ".join(one.split()) for one in command.help.split("\n\n"))


def test_comments_of_examples_stand_in_one_column_where_they_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--help"]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if line.strip().startswith("quorumlog up -")]
    assert len(shown) > 2 and len({line.index("  # ") for line in shown}) == 1


@pytest.mark.parametrize("line", [line for line in LINES if "[" in line])
def test_brackets_of_an_example_are_shown(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    (command,) = [one for one in COMMANDS if one.path == arguments_of(line)[: len(one.path)]]
    assert main([*command.path, "--help"]) == 0
    assert "".join(line.split()) in "".join(capsys.readouterr().out.split())


def test_examples_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["txn", "list", "--help"]) == 0
    assert "quorumlog transaction list --state ongoing" in capsys.readouterr().out
