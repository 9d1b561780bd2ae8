"""The shell around `suspicion`: heartbeat streams and registrations in, probes out, proven deaths to the controller."""

from __future__ import annotations

from collections.abc import Callable

from quorum.controller.alarm import Alarm
from quorum.controller.config import ControllerConfig
from quorum.controller.suspicion import Effect, Probe, ProvenDead, Suspicion, Target
from quorum.metadata.delta import Delta
from quorum.metadata.image import Image
from quorum.metadata.registration import BrokerRegistration
from quorumlog.clock import Clock
from quorumlog.ids import NodeId
from quorumlog.messages.controller import BrokerHeartbeatRequest
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, Context, Transport

OnProvenDead = Callable[[Target, str], None]  # (who, evidence)


class DeathWatch:
    """Runs on every controller, active or not, so that each has reached each broker before it must (suspicion.py)."""

    def __init__(
        self,
        *,
        config: ControllerConfig,
        clock: Clock,
        transport: Transport,
        nursery: Nursery,
        on_proven_dead: OnProvenDead,
    ) -> None:
        self._config = config
        self._clock = clock
        self._transport = transport
        self._nursery = nursery
        self._on_proven_dead = on_proven_dead
        self._suspicion = Suspicion(config.broker_session_timeout_ms)
        self._alarm = Alarm(clock, self._on_alarm)
        self._streams: dict[NodeId, Context] = {}  # the newest stream that each broker heartbeats on
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True
        self._streams.clear()
        self._alarm.set(None)

    def on_image(self, delta: Delta, image: Image) -> None:
        now_ms = self._clock.now_ms()
        for broker_id in delta.changed_brokers:
            broker = image.brokers.get(broker_id)
            target = None if broker is None else self._target(broker)
            if target is None:
                self._suspicion.on_unregistered(broker_id)
            else:
                self._suspicion.on_registered(target, now_ms)
        self._reschedule()

    def on_active(self, unfenced: list[NodeId], former: NodeId | None) -> None:
        """former: who was active before this node, as far as it knows.

        Streams that are open already were opened to somebody who answered NOT_CONTROLLER: they do not count.
        """
        self._streams.clear()
        self._suspicion.on_active(unfenced, former, self._clock.now_ms())
        self._reschedule()

    def on_inactive(self) -> None:
        self._streams.clear()
        self._suspicion.on_inactive()
        self._reschedule()

    def on_heartbeat(self, context: Context, request: BrokerHeartbeatRequest) -> None:
        """A heartbeat of the registered incarnation, which the active controller accepted."""
        self._suspicion.on_heartbeat(request.broker_id, request.incarnation_id, self._clock.now_ms())
        if self._streams.get(request.broker_id) is not context:
            self._streams[request.broker_id] = context
            context.on_closed(lambda: self._on_stream_closed(context, request))
        self._reschedule()

    def on_id_wanted(self, broker_id: NodeId) -> None:
        """Another process asks to be this broker."""
        self._suspicion.on_id_wanted(broker_id, self._clock.now_ms())
        self._reschedule()

    def _on_stream_closed(self, context: Context, request: BrokerHeartbeatRequest) -> None:
        """Only the newest stream of a broker says something of its life."""
        if self._stopped or self._streams.get(request.broker_id) is not context:
            return
        del self._streams[request.broker_id]
        self._suspicion.on_stream_closed(request.broker_id, request.incarnation_id, self._clock.now_ms())
        self._reschedule()

    def _target(self, broker: BrokerRegistration) -> Target | None:
        endpoint = broker.endpoint(self._config.internal_listener)
        if endpoint is None:
            return None
        return Target(
            broker_id=broker.broker_id,
            incarnation_id=broker.incarnation_id,
            address=Address(endpoint.host, endpoint.port),
        )

    async def _probe(self, target: Target) -> None:
        result = await self._transport.probe(target.address, self._config.probe_timeout_ms)
        if not self._stopped:
            self._perform(self._suspicion.on_probed(target, result, self._clock.now_ms()))

    def _on_alarm(self, late_ms: int) -> None:
        self._perform(self._suspicion.on_timer(self._clock.now_ms()))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Probe(target):
                    self._nursery.start(self._probe(target), f"probe broker {target.broker_id}")
                case ProvenDead(target, evidence):
                    self._on_proven_dead(target, evidence)
        self._reschedule()

    def _reschedule(self) -> None:
        if not self._stopped:
            self._alarm.set(self._suspicion.deadline_ms())
