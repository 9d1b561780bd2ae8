"""Options of `table`: what a cluster tells of itself, in place of a topic's records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quorumlog.client.errors import ConfigError

NAMES = ("partitions", "groups", "transactions")
METADATA_RECORDS = "metadata.records"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """client: options that every client knows, by their underscored names."""

    table: str
    client: Mapping[str, Any]


def check_table(name: str) -> str:
    """Raises ConfigError for a table that there is not."""
    if name.lower() == METADATA_RECORDS:
        raise ConfigError(
            "table 'metadata.records' is not supported yet: no broker, of quorumlog or of Apache Kafka, serves the "
            f"metadata log to clients; `quorumlog metadata dump -o json` reads it from a node's files. Tables: "
            f"{', '.join(NAMES)}"
        )
    if name.lower() not in NAMES:
        raise ConfigError(f"table must be one of {', '.join(NAMES)}: {name!r}")
    return name.lower()
