"""Ctrl-C while `consume` reads as a group's member: what was printed is committed, and nothing else."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from quorumlog.client.consumer import ConsumedRecord
from quorumlog.client.errors import WokenUp
from quorumlog_cli.commands.records import consume
from quorumlog_cli.profiles.profile import Target
from quorumlog_cli.terminal.places import Range

TARGET = Target(bootstrap_servers="b2", origin="the test", options={})


@pytest.fixture(autouse=True)
def _interrupts_are_python_s() -> Iterator[None]:
    """A shell has processes that it starts in the background ignore them, and so would Python here."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    """In this thread, so that Python knows at once: `os.kill` may reach another thread, and two signals become one."""
    signal.raise_signal(signal.SIGINT)


class FakeConsumer:
    """polls: what each does, by turns. closed: how it was closed."""

    finished = False

    def __init__(self, *polls: Callable[[], list[int]]) -> None:
        self.closed: list[bool] = []
        self._polls, self._woken = list(polls), False

    def poll(self, max_records: int | None, timeout_ms: int) -> list[ConsumedRecord]:
        offsets = self._polls.pop(0)()
        if not offsets and self._woken:
            raise WokenUp("wakeup() was called")
        return [ConsumedRecord("t", 0, offset, 5, None, b"%d" % offset, ()) for offset in offsets]

    def wakeup(self) -> None:
        self._woken = True

    def close(self, *, commit: bool = True) -> None:
        self.closed.append(commit)


def run(consumer: FakeConsumer, monkeypatch: pytest.MonkeyPatch, render: Any = lambda record: record.value) -> None:
    """In place of the cluster: as it closes its consumers."""

    @contextmanager
    def connected(target: Target) -> Iterator[Any]:
        class Cluster:
            def consumer(self, topics: list[str], **options: Any) -> FakeConsumer:
                return consumer

        try:
            yield Cluster()
        except BaseException:
            consumer.close(commit=False)
            raise
        consumer.close()

    monkeypatch.setattr(consume, "connected", connected)
    consume._consume_as_member(TARGET, ["t"], "g", Range(), None, render)


def interrupted(offsets: list[int]) -> Callable[[], list[int]]:
    def poll() -> list[int]:
        interrupt()
        return offsets

    return poll


CASES = [
    ("it waits", [lambda: [1, 2], interrupted([])], "12"),
    ("records have come", [lambda: [1, 2], interrupted([3, 4, 5])], "12345"),
]


@pytest.mark.parametrize(("polls", "printed"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_a_poll_returned_is_printed_whole_and_committed(
    polls: list[Any], printed: str, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    consumer = FakeConsumer(*polls)
    with pytest.raises(KeyboardInterrupt):
        run(consumer, monkeypatch)
    assert consumer.closed[0] is True and capfdbinary.readouterr().out.decode() == printed


def test_an_interrupt_between_two_records_waits_for_the_second(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def render(record: ConsumedRecord) -> bytes:
        if record.offset == 1:
            interrupt()
        return b"%d" % record.offset

    consumer = FakeConsumer(lambda: [1, 2, 3])
    with pytest.raises(KeyboardInterrupt):
        run(consumer, monkeypatch, render)
    assert consumer.closed[0] is True and capfdbinary.readouterr().out == b"123"


def test_a_second_interrupt_ends_it_at_once_and_commits_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def render(record: ConsumedRecord) -> bytes:
        interrupt()
        return b"%d" % record.offset

    consumer = FakeConsumer(lambda: [1, 2, 3])
    with pytest.raises(KeyboardInterrupt):
        run(consumer, monkeypatch, render)
    assert consumer.closed == [False]


def test_the_handler_that_was_there_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGINT)
    consumer = FakeConsumer(interrupted([]))
    with pytest.raises(KeyboardInterrupt):
        run(consumer, monkeypatch)
    assert signal.getsignal(signal.SIGINT) is before
