"""`cordoned.log.dirs` as it is now: that of this broker, where it was changed while it runs, or else the file's.

It applies to the next partition that is placed; those that are being made stay where they are. The controller is told
at once, since it places no partition on a broker whose directories are all cordoned (KIP-1066).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from quorumlog.configs.directory import CORDONED, cordoned_paths
from quorumlog.errors import ApiError
from quorumlog.ids import ZERO_UUID, NodeId, Uuid
from quorumlog.messages.admin import AlterConfigsResource
from quorumlog_broker.logdirs.log_directory import LogDirectory
from quorumlog_broker.logdirs.partition_store import PartitionStore
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, Image

_SET, _APPEND = 0, 2  # operations of IncrementalAlterConfigs

_log = logging.getLogger("quorumlog.broker")


class LiveCordoned:
    """image: the newest. store: what it has at first is what the file says. on_changed: called after each change."""

    def __init__(
        self,
        node_id: NodeId,
        image: Callable[[], Image],
        store: PartitionStore,
        directories: Sequence[LogDirectory],
        on_changed: Callable[[], None],
    ) -> None:
        self._resource = (BROKER_RESOURCE, str(node_id))
        self._image, self._store, self._directories = image, store, directories
        self._log_dirs = tuple(one.path for one in directories)
        self._on_changed = on_changed
        self._in_file = store.cordoned

    def ids(self) -> frozenset[Uuid]:
        """Of those that are cordoned now. One whose id could not be read is left out."""
        cordoned = {one.directory_id for one in self._directories if one.path in self._store.cordoned}
        return frozenset(cordoned - {ZERO_UUID})

    def refresh(self) -> None:
        """By the newest image. What is not understood changes nothing: another broker may have let it pass."""
        before, text = self._store.cordoned, self._own.get(CORDONED)
        try:
            now = self._in_file if text is None else cordoned_paths(text, self._log_dirs)
        except ApiError as error:
            _log.error("%s; it stays as it is: %s", error.message, ", ".join(sorted(before)) or "none")
            return
        if now != before:
            self._store.cordoned = now
            _log.info("%s is now: %s", CORDONED, ", ".join(sorted(now)) or "none")
            self._on_changed()

    def check(self, asked: AlterConfigsResource) -> None:
        """Raises ApiError(INVALID_CONFIG) where a change would name a directory that this broker does not have."""
        if (asked.resource_type, asked.resource_name) != self._resource:
            return
        for change in asked.configs:
            if change.name != CORDONED or change.operation not in (_SET, _APPEND) or change.value is None:
                continue
            before = self._own.get(CORDONED, "") if change.operation == _APPEND and not asked.replace else ""
            cordoned_paths(f"{before},{change.value}", self._log_dirs)

    @property
    def _own(self) -> Mapping[str, str]:
        own: Mapping[str, str] = self._image().configs.get(self._resource, {})
        return own
