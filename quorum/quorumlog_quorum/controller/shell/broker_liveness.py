"""The shell around `failure_detector`: heartbeat streams and registrations in, probes and proven deaths out."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.alarm import Alarm
from quorumlog.clock import Clock
from quorumlog.ids import NodeId
from quorumlog.messages.controller import BrokerHeartbeatRequest
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, Context, Transport
from quorumlog.settings.controller import ControllerConfig
from quorumlog_quorum.controller.engine.failure_detector import (
    DetectorEffect,
    FailureDetector,
    Probe,
    ProvenDead,
    Target,
)
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.registration import BrokerRegistration

OnProvenDead = Callable[[Target, str], None]  # (which process, evidence)


class BrokerLiveness:
    """Runs on every controller, active or not: each must have reached a broker before it can prove its death."""

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
        self._detector = FailureDetector(config.broker_session_timeout_ms)
        self._alarm = Alarm(clock, self._detector.deadline_ms, self._on_alarm)
        self._streams: dict[NodeId, Context] = {}  # the newest stream that each broker heartbeats on
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True
        self._streams.clear()
        self._alarm.cancel()

    def on_image(self, delta: Delta, image: Image) -> None:
        now_ms = self._clock.now_ms()
        for broker_id in delta.changed_brokers:
            broker = image.brokers.get(broker_id)
            target = None if broker is None else self._target(broker)
            if target is None:
                self._detector.on_unregistered(broker_id)
            else:
                self._detector.on_registered(target, now_ms)
        self._arm()

    def on_active(self, unfenced: list[NodeId], former: NodeId | None) -> None:
        """former: the node that was active before this one, as far as it knows.

        Streams that are open already do not count: they were opened before, and answered NOT_CONTROLLER.
        """
        self._streams.clear()
        self._detector.on_active(unfenced, former, self._clock.now_ms())
        self._arm()

    def on_inactive(self) -> None:
        self._streams.clear()
        self._detector.on_inactive()
        self._arm()

    def on_heartbeat(self, context: Context, request: BrokerHeartbeatRequest) -> None:
        """A heartbeat of the registered incarnation, which the active controller accepted."""
        self._detector.on_heartbeat(request.broker_id, request.incarnation_id, self._clock.now_ms())
        if self._streams.get(request.broker_id) is not context:
            self._streams[request.broker_id] = context
            context.on_closed(lambda: self._on_stream_closed(context, request))
        # A heartbeat only ends suspicions, so no deadline comes nearer; looking for it is a step for each broker.

    def on_id_wanted(self, broker_id: NodeId) -> None:
        """Another process asks to be this broker."""
        self._detector.on_id_wanted(broker_id, self._clock.now_ms())
        self._arm()

    def _on_stream_closed(self, context: Context, request: BrokerHeartbeatRequest) -> None:
        """Only the newest stream of a broker counts."""
        if self._stopped or self._streams.get(request.broker_id) is not context:
            return
        del self._streams[request.broker_id]
        self._detector.on_stream_closed(request.broker_id, request.incarnation_id, self._clock.now_ms())
        self._arm()

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
            self._perform(self._detector.on_probed(target, result, self._clock.now_ms()))

    def _on_alarm(self, now_ms: int, _late_ms: int) -> None:
        self._perform(self._detector.on_timer(now_ms))

    def _perform(self, effects: list[DetectorEffect]) -> None:
        for effect in effects:
            match effect:
                case Probe(target):
                    self._nursery.start(self._probe(target), f"probe broker {target.broker_id}")
                case ProvenDead(target, evidence):
                    self._on_proven_dead(target, evidence)
        self._arm()

    def _arm(self) -> None:
        if not self._stopped:
            self._alarm.arm()
