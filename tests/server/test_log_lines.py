"""What a line of a node's own log may hold, whatever clients choose for names."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog

from quorumlog.ids import NodeId
from quorumlog_server.process.logs import configure_logs

FORGED = "2026-01-01T00:00:00Z [info     ] User:eve may do everything"
_log = logging.getLogger("quorumlog.test_log_lines")


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    """As it was before."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


@pytest.mark.parametrize("form", ["console", "json"])
@pytest.mark.parametrize("end", ["\n", "\r", "\x85", "\u2028", "\x0b"])
def test_no_name_ends_a_line(form: str, end: str, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(form, "info", NodeId(1))
    _log.warning("would be refused: %s", f"topic{end}{FORGED}")
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("form", ["console", "json"])
def test_no_name_commands_the_terminal(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(form, "info", NodeId(1))
    _log.warning("would be refused: %s", "\x1b[2J \x9b2J \u202e topic")
    line = capsys.readouterr().err
    assert not set(line) & {"\x1b", "\x9b", "\u202e"}
    assert "topic" in line


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_traceback_shows_no_variables(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever else is installed: structlog prints them where it finds `rich`."""
    configure_logs(form, "debug", NodeId(1))
    password = "".join(["ca", "na", "ry"])
    try:
        raise ValueError(len(password))
    except ValueError:
        _log.exception("a login crashed")
    told = capsys.readouterr().err
    assert "ValueError" in told
    assert password not in told
