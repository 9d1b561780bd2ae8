"""Finds, reads and edits the files with profiles. Edits keep a user's comments in place."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quorumlog_cli.profiles.profile import PROJECT_FILE, Profiles, parse_profiles
from quorumlog_cli.terminal.errors import CliError, Exit

_LEGAL_NAME = re.compile(r"[A-Za-z0-9_-]+")
_HEADING = re.compile(r"\s*\[")
_CURRENT = re.compile(r"\s*current\s*=")


def user_file(environment: Mapping[str, str]) -> Path:
    """`config.toml` in QUORUMLOG_HOME, else below XDG_CONFIG_HOME, else ~/.config."""
    if home := environment.get("QUORUMLOG_HOME"):
        return Path(home) / "config.toml"
    base = environment.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "quorumlog" / "config.toml"


def read_user() -> Profiles:
    return _read(user_file(os.environ))


def read_project(start: Path) -> Profiles:
    """`.quorumlog.toml` of `start` or of the nearest folder above it, up to the root of the git repository."""
    for folder in (start, *start.parents):
        if (folder / PROJECT_FILE).is_file():
            return _read(folder / PROJECT_FILE)
        if (folder / ".git").exists():
            break
    return Profiles()


def is_legal_name(name: str) -> bool:
    return _LEGAL_NAME.fullmatch(name) is not None


def with_profile(text: str, name: str, values: Mapping[str, Any]) -> str:
    """`text` with one profile's table replaced, or added at the end."""
    table = [f"[profiles.{name}]", *(f"{key} = {_toml(value)}" for key, value in values.items()), ""]
    lines = without_profile(text, name).rstrip("\n").splitlines()
    return "\n".join([*lines, *([""] if lines else []), *table])


def without_profile(text: str, name: str) -> str:
    kept: list[str] = []
    inside = False
    for line in text.splitlines():
        if _HEADING.match(line):
            heading = line.split("#")[0].strip().strip("[]").replace(" ", "").replace('"', "")
            inside = heading == f"profiles.{name}" or heading.startswith(f"profiles.{name}.")
        if not inside:
            kept.append(line)
    return "\n".join(kept).rstrip("\n") + "\n"


def with_current(text: str, name: str) -> str:
    """`text` with `current` set at the top, because after a heading it would belong to a table. "" removes it."""
    lines = text.splitlines()
    first_table = next((number for number, line in enumerate(lines) if _HEADING.match(line)), len(lines))
    top = [line for line in lines[:first_table] if not _CURRENT.match(line)]
    current = [f"current = {_toml(name)}"] if name else []
    return "\n".join([*current, *top, *lines[first_table:]]).rstrip("\n") + "\n"


def read_text(path: Path) -> str:
    """Empty without a file. Raises CliError for one that is not UTF-8, as TOML always is."""
    try:
        return path.read_text(encoding="utf-8") if path.is_file() else ""
    except UnicodeDecodeError as error:
        raise CliError(Exit.USAGE, f"{path} is not valid TOML: not UTF-8 at byte {error.start}") from error


def write_text(path: Path, text: str) -> None:
    """Atomic. Raises CliError before writing if the text could not be read back, and if it cannot be written."""
    parse_profiles(str(path), text)
    temporary = path.with_suffix(".tmp")
    try:
        data = text.encode()
    except UnicodeEncodeError as error:  # half a surrogate: a directory's name that is not UTF-8
        raise CliError(Exit.PRECONDITION, f"{path} cannot hold {error.object[error.start : error.end]!a}") from error
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        raise CliError(
            Exit.PRECONDITION,
            f"{path} cannot be written ({error.strerror})",
            "QUORUMLOG_HOME=DIR keeps the profiles in another directory; -b names a cluster without one",
        ) from error


def _read(path: Path) -> Profiles:
    return parse_profiles(str(path), read_text(path)) if path.is_file() else Profiles()


def _toml(value: Any) -> str:
    """JSON's strings, numbers, booleans and flat lists are valid TOML."""
    return json.dumps(value, ensure_ascii=False)
