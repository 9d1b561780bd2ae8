"""Which versions of a request are those of a client that understands THROTTLING_QUOTA_EXCEEDED (KIP-599)."""

from __future__ import annotations

from typing import Any

from quorumlog.messages.admin import CreatePartitionsRequest
from quorumlog.messages.cluster import CreateTopicsRequest, DeleteTopicsRequest
from quorumlog.slices import Pace, Sliced
from quorumlog.wire.convert.mirror import from_values_sliced
from quorumlog.wire.format.schema import Values

_FIRST: dict[type, int] = {CreateTopicsRequest: 6, DeleteTopicsRequest: 5, CreatePartitionsRequest: 3}


def takes_throttling(request: type, version: int) -> bool:
    return version >= _FIRST[request]


def read_create_topics(values: Values, version: int, pace: Pace) -> Sliced[Any]:
    return _read(CreateTopicsRequest, values, version, pace)


def read_create_partitions(values: Values, version: int, pace: Pace) -> Sliced[Any]:
    return _read(CreatePartitionsRequest, values, version, pace)


def version_for(request: Any, newest: int) -> int:
    return newest if request.takes_throttling else min(newest, _FIRST[type(request)] - 1)


def _read(request: type, values: Values, version: int, pace: Pace) -> Sliced[Any]:
    return from_values_sliced(request, {**values, "takes_throttling": takes_throttling(request, version)}, pace)
