"""First batches of idempotent producers that were refused: the batches behind them must not take their place. Pure.

A client sends up to five batches of a partition without waiting. If the first one comes a moment too early (the broker
does not know yet that it leads, or the ISR is too small) and the second one just in time, the log does not know the
producer, and a producer that is not known may begin with any sequence number, as in Kafka. Then the first batch is out
of order for ever: the client repeats it until `delivery.timeout.ms`, and loses it. So for a while after such a refusal
later batches of that producer are refused by the same error, which tells the client to send them again, in order.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from quorumlog.errors import ApiError
from quorumlog.ids import Uuid
from quorumlog.records.format.batch import NO_PRODUCER, BatchHeader

HOLD_MS = 5_000  # batches that were under way have come by then, and a client has sent the first one again
MAX_HELD = 1_000  # producers and partitions; the oldest is forgotten, and its batches are judged as in Kafka

_Key = tuple[Uuid | str, int, int, int]  # topic and partition as the request names them, producer id and epoch


class _Refusal(NamedTuple):
    sequence: int
    error: ApiError
    until_ms: int


class RefusedBatches:
    def __init__(self) -> None:
        self._held: OrderedDict[_Key, _Refusal] = OrderedDict()  # the oldest first

    def __len__(self) -> int:
        return len(self._held)

    def refused(self, topic: Uuid | str, index: int, header: BatchHeader, error: ApiError, now_ms: int) -> None:
        """The batch was not appended, and the client will send it again because of `error`."""
        if header.producer_id == NO_PRODUCER:
            return
        self._forget_old(now_ms)
        key = _key(topic, index, header)
        before = self._held.pop(key, None)
        sequence = header.base_sequence if before is None else min(before.sequence, header.base_sequence)
        self._held[key] = _Refusal(sequence, error, now_ms + HOLD_MS)
        if len(self._held) > MAX_HELD:
            self._held.popitem(last=False)

    def refuse_later(self, topic: Uuid | str, index: int, header: BatchHeader, now_ms: int) -> None:
        """Ask only for a producer that the log does not know. Raises the ApiError of an earlier batch."""
        self._forget_old(now_ms)
        refusal = self._held.get(_key(topic, index, header))
        if refusal is not None and header.base_sequence > refusal.sequence:
            raise refusal.error

    def _forget_old(self, now_ms: int) -> None:
        while self._held and next(iter(self._held.values())).until_ms <= now_ms:
            self._held.popitem(last=False)


def _key(topic: Uuid | str, index: int, header: BatchHeader) -> _Key:
    return topic, index, header.producer_id, header.producer_epoch
