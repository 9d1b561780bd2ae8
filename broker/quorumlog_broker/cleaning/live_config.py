"""The cleaner's settings as they are now: the file's, over which lies what was changed while brokers run.

First that is set: for this broker, for all brokers, in the file (KIP-226).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from quorumlog.configs.cleaner import CLEANER_SETTINGS, check_change
from quorumlog.errors import ApiError
from quorumlog.ids import NodeId
from quorumlog.messages.admin import AlterConfigsResource
from quorumlog.settings.cleaner import CleanerConfig
from quorumlog.settings.config_key import parse_text
from quorumlog.settings.key import fields_of
from quorumlog_broker.replicas.registry import Registry
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT

_FIELDS = {name: field for name, field in fields_of(CleanerConfig).items() if name in CLEANER_SETTINGS}
_SET = 0  # an operation of IncrementalAlterConfigs


class LiveConfig:
    """now: equal to the one before where nothing has changed."""

    def __init__(self, node_id: NodeId, registry: Registry, in_file: CleanerConfig) -> None:
        self._node_id, self._registry, self._in_file = node_id, registry, in_file
        self.now = in_file

    def refresh(self) -> bool:
        """By the newest image. True if anything has changed."""
        before, self.now = self.now, self._over(self._layer(CLUSTER_DEFAULT), self._layer(str(self._node_id)))
        return self.now != before

    def check(self, asked: AlterConfigsResource) -> None:
        """Raises ApiError(INVALID_CONFIG) where a change of broker settings would be too large a step here."""
        layers = {name: dict(self._layer(name)) for name in (CLUSTER_DEFAULT, str(self._node_id))}
        values = layers.get(asked.resource_name)
        if asked.resource_type != BROKER_RESOURCE or values is None:
            return
        if asked.replace:
            values.clear()
        for change in asked.configs:
            if change.operation == _SET and change.value is not None:
                values[change.name] = change.value
            else:
                values.pop(change.name, None)
        after = self._over(*layers.values())
        if after != self.now:
            check_change(self.now.threads, after.threads, after.dedupe_buffer_bytes)

    def _layer(self, name: str) -> Mapping[str, str]:
        return self._registry.image.configs.get((BROKER_RESOURCE, name), {})

    def _over(self, *layers: Mapping[str, str]) -> CleanerConfig:
        """layers: the later ones count more. What is not understood is ignored: a newer controller may allow it."""
        found: dict[str, Any] = {}
        for values in layers:
            for name, field in _FIELDS.items():
                try:
                    if name in values:
                        found[field] = parse_text(CLEANER_SETTINGS[name], values[name])
                except ApiError:
                    continue
        return replace(self._in_file, **found)
