"""The clients for asyncio, as an application makes them: `AsyncProducer({"bootstrap.servers": "h:1", "linger.ms": 5})`.

They are the classes of `producer.py`, `consumer.py` and `admin.py` on the real edges. Tests and the simulation make
those classes themselves, with edges of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorumlog.client import admin, consumer, producer
from quorumlog.client.real_edges import on_real_edges


class AsyncProducer(producer.AsyncProducer):
    def __init__(self, config: Mapping[str, Any] | None = None, **options: Any) -> None:
        on_real_edges(super().__init__, config, options)


class AsyncConsumer(consumer.AsyncConsumer):
    def __init__(self, config: Mapping[str, Any] | None = None, **options: Any) -> None:
        on_real_edges(super().__init__, config, options)


class AsyncAdmin(admin.AsyncAdmin):
    def __init__(self, config: Mapping[str, Any] | None = None, **options: Any) -> None:
        on_real_edges(super().__init__, config, options)
