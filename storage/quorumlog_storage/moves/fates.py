"""What a start makes of a future log that it finds. Pure.

| the log itself is | mark | the mark's source directory | some directory is offline | the future log |
|---|---|---|---|---|
| found | any | any | any | goes on being filled: the source wins |
| not found | yes | online | any | is promoted: its source has left after it was complete |
| not found | no, or yes | not online | yes | waits, and the replica is offline: its source may be there |
| not found | no | - | no | is set aside: nobody knows what it lacks |
| not found | yes | not one of ours any more | no | likewise |

Kafka promotes a future log that has no current one if the controller's assignment names its directory (KAFKA-16082).
The assignment is committed before the last records are copied, so it cannot say whether any are missing.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from quorumlog.ids import Uuid
from quorumlog_storage.directory.mark import PromotionMark


class Fate(Enum):
    CONTINUE = "continue"
    PROMOTE = "promote"
    WAIT = "wait"
    SET_ASIDE = "set aside"


def fate_of(*, current_is_found: bool, mark: PromotionMark | None, online: Collection[Uuid], any_offline: bool) -> Fate:
    """online: ids of the directories that were listed. any_offline: another one of `log.dirs` was not."""
    if current_is_found:
        return Fate.CONTINUE
    if mark is not None and mark.source in online:
        return Fate.PROMOTE
    return Fate.WAIT if any_offline else Fate.SET_ASIDE
