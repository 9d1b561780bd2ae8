"""A month at rest adds nothing to what a node stores and to what it replays at a start.

A cluster at rest writes a record that says nothing every five seconds. Here it comes every fifteen minutes, under the
real settings of snapshots and retention, for thirty days of virtual time: the log's bytes are a 180th.
"""

from __future__ import annotations

from collections.abc import Iterator

import driver_world
import pytest
from driver_world import Recorder, World, log_path

from quorumlog.settings.metadata_log import SnapshotConfig

CONFIG = SnapshotConfig()
GAP_MS = 900_000
HOUR_MS, DAY_MS = 3_600_000, 24 * 3_600_000
NOOP = b"\x01\x14\x00\x00"
RECORDS_PER_START = CONFIG.interval_ms // GAP_MS + 2  # of one interval, and the leader's own
SNAPSHOTS = CONFIG.retention.ms // CONFIG.interval_ms + 2
BATCH_BYTES = 80  # of one such record, at most
LOG_BYTES = (CONFIG.retention.ms + CONFIG.segment_ms + HOUR_MS) // GAP_MS * BATCH_BYTES
SNAPSHOT_BYTES = 400  # of an image that holds one value


class Resting(Recorder):
    """Its image is one value; the other records change nothing."""

    replayed = 0

    def slices(self) -> Iterator[list[bytes]]:
        return iter([[b"image"]])

    def _take(self, values: list[bytes]) -> None:
        self.replayed += len(values)


@pytest.mark.timeout(300)
def test_a_month_at_rest_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_world, "Recorder", Resting)
    world = World(voters=1, snapshots=CONFIG)
    assert world.run(20_000, until=world.has_leader)
    sizes: list[int] = []
    for day in range(30):
        for _ in range(DAY_MS // GAP_MS):
            world.running[0].append(NOOP)
            world.run(GAP_MS)
        names = world.disks[0].list(log_path(0))
        sizes.append(sum(world.disks[0].size_of(f"{log_path(0)}/{name}") for name in names))
        if day % 10 == 9:
            world.kill(0)
            world.start(0)
            assert world.run(20_000, until=world.has_leader)
            recorder = world.running[0].recorder
            assert isinstance(recorder, Resting) and recorder.replayed <= RECORDS_PER_START
            assert [call for call in recorder.calls if call.startswith("snapshot")], "it begins with a snapshot"
    snapshots = [name for name in world.disks[0].list(log_path(0)) if name.endswith(".checkpoint")]
    print(f"bytes by day: {sizes}; snapshots: {len(snapshots)}")
    assert 2 < len(snapshots) <= SNAPSHOTS
    assert max(sizes) <= LOG_BYTES + SNAPSHOTS * SNAPSHOT_BYTES
    assert max(sizes[20:]) <= 1.05 * max(sizes[:20]), "the last third adds nothing"
