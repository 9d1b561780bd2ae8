"""How much a run must exercise to count. A run below that proves nothing, whatever its checks found. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jepsen.live.evidence.pauses import Pause
from jepsen.live.plan import Kind, Step
from jepsen.live.striker import StrikeRecord

ACKNOWLEDGED_PER_S = 40  # of the time with strikes; a small part of the lowest rate
AROUND_A_STRIKE = 50  # acknowledged records within its window


@dataclass(frozen=True, slots=True)
class Minimum:
    """One line of the report."""

    what: str
    wanted: int
    reached: int

    @property
    def is_met(self) -> bool:
        return self.reached >= self.wanted

    def __str__(self) -> str:
        return f"{self.what}: {self.reached} of at least {self.wanted}"


def minimums(
    kinds: Mapping[Kind | Step, int],
    records: Sequence[StrikeRecord],
    pauses: Sequence[Pause],
    *,
    seconds: float,
    acknowledged: int,
    read: int,
) -> list[Minimum]:
    """kinds: how many strikes of each must have bitten. seconds: how long strikes were carried out.

    read: records that the running consumer read.
    """
    found = [
        Minimum("acknowledged records", max(1, int(ACKNOWLEDGED_PER_S * seconds)), acknowledged),
        Minimum("records read while faults struck", max(1, int(ACKNOWLEDGED_PER_S * seconds)), read),
    ]
    for kind, wanted in kinds.items():
        bit = sum(1 for record in records if record.strike.kind is kind and record.bit)
        found.append(Minimum(f"strikes of {kind.value} that bit", wanted, bit))
    fewest = min((pause.acknowledged for pause in pauses), default=0)
    found.append(Minimum("fewest records acknowledged around a strike", AROUND_A_STRIKE, fewest))
    return found
