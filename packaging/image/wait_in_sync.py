"""Waits until no partition of the cluster lacks a replica in the ISR: then this node may stop.

Kubernetes restarts the next pod once the last one is ready, which says nothing of its replicas. The chart runs this
before it stops a pod. It ends with 0 after the time as well: a broker that is gone for good must not keep the others
from being stopped.

    wait_in_sync.py SECONDS [OPTIONS OF quorumlog partition list]
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

PAUSE_S = 2.0


def missing(partitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Partitions with a replica that is not in sync and is not just being added, by name.

    partitions: as `quorumlog partition list -o json` prints them.
    """
    return [
        f"{one['topic']}-{one['partition']}"
        for one in partitions
        if set(one["replicas"]) - set(one["adding"]) - set(one["isr"])
    ]


def look(options: Sequence[str]) -> str:
    """What there is to wait for; "" for nothing. Not to reach the cluster is such a thing, too."""
    try:
        command = ["quorumlog", "partition", "list", "-o", "json", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        found = missing(json.loads(done.stdout))
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError) as error:
        return f"the partitions are unknown: {error!r}"
    return f"{len(found)} partitions lack a replica in sync, {found[0]} among them" if found else ""


def main(arguments: Sequence[str]) -> int:
    until = time.monotonic() + float(arguments[0])
    while waits_for := look(arguments[1:]):
        if time.monotonic() + PAUSE_S > until:
            print(f"stops all the same: {waits_for}", file=sys.stderr)
            return 0
        time.sleep(PAUSE_S)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
