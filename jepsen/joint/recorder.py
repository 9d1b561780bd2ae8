"""What all drivers, tasks and readers of one run write down, and what they share as a checkpoint shares it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from jepsen.checkers.findings import Finding
from jepsen.checkers.joint.events import Abort
from jepsen.checkers.joint.history import JointHistory
from jepsen.transactions.recorder import Recorder

STREAM, VERSIONED, SINGLE = 0, 1, 2
JOINT = "joint"  # the topic
PARTITIONS = 4
EMPTY_SHARE = 0.1  # of the batches
TASKS_MAX, ROWS_MAX = 3, 2  # of a batch, of a task


@dataclass(slots=True)
class Group:
    """committed: the last batch whose decision was acknowledged to any driver; -1: none. location: of the checkpoint,
    which the drivers of a group share."""

    name: str
    kind: int = STREAM
    location: str = ""
    committed: int = -1

    def plan(self, sequence: int) -> list[list[int]]:
        """Of each task, the partitions that its rows go to: the same whoever asks, as Spark's offsets log says."""
        rng = random.Random(f"{self.name}/{sequence}")
        if rng.random() < EMPTY_SHARE:
            return []
        counts = [rng.randint(1, ROWS_MAX) for _ in range(rng.randint(1, TASKS_MAX))]
        return [[rng.randrange(PARTITIONS) for _ in range(count)] for count in counts]

    def rows(self, sequence: int) -> int:
        """The batch's only fact."""
        return sum(map(len, self.plan(sequence)))


class JointRecorder:
    """stopping: drivers end after what they do now. producers: what the producers of children write down, unjudged.

    aborts: every AbortJoint that was asked for.
    """

    def __init__(self, now_ns: Callable[[], int], rng: random.Random) -> None:
        self.now_ns = now_ns
        self.history = JointHistory()
        self.producers = Recorder(now_ns)
        self.counts: Counter[str] = Counter()
        self.aborts: dict[Abort, None] = {}
        self.findings: list[Finding] = []
        self.stopping = False
        self.waiting_for = ""  # at the end: what is not over yet
        self._rng = rng

    def draw(self) -> str:
        """A token, or the name of a run."""
        return f"{self._rng.getrandbits(40):010x}"
