"""What the wires of a node know of its requests: how long they take, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from quorumlog.rpc.serving.request_parts import RequestBook
from quorumlog.rpc.serving.slow_log import SlowLog


@dataclass(slots=True)
class RequestNotice:
    """Shared by a node and its edges, which set all of it; a simulation has none of it.

    held_bytes: of requests and answers on the lane, by whether their listener is internal.
    """

    book: RequestBook | None = None
    slow: SlowLog | None = None
    held_bytes: Callable[[], Mapping[bool, int]] = field(default=dict)
