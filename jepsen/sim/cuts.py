"""What is taken out of one run of a seed, as data and as the options of the command that replays it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """None: nothing is taken out. blows: the numbers of the strikes that stay.

    extras: what stays of `Plan.extras`; not for a quorum. operations, voters, brokers: most that there are; only for a
    quorum.
    """

    blows: tuple[int, ...] | None = None
    extras: tuple[str, ...] | None = None
    operations: int | None = None
    voters: int | None = None
    brokers: int | None = None

    @property
    def options(self) -> str:
        """As the command line takes them."""
        named = {
            "blows": _listed(self.blows),
            "extras": _listed(self.extras),
            "operations": self.operations,
            "voters": self.voters,
            "brokers": self.brokers,
        }
        return "".join(f" --{name} {value}" for name, value in named.items() if value is not None)


def _listed(names: tuple[object, ...] | None) -> str | None:
    return None if names is None else ",".join(str(name) for name in names) or "none"
