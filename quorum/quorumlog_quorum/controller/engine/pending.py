"""What operations under way are about to write: every other operation decides as if it were written already.

A long operation changes partitions slice by slice before it writes the registration or the settings that it makes them
fit. Without this, an operation that ran between two slices could undo a part of it: put a broker that is being fenced
back into an ISR, elect it, or place a new partition on it. What is pending here only takes away: a broker is less
eligible, or a smaller ISR is large enough. So a partition that fits it fits the image as well, and each prefix of the
records is sound, whether the operation ends or is dropped half-way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from immutables import Map

from quorumlog.ids import NodeId, Uuid
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, TOPIC_RESOURCE, ConfigResource, Image
from quorumlog_quorum.metadata.registration import BrokerRegistration


class Pending:
    """At most one registration per broker and one set of values per resource: lanes ensure it (operation_queue)."""

    def __init__(self) -> None:
        self._registrations: dict[NodeId, BrokerRegistration] = {}
        self._directories: dict[NodeId, tuple[Uuid, ...]] = {}
        self._settings: dict[ConfigResource, Mapping[str, str]] = {}

    @contextmanager
    def registration(self, after: BrokerRegistration, directories: tuple[Uuid, ...] = ()) -> Iterator[None]:
        """The broker is about to be `after`. directories: it is about to register them, so no other broker may."""
        assert after.broker_id not in self._registrations, f"two operations change broker {after.broker_id}"
        self._registrations[after.broker_id] = after
        self._directories[after.broker_id] = directories
        try:
            yield
        finally:
            del self._registrations[after.broker_id], self._directories[after.broker_id]

    @contextmanager
    def settings(self, resource: ConfigResource, values: Mapping[str, str]) -> Iterator[None]:
        """The resource is about to have these settings, among them a lower min.insync.replicas."""
        assert resource not in self._settings, f"two operations change {resource}"
        self._settings[resource] = values
        try:
            yield
        finally:
            del self._settings[resource]

    def brokers(self, image: Image) -> Map[NodeId, BrokerRegistration]:
        """The brokers as they are about to be."""
        if not self._registrations:
            return image.brokers
        return image.brokers.update(
            {broker_id: after for broker_id, after in self._registrations.items() if broker_id in image.brokers}
        )

    def directory_owner(self, directory: Uuid) -> NodeId | None:
        """The broker that is about to register this directory."""
        return next((broker_id for broker_id, held in self._directories.items() if directory in held), None)

    def topic_config(self, image: Image, name: str) -> dict[str, str]:
        """Settings of a topic, over the cluster-wide ones, as they are about to be."""
        if not self._settings:
            return image.topic_config(name)
        return {**self._of(image, (BROKER_RESOURCE, CLUSTER_DEFAULT)), **self._of(image, (TOPIC_RESOURCE, name))}

    def _of(self, image: Image, resource: ConfigResource) -> Mapping[str, str]:
        pending = self._settings.get(resource)
        return image.configs.get(resource, Map()) if pending is None else pending
