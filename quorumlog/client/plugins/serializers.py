"""Serializers and deserializers: a function of the data, or an object with Kafka's method.

None stays None: it is a key that is not there, or a deletion in a compacted topic, and no serializer is asked (Kafka's
own ones return null for null; a function such as `json.dumps` would not).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

HeaderList = list[tuple[str, bytes | None]]
"""Of one record. What a serializer appends is sent."""
Convert = Callable[[str, HeaderList, Any], Any]


@runtime_checkable
class Serializer(Protocol):
    """Kafka's `Serializer`. topic, headers: of the record. If it raises, the record is refused."""

    def serialize(self, topic: str, headers: HeaderList, data: Any) -> bytes | None: ...


@runtime_checkable
class Deserializer(Protocol):
    """Kafka's `Deserializer`. headers: of the record that was read; changes to the list have no effect."""

    def deserialize(self, topic: str, headers: HeaderList, data: bytes) -> Any: ...


@runtime_checkable
class Prepares(Protocol):
    """A Serializer or Deserializer that has to wait for something once, such as a schema of a registry.

    The asynchronous clients call it in a thread of its own wherever this is False, so that their event loop goes on.
    """

    def is_prepared(self, topic: str, headers: HeaderList, data: Any) -> bool: ...


def serializing(given: Any) -> Convert | None:
    """given: a Serializer, a function of the data, or None."""
    return _converting(given, "serialize")


def deserializing(given: Any) -> Convert | None:
    """given: a Deserializer, a function of the bytes, or None."""
    return _converting(given, "deserialize")


def preparing(given: Any) -> Prepares | None:
    """given: a Serializer, a Deserializer, a function, or None. None: it never waits."""
    return given if isinstance(given, Prepares) else None


def _converting(given: Any, method: str) -> Convert | None:
    if given is None:
        return None
    found: Convert | None = getattr(given, method, None)
    if found is not None:
        return found
    function: Callable[[Any], Any] = given
    return lambda topic, headers, data: function(data)
