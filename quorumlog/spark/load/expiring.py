"""Snapshots of an Iceberg table that are too old to be kept, by the table's own properties and those of its branches.

Each state of a table's metadata lists all of its snapshots, and a load makes one more of both. Without an end to it
200 loads leave a state of some 150 KB. A table that a load has made names an age, and one that has no such property
keeps all: nobody has said that its history may go. Source: Iceberg's table specification, "Snapshot Retention Policy";
what Spark's `expire_snapshots` keeps is kept here, and no file is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MAX_AGE, MAX_AGE_DEFAULT_MS = "history.expire.max-snapshot-age-ms", 432_000_000  # 5 days, as in Iceberg
MIN_KEPT, MIN_KEPT_DEFAULT = "history.expire.min-snapshots-to-keep", 1
COLLECTS = "gc.enabled"  # false: nothing of the table expires
OF_A_NEW_TABLE = {MAX_AGE: str(MAX_AGE_DEFAULT_MS)}


def to_expire(metadata: Any, now_ms: int) -> list[int]:
    """Ids of snapshots, oldest first. metadata: of pyiceberg; with the snapshot that is being committed, if any.

    Kept are: what a tag or the end of a branch names; behind the end of a branch, so many as it wants, and those that
    are young enough; of what no branch leads to, those that are young enough. All, where the table names no age, or a
    property is no number.
    """
    properties = metadata.properties
    if MAX_AGE not in properties or properties.get(COLLECTS, "true").lower() == "false":
        return []
    try:
        max_age_ms, min_kept = int(properties[MAX_AGE]), int(properties.get(MIN_KEPT, MIN_KEPT_DEFAULT))
    except ValueError:
        return []
    kept: set[int] = set()
    reached: set[int] = set()
    for ref in metadata.refs.values():
        ancestors = list(_ancestors(metadata, ref.snapshot_id))
        reached.update(one.snapshot_id for one in ancestors)
        wanted = min_kept if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
        oldest_ms = now_ms - (max_age_ms if ref.max_snapshot_age_ms is None else ref.max_snapshot_age_ms)
        kept.update(_kept(ancestors, wanted if ref.snapshot_ref_type == "branch" else 1, oldest_ms))
    others = (one for one in metadata.snapshots if one.snapshot_id not in reached)
    kept.update(one.snapshot_id for one in others if one.timestamp_ms >= now_ms - max_age_ms)
    return [one.snapshot_id for one in metadata.snapshots if one.snapshot_id not in kept]


def _kept(ancestors: list[Any], wanted: int, oldest_ms: int) -> Iterator[int]:
    """ancestors: newest first. The first one is kept in any case."""
    for number, one in enumerate(ancestors):
        if number >= max(1, wanted) and one.timestamp_ms < oldest_ms:
            return
        yield one.snapshot_id


def _ancestors(metadata: Any, snapshot_id: int | None) -> Iterator[Any]:
    """Newest first, as far as they are there."""
    by_id = {one.snapshot_id: one for one in metadata.snapshots}
    while snapshot_id is not None and snapshot_id in by_id:
        yield by_id[snapshot_id]
        snapshot_id = by_id[snapshot_id].parent_snapshot_id
