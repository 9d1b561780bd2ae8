"""Records move from callers' threads to the loop: each once, in its thread's order, with any queue limit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from typing import Any

import pytest

from quorumlog.client import real_edges as edge
from quorumlog.client.blocking import Producer
from quorumlog.client.handover import producer as handover


class Acknowledged:
    """The delivery of a record; awaiting it gives the number of records so far."""

    def __init__(self, number: int) -> None:
        self.number = number

    def done(self) -> bool:
        return True

    def __await__(self) -> Generator[Any, None, int]:
        yield from ()
        return self.number


class Sent:
    """A stand-in for the asynchronous producer. It refuses every value b"bad"."""

    def __init__(self) -> None:
        self.values: list[bytes] = []

    def check_sending(self) -> None:
        """It has no transactions."""

    def fail_transaction(self, _error: Exception) -> bool:
        return False

    def prepared(self, *given: Any) -> Any:
        return given[:-1]

    def refused(self, *_: Any) -> None:
        """Nobody listens."""

    async def send_bytes(self, _topic: str, value: bytes, *_: Any) -> Any:
        await asyncio.sleep(0)
        if value == b"bad":
            raise ValueError("bad")
        self.values.append(value)
        return Acknowledged(len(self.values))

    async def flush(self) -> None:
        """Nothing is pending here."""

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    client = Sent()
    monkeypatch.setattr(edge, "producer", lambda *_args, **_options: client)
    return client


@pytest.mark.parametrize(("limit", "at_once"), [(1, 1), (3, 100), (100, 7)])
def test_records_of_several_threads_arrive_once_and_in_order(
    sent: Sent, monkeypatch: pytest.MonkeyPatch, limit: int, at_once: int
) -> None:
    monkeypatch.setattr(handover, "HANDOVER_LIMIT", limit)
    monkeypatch.setattr(handover, "HANDOVER_RECORDS", at_once)
    producer = Producer()

    def send(name: bytes) -> None:
        for number in range(200):
            producer.send("t", b"%s %d" % (name, number))

    threads = [threading.Thread(target=send, args=(name,)) for name in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    producer.flush(30)
    for name in (b"a", b"b", b"c"):
        assert [v for v in sent.values if v.startswith(name)] == [b"%s %d" % (name, n) for n in range(200)]
    producer.close()


def test_a_refused_record_fails_alone(sent: Sent) -> None:
    producer = Producer()
    futures = [producer.send("t", value) for value in (b"1", b"bad", b"2")]
    first: Any = futures[0].result(30)
    assert first == 1
    with pytest.raises(ValueError, match="bad"):
        futures[1].result(30)
    producer.close()  # the failure has been seen
    assert sent.values == [b"1", b"2"]


def test_an_outcome_that_is_there_is_told_at_a_timeout_of_0(sent: Sent) -> None:
    producer = Producer()
    right, wrong = producer.send("t", b"1"), producer.send("t", b"bad")
    producer.flush(30)
    assert right.done and wrong.done
    for _ in range(50):  # without the mend nearly each of these is a TimeoutError
        told: Any = right.result(0)
        assert told == 1
        with pytest.raises(ValueError, match="bad"):
            wrong.result(0)
    producer.close()


def test_a_record_without_an_outcome_times_out(sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = Producer()
    monkeypatch.setattr(Acknowledged, "done", lambda _: False)
    monkeypatch.setattr(Acknowledged, "__await__", lambda _: asyncio.Event().wait().__await__())
    future = producer.send("t", b"1")
    with pytest.raises(TimeoutError):
        future.result(0.05)
    assert not future.done
    producer.close()


def test_close_raises_an_unseen_failure(sent: Sent) -> None:
    producer = Producer()
    producer.send("t", b"bad")
    with pytest.raises(ValueError, match="bad"):
        producer.close()
    assert sent.values == []


def test_a_wait_for_ones_own_records_ends_while_another_thread_sends(sent: Sent) -> None:
    """The other thread sends without end."""
    producer, stop, begun = Producer(), threading.Event(), threading.Event()

    def send() -> None:
        while not stop.is_set():
            producer.send("t", b"theirs")
            begun.set()

    other = threading.Thread(target=send)
    other.start()
    try:
        assert begun.wait(30)
        future = producer.send("t", b"mine")
        assert future.result(30)
        assert b"mine" in sent.values
        producer.flush(30)
    finally:
        stop.set()
        other.join(30)
    producer.close()
