"""A process that asks the cluster for names of a kind and keeps them in a file, for `live_names`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quorumlog_cli.completing.kinds import Names
from quorumlog_cli.completing.live_names import KEPT_S

ASK_TIMEOUT_MS = 3_000
LIFE_S = 30  # by an alarm of the system: a key press leaves no process behind
FORGOTTEN_S = 3_600.0  # files that nobody has asked for since


def main(words: Sequence[str]) -> None:
    """words: the kind, the file, and the options that name the cluster. Raises what the cluster is not asked for."""
    import signal

    signal.alarm(LIFE_S)
    kind, file, *target = words
    place = Path(file)
    lock = place.with_suffix(".asks")
    if not _alone(lock):
        return
    try:
        part = place.with_suffix(".part")
        part.write_text(json.dumps(sorted(set(ask(Names(kind), target)))))
        part.replace(place)
        for one in place.parent.iterdir():
            if time.time() - one.stat().st_mtime > FORGOTTEN_S:
                one.unlink(missing_ok=True)
    finally:
        lock.unlink(missing_ok=True)


def _alone(lock: Path) -> bool:
    """Whether no other process asks the same; one that was killed is waited for as long as it could have lived."""
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        if time.time() - lock.stat().st_mtime < max(LIFE_S, KEPT_S):
            return False
        lock.unlink(missing_ok=True)
        return _alone(lock)
    return True


def ask(kind: Names, target: Sequence[str]) -> list[str]:
    from quorumlog_cli.connecting.connect import connected, find_target

    pairs = list(zip(target[::2], target[1::2], strict=True))
    servers = next((value for name, value in pairs if name == "-b"), None)
    profile = next((value for name, value in pairs if name == "--profile"), None)
    options = [value for name, value in pairs if name == "-X"]
    with connected(find_target(servers, profile, options or None), default_api_timeout_ms=ASK_TIMEOUT_MS) as cluster:
        return list(map(str, _asked(kind, cluster.admin)))


def _asked(kind: Names, admin: Any) -> list[Any]:
    match kind:
        case Names.TOPICS:
            return [one.name for one in admin.list_topics()]
        case Names.PARTITIONS:
            return [f"{topic.name}-{one.index}" for topic in admin.list_topics() for one in topic.partitions]
        case Names.GROUPS:
            return [one.group_id for one in admin.list_groups()]
        case Names.BROKERS:
            return [one.node_id for one in admin.describe_cluster().brokers]
        case Names.TRANSACTIONAL_IDS:
            return [one.transaction.transactional_id for one in admin.list_transactions()]
        case Names.USERS:
            return list(admin.describe_user_scram_credentials())
        case _:
            raise ValueError(f"{kind} are not asked of a cluster")


if __name__ == "__main__":
    main(json.loads(sys.stdin.read()))
