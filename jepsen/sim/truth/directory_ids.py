"""The id and the node of a log directory, as its `meta.properties` has them on a simulated disk."""

from __future__ import annotations

from jepsen.sim.machine.disk import file_at
from jepsen.sim.machine.machine import Machine
from quorumlog.ids import Uuid
from quorumlog_storage.directory.meta_properties import META_PROPERTIES, MetaProperties


def directory_id_of(machine: Machine, directory: str) -> Uuid:
    """directory: formatted."""
    content = file_at(machine.disk, f"{directory}/{META_PROPERTIES}", durable=False)
    assert content is not None, f"{directory} of {machine.host} is formatted"
    return MetaProperties.parse(META_PROPERTIES, content).directory_id


def is_of_node(machine: Machine, directory: str) -> bool:
    """Whether nothing says that the directory is another node's. One that is not formatted is nobody's yet."""
    content = file_at(machine.disk, f"{directory}/{META_PROPERTIES}", durable=False)
    return content is None or MetaProperties.parse(META_PROPERTIES, content).node_id == machine.node_id
