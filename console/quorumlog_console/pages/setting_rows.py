"""Settings with where each value comes from."""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.messages.cluster import ConfigDescription

ORIGINS = {
    1: "this topic", 2: "this broker", 3: "all brokers", 4: "the broker's file", 5: "default", 6: "logger",
    7: "client metrics", 8: "this group",
}  # fmt: skip
DEFAULT = 5


class SettingRow(NamedTuple):
    """value: None: it is secret. others: what would define it if the first did not, "origin: value"."""

    name: str
    value: str | None
    origin: str
    is_default: bool
    others: str
    documentation: str


def setting_rows(found: ConfigDescription) -> list[SettingRow]:
    """What somebody has set first; both parts by name."""
    rows = [
        SettingRow(
            one.name,
            None if one.is_sensitive else (one.value if one.value is not None else ""),
            ORIGINS.get(one.source, f"origin {one.source}"),
            one.source == DEFAULT,
            ""
            if one.is_sensitive
            else "; ".join(
                f"{ORIGINS.get(other.source, str(other.source))}: {other.value}" for other in one.synonyms[1:]
            ),
            one.documentation,
        )
        for one in found.configs
    ]
    return sorted(rows, key=lambda row: (row.is_default, row.name))
