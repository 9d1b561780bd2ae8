"""Runs one real node that can be held at two places behind a decision: `... FOLDER -c FILE`.

The node is the production one; this launcher puts two classes of its own in the place of the coordinator's before the
node is built, and production code knows nothing of it. FOLDER: see places.py.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from quorumlog_server.process.lean_start import load_no_more_than_needed

load_no_more_than_needed()

import quorumlog_broker.coordinator.runtime.transaction_coordinators  # noqa: E402  # after the settings above
import quorumlog_broker.coordinator.transactions.shard  # noqa: E402
from jepsen.pipeline.places import HELD_S, POLL_S, Folder, Place  # noqa: E402
from quorumlog_broker.coordinator.runtime.marker_sender import MarkerSender  # noqa: E402
from quorumlog_broker.coordinator.transactions.joint.preparing import Preparing  # noqa: E402
from quorumlog_broker.coordinator.transactions.markers import MarkerRequest  # noqa: E402
from quorumlog_broker.coordinator.transactions.state.states import PreparesGoOn  # noqa: E402
from quorumlog_server.process.process import main  # noqa: E402

LOOK_AGAIN_MS = 5


class HeldPreparing(Preparing):
    """Writes no record of a child while it is held; the decision itself is committed then."""

    folder: Folder
    _until_ms = 0  # while this one is held

    def go_on(self) -> None:
        self.list_new()
        if self._left and self._is_held():
            self._turn.timers.arm(PreparesGoOn(), self._turn.now_ms + LOOK_AGAIN_MS)
        else:
            super().go_on()

    def _is_held(self) -> bool:
        now_ms = self._turn.now_ms
        if self._until_ms:
            if self.folder.is_left(Place.RECORD) or now_ms >= self._until_ms:
                self._until_ms = 0
            return bool(self._until_ms)
        group, _ = self._left[0]
        if not self.folder.is_held(Place.RECORD):
            return False
        if group.prepared_end > self._turn.high_watermark:
            return True  # not committed yet, so nobody has come to the place
        if self.folder.comes_to(Place.RECORD):
            self._until_ms = now_ms + int(HELD_S * 1000)
        return bool(self._until_ms)


class HeldMarkerSender(MarkerSender):
    """Sends no marker of a transaction that commits while it is held."""

    folder: Folder

    async def _ask(self, request: MarkerRequest) -> None:
        if any(marker.committed for marker in request.message.markers):
            self.folder.comes_to(Place.MARKERS)
            deadline = asyncio.get_running_loop().time() + HELD_S
            while not self.folder.is_left(Place.MARKERS) and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
                await asyncio.sleep(POLL_S)  # the release is a file
        await super()._ask(request)


def run(arguments: list[str]) -> int:
    """arguments: the folder of the places, then the node's own arguments. Returns the node's exit code."""
    HeldPreparing.folder = HeldMarkerSender.folder = Folder(Path(arguments[0]))
    vars(quorumlog_broker.coordinator.transactions.shard)["Preparing"] = HeldPreparing
    vars(quorumlog_broker.coordinator.runtime.transaction_coordinators)["MarkerSender"] = HeldMarkerSender
    return main(arguments[1:])


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
