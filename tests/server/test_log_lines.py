"""What a line of a node's own log may hold, whatever clients choose for names."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator

import pytest
import structlog

from quorumlog.ids import NodeId
from quorumlog.rpc.serving.request_parts import CURRENT, Timing
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


def test_a_line_says_where_and_for_which_request(capsys: pytest.CaptureFixture[str]) -> None:
    """From a thread, too; and a line that names its request itself is right."""

    def lines() -> list[dict[str, object]]:
        return [json.loads(line) for line in capsys.readouterr().err.splitlines()]

    configure_logs("json", "info", NodeId(3))
    _log.info("of nobody")
    thread = threading.Thread(target=lambda: _log.info("from a thread"))
    thread.start()
    thread.join()
    timing = Timing("Metadata", 0.0, 0.0, 0)
    timing.correlation = 12
    token = CURRENT.set((7, timing))
    _log.info("while it is carried out")
    _log.info("of another", extra={"request": "3:8:1"})
    CURRENT.reset(token)
    found = lines()
    assert [line.get("request") for line in found] == [None, None, "3:7:12", "3:8:1"]
    assert {line["node"] for line in found} == {3} and {line["logger"] for line in found} == {_log.name}
    assert all(line["timestamp"] and line["level"] == "info" for line in found)
