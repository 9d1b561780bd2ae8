"""Features that say how the cluster is made: its brokers, their directories, the sizes of its logs."""

from __future__ import annotations

from jepsen.sim.layout import Layout
from jepsen.sim.profiles.feature import Feature
from jepsen.sim.settings import BROKERS
from jepsen.sim.sizes import DURABILITY, INDEX_ROT, RETENTION
from quorumlog.settings.replicas import RACK_AWARE_SELECTOR

SOME_LAYOUT = Feature(layout=lambda rng: Layout.drawn(rng("layout")))
MORE_BROKERS = Feature(layout=lambda rng: Layout.drawn(rng("layout"), share=1.0))  # four to six, some of them in racks
TWO_DIRECTORIES = Feature(directories=2)
BURSTS = Feature(extra="bursts", bursts=True)

RECORDS_GO = Feature(always=RETENTION)  # all topics let records go
INDEXES_ROT = Feature(always=INDEX_ROT)  # bits of index files flip (invariants/replicas/index_rot.py)
PAGE_CACHE = Feature(always=DURABILITY)  # all topics are `durability=replicated`
LONGEST_LOG_LEADS = Feature(  # where no replica is known to be whole
    sizes=lambda sizes, rng: sizes.with_balanced_recovery(rng("unclean recovery"))
)

# A broker that gets no metadata asks another controller after a second, and soon knows no leader of the quorum; so a
# leader has to let its followers go before that. What is in the file of every broker, and of no controller, has no
# effect: both decide by the metadata (decision 85).
LATE_SETTINGS = Feature(  # strikes/scripts/late_settings.py
    settings={"replica.lag.time.max.ms": "500"},
    layout=lambda _: Layout(
        files={"log.durability": "replicated", "min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
    ),
)
NEAR_READERS = Feature(  # each broker in a rack of its own; a reader is in one of them, or in none
    layout=lambda _: Layout(
        racks={host: f"r{number}" for number, host in enumerate(BROKERS)},
        files={"replica.selector.class": RACK_AWARE_SELECTOR},
    ),
    looks=lambda invariants: (invariants.near_reads,),
)
DELETIONS_STAY = Feature(watch=lambda invariants: invariants.deletions.watch())
