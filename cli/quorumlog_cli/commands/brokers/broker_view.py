"""A broker as rows and JSON: what the metadata says of it, and what it says of its log directories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quorumlog_cli.connecting.lost_quorum import is_silence

if TYPE_CHECKING:
    from quorumlog.client.blocking_admin import Admin
    from quorumlog.messages.admin import LogDirDescription
    from quorumlog.messages.cluster import ClusterBroker

ASK_TIMEOUT_MS = 3_000  # a broker whose process hangs is fenced later than that
RUNNING, SHUTTING_DOWN, FENCED = "running", "shutting down", "fenced"
SILENT = "no answer"  # the metadata says that it runs


@dataclass(frozen=True, slots=True)
class Directories:
    """found: None if the broker was not asked, or did not answer (is_silent). why: that, for people."""

    found: tuple[LogDirDescription, ...] | None
    why: str = ""
    is_silent: bool = False

    @classmethod
    def skipped(cls) -> Directories:
        return cls(None)

    @classmethod
    def ask(cls, admin: Admin, broker: ClusterBroker) -> Directories:
        """A fenced broker is not asked: it may be dead."""
        from quorumlog.client.errors import QuorumlogError
        from quorumlog.rpc.transport import RpcError

        if broker.fenced:
            return cls(None, f"broker {broker.node_id} is fenced: what its directories hold is not known")
        try:
            return cls(admin.describe_broker_log_dirs(broker.node_id, ASK_TIMEOUT_MS))
        except (QuorumlogError, RpcError, TimeoutError) as error:
            why = f"broker {broker.node_id} did not tell what its directories hold: {error}"
            return cls(None, why, is_silence(error))


def state_of(broker: ClusterBroker) -> str:
    if broker.fenced:
        return FENCED
    return SHUTTING_DOWN if broker.in_controlled_shutdown else RUNNING


def is_cordoned(broker: ClusterBroker) -> bool:
    """Whether it gets no new partitions: all directories that are online are cordoned, as the controller knows them."""
    return bool(broker.log_directories) and set(broker.log_directories) <= set(broker.cordoned_directories)


def shown_state(row: dict[str, Any]) -> str:
    """For people."""
    return f"{row['state']}, cordoned" if row["cordoned"] else str(row["state"])


def broker_row(broker: ClusterBroker, directories: Directories) -> dict[str, Any]:
    """As JSON shows it. None: Kafka's protocol, which clients with TLS or a login speak, does not tell it."""
    found = directories.found
    told = [] if found is None else [_directory(one) for one in found]
    sizes = [one["bytes"] for one in told if one["bytes"] is not None]
    return {
        "broker_id": broker.node_id,
        "state": SILENT if directories.is_silent else state_of(broker),
        "rack": broker.rack,
        "listeners": [{"name": one.name, "host": one.host, "port": one.port} for one in broker.endpoints],
        "address": f"{broker.host}:{broker.port}",
        "leaders": _known(broker.leaders),
        "replicas": _known(broker.replicas),
        "cordoned": is_cordoned(broker),
        "directory_count": len(broker.log_directories) if broker.broker_epoch >= 0 or found is None else len(found),
        "bytes": sum(sizes) if found is not None else None,
        "directories": _ids_of(broker) if found is None else told,
        "features": [
            {"name": one.name, "min_level": one.min_level, "max_level": one.max_level} for one in broker.features
        ],
        "broker_epoch": _known(broker.broker_epoch),
    }


def _known(figure: int) -> int | None:
    return figure if figure >= 0 else None


def listeners_of(row: dict[str, Any]) -> str:
    return ", ".join(f"{one['name']}://{one['host']}:{one['port']}" for one in row["listeners"]) or str(row["address"])


def directory_rows(row: dict[str, Any]) -> tuple[tuple[str, ...], list[list[Any]]]:
    """The columns, and a row for each directory."""
    names = ("directory_id", "path", "state", "cordoned", "partitions", "bytes", "free_bytes")
    columns = ("DIRECTORY ID", "PATH", "STATE", "CORDONED", "PARTITIONS", "BYTES", "FREE")
    shown = [{**one, "cordoned": "yes" if one["cordoned"] else ""} for one in row["directories"]]
    return columns, [[one[name] for name in names] for one in shown]


def _directory(one: LogDirDescription) -> dict[str, Any]:
    from quorumlog.ids import show_uuid

    online = not one.error_code
    sizes = [part.size_bytes for topic in one.topics for part in topic.partitions if not part.is_future]
    return {
        "directory_id": show_uuid(one.directory_id) if one.directory_id else None,
        "path": one.path,
        "state": "online" if online else one.error_message or "offline",
        "cordoned": one.is_cordoned,
        "partitions": len(sizes) if online else None,
        "bytes": sum(sizes) if online else None,
        "free_bytes": one.usable_bytes if online else None,
    }


def _ids_of(broker: ClusterBroker) -> list[dict[str, Any]]:
    """The directories of a broker that was not asked: their ids alone, as it registered them."""
    from quorumlog.ids import show_uuid

    unknown = {"path": None, "state": None, "partitions": None, "bytes": None, "free_bytes": None}
    cordoned = set(broker.cordoned_directories)
    return [{"directory_id": show_uuid(one), **unknown, "cordoned": one in cordoned} for one in broker.log_directories]
