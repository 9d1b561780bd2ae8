"""What an invariant of a simulated cluster may listen to: empty hooks, of which each invariant overrides its own.

Hooks run at nearly every step of a simulation, so only those that are overridden are ever called (`overridden`).
A hook reads, and reports to `Findings`: it never changes the cluster, so that a trace is the same with or without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message
from jepsen.sim.network.watched_transport import OnOutcome
from jepsen.sim.truth.log_mirror import Batch, LogMirror
from quorumlog.ids import Offset
from quorumlog.messages.fetch import FetchRequest, FetchResponse
from quorumlog.messages.produce import ProduceRequest, ProduceResponse
from quorumlog.rpc.transport import Context
from quorumlog.security.principal import Principal
from quorumlog_broker.replicas.replica import Replica
from quorumlog_quorum.metadata.image import Image
from quorumlog_server.process.node import Node


class Invariant:
    @property
    def exercised(self) -> Mapping[str, int]:
        """What was looked at, and how often: a run in which nothing was proves nothing."""
        return {}

    # --- the metadata ---

    def on_growth(self, mirror: LogMirror, before: Offset, after: Offset) -> None:
        """The metadata log up to `after` is committed now; `mirror` holds it. before: where it ended until now."""

    def on_published(self, host: str, image: Image) -> None:
        """A node has published this image."""

    def on_image(self, image: Image) -> None:
        """The newest committed image is another one."""

    def after_controller(self, machine: Machine) -> None:
        """Called after each step of this controller's process."""

    # --- brokers ---

    def after_step(self, machine: Machine, changed: list[Replica]) -> None:
        """Called after each step of this broker's process. changed: the replicas that the step may have changed."""

    def after(self, machine: Machine, changed: list[Replica]) -> None:
        """As `after_step`, only after steps that may have changed a replica."""

    def on_produced(self, machine: Machine, request: ProduceRequest, response: ProduceResponse) -> None:
        """A broker answers a produce request; not called for acks=0."""

    def on_fetched(self, machine: Machine, request: FetchRequest, response: FetchResponse) -> None:
        """A broker answers a fetch request."""

    # --- disks ---

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        """A disk has finished an operation."""

    def on_written(self, machine: Machine, log: str, batch: Batch) -> None:
        """A process has appended a batch to a partition's log."""

    def on_cut(self, machine: Machine, log: str) -> None:
        """A partition's log became shorter, on this machine or on one that lost power."""

    # --- calls ---

    def on_message(self, message: Message) -> None:
        """A message is about to leave its host."""

    def on_admitted(self, message: Message) -> None:
        """A listener is about to carry out this request."""

    def on_asked(self, machine: Machine, request: Any) -> OnOutcome | None:
        """A request that a controller answers has come to a node's internal listener.

        What it returns is called with the response, or with the ApiError.
        """

    # --- clients of a secured cluster ---

    def on_node(self, machine: Machine, node: Node) -> None:
        """A process has built its node, which starts now."""

    def on_login(self, machine: Machine, mechanism: str, principal: Principal) -> None:
        """A client has proven itself by SASL; it is not told yet."""

    def on_served(self, machine: Machine, context: Context, request: Any) -> OnOutcome | None:
        """A request has come to a listener, and its handler is about to be called.

        What it returns is called with the response, or with the ApiError.
        """

    # --- the end ---

    def at_the_end(self, image: Image, machines: dict[str, Machine]) -> None:
        """Everything has healed and converged. image: the newest committed one. machines: all of them, by host."""


def overridden(invariants: Iterable[Invariant], *names: str) -> tuple[Callable[..., Any], ...]:
    """The hooks of these names that are not empty, in the invariants' order."""
    return tuple(
        getattr(one, name)
        for one in invariants
        for name in names
        if getattr(type(one), name) is not getattr(Invariant, name)
    )


def serving_brokers(machines: dict[str, Machine]) -> list[Machine]:
    return [machine for machine in machines.values() if machine.config.is_broker and machine.in_service]
