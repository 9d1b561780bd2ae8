"""One strike of a nemesis as data: what, when and for how long. The command line names it by its number."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Blow:
    """number: its place in the uncut run. at_ms: after the first moment at which one may strike.

    at_leader: its victim is the quorum's leader, if it has one.
    """

    number: int
    kind: str
    at_ms: int
    lasts_ms: int
    at_leader: bool = False

    def __str__(self) -> str:
        aim = " at the leader" if self.at_leader else ""
        return f"{self.number}: {self.kind}{aim} from {self.at_ms} ms for {self.lasts_ms} ms"
