"""What makes the rows of a batch readable together, and keeps all others from it: what a task and the driver ask for.

There are two forms: joint transactions of a quorumlog cluster (decision 112), and decisions in a topic of an Apache
Kafka. Each attempt of a task has a transaction of its own in both; the driver decides which of them commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quorumlog.spark.write.sending.task import AttemptSender


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOf:
    """group: the writer's name. kind: a number of JointKind. location: of the checkpoint, "" where there is none.
    run: one start of a query. sequence: of the batch in its group. query: id of a stream whose group has a sinkId;
    "": its group is named by it, or there is none."""

    group: str
    kind: int
    location: str
    run: str
    sequence: int
    query: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a transaction has written to one partition. first, last: offsets, both inclusive."""

    topic: str
    partition: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The open transaction of one attempt of a task. token: drawn at random by the attempt. slot: of a joint group; -1
    where the form has none. written: told once the task has sent all; an Apache Kafka cannot be asked for it later."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    token: bytes
    slot: int = -1
    written: tuple[Written, ...] = ()


class Delivery(Protocol):
    """Blocking. A task uses the first three, the driver the others; each may live in a process of its own."""

    def begin(self, batch: BatchOf, token: bytes) -> Attempt | None:
        """None: the batch is decided already, and the task counts its rows and sends none."""

    def sender(self, attempt: Attempt) -> AttemptSender:
        """The producer of the attempt's task, in the process that has begun it. It leaves the transaction open."""

    def abort_attempt(self, batch: BatchOf, attempt: Attempt) -> None:
        """The task has failed. Best effort: what it leaves open ends by its time-out."""

    def commit(self, batch: BatchOf, attempts: Sequence[Attempt], totals: Mapping[str, int]) -> None:
        """Decide the batch: these commit, and everything else of the group aborts. totals: what a replay is compared
        with. Raises QuorumlogError if nothing was decided."""

    def abort(self, batch: BatchOf, attempts: Sequence[Attempt] | None) -> None:
        """Abort what is not decided, by the batch's run. attempts: None where they are not known. batch.group,
        batch.run: "" where a stream's driver does not know them: then what its location and sequence left open."""

    def close(self) -> None: ...
