"""The client quotas of the metadata in the index of a node: image by image, as a node publishes them.

As for access rules (`rules_in_force.py`): a few changes are made in the index in force, each by itself, and many make
another index, in steps, which then takes its place. What else of the metadata changes costs nothing.
"""

from __future__ import annotations

from quorumlog.messages.metadata_records import ClientQuotaRecord
from quorumlog.security.quota.entity import Entity
from quorumlog.security.quota.node_quotas import NodeQuotas
from quorumlog.security.quota.resolution import QuotaIndex
from quorumlog.slices import Pace, Sliced
from quorumlog_quorum.metadata.access import QUOTA
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.quotas import sorted_parts

CHANGES_AT_ONCE = 2_000  # some 2 us each


class QuotasInForce:
    """Subscribe `on_image` to the loader."""

    def __init__(self, quotas: NodeQuotas, changes_at_once: int = CHANGES_AT_ONCE) -> None:
        self._quotas, self._at_once = quotas, changes_at_once

    def on_image(self, delta: Delta, image: Image) -> Sliced[None] | None:
        changes = delta.changed_access(QUOTA)
        if len(changes) > self._at_once:
            return self._replace(image)
        index = self._quotas.index
        for before, after in changes:
            if isinstance(after, ClientQuotaRecord):
                index.put(_entity(after), after.key, after.value)
            elif isinstance(before, ClientQuotaRecord):
                index.put(_entity(before), before.key, None)
        return None

    def _replace(self, image: Image) -> Sliced[None]:
        index = QuotaIndex()
        pace = Pace(self._at_once)
        for entry in image.access.values():
            if isinstance(entry, ClientQuotaRecord):
                index.put(_entity(entry), entry.key, entry.value)
            if pace.is_over():
                yield
        self._quotas.index = index


def _entity(record: ClientQuotaRecord) -> Entity:
    return sorted_parts(record.entity)
