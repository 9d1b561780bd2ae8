"""Which log directories of a broker are offline, as its heartbeats tell the controller."""

from __future__ import annotations

from collections.abc import Iterable

from quorumlog.ids import ZERO_UUID, Uuid
from quorumlog_broker.logdirs.log_directory import LogDirectory


def offline_ids(directories: Iterable[LogDirectory]) -> list[Uuid]:
    """Of those that are offline now. One whose id could not be read is left out: the controller knows only ids."""
    offline = [entry.directory_id for entry in directories if entry.life.is_offline]
    return [directory_id for directory_id in offline if directory_id != ZERO_UUID]
