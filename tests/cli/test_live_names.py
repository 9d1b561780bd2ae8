"""Names of the cluster in a shell: which options and arguments take them, within which time, and never an error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog_cli.command_tree import all_commands
from quorumlog_cli.completing import live_names
from quorumlog_cli.completing.asking import main as asking
from quorumlog_cli.completing.kinds import Names
from quorumlog_cli.completing.live_names import BUDGET_S, KEPT_S, kept_or_asked, offered, target_words
from quorumlog_cli.completion_scripts import bash
from quorumlog_cli.main import main

COMMANDS = [one for one in all_commands() if not one.is_group]
TAKES = [
    (one, names, f"{' '.join(one.path)} {option.names[0]}", True)
    for one in COMMANDS
    for option in one.options
    for names in [option.live]
    if names
] + [(one, names, f"{' '.join(one.path)} {'x ' * at}", False)
     for one in COMMANDS for at, names in enumerate(one.arguments) if names]  # fmt: skip


def test_each_sort_of_name_is_taken_somewhere() -> None:
    assert {names for _, names, _, _ in TAKES} == set(Names)
    kinds = {line.strip(): names for _, names, line, _ in TAKES}
    assert kinds["topic describe"] is Names.TOPICS and kinds["consume --group"] is Names.GROUPS
    assert kinds["config set x"] is Names.CONFIG_VALUES and kinds["quorum transfer-leadership --to"] is Names.BROKERS
    assert "topic create" not in kinds and "user create" not in kinds, "a new name is nobody's"


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Beside a stand-in for quorumlog that says what it was asked."""
    folder = tmp_path_factory.mktemp("shell")
    (folder / "script").write_text(bash(all_commands()))
    (folder / "quorumlog").write_text('#!/bin/sh\necho "$2.$3"\necho error of its own >&2\n')
    (folder / "quorumlog").chmod(0o755)
    return folder / "script"


def in_bash(script: Path, lines: list[list[str]], program: str = "quorumlog") -> list[str]:
    """What is offered for the last word of each line."""
    words = "\n".join(
        f"COMP_WORDS=({program} {' '.join(map(repr, line))}) COMP_CWORD={len(line)}; _quorumlog; "
        'echo "${COMPREPLY[@]}"'
        for line in lines
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", f'source "$0"\n{words}', str(script)],
        capture_output=True, text=True, timeout=60, check=True,
        env={**os.environ, "PATH": f"{script.parent}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.stderr == "", "no error stands in a shell"
    return done.stdout.splitlines()


def test_bash_asks_for_the_names_that_each_option_and_argument_takes(script: Path) -> None:
    lines = [[*line.split(), "ab"] for _, _, line, _ in TAKES]
    assert in_bash(script, lines) == [f"{names}.ab" for _, names, _, _ in TAKES]


def test_bash_finds_the_argument_behind_options(script: Path) -> None:
    lines = [
        ["config", "get", "--profile", "x", "or"],
        ["config", "get", "-o", "json", "orders", "--all", "re"],
        ["topic", "describe", "orders", "pr"],
        ["topic", "describe", "-o", "=", "json", "pr"],
        ["consume", "--group", "=", "b"],
    ]
    assert in_bash(script, lines) == ["topics.or", "config-keys.re", "topics.pr", "topics.pr", "groups.b"]


def command(folder: Path) -> str:
    path = folder / "real"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m quorumlog_cli.main "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_bash_offers_what_the_command_says(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORUMLOG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("staging", "production"):
        assert main(["profile", "create", name, "-b", "127.0.0.1:1"]) == 0
    lines = [["profile", "use", "st"], ["topic", "alter", "x", "-c", "min.ins"], ["topic", "describe", "x"]]
    assert in_bash(script, lines, command(tmp_path)) == ["staging", "min.insync.replicas=", ""]


@pytest.mark.parametrize("words", [[], ["nonsense", ""], ["topics"], ["nodes", "", "--data", "/nowhere"]])
def test_what_cannot_be_answered_says_nothing(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["_names", *words])
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


class Time:
    """begins at the time of files that are made now."""

    def __init__(self) -> None:
        self.now_s = time.time()
        self.asked = 0

    def now(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def test_a_silent_cluster_costs_the_budget_and_is_asked_once(tmp_path: Path) -> None:
    clock, asked = Time(), list[Path]()
    began = clock.now_s
    assert kept_or_asked(tmp_path / "names", asked.append, clock.now, clock.sleep) == []
    assert asked == [tmp_path / "names"] and BUDGET_S <= clock.now_s - began < BUDGET_S + 0.05


def test_names_are_kept_for_a_while(tmp_path: Path) -> None:
    clock, asked = Time(), list[Path]()
    place = tmp_path / "names"

    def ask(path: Path) -> None:
        asked.append(path)
        path.write_text(json.dumps([f"n{len(asked)}"]))
        os.utime(path, (clock.now_s, clock.now_s))

    assert kept_or_asked(place, ask, clock.now, clock.sleep) == ["n1"]
    clock.now_s += KEPT_S - 1
    assert kept_or_asked(place, ask, clock.now, clock.sleep) == ["n1"]
    clock.now_s += 2
    assert kept_or_asked(place, ask, clock.now, clock.sleep) == ["n2"]


@given(st.lists(st.text(max_size=8)), st.text(max_size=2))
def test_no_name_commands_a_shell(names: list[str], start: str) -> None:
    hostile = ["$(reboot)", "`reboot`", "a b", "a;b", "*", "~", "a\nb", "'", '"', "\\", "a&b", "<a", ">a", "a|b", "!1"]
    for one in offered([*names, *hostile], start):
        assert one.startswith(start) and not set(one) & set(" \t\r\n$`;*?~'\"\\&<>|!(){}[]#^")
    assert offered(["orders", "orders", "$(x)"], "") == ["orders"]


def test_the_cluster_that_is_typed_is_asked() -> None:
    typed = [
        "topic",
        "describe",
        "--profile=p",
        "-b",
        "h:1",
        "-X",
        "a=b",
        "-o",
        "json",
        "--bootstrap-server",
        "h:2",
        "-b",
    ]
    assert target_words(typed) == ["--profile", "p", "-b", "h:1", "-X", "a=b", "-b", "h:2"]


def test_one_process_asks_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "names.json"
    place.with_suffix(".asks").write_text("")
    asked: list[object] = []
    monkeypatch.setattr("quorumlog_cli.completing.asking.ask", lambda *given: asked.append(given) or ["a"])
    monkeypatch.setattr("signal.alarm", lambda _: None)
    asking(["topics", str(place)])
    assert not asked and not place.exists()
    os.utime(place.with_suffix(".asks"), (0, 0))  # of one that was killed
    asking(["topics", str(place), "-b", "h:1"])
    assert len(asked) == 1 and json.loads(place.read_text()) == ["a"] and not place.with_suffix(".asks").exists()


def test_nothing_heavy_is_loaded_for_a_key_press() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from quorumlog_cli.main import main; main(['_names', 'topics', '', '-b', "
         "'127.0.0.1:1']); print([one for one in ('grpc', 'quorumlog.client', 'rich') if one in sys.modules])"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "[]" and live_names.MOST == 1_000
