"""The id of a log directory, as its `meta.properties` has it on a simulated disk."""

from __future__ import annotations

from jepsen.sim.machine.machine import Machine
from jepsen.sim.truth.log_mirror import file_at
from quorumlog.ids import Uuid
from quorumlog_storage.meta_properties import META_PROPERTIES, MetaProperties


def directory_id_of(machine: Machine, directory: str) -> Uuid:
    """directory: formatted."""
    content = file_at(machine.disk, f"{directory}/{META_PROPERTIES}", durable=False)
    assert content is not None, f"{directory} of {machine.host} is formatted"
    return MetaProperties.parse(META_PROPERTIES, content).directory_id
