"""The access rules of the metadata in an authorizer: image by image, as a node publishes them.

A few changes are made to the index in force, at once. Many, as of a snapshot, make another index beside it, in steps,
which then takes its place: no question is answered by half of a change.
"""

from __future__ import annotations

from quorumlog.messages.metadata_records import AccessControlEntryRecord
from quorumlog.security.acl.authorizer import RuleAuthorizer
from quorumlog.security.acl.index import RuleIndex
from quorumlog.slices import Pace, Sliced
from quorumlog_quorum.metadata.access import RULE
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import Image

CHANGES_AT_ONCE = 2_000  # some 3 us each


class RulesInForce:
    """Subscribe `on_image` to the loader."""

    def __init__(self, authorizer: RuleAuthorizer, changes_at_once: int = CHANGES_AT_ONCE) -> None:
        self._authorizer = authorizer
        self._at_once = changes_at_once

    def on_image(self, delta: Delta, image: Image) -> Sliced[None] | None:
        changes = delta.changed_access(RULE)
        if not self._authorizer.ready or len(changes) > self._at_once:
            return self._replace(image)
        index = self._authorizer.index
        for before, after in changes:
            if isinstance(before, AccessControlEntryRecord):
                index.remove(before)
            if isinstance(after, AccessControlEntryRecord):
                index.add(after)
        return None

    def _replace(self, image: Image) -> Sliced[None]:
        index = RuleIndex(self._authorizer.generation + 1)
        pace = Pace(self._at_once)
        for entry in image.access.values():
            if isinstance(entry, AccessControlEntryRecord):
                index.add(entry)
            if pace.is_over():
                yield
        self._authorizer.take(index)
