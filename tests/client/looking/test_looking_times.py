"""One syntax of times for consume, produce, logs, diagnose and the console."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from starlette.datastructures import QueryParams

from quorumlog.client.looking.times import HOW, read_time
from quorumlog_cli.commands.nodes.logs import begin_of
from quorumlog_cli.terminal.errors import CliError
from quorumlog_cli.terminal.places import parse_places, time_ms
from quorumlog_console.messages.asked import BadAddress, asked_of

NOW_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z
HOUR_MS = 3_600_000
TIMES = [
    ("1699999999999", NOW_MS - 1), ("2h", NOW_MS - 2 * HOUR_MS), ("-2h", NOW_MS - 2 * HOUR_MS),
    ("90 min ago", NOW_MS - HOUR_MS * 3 // 2), ("1d", NOW_MS - 24 * HOUR_MS), ("PT1H30M", NOW_MS - HOUR_MS * 3 // 2),
    ("pt0.5s", NOW_MS - 500), ("2023-11-14T22:13:20", NOW_MS), ("2023-11-14T23:13:20+01:00", NOW_MS),
    ("2023-11-14T22:13:20.0006Z", NOW_MS + 1), ("2023-11-14", NOW_MS - 80_000_000), ("999999d", 0), ("1960-01-01", 0),
]  # fmt: skip


@pytest.mark.parametrize(("text", "want"), TIMES)
def test_a_time_is_the_same_wherever_it_is_written(text: str, want: int) -> None:
    assert read_time(text, NOW_MS) == time_ms(text, NOW_MS) == want
    assert parse_places([f"@{text}"], to_end=False, now_ms=NOW_MS).start == f"@{want}"
    assert asked_of("t", QueryParams({"from": "time", "time": text}), NOW_MS).time_ms == want
    line = begin_of(text, datetime.fromtimestamp(NOW_MS / 1_000, UTC))
    assert datetime.fromisoformat(line).timestamp() * 1_000 == want


@pytest.mark.parametrize("text", ["", "soon", "1w", "h", "-1", "P", "PT", "٣h", "1" * 30, "1" * 30 + "d", "2026-13-01"])
def test_what_is_no_time_is_refused_with_how_it_is_written(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time") as refused:
        read_time(text, NOW_MS)
    assert HOW in str(refused.value)
    with pytest.raises(CliError, match=r"^--since: "):
        begin_of(text, datetime.fromtimestamp(NOW_MS / 1_000, UTC))
    with pytest.raises(BadAddress, match="is not a time"):
        asked_of("t", QueryParams({"from": "time", "time": text}), NOW_MS)
