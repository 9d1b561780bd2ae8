"""Runs one real node whose wall clock jumps and whose transactional ids may be old: `... FOLDER -c FILE`.

The node is the production one; this launcher changes two of its edges before the node is built, and production code
knows nothing of it:

- its wall clock is ahead of the machine's by what FOLDER/CLOCK says; its monotonic time never jumps;
- a transactional id whose name begins with OLD begins as if it had lived for long: its epochs run out soon, and it gets
  another producer id in the middle of the run.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from pathlib import Path

from quorumlog_server.process.lean_start import load_no_more_than_needed

load_no_more_than_needed()

import quorumlog_broker.coordinator.transactions.shard  # noqa: E402  # imported after the settings above
import quorumlog_server.edge.real_edges  # noqa: E402
from jepsen.live.transactions.odd_nodes import CLOCK, OLD  # noqa: E402
from quorumlog.records.coordinator.transactions import NO_TIMESTAMP, TransactionValue  # noqa: E402
from quorumlog_broker.coordinator.transactions.init_producer import InitProducer, _Next  # noqa: E402
from quorumlog_broker.coordinator.transactions.state.table import EMPTY, LAST_EPOCH  # noqa: E402
from quorumlog_broker.coordinator.turn import Call  # noqa: E402
from quorumlog_server.process.process import main  # noqa: E402

POLL_S = 0.05
EPOCHS_LEFT_MAX = 12


class JumpingClock(quorumlog_server.edge.real_edges.SystemClock):
    """ahead_ms: of the machine's clock."""

    ahead_ms = 0

    def wall_ms(self) -> int:
        return super().wall_ms() + JumpingClock.ahead_ms


class OldInitProducer(InitProducer):
    def _begin(
        self, call: Call, transactional_id: str, before: TransactionValue | None, found: _Next, timeout_ms: int
    ) -> None:
        if before is None and transactional_id.startswith(OLD):
            first = TransactionValue(found.producer_id, 0, timeout_ms, EMPTY, None, self._turn.wall_ms, NO_TIMESTAMP)
            self._states.put(transactional_id, first)  # an id begins at epoch 0; this one goes on far behind it
            found = found._replace(producer_epoch=LAST_EPOCH - random.randint(0, EPOCHS_LEFT_MAX))
        super()._begin(call, transactional_id, before, found, timeout_ms)


def follow(file: Path) -> None:
    """Does not end."""
    while True:
        try:
            JumpingClock.ahead_ms = int(file.read_text())
        except (FileNotFoundError, ValueError):
            pass  # no order yet, or one that is being written
        time.sleep(POLL_S)


def run(arguments: list[str]) -> int:
    """arguments: the folder of the orders, then the node's own arguments. Returns the node's exit code."""
    vars(quorumlog_server.edge.real_edges)["SystemClock"] = JumpingClock
    vars(quorumlog_broker.coordinator.transactions.shard)["InitProducer"] = OldInitProducer
    threading.Thread(target=follow, args=(Path(arguments[0]) / CLOCK,), name="clock", daemon=True).start()
    return main(arguments[1:])


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
