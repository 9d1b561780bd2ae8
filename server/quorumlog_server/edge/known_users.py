"""Users whom the cluster's metadata knows, as edges ask for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from quorumlog.security.sasl.credential import ScramCredential


def _nobody(_mechanism: str, _name: str) -> ScramCredential | None:
    return None


@dataclass(slots=True)
class KnownUsers:
    """`mechanism.Credentials`. Shared by a node and its edges: the node sets `find`, and `caught_up` once its metadata
    has caught up. Before that nobody can log in: a user who is not known yet would be told a wrong password."""

    find: Callable[[str, str], ScramCredential | None] = _nobody
    caught_up: asyncio.Event = field(default_factory=asyncio.Event)

    def scram(self, mechanism: str, name: str) -> ScramCredential | None:
        return self.find(mechanism, name)
