"""The parts that the machine tells of local nodes: logs, metrics, stacks, descriptors, disks, limits.

Of a process only what is listed is taken: neither its environment nor its memory, both of which hold secrets.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from quorumlog_cli.diagnosing.cluster_parts import known_settings

if TYPE_CHECKING:
    from quorumlog.testing.layout import NodeFiles
    from quorumlog.testing.nodes import LocalNodes
    from quorumlog_cli.diagnosing.bundle import Bundle

MOST_LINES = 2_000  # of a log, without --all
PAGES = ("node", "readyz", "debug/stacks", "debug/events")
STATUS = (
    "State",
    "VmPeak",
    "VmRSS",
    "VmSwap",
    "Threads",
    "FDSize",
    "voluntary_ctxt_switches",
    "nonvoluntary_ctxt_switches",
)
LOG_FIELDS = ("timestamp", "level", "logger", "event", "node", "exception")


def add_nodes(
    bundle: Bundle,
    nodes: LocalNodes,
    *,
    everything: bool,
    since_ms: int,
    between_s: float,
    sleep: Callable[[float], None],
) -> None:
    """between_s: between the two looks at metrics."""
    for number in (1, 2):
        for node_id in nodes.ids:
            bundle.add_text(f"node-{node_id}/metrics-{number}.txt", _page(nodes, node_id, "metrics"))
        if number == 1:
            sleep(between_s)
    for node_id in nodes.ids:
        files, folder = nodes.layout.node(node_id), f"node-{node_id}"
        for page in PAGES:
            bundle.add_text(f"{folder}/{page.replace('/', '-')}.txt", _page(nodes, node_id, page))
        bundle.add_json(f"{folder}/config.json", partial(config_of, files))
        bundle.add_json(f"{folder}/process.json", partial(process_of, nodes, node_id))
        bundle.add_json(f"{folder}/disk.json", partial(disk_of, files))
        bundle.add_text(f"{folder}/log.jsonl", partial(log_of, files, since_ms, 0 if everything else MOST_LINES))


def _page(nodes: LocalNodes, node_id: int, page: str) -> Callable[[], str]:
    """What makes it raises OSError, HTTPException."""
    from quorumlog.testing.probe import ask_page

    return lambda: ask_page(nodes.layout.node(node_id).ports.admin, f"/{page}")


def config_of(files: NodeFiles) -> list[dict[str, Any]]:
    """As the file and the environment say it now; the running node may have read another file. Raises ConfigError."""
    from quorumlog_server.config.config import read_config
    from quorumlog_server.config.keys import NODE_KEYS

    config = read_config(str(files.config), [], os.environ)
    known = known_settings()
    rows = [
        {"name": name, "value": value if name in known else None, "origin": "file"}
        for name, value in sorted(config.given.items())
    ]
    defaults = [
        {"name": name, "value": key.default, "origin": "default"}
        for name, key in NODE_KEYS.items()
        if name not in config.given and not key.secret
    ]
    return [*rows, *defaults]


def process_of(nodes: LocalNodes, node_id: int) -> dict[str, Any]:
    """Raises OSError where the process has ended."""
    process = nodes.process(node_id)
    if process is None:
        return {"state": nodes.state(node_id).value}
    root = f"/proc/{process.pid}"
    status = dict(line.split(":", 1) for line in _read(f"{root}/status").splitlines() if ":" in line)
    return {
        "state": nodes.state(node_id).value,
        "pid": process.pid,
        "status": {name: status[name].strip() for name in STATUS if name in status},
        "limits": _read(f"{root}/limits").splitlines(),
        "descriptors": dict(Counter(_kind_of(root, one) for one in os.listdir(f"{root}/fd"))),
    }


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _kind_of(root: str, number: str) -> str:
    """Of a descriptor: socket, pipe, or the end of a file's name."""
    try:
        target = os.readlink(f"{root}/fd/{number}")
    except OSError:
        return "gone"
    if not target.startswith("/"):
        return target.partition(":")[0]
    return os.path.splitext(target)[1] or ("device" if target.startswith("/dev/") else "file")


def disk_of(files: NodeFiles) -> dict[str, Any]:
    found = os.statvfs(files.data)
    names = Counter(os.path.splitext(name)[1] or "other" for _, _, names in os.walk(files.data) for name in names)
    size = found.f_frsize
    return {
        "path": str(files.data),
        "total_bytes": found.f_blocks * size,
        "usable_bytes": found.f_bavail * size,
        "total_inodes": found.f_files,
        "usable_inodes": found.f_favail,
        "files": dict(names),
    }


def log_of(files: NodeFiles, since_ms: int, most: int) -> str:
    """The node's own log from a time on, the newest `most` lines; 0: all. Of each line only the fields that are listed:
    others may hold what a client sent."""
    lines = list(_lines(files, since_ms))
    return "".join(lines[-most:] if most else lines)


def _lines(files: NodeFiles, since_ms: int) -> Iterator[str]:
    """A line that is no JSON, as of a traceback, belongs to the one before it."""
    since = datetime.fromtimestamp(since_ms / 1000, UTC).isoformat()
    fresh = False
    with open(files.log, encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                said = json.loads(line)
            except ValueError:
                said = None
            if isinstance(said, dict) and "timestamp" in said:
                fresh = str(said["timestamp"]) >= since
                line = json.dumps({name: said[name] for name in LOG_FIELDS if name in said}, ensure_ascii=False) + "\n"
            if fresh:
                yield line


def machine() -> dict[str, Any]:
    import platform

    return {
        "system": platform.platform(),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "load": os.getloadavg(),
        "time_zone": time.strftime("%z"),
    }
