"""Pauses compaction at all brokers while a backup copies (`quorumlog/backup/compaction_pause.py`, decision 152)."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.backup.compaction_pause import CompactionPause
from quorumlog.client.admin import BROKER_RESOURCE, AsyncAdmin
from quorumlog.configs.cleaner import PAUSED_UNTIL


async def keep_paused(admin: AsyncAdmin, pause: CompactionPause, wall_ms: Callable[[], int]) -> bool:
    """Pause compaction for longer, if it is time; whether it was. Raises PauseEnded, what `alter_configs` raises."""
    until_ms = pause.due(wall_ms())
    if until_ms is not None:
        await admin.alter_configs("", {PAUSED_UNTIL: str(until_ms)}, resource_type=BROKER_RESOURCE)
        pause.renewed(until_ms)
    return until_ms is not None
