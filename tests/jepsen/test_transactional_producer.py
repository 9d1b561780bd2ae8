"""What the workload's producer concludes from the answers to the end of a transaction."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jepsen.transactions import producer
from jepsen.transactions.calls import Unknown
from jepsen.transactions.producer import TV1, TV2, Producer
from quorumlog.errors import ErrorCode as E
from quorumlog.messages.transactions import EndTxnResponse
from quorumlog.rpc.transport import RpcError


class Answers:
    """Answers in this order; None: the connection breaks."""

    def __init__(self, *codes: int | None) -> None:
        self._codes = list(codes)

    async def to_coordinator(self, *_: Any) -> EndTxnResponse:
        code = self._codes.pop(0)
        if code is None:
            raise RpcError("broken")
        return EndTxnResponse(error_code=code)

    def forget_coordinator(self, *_: Any) -> None:
        pass


UNKNOWN = None


@pytest.mark.parametrize(
    ("version", "codes", "expected"),
    [
        (TV2, [E.NONE], True),
        (TV2, [E.COORDINATOR_LOAD_IN_PROGRESS, E.NONE], True),
        (TV2, [None, E.NONE], True),
        (TV2, [E.PRODUCER_FENCED], False),
        (TV2, [E.COORDINATOR_LOAD_IN_PROGRESS, E.PRODUCER_FENCED], False),
        (TV2, [None, E.PRODUCER_FENCED], UNKNOWN),
        (TV2, [E.NOT_COORDINATOR, E.PRODUCER_FENCED], UNKNOWN),
        (TV2, [E.CONCURRENT_TRANSACTIONS, E.PRODUCER_FENCED], UNKNOWN),  # a copy of the request may have come first
        (TV1, [None], UNKNOWN),
        (TV1, [E.PRODUCER_FENCED], False),
    ],
)
def test_an_end(version: int, codes: list[int | None], expected: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer, "WAIT_S", 0)
    calls, recorder = Answers(*codes), None
    one = Producer(calls, recorder, "x", version, 1)  # type: ignore[arg-type]
    if expected is UNKNOWN:
        with pytest.raises(Unknown):
            asyncio.run(one.end(committed=True))
    else:
        assert asyncio.run(one.end(committed=True)) is expected
