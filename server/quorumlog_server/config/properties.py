"""Reads the three forms of a node's configuration into a flat map of Kafka's key names.

- `server.properties`, as Java reads it: `key=value`, `key: value`, `#` and `!` comments, a backslash continues a line.
- TOML, the same tree: `[log] segment_bytes = "1GiB"` is `log.segment.bytes=1GiB`.
- The environment, which wins: `QUORUMLOG_LOG_SEGMENT_BYTES`, and `KAFKA_LOG_SEGMENT_BYTES` as in Kafka's image.

`keys.py` knows which keys exist; this module does not.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

ENVIRONMENT_PREFIXES = ("KAFKA_", "QUORUMLOG_")  # a later one wins


class ConfigError(Exception):
    """A configuration with which a node must not start. The message says what is wrong, why, and what to do."""


def parse_file(path: str, text: str) -> dict[str, str]:
    """Flat key -> value of a file: TOML if its name says so, otherwise Java properties."""
    return parse_toml(path, text) if path.endswith(".toml") else parse_properties(path, text)


def parse_properties(path: str, text: str) -> dict[str, str]:
    """Java properties without unicode escapes. Refuses a key given twice, because one value would be lost silently."""
    values: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key, found, value = _split_key(line)
        if not found:
            raise ConfigError(f"{path} line {number}: no '=' in {line!r}; write key=value")
        _put(values, key, value, f"{path} line {number}")
    return values


def parse_toml(path: str, text: str) -> dict[str, str]:
    """Tables and underscores become dots, lists become comma-separated, booleans and numbers become text."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    values: dict[str, str] = {}
    for key, value in _leaves("", tree):
        _put(values, key, _toml_text(value), path)
    return values


def from_environment(environment: Mapping[str, str], known: Iterable[str]) -> dict[str, str]:
    """The keys of `known` that the environment sets. Other variables with our prefixes are ignored."""
    values: dict[str, str] = {}
    for prefix in ENVIRONMENT_PREFIXES:
        for key in known:
            name = prefix + key.replace(".", "_").upper()
            if name in environment:
                values[key] = environment[name]
    return values


def _put(values: dict[str, str], key: str, value: str, where: str) -> None:
    if key in values:
        raise ConfigError(f"{where}: {key} is given twice; remove one of them")
    values[key] = value


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """(number of the first physical line, text) of every line that is not blank or a comment; continuations joined."""
    lines: list[tuple[int, str]] = []
    pending, started = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.lstrip()
        if not pending and (not line or line[0] in "#!"):
            continue
        started = started if pending else number
        if _ends_in_lone_backslash(line):
            pending += line[:-1]
            continue
        lines.append((started, pending + line))
        pending = ""
    if pending:
        lines.append((started, pending))
    return lines


def _ends_in_lone_backslash(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split_key(line: str) -> tuple[str, bool, str]:
    """(key, whether a separator was found, value). The first unescaped '=' or ':' is the separator."""
    escaped = False
    for position, character in enumerate(line):
        if character in "=:" and not escaped:
            return _unescape(line[:position].strip()), True, _unescape(line[position + 1 :].strip())
        escaped = character == "\\" and not escaped
    return line, False, ""


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    characters = iter(text)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            out.append({"n": "\n", "t": "\t", "r": "\r"}.get(following, following))
        else:
            out.append(character)
    return "".join(out)


def _leaves(prefix: str, tree: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in tree.items():
        key = f"{prefix}.{name}" if prefix else name
        if isinstance(value, Mapping):
            found.extend(_leaves(key, value))
        else:
            found.append((key.replace("_", "."), value))
    return found


def _toml_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(_toml_text(item) for item in value)
    return str(value)
