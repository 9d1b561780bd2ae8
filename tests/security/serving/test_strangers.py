"""Who goes where too many have not logged in: against a list that is looked through from its beginning."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quorumlog.settings.security import StrangerLimits
from quorumlog.wire.serving.strangers import Strangers

LIMITS = StrangerLimits(most=5, most_of_address=3)


class Peer:
    def __init__(self, number: int, gone: list[int]) -> None:
        self.number, self._gone = number, gone

    def refuse(self, reason: str) -> None:
        assert "have not logged in" in reason
        self._gone.append(self.number)


EVENTS = st.lists(st.one_of(st.sampled_from("abc"), st.integers(0, 20)), max_size=40)
"""A letter: somebody comes from this address. A number: the one that came with this number leaves, if it is there."""


@given(EVENTS)
def test_the_oldest_goes_first(events: list[str | int]) -> None:
    gone: list[int] = []
    strangers, peers = Strangers(LIMITS), list[Peer]()
    here: list[tuple[int, str]] = []  # the oracle's: number and address, oldest first
    expected: list[int] = []
    for event in events:
        if isinstance(event, int):
            if event < len(peers):
                strangers.left(peers[event])
                here = [one for one in here if one[0] != event]
        else:
            of_address = [one for one in here if one[1] == event]
            displaced = (
                of_address[:1] if len(of_address) == LIMITS.most_of_address else here[: len(here) == LIMITS.most]
            )
            here = [one for one in here if one not in displaced] + [(len(peers), event)]
            expected += [number for number, _ in displaced]
            peers.append(Peer(len(peers), gone))
            strangers.came(peers[-1], event)
        assert gone == expected and len(strangers) == len(here) <= LIMITS.most
        assert strangers.told["displaced"] == len(gone)
