"""Which quota counts for a client, and with whom it shares what it uses (KIP-13, KIP-55, Kafka's DefaultQuotaCallback).

The first of these that is set for a key wins, each key for itself:

    1 user and client id         4 default user and client id              7 client id
    2 user and default client    5 default user and default client         8 default client
    3 user                       6 default user

The level that wins names the bucket. Of levels 3 and 6 a user's clients share one; of 7 and 8 all users of a client id
share one; of the others each pair has its own. An address has a quota of its own, or the default one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

from quorumlog.security.quota.entity import CLIENT_ID, IP, USER, Entity

Bucket = tuple[str | None, str | None]  # user and client id that share it; None: any


class Limit(NamedTuple):
    """value: of the quota, in its key's unit. bucket: who shares it."""

    value: float
    bucket: Bucket


class _Absent:
    """The entity does not have this type at all."""


_ABSENT: Final = _Absent()
_Slot = str | None | _Absent  # None: the default
_Pair = tuple[_Slot, _Slot]  # user and client id
Who = TypeVar("Who")


class QuotaIndex:
    """All quotas of the cluster. A look-up costs at most eight look-ups in a dict, however many there are."""

    def __init__(self) -> None:
        self._clients: dict[str, dict[_Pair, float]] = {}  # by key; a key without a quota is not there
        self._addresses: dict[str, dict[str | None, float]] = {}

    def put(self, entity: Entity, key: str, value: float | None) -> None:
        """None: there is no such quota any more. Afterwards it is as if it had never been there."""
        parts = dict(entity)
        if IP in parts:
            _put(self._addresses, key, parts[IP], value)
        else:
            _put(self._clients, key, (parts.get(USER, _ABSENT), parts.get(CLIENT_ID, _ABSENT)), value)

    @property
    def has_clients(self) -> bool:
        """Some client has a quota."""
        return bool(self._clients)

    @property
    def limits_addresses(self) -> bool:
        """Some address has a quota."""
        return bool(self._addresses)

    def limits(self, key: str) -> bool:
        """Some client has a quota of this key."""
        return key in self._clients

    def limit(self, key: str, user: str, client_id: str) -> Limit | None:
        """client_id: "" where the client sends none: it has no quota but the default one. None: it is not limited."""
        quotas = self._clients.get(key)
        if quotas is None:
            return None
        for pair, bucket in _levels(user, client_id):
            value = quotas.get(pair)
            if value is not None:
                return Limit(value, bucket)
        return None

    def address_limit(self, key: str, address: str) -> float | None:
        """address: in its one usual text."""
        quotas = self._addresses.get(key, {})
        value = quotas.get(address)
        return quotas.get(None) if value is None else value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QuotaIndex):
            return NotImplemented
        return (self._clients, self._addresses) == (other._clients, other._addresses)

    __hash__ = None  # type: ignore[assignment]  # it changes


def index_of(quotas: Iterable[tuple[Entity, str, float]]) -> QuotaIndex:
    index = QuotaIndex()
    for entity, key, value in quotas:
        index.put(entity, key, value)
    return index


def _levels(user: str, client_id: str) -> Iterator[tuple[_Pair, Bucket]]:
    yield (user, client_id), (user, client_id)
    yield (user, None), (user, client_id)
    yield (user, _ABSENT), (user, None)
    yield (None, client_id), (user, client_id)
    yield (None, None), (user, client_id)
    yield (None, _ABSENT), (user, None)
    yield (_ABSENT, client_id), (None, client_id)
    yield (_ABSENT, None), (None, client_id)


def _put(of: dict[str, dict[Who, float]], key: str, who: Who, value: float | None) -> None:
    quotas = of.setdefault(key, {})
    if value is None:
        quotas.pop(who, None)
    else:
        quotas[who] = value
    if not quotas:
        del of[key]
