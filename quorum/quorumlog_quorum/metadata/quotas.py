"""Client quotas, as an image of the metadata has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quorumlog.messages.common import QuotaEntity
from quorumlog.messages.metadata_records import ClientQuotaRecord
from quorumlog.security.quota.entity import Entity, Part
from quorumlog_quorum.metadata.access import Access, key_of


def parts_of(entity: Iterable[QuotaEntity]) -> list[Part]:
    return [(one.entity_type, one.entity_name) for one in entity]


def sorted_parts(entity: Iterable[QuotaEntity]) -> Entity:
    """In the order of the types. entity: of a record of the metadata, which names each type once."""
    return tuple(sorted(parts_of(entity), key=lambda part: part[0]))


def entity_parts(entity: Entity) -> tuple[QuotaEntity, ...]:
    return tuple(QuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity)


def set_quota(entity: Entity, key: str, value: float) -> ClientQuotaRecord:
    return ClientQuotaRecord(entity=entity_parts(entity), key=key, value=value)


def remove_quota(entity: Entity, key: str) -> ClientQuotaRecord:
    return ClientQuotaRecord(entity=entity_parts(entity), key=key, remove=True)


def quota_value(access: Access, entity: Entity, key: str) -> float | None:
    found = access.get(key_of(remove_quota(entity, key)))
    return found.value if isinstance(found, ClientQuotaRecord) else None


def all_quotas(access: Access) -> Mapping[Entity, Mapping[str, float]]:
    """Of each entity that has a quota: its values by key."""
    found: dict[Entity, dict[str, float]] = {}
    for record in access.values():
        if isinstance(record, ClientQuotaRecord):
            found.setdefault(sorted_parts(record.entity), {})[record.key] = record.value
    return found
