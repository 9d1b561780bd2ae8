"""What every command has, whatever it does: output for programs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from quorumlog.ids import parse_uuid
from quorumlog_cli.command_tree import Command, all_commands
from quorumlog_cli.main import main

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


@pytest.mark.parametrize(("words", "want"), [([], []), (["-o", "json"], ["-X", "log.format=json"])])
def test_a_node_logs_for_programs(words: list[str], want: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda path, command: begun.append(command))
    assert main(["server", "start", "-c", "server.properties", *words]) == 0
    assert begun == [[sys.executable, "-P", "-m", "quorumlog_cli.server", "-c", "server.properties", *want]]
