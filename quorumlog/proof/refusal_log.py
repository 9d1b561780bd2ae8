"""How often a refusal is logged: once for each peer and period, with the number of those left out. Pure."""

from __future__ import annotations

PERIOD_S = 60.0
MAX_PEERS = 256  # that are told apart; the one logged longest ago is forgotten


def others(left_out: int) -> str:
    """The end of a line about one of them."""
    return f" ({left_out} more in the last {PERIOD_S:.0f} s or longer)" if left_out else ""


class RefusalLog:
    def __init__(self) -> None:
        self._logged: dict[str, tuple[float, int]] = {}  # by peer: time (s) of its last line, refusals since

    @property
    def has_untold(self) -> bool:
        """Refusals of some peer came since its last line."""
        return any(count for _, count in self._logged.values())

    def over(self, now_s: float) -> list[tuple[str, int]]:
        """Peers whose period is over, and how many refusals came since their last line; those are told by that."""
        found = [
            (peer, count) for peer, (last_s, count) in self._logged.items() if count and now_s - last_s >= PERIOD_S
        ]
        for peer, _ in found:
            del self._logged[peer]
        return found

    def due(self, peer: str, now_s: float) -> int | None:
        """A refusal: how many of this peer came since its last line; None: no line is due yet."""
        last_s, count = self._logged.get(peer, (None, 0))
        if last_s is not None and now_s - last_s < PERIOD_S:
            self._logged[peer] = (last_s, count + 1)
            return None
        self._logged.pop(peer, None)
        if len(self._logged) >= MAX_PEERS:
            del self._logged[next(iter(self._logged))]
        self._logged[peer] = (now_s, 0)
        return count
