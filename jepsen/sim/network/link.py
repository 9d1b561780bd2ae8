"""One direction between two hosts: the delay of messages, and their possible faults."""

from __future__ import annotations

import random
from dataclasses import dataclass

from jepsen.sim.time.scheduler import NS_PER_MS, NS_PER_S

_MAX_OF_MEAN = 20  # limit of a delay, in multiples of the mean: an exponential distribution has none


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkProfile:
    """Probabilities are per message, between 0 and 1.

    min_delay_ns, mean_extra_ns: a message takes the minimum plus an exponentially distributed extra.
    bytes_per_s: bandwidth; 0: unlimited.
    loss: a unary message is lost; the session of an ordered message breaks.
    duplicate: a unary request is executed twice.
    hold: a message is held for between hold_min_ns and hold_max_ns.
    """

    min_delay_ns: int = NS_PER_MS // 5
    mean_extra_ns: int = 3 * NS_PER_MS // 10
    bytes_per_s: int = 0
    loss: float = 0.0
    duplicate: float = 0.0
    hold: float = 0.0
    hold_min_ns: int = NS_PER_S
    hold_max_ns: int = 60 * NS_PER_S


LOCAL = LinkProfile(min_delay_ns=20_000, mean_extra_ns=10_000)  # within one host


class Link:
    def __init__(self, profile: LinkProfile, rng: random.Random) -> None:
        self.profile = profile
        self.cut = False
        self.cuts = 0  # number of cuts so far, which identifies a cut
        self._rng = rng

    def delay_ns(self, size_bytes: int) -> int:
        """The delay of a message of this size, drawn for each message."""
        profile = self.profile
        extra = int(self._rng.expovariate(1.0) * profile.mean_extra_ns)
        passage = size_bytes * NS_PER_S // profile.bytes_per_s if profile.bytes_per_s else 0
        return profile.min_delay_ns + min(extra, _MAX_OF_MEAN * profile.mean_extra_ns) + passage

    def hold_ns(self) -> int:
        """How long this message is held; usually 0."""
        profile = self.profile
        return self._rng.randint(profile.hold_min_ns, profile.hold_max_ns) if self._happens(profile.hold) else 0

    def loses(self) -> bool:
        return self._happens(self.profile.loss)

    def duplicates(self) -> bool:
        return self._happens(self.profile.duplicate)

    def _happens(self, probability: float) -> bool:
        """A fault with probability 0 draws no random number."""
        return probability > 0 and self._rng.random() < probability
