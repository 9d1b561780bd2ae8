"""This process's own log: one line per event on stderr, for people (console) or programs (json).

The loggers of the standard library and of structlog share one output, so that messages of libraries are not lost.
"""

from __future__ import annotations

import logging
import sys

import structlog

from quorumlog.ids import NodeId


def configure_logs(form: str, level: str, node_id: NodeId) -> None:
    """form: console or json. level: the lowest level that is shown."""
    structlog.contextvars.bind_contextvars(node=node_id)
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
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
    return [drop, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
