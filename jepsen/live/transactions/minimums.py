"""How much a run must exercise to count. A run below that proves nothing, whatever its checks found. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from jepsen.live.cluster.away import KILLED
from jepsen.live.minimums import Minimum
from jepsen.live.transactions.strikes import AIMS, Strike

COMMITTED, ABORTED = 0.4, 0.02  # shares of the transactions that were asked for
KILLED_OF_DUE = 0.5  # of the clients that were to be killed: one may be between two lives
READ = 1.0  # values that were read, of the transactions
OLD = 0.5  # of the old ids: their epochs have run out
FEW_TURNS = 8  # of the old ids' turns; with fewer, their epochs need not have run out


def minimums(
    count: int, counts: Mapping[str, int], strikes: Sequence[Strike], *, faults: int, clients: int, old: int, turns: int
) -> list[Minimum]:
    """count: transactions asked for. faults, clients: how many were to be struck and killed. old: transactional ids.

    turns: transactions of each id, on average.
    """
    found = [
        Minimum("transactions committed", int(COMMITTED * count), counts.get("transactions committed", 0)),
        Minimum("transactions aborted", int(ABORTED * count), counts.get("transactions aborted", 0)),
        Minimum("values read", int(READ * count), counts.get("transactional values read", 0)),
        Minimum("faults", faults, len(strikes)),
        Minimum("clients killed", int(KILLED_OF_DUE * clients), counts.get("clients killed", 0)),
    ]
    if turns >= FEW_TURNS:
        found.append(Minimum("old ids whose epochs ran out", int(OLD * old), counts.get("producer ids run out", 0)))
    kills = [one for one in strikes if one.kind == KILLED]
    least = int(len(strikes) >= 2 * len(AIMS))  # kinds and aims go round: by then each aim was killed
    for aim in AIMS.values():
        found.append(Minimum(f"kills of a node that {aim}", least, sum(one.aim == aim for one in kills)))
    if kills:
        found.append(Minimum("fewest commits acknowledged before a kill", 1, min(one.before for one in kills)))
        found.append(Minimum("transactions open at kills", 1, sum(one.open for one in kills)))
        found.append(Minimum("commits acknowledged while a killed node was away", 1, sum(one.away for one in kills)))
    return found


def by_target(strikes: Sequence[Strike]) -> list[str]:
    """A line for each kind of fault and each aim."""
    groups: dict[tuple[str, str], list[Strike]] = defaultdict(list)
    for one in strikes:
        groups[one.kind, one.aim].append(one)
    lines = []
    for (kind, aim), found in sorted(groups.items()):
        before, is_open, away = (sum(one) for one in zip(*((s.before, s.open, s.away) for s in found), strict=True))
        lines.append(
            f"{kind}, a node that {aim}: {len(found)} faults; {before:,} commits acknowledged before, {is_open:,} "
            f"transactions open, {away:,} commits while it was away"
        )
    return lines
