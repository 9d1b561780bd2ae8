"""Batches whose driver has aborted them: what a task of theirs begins after that would be open until its time-out.

Spark calls a writer's abort while tasks of the job may still run, and kills their processes. A run that has given up a
batch never decides it: a stream ends with it, a batch job is over.

It is not in the log, so that another coordinator begins such a child nevertheless, which ends by its time-out.
"""

from __future__ import annotations

from collections import OrderedDict

MAX_GIVEN_UP = 10_000  # of a coordinator; the oldest one is forgotten

Given = tuple[str, str, int]
"""(group, run, sequence)"""


class GivenUp:
    def __init__(self) -> None:
        self._known: OrderedDict[Given, None] = OrderedDict()

    def __contains__(self, one: Given) -> bool:
        return one in self._known

    def add(self, one: Given) -> None:
        self._known[one] = None
        if len(self._known) > MAX_GIVEN_UP:
            self._known.popitem(last=False)
