"""Whom a quota is for, and which quotas there are (KIP-13, KIP-55, KIP-124, KIP-546, KIP-599, KIP-612).

A name is any text that is not empty; the default of a type has no name, so `<default>` is a name like any other.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from math import isfinite

USER, CLIENT_ID, IP = "user", "client-id", "ip"

PRODUCER_BYTE_RATE = "producer_byte_rate"  # bytes a second
CONSUMER_BYTE_RATE = "consumer_byte_rate"  # bytes a second
REQUEST_PERCENTAGE = "request_percentage"  # of the time of one loop
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"  # partitions a second
CONNECTION_CREATION_RATE = "connection_creation_rate"  # connections a second, of one address

_MAX_LONG, _MAX_INT = 2**63 - 1, 2**31 - 1
# The largest value of a key that takes whole numbers; None: it takes fractions.
OF_CLIENTS: dict[str, int | None] = {
    PRODUCER_BYTE_RATE: _MAX_LONG,
    CONSUMER_BYTE_RATE: _MAX_LONG,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
OF_ADDRESSES: dict[str, int | None] = {CONNECTION_CREATION_RATE: _MAX_INT}

MAX_NAME_BYTES = 1024  # in UTF-8

Part = tuple[str, str | None]  # type and name; None: the default of the type
Entity = tuple[Part, ...]  # each type once, in the order of the types


class BadQuota(ValueError):
    """An entity, a key or a value that no quota can have. The message says why."""


def entity_of(parts: Iterable[Part]) -> Entity:
    """Raises BadQuota."""
    entity = tuple(sorted(parts, key=lambda part: part[0]))
    types = {kind for kind, _ in entity}
    if not entity:
        raise BadQuota("a quota is for a user, a client id, both, or an ip; none of them is given")
    unknown = types - {USER, CLIENT_ID, IP}
    if unknown:
        raise BadQuota(f"{sorted(unknown)[0]!r} is not user, client-id or ip")
    if len(types) < len(entity):
        raise BadQuota("a type of entity is given twice")
    if IP in types and len(types) > 1:
        raise BadQuota("a quota of an ip is for that alone, without a user or a client id")
    for kind, name in entity:
        _check_name(kind, name)
    return entity


def _check_name(kind: str, name: str | None) -> None:
    if name is None:
        return
    if not name or len(name.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        raise BadQuota(f"the name of a {kind} has 1 to {MAX_NAME_BYTES} bytes; the default has no name")
    if kind == IP:
        try:
            plain = str(ipaddress.ip_address(name))
        except ValueError:
            raise BadQuota(f"{name!r} is not an address; names of hosts are not looked up") from None
        if plain != name:
            raise BadQuota(f"the address {name} is written {plain}")


def check_key(entity: Entity, key: str) -> None:
    """Raises BadQuota. entity: from `entity_of`."""
    known = _keys_of(entity)
    if key not in known:
        raise BadQuota(
            f"{key!r} is not a quota of {' and '.join(kind for kind, _ in entity)}; known: {', '.join(known)}"
        )


def check_value(entity: Entity, key: str, value: float) -> None:
    """Raises BadQuota. entity: from `entity_of`; key: one that it has."""
    largest = _keys_of(entity)[key]
    if not isfinite(value) or value <= 0:
        raise BadQuota(f"{key} is above 0, not {value:g}; to lift it, remove it")
    if largest is not None and (
        value != int(value) or value > float(largest)
    ):  # as Kafka, which rounds the largest long
        raise BadQuota(f"{key} is a whole number up to {largest}, not {value!r}")


def _keys_of(entity: Entity) -> dict[str, int | None]:
    return OF_ADDRESSES if entity[0][0] == IP else OF_CLIENTS
