"""The calling side of a proof: when one exchange with the server is enough."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from transport_worlds import identity

from quorumlog.nursery import Nursery
from quorumlog.rpc.calling import prover as module
from quorumlog.rpc.calling.prover import Prover
from quorumlog.rpc.proof_log import ProofLog
from quorumlog.rpc.transport import Address


class CountingProver(Prover):
    """Its exchanges succeed. made: how many there were."""

    made = 0

    async def _exchange(self) -> Any:
        self.made += 1
        return object()


async def no_server(_message: bytes, _timeout_ms: int) -> bytes:
    raise AssertionError("no exchange is made")


def prover_of() -> CountingProver:
    return CountingProver(
        identity(1),
        Address("h", 1),
        no_server,
        nursery=Nursery(lambda name, crash: pytest.fail(f"{name}: {crash}")),
        random_bytes=bytes,
        log=ProofLog(),
    )


def test_a_young_session_opens_one_stream_without_another_exchange() -> None:
    """The server might have forgotten it since the first one broke."""

    async def scenario() -> None:
        prover = prover_of()
        first = await prover.session()
        assert await prover.session(fresh=True) is first and prover.made == 1
        second = await prover.session(fresh=True)
        assert second is not first and prover.made == 2
        assert await prover.session(fresh=True) is not second and prover.made == 3

    asyncio.run(scenario())


def test_an_old_session_opens_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FRESH_S", 0.0)

    async def scenario() -> None:
        prover = prover_of()
        first = await prover.session()
        assert await prover.session() is first and prover.made == 1
        assert await prover.session(fresh=True) is not first and prover.made == 2

    asyncio.run(scenario())
