"""Which records `consume` prints, and when it ends: --key, --where, -n, a reader that has gone."""

from __future__ import annotations

import os
from collections import deque
from typing import Any

import pytest

from quorumlog.client.consumer import ConsumedRecord
from quorumlog_cli.commands.records import consume
from quorumlog_cli.commands.records.newest import fitting
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.reader_gone import check_reader
from quorumlog_cli.terminal.records_text import compile_format

RECORDS = [
    ConsumedRecord("t", 0, 0, 5, b"a", b'{"n": 1, "big": 73314510714175488}', (("source", b"web"),)),
    ConsumedRecord("t", 0, 1, 5, b"b", b'{"n": 2.50}', ()),
    ConsumedRecord("t", 0, 2, 5, b"a", None, ()),
    ConsumedRecord("t", 0, 3, 5, None, b"no json", ()),
    ConsumedRecord("t", 0, 4, 5, b"\xff", b'{"n": 3}', (("source", b"app"),)),
]

CASES: list[tuple[str, str | None, list[str], list[int]]] = [
    ("everything", None, [], [0, 1, 2, 3, 4]),
    ("a key", "a", [], [0, 2]),
    ("a key of bytes", r"\xff", [], [4]),
    ("no key fits none", "", [], []),
    ("a path", None, ["$.n >= 2.5"], [1, 4]),
    ("to the last digit", None, ["$.big = 73314510714175490"], []),
    ("both", "a", ["header.source = web"], [0]),
    ("a tombstone", None, ["value is null"], [2]),
]


@pytest.mark.parametrize(("key", "where", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_records_that_fit(key: str | None, where: list[str], want: list[int]) -> None:
    fits = fitting(key, where).fits
    assert [record.offset for record in RECORDS if fits(record)] == want


@pytest.mark.parametrize(("key", "where", "says"), [(None, ["size = 3"], "--where: "), (r"\x", [], "--key ")])
def test_what_is_no_condition(key: str | None, where: list[str], says: str) -> None:
    with pytest.raises(CliError, match=says) as caught:
        fitting(key, where)
    assert caught.value.code is Exit.USAGE


class Polled:
    """Gives at most what it is asked for."""

    def __init__(self) -> None:
        self.left = deque(RECORDS)

    @property
    def finished(self) -> bool:
        return not self.left

    def poll(self, limit: int | None, timeout_ms: int) -> list[ConsumedRecord]:
        return [self.left.popleft() for _ in range(min(limit or 100, len(self.left)))]


def test_n_counts_what_was_printed(capfdbinary: Any) -> None:
    render = consume._of_fitting(compile_format("%o "), fitting("a", []).fits)
    polled = Polled()
    assert consume._print(polled, 2, render) == 2  # type: ignore[arg-type]
    assert capfdbinary.readouterr().out == b"0 2 " and [one.offset for one in polled.left] == [3, 4]


@pytest.mark.parametrize("more", [["--since", "1h"], ["-O", "end"], ["--group", "g"]])
def test_the_newest_begin_where_they_are(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["consume", "t", "--tail", "3", *more]) == Exit.USAGE
    assert "--tail begins where the newest records do" in capsys.readouterr().err


def test_a_reader_that_has_gone_is_noticed_without_a_write() -> None:
    reading, writing = os.pipe()
    check_reader(writing)
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        check_reader(writing)
    os.close(writing)
