"""Reassignments under way, and how far each new replica is."""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from quorumlog.client.administration.logs import current_replicas
from quorumlog.ids import NodeId
from quorumlog_console.access import Access
from quorumlog_console.page import page, render, sample_of

NODE_MS = 2_000


class Copy(NamedTuple):
    """A replica that is being made. size, whole: bytes; None: not told. lag: offsets behind the high watermark."""

    node_id: NodeId
    size: int | None
    whole: int | None
    lag: int | None
    is_in_sync: bool

    @property
    def share(self) -> float | None:
        if self.is_in_sync:
            return 1.0
        if self.size is None or not self.whole:
            return None
        return min(1.0, self.size / self.whole)


class Move(NamedTuple):
    topic: str
    partition: int
    copies: list[Copy]
    removing: tuple[NodeId, ...]
    target: tuple[NodeId, ...]


@page
async def moves(request: Request, access: Access) -> Response:
    sample = await sample_of(request, access)
    under_way = await access.admin.list_partition_reassignments()
    silent: dict[NodeId, str] = {}
    dirs = await access.admin.describe_log_dirs(timeout_ms=NODE_MS, silent=silent) if under_way else {}
    held = current_replicas(dirs)
    rows = []
    for (topic, index), one in sorted(under_way.items()):
        partitions = sample.topics[topic].partitions if topic in sample.topics else ()
        known = partitions[index] if index < len(partitions) else None
        leader = held.get((topic, index, known.leader)) if known is not None else None
        copies = []
        for node_id in one.adding:
            part = held.get((topic, index, node_id))
            copies.append(
                Copy(
                    node_id,
                    None if part is None else part.size_bytes,
                    None if leader is None else leader.size_bytes,
                    None if part is None else part.offset_lag,
                    known is not None and node_id in known.isr,
                )
            )
        rows.append(Move(topic, index, copies, one.removing, one.target))
    return render(request, "moves.html", "Reassignments", access, is_live=True, moves=rows, silent=silent)
