"""Which lines `quorumlog logs` shows."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from quorumlog_cli.commands.nodes.logs import Wanted, begin_of
from quorumlog_cli.local.log_lines import LogLine, parse_line
from quorumlog_cli.terminal.errors import CliError

NOW = datetime(2026, 11, 30, 14, 0, 0, tzinfo=UTC)


def line(request: str = "", time: str = "2026-11-30T13:00:00.000000Z", level: str = "info") -> LogLine:
    content = {"event": "x", "level": level, "timestamp": time, "logger": "quorumlog.requests", "request": request}
    return parse_line(2, json.dumps({key: value for key, value in content.items() if value}))


def test_a_line_has_its_request_and_its_part() -> None:
    found = line("2:4:12")
    assert (found.request, found.where) == ("2:4:12", "quorumlog.requests")
    assert found.render() == "2 | 13:00:00.000 info    x [2:4:12]"


def test_a_line_of_the_audit_is_no_json_for_people() -> None:
    said = {"result": "done", "principal": "User:a", "resources": ["t", "u"], "errors": [], "request": "2:4:12"}
    found = parse_line(2, json.dumps({"event": json.dumps(said), "level": "info", "request": "2:4:12"}))
    assert found.render().endswith(" info    done principal=User:a resources=t,u [2:4:12]")
    assert json.loads(found.text) == said, "for programs"
    for text in ("{", "{}x", "READY {}"):
        assert parse_line(2, json.dumps({"event": text, "level": "info"})).render().endswith(f"info    {text}")


@pytest.mark.parametrize(
    ("request_", "of", "is_shown"),
    [
        ("2:4:12", None, True),
        ("2:4:12", "2:4:12", True),
        ("2:4:12", "2:4", True),
        ("2:4:12", "2", True),
        ("2:4:12", "2:4:1", False),
        ("2:44:12", "2:4", False),
        ("", "2", False),
        ("", None, True),
    ],
)
def test_by_request(request_: str, of: str | None, is_shown: bool) -> None:
    assert Wanted("info", of).has(line(request_)) == is_shown


@pytest.mark.parametrize(
    ("since", "begin"),
    [
        ("90s", "2026-11-30T13:58:30.000000Z"),
        ("10m", "2026-11-30T13:50:00.000000Z"),
        ("2h", "2026-11-30T12:00:00.000000Z"),
        ("1d", "2026-11-29T14:00:00.000000Z"),
        ("2026-11-30T13:30", "2026-11-30T13:30:00.000000Z"),
        ("2026-11-30T13:30:00+02:00", "2026-11-30T11:30:00.000000Z"),
    ],
)
def test_since(since: str, begin: str) -> None:
    assert begin_of(since, NOW) == begin
    assert Wanted("info", since=begin).has(line(time=begin))
    assert not Wanted("info", since=begin).has(line(time="2026-11-28T00:00:00.000000Z"))


@pytest.mark.parametrize("since", ["soon", "1w", ""])
def test_a_time_that_is_none_is_refused(since: str) -> None:
    with pytest.raises(CliError, match="--since"):
        begin_of(since, NOW)


def test_a_level_counts_beside_the_others() -> None:
    assert not Wanted("warning", "2").has(line("2:4:12")) and Wanted("warning", "2").has(line("2:4:1", level="error"))


@pytest.mark.parametrize("bad", ["\x1b[2J", "\x9b2J", "\u202e", "\n1 | 13:00:00.000 error   forged", "\u2028"])
def test_a_name_that_a_client_chose_makes_no_line_and_commands_no_terminal(bad: str) -> None:
    content = {"timestamp": "2026-01-01T13:00:00.000000Z", "level": "warning", "event": f"no {bad}", "client": bad}
    said = parse_line(1, json.dumps(content)).render()
    assert said.isprintable()
    trace = parse_line(1, json.dumps(content | {"exception": f"Traceback\n  {bad}"})).render()
    assert all(line.isprintable() for line in trace.split("\n"))
    assert parse_line(1, f"READY {bad.strip()}").render().replace("\n", " ").isprintable()
