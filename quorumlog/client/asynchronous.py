"""The clients for asyncio, as an application makes them: `AsyncProducer({"bootstrap.servers": "h:1", "linger.ms": 5})`.

They are the classes of `producer.py`, `consumer.py` and `admin.py` on the real edges. Tests and the simulation make
those classes themselves, with edges of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorumlog.client import admin, consumer, producer
from quorumlog.client.edge import SystemClock, make_rng, merged, transport_of


class AsyncProducer(producer.AsyncProducer):
    def __init__(self, config: Mapping[str, Any] | None = None, **options: Any) -> None:
        given = merged(config, options)
        super().__init__(transport_of(given), given, clock=SystemClock(), rng=make_rng())


class AsyncConsumer(consumer.AsyncConsumer):
    def __init__(self, config: Mapping[str, Any] | None = None, **options: Any) -> None:
        given = merged(config, options)
        super().__init__(transport_of(given), given, clock=SystemClock(), rng=make_rng())


class AsyncAdmin(admin.AsyncAdmin):
    def __init__(self, config: Mapping[str, Any] | None = None, **options: Any) -> None:
        given = merged(config, options)
        super().__init__(transport_of(given), given, clock=SystemClock(), rng=make_rng())
