"""What a writer of an Apache Kafka is told. Refusals have the codes of joint transactions: RequestFailed."""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.client.errors import QuorumlogError
from quorumlog.spark.write.kafka.decisions import Child

TOLD = 10  # places in a text


class DecisionsRefused(QuorumlogError):
    """The topic of decisions is not one that may be trusted, or cannot be read to its end."""


class RunOver(QuorumlogError):
    """This run decides nothing any more: another one has taken over, or it is not known what its last write did."""


class NotEnded(QuorumlogError):
    """A decided batch has transactions that did not end in time. It stays decided: the next start ends them."""


class DecidedTransactionLost(QuorumlogError):
    """A decided batch has transactions that committed, and others that the cluster aborted, or has no trace of.

    lost: those that are not known to have committed.
    """

    def __init__(self, group: str, sequence: int, lost: Sequence[Child], timeout_advice: str) -> None:
        places = [
            f"{part.topic}-{part.partition} offsets {part.first} to {part.last}" for one in lost for part in one.written
        ]
        more = f" and {len(places) - TOLD} more" if len(places) > TOLD else ""
        super().__init__(
            f"batch {sequence} of {group} was decided, and part of it is readable and part never will be: lost are the "
            f"rows at {', '.join(places[:TOLD])}{more}. {timeout_advice} Write the rows again by hand if they "
            f"are needed, then set acceptLost={sequence}: the batch counts as written from then on"
        )
        self.group, self.sequence, self.lost = group, sequence, tuple(lost)
