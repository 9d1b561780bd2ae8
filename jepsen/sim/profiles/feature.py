"""A feature: a part of a simulation that a profile names, with all that belongs to it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jepsen.sim.invariants.hooks import Invariants
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.layout import Layout
from jepsen.sim.sizes import Sizes
from jepsen.sim.workload.activity import Activity
from jepsen.sim.workload.workload import Workload

Rngs = Callable[[str], random.Random]  # of a seed, by the name of a concern


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Feature:
    """What it does not say is as in runs without it.

    extra: `--extras` takes it out of a run by this name; "": it stays.

    How the cluster is made:
    settings: of every node. drawn_settings: the same, as the seed decides. directories: log directories of each broker.
    secured: the cluster knows its clients. layout: brokers and racks. always: what the seed would decide about sizes,
    and this feature does (Sizes.of_seed). sizes: changes the sizes.

    What happens:
    activity: beside the producers and readers. bursts: producers sometimes send more at once than a broker's buffers
    hold.

    What is looked at:
    watch: tells the invariants that this is such a run. looks: those whose counts say something only in such runs.
    """

    extra: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    drawn_settings: Callable[[Rngs], Mapping[str, str]] = lambda _: {}
    directories: int = 1
    secured: bool = False
    layout: Callable[[Rngs], Layout] | None = None
    always: str = ""
    sizes: Callable[[Sizes, Rngs], Sizes] = lambda sizes, _: sizes
    activity: Callable[[Workload], Activity] | None = None
    bursts: bool = False
    watch: Callable[[Invariants], None] = lambda _: None
    looks: Callable[[Invariants], tuple[Invariant, ...]] = lambda _: ()
