"""What requests take of a node's loop, and the quota of it (KIP-124, Kafka's ClientRequestQuotaManager).

Reading a request counts, the steps of its handler and the writing of its answer. What it waits for does not, and
neither does what others do meanwhile. 100 is the whole time of the one loop that a node has. Where no client has such a
quota, nothing is measured.

An answer tells what has been taken until it is written; the rest counts for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quorumlog.errors import ErrorCode
from quorumlog.messages.transactions import WriteTxnMarkersRequest
from quorumlog.security.quota.entity import PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE

if TYPE_CHECKING:
    from quorumlog.rpc.serving.dispatch import PeerContext, Reply
    from quorumlog.security.quota.node_quotas import NodeQuotas

# Requests between nodes that clients may send, too: held back only where they are refused (Kafka's `clusterAction`).
EXEMPT: tuple[type, ...] = (WriteTxnMarkersRequest,)


class Watch:
    """Of one request. It runs from the start until it is paused."""

    __slots__ = ("_now_s", "_since_s", "_taken_s")

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s, self._taken_s = now_s, 0.0
        self._since_s: float | None = now_s()

    def go_on(self) -> None:
        self._since_s = self._now_s()

    def pause(self) -> None:
        if self._since_s is not None:
            self._taken_s += self._now_s() - self._since_s
            self._since_s = None

    def taken_s(self) -> float:
        """Since this was asked last."""
        if self._since_s is not None:
            now_s = self._now_s()
            self._taken_s, self._since_s = self._taken_s + now_s - self._since_s, now_s
        taken_s, self._taken_s = self._taken_s, 0.0
        return taken_s


class Timed(Coroutine[Any, Any, Any]):
    """A coroutine whose steps a watch measures. The watch is paused until the first one."""

    __slots__ = ("_steps", "_watch")

    def __init__(self, steps: Coroutine[Any, Any, Any], watch: Watch) -> None:
        self._steps, self._watch = steps, watch
        watch.pause()

    def send(self, value: Any) -> Any:
        self._watch.go_on()
        try:
            return self._steps.send(value)
        finally:
            self._watch.pause()

    def throw(self, *error: Any) -> Any:
        self._watch.go_on()
        try:
            return self._steps.throw(*error)
        finally:
            self._watch.pause()

    def close(self) -> None:
        self._steps.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self

    def __iter__(self) -> Timed:
        return self

    def __next__(self) -> Any:
        return self.send(None)


class RequestTime:
    """Of one node. busy_s: a clock of the loop's thread, in seconds. now_s: the loop's time."""

    def __init__(self, quotas: NodeQuotas, busy_s: Callable[[], float], now_s: Callable[[], float]) -> None:
        self._quotas, self._busy_s, self._now_s = quotas, busy_s, now_s

    def watch(self) -> Watch | None:
        """None: no client has a quota of time."""
        return Watch(self._busy_s) if self._quotas.index.limits(REQUEST_PERCENTAGE) else None

    def held(self, context: PeerContext, request: Any, reply: Reply, watch: Watch) -> Reply:
        """The same reply, or one that holds the client back for longer."""
        code = getattr(reply.message, "error_code", ErrorCode.NONE)
        is_exempt = isinstance(request, EXEMPT) and code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        throttle_ms = self._count(context, watch, is_exempt=is_exempt)
        if throttle_ms <= reply.throttle_ms:
            return reply
        message = reply.message
        if hasattr(message, "throttle_time_ms"):
            message = replace(message, throttle_time_ms=throttle_ms)
        return reply._replace(message=message, throttle_ms=throttle_ms)

    def rest(self, context: PeerContext, request: Any, watch: Watch) -> None:
        """What it took to write the answer."""
        self._count(context, watch, is_exempt=isinstance(request, EXEMPT))

    def produce_wait_ms(self, context: PeerContext) -> int:
        """For how long a client is held back for what its bucket has produced."""
        if context.peer is not None:
            return 0
        now_ms = int(self._now_s() * 1000)
        return self._quotas.clients.wait_ms(PRODUCER_BYTE_RATE, context.principal.name, context.client_id, now_ms)

    def _count(self, context: PeerContext, watch: Watch, *, is_exempt: bool) -> int:
        percent_s, now_ms = watch.taken_s() * 100, int(self._now_s() * 1000)
        if is_exempt or context.peer is not None:
            self._quotas.exempt_time.use(percent_s, now_ms)
            return 0
        return self._quotas.clients.use(
            REQUEST_PERCENTAGE, context.principal.name, context.client_id, percent_s, now_ms
        )
