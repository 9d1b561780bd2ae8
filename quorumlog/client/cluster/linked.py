"""A client that is a link to the cluster and calls over it: what the admin client and that of joint groups share."""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from quorumlog.client.cluster.link import Link
from quorumlog.client.options import CommonOptions, parse_options
from quorumlog.clock import Clock
from quorumlog.rpc.transport import Transport


class Linked:
    """transport, clock, rng: the edges; `quorumlog.client.real_edges` makes the real ones. options: CommonOptions."""

    def __init__(
        self,
        transport: Transport,
        config: Mapping[str, Any] | None = None,
        *,
        clock: Clock,
        rng: random.Random,
        **options: Any,
    ) -> None:
        self.options = parse_options(CommonOptions, config, options)
        self._link = Link(transport, self.options, clock=clock, rng=rng)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def metrics(self) -> dict[str, int]:
        """What this client counts, read now; by Kafka's names."""
        return self._link.metrics()

    async def close(self) -> None:
        await self._link.close()
