"""The files in packaging/, and whether the product has what they name."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from quorumlog_cli.command_tree import Command, all_commands
from quorumlog_server.config.config import NodeConfig, load

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
CHART = PACKAGING / "helm" / "quorumlog"
COMMANDS = {command.path: command for command in all_commands()}


def all_files() -> Iterator[Path]:
    """Of packaging/, relative to it."""
    for path in sorted(PACKAGING.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(PACKAGING)


def wrong_in_command(words: Sequence[str]) -> list[str]:
    """What `quorumlog WORDS` names that there is not: the command, or an option of it."""
    length = next((n for n in range(len(words), 0, -1) if tuple(words[:n]) in COMMANDS), 0)
    if not length or COMMANDS[tuple(words[:length])].is_group:
        return [f"no such command: {' '.join(words)}"]
    known = names_of(COMMANDS[tuple(words[:length])])
    return [f"no such option: {word}" for word in words[length:] if word.startswith("-") and word not in known]


def names_of(command: Command) -> set[str]:
    return {name for option in command.options for name in option.names}


def commands_of_page(text: str) -> Iterator[list[str]]:
    """Of `quorumlog ...` in lines of shell, up to what a shell takes for itself."""
    for line in text.replace("\\\n", " ").splitlines():
        for found in re.finditer(r"(?:^|[\s(/])quorumlog ((?:[a-z][a-z-]*)(?: [^|;<>&)#]*)?)", line):
            yield re.sub(r"\"\$\([^)]*\)?\"?|'[^']*'", "X", found[1]).split()


def config(text: str, environment: Mapping[str, str]) -> NodeConfig:
    """Raises ConfigError."""
    return load("server.properties", text, environment)


def digest_of_chart() -> str:
    digest = hashlib.sha256()
    for path in sorted(CHART.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(CHART)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


# Packages that stand in packaging/ as scripts, not as modules of ours
sys.path.append(str(PACKAGING))
sys.path.append(str(PACKAGING / "image"))
