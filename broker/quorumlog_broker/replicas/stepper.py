"""The way of an event through a partition's core: step, check the invariants, perform the effects in their order.

Every room subscribes to the effects that concern it, once, when the broker is put together
(`quorumlog_broker/data_plane.py`). This is the hottest path of a broker: a step allocates nothing beside what the core
returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_args

from quorumlog.clock import Clock
from quorumlog_broker.partition.events import FollowerFetched, PartitionEffect, PartitionEvent, Tick, UnnamedFetch
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.replica import Replica

E = TypeVar("E", bound=PartitionEffect)

QUIET = frozenset({FollowerFetched, UnnamedFetch, Tick})  # if they have no effect, every fetch is answered as before


class PartitionStepper:
    """Subscribers are called on the loop, in the order of their subscription, and may step again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._performers: dict[type, tuple[Callable[[Replica, Any], None], ...]] = {}
        self._on_changed: tuple[Callable[[PartitionKey], None], ...] = ()

    def on(self, effect: type[E], perform: Callable[[Replica, E], None]) -> None:
        """Call `perform` for each effect of this type."""
        self._performers[effect] = (*self._performers.get(effect, ()), perform)

    def on_changed(self, listener: Callable[[PartitionKey], None]) -> None:
        """Call `listener` after each step that may change the answer to a fetch, before the effects of the step."""
        self._on_changed = (*self._on_changed, listener)

    def check_complete(self) -> None:
        """After the last subscription: no effect may go unperformed."""
        missing = [effect.__name__ for effect in get_args(PartitionEffect) if effect not in self._performers]
        assert not missing, f"no room performs {missing}"

    def step(self, replica: Replica, event: PartitionEvent) -> None:
        core = replica.core
        effects = core.step(event, self._clock.now_ms())
        core.check_invariants()
        if effects or type(event) not in QUIET:
            for listener in self._on_changed:
                listener(replica.key)
        for effect in effects:
            for perform in self._performers[type(effect)]:
                perform(replica, effect)
