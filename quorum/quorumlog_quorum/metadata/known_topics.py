"""The topics of the newest metadata, as the table of rights asks for them."""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog_quorum.metadata.loader import MetadataLoader


class KnownTopics:
    """creates: `auto.create.topics.enable`; a controller makes none by itself."""

    def __init__(self, subscription: MetadataLoader, creates: bool = False) -> None:
        self._subscription = subscription
        self.creates = creates

    def name_of(self, topic_id: bytes) -> str | None:
        topic = self._subscription.image.topics.get(topic_id)
        return None if topic is None else topic.name

    def exists(self, name: str) -> bool:
        return name in self._subscription.image.topic_ids

    def names(self) -> Sequence[str]:
        return sorted(self._subscription.image.topic_ids)
