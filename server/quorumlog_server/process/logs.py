"""This process's own log: one line per event on stderr, for people (console) or programs (json).

Each line has its time, its level, what happened, and where: the node and the part of it (`logger`). One about a request
has the request's id, NODE:CONNECTION:CORRELATION, as the audit log has it; so has each line that is written while a
request is carried out by a task of its own (`current_request`).

The loggers of the standard library and of structlog share one output, so that messages of libraries are not lost.

Clients choose names that stand in messages. For people, a message is one line without control characters, so that no
name looks like another line, or moves the cursor; programs get them escaped by JSON. A traceback shows no variables:
they hold passwords, tokens and records.
"""

from __future__ import annotations

import logging
import re
import sys
from functools import partial
from typing import Any

import structlog

from quorumlog.ids import NodeId
from quorumlog.rpc.serving.request_parts import current_request

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")  # also line ends and directions


def configure_logs(form: str, level: str, node_id: NodeId) -> None:
    """form: console or json. level: the lowest level that is shown."""
    shared: list[structlog.typing.Processor] = [
        partial(_where, node_id),
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=_last(form)))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def _last(form: str) -> list[structlog.typing.Processor]:
    drop = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if form == "json":
        return [drop, structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    plain = structlog.dev.plain_traceback
    return [drop, _on_one_line, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]


def _where(
    node_id: NodeId, _logger: Any, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Also of lines from threads. A line that names its request itself is right."""
    event["node"] = node_id
    record = event.get("_record")
    request = getattr(record, "request", "") or ""
    if not request and (current := current_request()):
        request = f"{node_id}:{current}"
    if request:
        event["request"] = request
    return event


def _on_one_line(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    event["event"] = _CONTROL.sub(_escaped, str(event.get("event", "")))
    return event


def _escaped(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]
