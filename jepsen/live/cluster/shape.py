"""How a scenario's cluster differs from that of a drawn run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jepsen.live.disks.volume import Volume


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """metadata_on_volumes: of every third node, so that its struck disk also hits the quorum.

    volume: the kind of the file systems of the second directories, where a tmpfs will not do (volumes.py).
    prefix: what the nodes' command begins with. proxied: nodes reach each other through a proxy.
    old: the tree of the earlier software that all nodes start with.
    """

    metadata_on_volumes: bool = True
    volume: type[Volume] | None = None
    prefix: tuple[str, ...] = ()
    proxied: bool = False
    old: Path | None = None


USUAL = Shape()
