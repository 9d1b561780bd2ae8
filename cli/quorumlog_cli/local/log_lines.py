"""Reads a node's own log, which is written as JSON lines, and shows time, level, node and message.

Clients choose names that stand in messages: a message is one line here, too, and nothing in it commands the terminal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorumlog.ids import NodeId
from quorumlog_cli.terminal.output import harmless, on_one_line

LEVELS = ("debug", "info", "warning", "error", "critical")
_SHOWN = ("timestamp", "level", "event", "node", "logger", "request", "exception")  # other keys are shown as key=value


@dataclass(frozen=True, slots=True)
class LogLine:
    """level: "" if the line is not JSON (a traceback of the interpreter, the READY line). time: as written, in UTC.

    where: the part of the node. request: NODE:CONNECTION:CORRELATION of the request that the line is about; "": none.
    """

    node_id: NodeId
    text: str
    level: str = ""
    time: str = ""
    where: str = ""
    request: str = ""

    def at_least(self, level: str) -> bool:
        """Lines without a level are shown at info."""
        return LEVELS.index(self.level or "info") >= LEVELS.index(level)

    def is_of(self, request: str) -> bool:
        """request: an id, or its beginning: a node, or a connection of it."""
        return self.request == request or self.request.startswith(f"{request}:")

    def render(self) -> str:
        clock = self.time[11:23] if len(self.time) >= 23 else " " * 12
        request = f" [{self.request}]" if self.request else ""
        return f"{self.node_id} | {clock} {self.level:8}{_readable(self.text)}{request}"


def parse_line(node_id: NodeId, line: str) -> LogLine:
    try:
        content = json.loads(line)
    except ValueError:
        return LogLine(node_id, harmless(line))
    if not isinstance(content, dict) or content.get("level") not in LEVELS:
        return LogLine(node_id, harmless(line))
    return LogLine(
        node_id,
        _sentence(content),
        str(content["level"]),
        str(content.get("timestamp", "")),
        str(content.get("logger", "")),
        str(content.get("request", "")),
    )


def _sentence(content: dict[str, Any]) -> str:
    details = "".join(f" {key}={value}" for key, value in content.items() if key not in _SHOWN)
    trace = harmless(f"\n{content['exception']}") if content.get("exception") else ""
    return f"{on_one_line(str(content.get('event', '')))}{on_one_line(details)}{trace}"


def _readable(text: str) -> str:
    """A line of the audit is a document; for people its result comes first, and then the others as key=value."""
    if not text.startswith("{"):
        return text
    try:
        content = json.loads(text)
    except ValueError:
        return text
    result = str(content.pop("result", ""))
    shown = {key: ",".join(map(str, one)) if isinstance(one, list) else one for key, one in content.items()}
    details = [f"{key}={value}" for key, value in shown.items() if key != "request" and value != ""]
    return " ".join([*([result] if result else []), *details])


class LogFollower:
    """Returns the new complete lines of one file at each call; none while the file does not exist."""

    def __init__(self, node_id: NodeId, path: Path, *, from_end: bool) -> None:
        self._node_id = node_id
        self._path = path
        self._position = path.stat().st_size if from_end and path.exists() else 0
        self._partial = b""

    def read_new(self) -> Iterator[LogLine]:
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._position)
            content = file.read()
        self._position += len(content)
        *lines, self._partial = (self._partial + content).split(b"\n")
        for line in lines:
            if line:
                yield parse_line(self._node_id, line.decode("utf-8", "replace"))
