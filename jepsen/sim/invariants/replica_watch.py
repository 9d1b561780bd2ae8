"""Which replicas of a broker may have changed in the last step of its process.

A replica's core changes only by `PartitionStepper.step`, which tells its listeners. So invariants look at the replicas
that were stepped, not at all replicas after every step.
"""

from __future__ import annotations

from jepsen.sim.machine.machine import Machine
from quorumlog_broker.data_plane import DataPlane
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.replica import Replica


def data_plane_of(machine: Machine) -> DataPlane | None:
    """The data plane of the machine's process; None if there is none, or if its broker is not made yet."""
    node = machine.node
    return None if node is None or node.broker is None else node.broker.data_plane


class ReplicaWatch:
    def __init__(self) -> None:
        self._watched: dict[str, tuple[DataPlane, dict[PartitionKey, None]]] = {}  # by host

    def changed(self, machine: Machine) -> list[Replica]:
        """The replicas that were stepped since the last call; all of a process that is seen for the first time.

        A replica that was taken from the broker meanwhile is left out.
        """
        plane = data_plane_of(machine)
        if plane is None:
            return []
        known = self._watched.get(machine.host)
        if known is None or known[0] is not plane:
            return self._watch(machine, plane)
        touched = known[1]
        if not touched:
            return []
        replicas = [plane.registry.replicas[key] for key in touched if key in plane.registry.replicas]
        touched.clear()
        return replicas

    def _watch(self, machine: Machine, plane: DataPlane) -> list[Replica]:
        touched: dict[PartitionKey, None] = {}
        self._watched[machine.host] = (plane, touched)
        plane.stepper.on_changed(lambda key: touched.__setitem__(key, None))
        return list(plane.registry.replicas.values())
