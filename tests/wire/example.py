"""An API on Kafka's wire by example: as Kafka's JSON, and as our messages in each version."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, NamedTuple

TOPIC_ID = bytes(range(16))
KAFKAS_ID = base64.urlsafe_b64encode(TOPIC_ID).decode().rstrip("=")


class Example(NamedTuple):
    """name: Kafka's. request, response: Kafka's JSON, in which `field@3` is of version 3 and later, `field@0-3` of
    versions up to 3. our_request, our_response: the same as our messages, with the version's errors."""

    key: int
    name: str
    oldest: int
    newest: int
    request: Callable[[int], Any]
    response: Callable[[int], Any]
    our_request: Callable[[int], Any]
    our_response: Callable[[int], Any]


def of_version(values: Any, version: int) -> Any:
    """The fields that the version has."""
    if isinstance(values, list):
        return [of_version(value, version) for value in values]
    if not isinstance(values, dict):
        return values
    found = {}
    for key, value in values.items():
        name, _, versions = key.partition("@")
        low, _, high = versions.partition("-")
        if int(low or 0) <= version <= int(high or 99):
            found[name] = of_version(value, version)
    return found


def as_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def since(version: int, first: int, value: Any, otherwise: Any) -> Any:
    return value if version >= first else otherwise
