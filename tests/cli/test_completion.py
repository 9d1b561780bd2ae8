"""`quorumlog completion`: what each shell offers, asked in the shell itself, is what the parser has."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from quorumlog_cli.command_tree import Command, all_commands
from quorumlog_cli.completion_scripts import SCRIPTS, Shell
from quorumlog_cli.main import main

# Each reads the words of a command line from its arguments, the last of them unfinished, and prints what is offered.
ASK = {
    Shell.BASH: 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _quorumlog; printf "%s\\n" "${COMPREPLY[@]}"',
    Shell.ZSH: (
        "compdef() { : }; _files() { print FILES }; compset() { current=${current#*=} }\n"
        "_describe() { local -a of=(${(P)2}); print -l -- ${(M)of:#$current*} }\n"
        'compadd() { shift; local -a of=("$@"); print -l -- ${(M)of:#$current*} }\n'
        'source "$0"; words=("$@"); CURRENT=$#; _quorumlog'
    ),
    Shell.FISH: "source $argv[1]; complete -C (string join -- ' ' $argv[2..-1])",
}
CASES = [
    ("verbs", "qu", ["quorum", "quota"]),
    ("verbs of a group", "topic de", ["delete", "describe"]),
    ("a group in a group", "partition plan add", ["add-broker"]),
    ("an option", "topic create --if", ["--if-not-exists"]),
    ("behind an option", "topic create --dry-run --part", ["--partitions"]),
    ("no verb is taken for another", "topic list to", []),
    ("choices", "status -o j", ["json"]),
    ("choices, long", "topic list --output t", ["table"]),
    ("choices of an argument", "completion z", ["zsh"]),
]


@pytest.fixture(scope="module")
def commands() -> list[Command]:
    return all_commands()


def offered(shell: Shell, script: Path, *words: str) -> list[str]:
    """Without help texts."""
    options = {Shell.BASH: ["--norc"], Shell.ZSH: ["-f"], Shell.FISH: ["--no-config"]}[shell]
    done = subprocess.run(
        [shell, *options, "-c", ASK[shell], str(script), "quorumlog", *words],
        cwd=script.parent, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return sorted(line.partition("\t")[0].partition(":")[0] for line in done.stdout.splitlines() if line)


def written(shell: Shell, commands: list[Command], folder: Path) -> Path:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = folder / "script"
    path.write_text(SCRIPTS[shell](commands))
    return path


@pytest.mark.parametrize("shell", Shell)
def test_a_shell_offers_what_fits(shell: Shell, commands: list[Command], tmp_path: Path) -> None:
    script = written(shell, commands, tmp_path)
    found = {name: offered(shell, script, *line.split(" ")) for name, line, _ in CASES}
    if shell is Shell.ZSH:
        found = {name: [word for word in words if word != "FILES"] for name, words in found.items()}
    assert found == {name: want for name, _, want in CASES}


@pytest.mark.parametrize(
    ("words", "want"), [(["status", "-o", "=", "j"], ["json"]), (["status", "--output", "="], ["json", "table"])]
)
def test_bash_cuts_words_at_an_equals_sign(
    words: list[str], want: list[str], commands: list[Command], tmp_path: Path
) -> None:
    assert offered(Shell.BASH, written(Shell.BASH, commands, tmp_path), *words) == want


def test_bash_offers_all_that_the_parser_has(commands: list[Command], tmp_path: Path) -> None:
    script = written(Shell.BASH, commands, tmp_path)
    lines = [(*command.path, start) for command in commands for start in ("", "--")]
    ask = "\n".join(
        f"COMP_WORDS=(quorumlog {' '.join(path)} '{start}') COMP_CWORD={len(path) + 1}; _quorumlog; "
        'echo "${COMPREPLY[@]}"'
        for *path, start in lines
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", f'source "$0"\n{ask}', str(script)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    found = dict(zip(lines, map(str.split, done.stdout.splitlines()), strict=True))
    for command in commands:
        assert found[(*command.path, "")] == [word for word, _ in command.words]
        long = [name for option in command.options for name in option.names if name.startswith("--")]
        assert found[(*command.path, "--")] == long


def test_only_commands_have_options_with_a_value(commands: list[Command]) -> None:
    """The scripts find the command by the first words that are no options."""
    groups = [command for command in commands if command.is_group]
    assert not [option for group in groups for option in group.options if option.takes_value]
    assert [group.path for group in groups if not group.words] == []


def test_the_command_prints_the_script(capsys: pytest.CaptureFixture[str], commands: list[Command]) -> None:
    assert main(["completion", "bash"]) == 0
    assert capsys.readouterr().out == SCRIPTS[Shell.BASH](commands)
    assert main(["completion", "fish", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"shell": "fish", "script": SCRIPTS[Shell.FISH](commands)}
    assert main(["completion", "tcsh"]) == 2
