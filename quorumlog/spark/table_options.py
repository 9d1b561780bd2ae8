"""Options of `table`: what a cluster tells of itself, or its files, in place of a topic's records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quorumlog.client.errors import ConfigError

TABLES = ("partitions", "groups", "transactions")
METADATA_RECORDS = "metadata.records"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """client: options that every client knows, by their underscored names. directories: of `readFrom=files`; empty:
    brokers are asked."""

    table: str
    client: Mapping[str, Any]
    directories: tuple[str, ...] = ()


def check_table(name: str, *, from_files: bool) -> str:
    """Raises ConfigError for a table that there is not."""
    if from_files:
        if name.lower() != METADATA_RECORDS:
            raise ConfigError(
                f"table {name!r} is what brokers tell, and readFrom=files asks none: leave readFrom out, and set "
                f"bootstrap.servers. Of files there is {METADATA_RECORDS}"
            )
        return METADATA_RECORDS
    if name.lower() == METADATA_RECORDS:
        raise ConfigError(
            "table 'metadata.records' is read from files only: no broker, of quorumlog or of Apache Kafka, serves its "
            "metadata log to clients. Set readFrom=files, and path to the log directory of a node that has "
            f"__cluster_metadata-0; leave bootstrap.servers out. Tables that brokers tell: {', '.join(TABLES)}"
        )
    if name.lower() not in TABLES:
        raise ConfigError(f"table must be one of {', '.join(TABLES)}: {name!r}")
    return name.lower()
