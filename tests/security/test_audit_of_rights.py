"""The audit log: equal denials of a time are one line, and no name breaks a line."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.security import audit, login
from quorumlog.security.audit import (
    MAX_NAME_CHARACTERS,
    MAX_NAMES,
    MAX_WINDOWS,
    OTHERS,
    WINDOW_MS,
    AuditLog,
    Counts,
    Ended,
    line_of,
    line_of_change,
)
from quorumlog.security.principal import Principal
from quorumlog.security.required.asker import Change, Denial
from quorumlog.security.required.need import CLUSTER_DELETE, TOPIC_DELETE, TOPIC_READ, Need

ALICE = Principal("User", "alice")


def denial(name: str, principal: Principal = ALICE) -> Denial:
    return Denial(principal, "10.0.0.7", "CLIENT", "Fetch", TOPIC_READ, name)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4_000))))
def test_each_denial_is_counted_once(steps: list[tuple[str, int]]) -> None:
    counts, now_ms, told = Counts[Denial](), 0, Counter[str]()
    for name, wait_ms in steps:
        now_ms += wait_ms
        for ended, count, _ in counts.ended(now_ms):
            told[ended.name] += count
        assert counts.add(denial(name), now_ms) == []
        assert counts.next_ms is not None and now_ms < counts.next_ms <= now_ms + WINDOW_MS
    for ended, count, _ in counts.all():
        told[ended.name] += count
    assert told == Counter(name for name, _ in steps)
    assert counts.next_ms is None


def test_windows_are_bounded() -> None:
    counts = Counts[Denial]()
    clients = (Principal("User", str(number)) for number in range(MAX_WINDOWS + 5))
    written = [one for client in clients for one in counts.add(denial("t", client), 0)]
    assert [one.key.principal.name for one in written] == ["0", "1", "2", "3", "4"]
    assert len(counts.all()) == MAX_WINDOWS


def test_a_long_name_is_kept_as_far_as_it_is_shown() -> None:
    counts = Counts[Denial]()
    for end in "ab":
        counts.add(denial("t" * 100_000 + end), 0)
    ((kept, count, _),) = counts.all()
    assert (len(kept.name), count) == (MAX_NAME_CHARACTERS, 2)
    assert json.loads(line_of(Ended(kept, count, {})))["resource"] == kept.name


def test_a_client_that_asks_for_many_names_gets_few_lines_and_hides_nobody() -> None:
    """A request may have 10,000 names, and each would be a line."""
    counts, bob = Counts[Denial](), Principal("User", "bob")
    for _ in range(2):
        for number in range(10_000):
            assert counts.add(denial(str(number)), 0) == []
    assert counts.add(denial("payroll", bob), 0) == []
    told = counts.ended(WINDOW_MS)
    assert len(told) == MAX_NAMES + 2 and sum(one.times for one in told) == 20_001
    assert Ended(denial(OTHERS), 2 * (10_000 - MAX_NAMES), {}) in told and Ended(denial("payroll", bob), 1, {}) in told
    assert counts.add(denial("9999"), WINDOW_MS) == [] and counts.all() == [Ended(denial("9999"), 1, {})]


@given(st.text(max_size=400), st.text(max_size=400))
def test_a_line_is_one_line_and_reads_back(name: str, principal: str) -> None:
    line = line_of(Ended(denial(name, Principal("User", principal)), 3, {}))
    assert line.isascii() and "\n" not in line
    read = json.loads(line)
    assert read["count"] == 3 and read["operation"] == "READ"
    assert read["resource"] == name or (len(name) > 300 and read["resource"] == name[:300] + "...")


@given(st.lists(st.text(max_size=400), max_size=3), st.lists(st.integers(0, 130), max_size=3))
def test_a_change_is_one_line_and_reads_back(names: list[str], errors: list[int]) -> None:
    line = line_of_change(
        Change(ALICE, "10.0.0.7", "CLIENT", "DeleteTopics", tuple(names), tuple(errors), (), "7:9", -1), "1:7:9", ""
    )
    assert line.isascii() and "\n" not in line
    read = json.loads(line)
    assert read["result"] == ("failed" if errors else "done") and read["errors"] == errors
    assert [name[:300] for name in read["resources"]] == [name[:300] for name in names]


class Clock:
    """The loop's time."""

    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    def wall_ms(self) -> int:
        return 0


def test_a_window_is_written_when_it_ends_and_the_rest_at_the_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "WINDOW_MS", 30)

    async def run() -> list[Any]:
        log = AuditLog(Clock(), 1)
        log.denied(denial("a"), "7:9")
        log.denied(denial("a"), "7:9")
        while not caplog.records:  # noqa: ASYNC110 - the line comes by a timer
            await asyncio.sleep(0.005)
        log.denied(denial("b"), "7:10")
        log.close()
        return [json.loads(record.message) for record in caplog.records]

    with caplog.at_level(logging.INFO, "quorumlog.audit"):
        lines = asyncio.run(run())
    assert [(line["resource"], line["count"], line["request"]) for line in lines] == [
        ("a", 2, "1:7:9"),
        ("b", 1, "1:7:10"),
    ]


def test_logins_of_a_window_are_one_line_and_many_hosts_are_few(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A stranger chooses a reason's words, so only the first one is kept."""

    async def run() -> list[Any]:
        log = AuditLog(Clock(), 1)
        for number in range(3):
            log.login(login.done("SECURE", "10.0.0.7", "SCRAM-SHA-512", ALICE), "")
            log.login(login.failed("SECURE", "10.0.0.8", "PLAIN"), f"word {number} \n")
        for number in range(10 * MAX_NAMES):
            log.login(login.failed("OTHER", f"10.1.0.{number}", ""), "x" * 1_000)
        log.close()
        return [json.loads(record.message) for record in caplog.records]

    with caplog.at_level(logging.INFO, "quorumlog.audit"):
        lines = asyncio.run(run())
    assert lines[0] == {
        "result": "login", "principal": "User:alice", "host": "10.0.0.7", "listener": "SECURE",
        "mechanism": "SCRAM-SHA-512", "count": 3,
    }  # fmt: skip
    assert lines[1] == {
        "result": "login failed", "principal": "", "host": "10.0.0.8", "listener": "SECURE", "mechanism": "PLAIN",
        "count": 3, "reason": "word 0 \n",
    }  # fmt: skip
    others = lines[2:]
    assert len(others) == MAX_NAMES + 1 and sum(line["count"] for line in others) == 10 * MAX_NAMES
    assert others[-1]["host"] == OTHERS and all(len(line["reason"]) <= MAX_NAME_CHARACTERS for line in others)


def test_a_long_name_does_not_take_the_place_of_its_address(caplog: pytest.LogCaptureFixture) -> None:
    """A name is chosen by who writes tokens and certificates, and may have blanks."""
    name = "x" * 280 + " 6.6.6.6 " + "y" * 40

    async def run() -> Any:
        log = AuditLog(Clock(), 1)
        log.login(login.done("SECURE", "10.0.0.7", "OAUTHBEARER", Principal("User", name)), "")
        log.close()
        return json.loads(caplog.records[0].message)

    with caplog.at_level(logging.INFO, "quorumlog.audit"):
        line = asyncio.run(run())
    assert line["host"] == "10.0.0.7" and line["principal"].startswith("User:xxx")
    assert len(line["principal"]) <= MAX_NAME_CHARACTERS and line["principal"].endswith("...")


def test_a_line_says_what_decided(caplog: pytest.LogCaptureFixture) -> None:
    def why(_principal: Principal, _host: str, need: Need, name: str) -> tuple[bool, str]:
        return name == "mine", f"a rule on {name} for {need.operation.name}"

    change = Change(
        ALICE, "10.0.0.7", "CLIENT", "DeleteTopics", ("mine",), (), (CLUSTER_DELETE, TOPIC_DELETE), "7:9", 414
    )

    async def run() -> list[Any]:
        log = AuditLog(Clock(), 3, why)
        log.denied(denial("theirs"), "7:8")
        log.changed(change)
        log.close()
        return [json.loads(record.message) for record in caplog.records]

    with caplog.at_level(logging.INFO, "quorumlog.audit"):
        done, denied = asyncio.run(run())
    assert (done["request"], done["rule"], done["metadata_offset"]) == ("3:7:9", "a rule on mine for DELETE", 413)
    assert (denied["request"], denied["rule"]) == ("3:7:8", "a rule on theirs for READ")
