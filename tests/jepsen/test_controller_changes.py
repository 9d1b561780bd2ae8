"""The topics of a controller loop, before its first fault."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jepsen.live.controllers.changes import Clients, Ledger, Outcome
from quorumlog.errors import ErrorCode
from quorumlog.messages.cluster import CreateTopicResult, CreateTopicsRequest, CreateTopicsResponse
from quorumlog.rpc.transport import Address, OutcomeUnknown

BROKERS = [Address("127.0.0.1", 1), Address("127.0.0.1", 2)]


class Broker:
    """Makes the first topic without an answer, and refuses the second one once."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.refused = False

    async def call(self, request: CreateTopicsRequest, _timeout_ms: int) -> Any:
        (name,) = (topic.name for topic in request.topics)
        code = ErrorCode.NONE
        if name in self.made:
            code = ErrorCode.TOPIC_ALREADY_EXISTS
        elif self.made and not self.refused:
            self.refused, code = True, ErrorCode.NOT_CONTROLLER
        else:
            self.made.append(name)
            if len(self.made) == 1:
                raise OutcomeUnknown("no answer")
        return CreateTopicsResponse(topics=(CreateTopicResult(name=name, error_code=code),))


def test_they_are_made_on_a_busy_machine_too(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, ledger = Broker(), Ledger()
    clients = Clients(BROKERS, 2, ledger)
    monkeypatch.setattr(clients, "_connect", lambda _number: broker)
    asyncio.run(clients.make_topics())
    assert broker.made == ["key-0", "key-1"]
    outcomes = [(change.topic, change.outcome) for change in ledger.changes]
    assert outcomes == [*[("key-0", Outcome.UNKNOWN)] * 2, ("key-1", Outcome.UNKNOWN), ("key-1", Outcome.ACKNOWLEDGED)]
    assert ledger.acknowledged == 1
