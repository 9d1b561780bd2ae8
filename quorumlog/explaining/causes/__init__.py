"""The table of causes, by what they are about. A new cause is a row of its file's table, and a case of its test."""

from __future__ import annotations

from quorumlog.explaining.causes.brokers import BROKERS
from quorumlog.explaining.causes.clients import CLIENTS
from quorumlog.explaining.causes.directories import DIRECTORIES
from quorumlog.explaining.causes.groups import GROUPS
from quorumlog.explaining.causes.leaders import LEADERS
from quorumlog.explaining.causes.quorum import OF_QUORUM
from quorumlog.explaining.causes.replicas import REPLICAS
from quorumlog.explaining.causes.table import Cause
from quorumlog.explaining.causes.transactions import TRANSACTIONS

CAUSES: tuple[Cause, ...] = (
    *OF_QUORUM,
    *BROKERS,
    *DIRECTORIES,
    *LEADERS,
    *REPLICAS,
    *GROUPS,
    *TRANSACTIONS,
    *CLIENTS,
)
BY_NAME = {one.name: one for one in CAUSES}
assert len(BY_NAME) == len(CAUSES), "two causes have one name"
