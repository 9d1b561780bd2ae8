"""What retention took from the source before it was copied, where the mirror goes on without it (`--skip-lost`). Pure.

Where the logs began is asked when a batch is about to be read; where the batch began is known behind it. What lies
between the two cannot have been read.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.ids import Offset
from quorumlog.spark.read.planning import NOT_THERE, SKIP_HINT, lost_text

BATCHES = 100  # whose starts are remembered, as many as Spark remembers reports of
OWN_HINT = "--skip-lost goes on with the records that are left, and tells which ones are not"

Offsets = Mapping[str, Mapping[str, int]]  # by topic and, as Spark's JSON has it, partition


class Losses:
    def __init__(self) -> None:
        self._starts: dict[int, Mapping[str, Mapping[int, Offset]]] = {}

    def reads(self, batch: int, starts: Mapping[str, Mapping[int, Offset]]) -> None:
        """starts: where the source's logs begin, before the batch is read."""
        self._starts[batch] = starts
        while len(self._starts) > BATCHES:
            del self._starts[min(self._starts)]

    def of(self, batch: int, first: Offsets, end: Offsets) -> list[str]:
        """Texts. first: where the batch begins; a partition that it does not name begins at 0. Empty: the query's own
        beginning, before which nothing is lost. end: exclusive."""
        starts = self._starts.pop(batch, {})
        texts = []
        for topic, ends in sorted(end.items()) if first else ():
            for index, stop in sorted(ends.items()):
                start = starts.get(topic, {}).get(int(index), Offset(0))
                begun = first.get(topic, {}).get(index, 0)
                if begun < min(start, stop):
                    why = f"the log began at {start} when they were to be copied, older records were deleted"
                    texts.append(lost_text(topic, int(index), Offset(begun), Offset(min(start, stop)), why))
        return texts


def with_own_hint(text: str) -> str | None:
    """What a query that met a loss has failed with, with this command's option in it; None: that is not why it failed.

    text: `job.why_failed`.
    """
    if NOT_THERE not in text:
        return None
    return text.partition(": ")[2].replace(SKIP_HINT, OWN_HINT)
