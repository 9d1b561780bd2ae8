"""How long an admin waits for a controller that does not answer."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from quorumlog.client.administration.partitions import (
    ElectionType,
    alter_partition_reassignments,
    elect_leaders,
    list_partition_reassignments,
)
from quorumlog.client.errors import Unavailable


class NoController:
    """A link to brokers that know no controller. waited_ms: what each call would have waited."""

    def __init__(self) -> None:
        self.options = SimpleNamespace(request_timeout_ms=30_000, default_api_timeout_ms=5_000)
        self.waited_ms: list[int] = []

    async def call_any(self, request: Any, timeout_ms: int, _doubt: object) -> Any:
        self.waited_ms.append(max(timeout_ms, request.timeout_ms))
        raise Unavailable("no broker answered")

    async def until(self, ask: Any, _timeout_ms: int) -> Any:
        return await ask()


@pytest.mark.parametrize("which", ["list", "alter", "elect"])
def test_a_call_to_the_controller_ends_with_the_time_of_the_api(which: str) -> None:
    link: Any = NoController()
    calls: dict[str, Any] = {
        "list": lambda: list_partition_reassignments(link, None),
        "alter": lambda: alter_partition_reassignments(link, {("orders", 0): (1, 2)}),
        "elect": lambda: elect_leaders(link, ElectionType.PREFERRED, None),
    }
    with pytest.raises(Unavailable):
        asyncio.run(calls[which]())
    assert link.waited_ms == [5_000]
