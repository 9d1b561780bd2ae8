"""The list by which one of several rolls goes (`quorumlog.rolling.turn`), among the settings of all brokers.

Not in Kafka. It is written while the cluster runs, and has no place in a file. The controller appends to it, so its
words are in one order for all.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.settings.config_key import ConfigKey, Kind

ROLLS_UNDER_WAY = "rolls.under.way"
MARK_PATTERN = r"[A-Za-z0-9_.@-]{1,120}"
ROLL_SETTINGS: Mapping[str, ConfigKey] = {
    ROLLS_UNDER_WAY: ConfigKey(
        name=ROLLS_UNDER_WAY,
        kind=Kind.LIST,
        default="",
        pattern=MARK_PATTERN,
        doc="Marks of `quorumlog roll`: the first one restarts nodes, and takes its mark away when it ends.",
    )
}
