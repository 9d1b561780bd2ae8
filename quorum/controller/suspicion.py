"""A dead process is proven, not waited for (DESIGN 5): when may a broker be fenced before its session ends?

Proof of death is one of

- a refusal on every resolved address, twice, at least 50 ms apart, at an address where this node has already reached
  that incarnation; or
- an answer from another incarnation: of the same broker, or, at an address where this incarnation was reached before,
  of whoever has the port now.

Everything else (a time-out, no route, a paused process) proves nothing, and the session decides. A broker is
*suspected* when its heartbeat stream broke, when it has not opened one 300 ms after this controller became active (at
once if it was active itself before, since that is over for a reason), or when another process wants its id; the
suspicion ends with its next heartbeat, with the proof, or after one session.

So that there is an address where it was reached, every controller, active or not, probes each registered incarnation
until it has answered once. A broker that heartbeats after it was fenced by proof was fenced wrongly: the rule is
then off for it for one session.

A core: `now_ms` goes in, probes and proofs come out, `deadline_ms` says when to come back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quorumlog.ids import NodeId, Uuid
from quorumlog.rpc.transport import Address, Answered, NoProof, ProbeResult, Refused

BETWEEN_REFUSALS_MS = 50
STREAM_GRACE_MS = 300  # for brokers to open a stream to a new active controller
PROBE_AGAIN_MS = 250  # while suspected, after an answer that proves nothing
REACH_AGAIN_MS = 250  # doubled after each failure to reach a new incarnation
REACH_AGAIN_MAX_MS = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One incarnation of a broker, and where its internal listener is."""

    broker_id: NodeId
    incarnation_id: Uuid
    address: Address


@dataclass(frozen=True, slots=True)
class Probe:
    """Effect: ask who is there, and report it with `on_probed`."""

    target: Target


@dataclass(frozen=True, slots=True)
class ProvenDead:
    """Effect: fence the broker now, if this incarnation is still the registered one."""

    target: Target
    evidence: str


Effect = Probe | ProvenDead


@dataclass(slots=True)
class _Watch:
    """What is known of one target.

    probe_at_ms: when the next probe is due; None: none is wanted, or one is under way.
    suspected_until_ms: exclusive; None: not suspected.
    """

    target: Target
    reached: bool = False
    probing: bool = False
    probe_at_ms: int | None = None
    reach_delay_ms: int = REACH_AGAIN_MS
    suspected_until_ms: int | None = None
    refused_at_ms: int | None = None  # the first refusal of this suspicion
    fenced_by_proof: bool = False


@dataclass(slots=True)
class Suspicion:
    """session_timeout_ms: how long the rule is off after a wrong fencing."""

    session_timeout_ms: int
    _watches: dict[NodeId, _Watch] = field(default_factory=dict)
    _off_until_ms: dict[NodeId, int] = field(default_factory=dict)

    def on_registered(self, target: Target, now_ms: int) -> None:
        """Metadata says that this incarnation is at this address. The same again changes nothing."""
        watch = self._watches.get(target.broker_id)
        if watch is None or watch.target != target:
            self._watches[target.broker_id] = _Watch(target, probe_at_ms=now_ms)

    def on_unregistered(self, broker_id: NodeId) -> None:
        self._watches.pop(broker_id, None)

    def on_heartbeat(self, broker_id: NodeId, incarnation_id: Uuid, now_ms: int) -> None:
        """The incarnation lives, whatever was suspected."""
        watch = self._of(broker_id, incarnation_id)
        if watch is None:
            return
        if watch.fenced_by_proof:
            watch.fenced_by_proof = False
            self._off_until_ms[broker_id] = now_ms + self.session_timeout_ms
        self._clear(watch)

    def on_active(self, unfenced: list[NodeId], former: NodeId | None, now_ms: int) -> None:
        """This controller became active: who opens no stream in time is suspected. former: who was active before."""
        for broker_id in unfenced:
            self._suspect_at(broker_id, now_ms if broker_id == former else now_ms + STREAM_GRACE_MS)

    def on_inactive(self) -> None:
        """Another controller fences now. What was reached stays known."""
        for watch in self._watches.values():
            watch.fenced_by_proof = False
            self._clear(watch)

    def on_stream_closed(self, broker_id: NodeId, incarnation_id: Uuid, now_ms: int) -> None:
        if self._of(broker_id, incarnation_id) is not None:
            self._suspect_at(broker_id, now_ms)

    def on_id_wanted(self, broker_id: NodeId, now_ms: int) -> None:
        """Another process asks to be this broker while the registered one's session is valid."""
        self._suspect_at(broker_id, now_ms)

    def on_probed(self, target: Target, result: ProbeResult, now_ms: int) -> list[Effect]:
        watch = self._watches.get(target.broker_id)
        if watch is None or watch.target != target:
            return []  # another incarnation has been registered meanwhile
        watch.probing = False
        match result:
            case Answered(node_id, incarnation_id):
                return self._on_answer(watch, node_id, incarnation_id, now_ms)
            case Refused():
                return self._on_refusal(watch, now_ms)
            case NoProof():
                watch.refused_at_ms = None
                self._again(watch, now_ms)
                return []

    def on_timer(self, now_ms: int) -> list[Effect]:
        """Probes that are due, in the order of broker ids."""
        effects: list[Effect] = []
        for broker_id in sorted(self._watches):
            watch = self._watches[broker_id]
            if watch.probe_at_ms is not None and watch.probe_at_ms <= now_ms and not watch.probing:
                watch.probe_at_ms = None
                watch.probing = True
                effects.append(Probe(watch.target))
        return effects

    def deadline_ms(self) -> int | None:
        """When `on_timer` has something to do next; None: nothing is due."""
        due = [w.probe_at_ms for w in self._watches.values() if w.probe_at_ms is not None and not w.probing]
        return min(due, default=None)

    def _of(self, broker_id: NodeId, incarnation_id: Uuid) -> _Watch | None:
        watch = self._watches.get(broker_id)
        return watch if watch is not None and watch.target.incarnation_id == incarnation_id else None

    def _suspect_at(self, broker_id: NodeId, at_ms: int) -> None:
        watch = self._watches.get(broker_id)
        if watch is not None and watch.suspected_until_ms is None and not watch.fenced_by_proof:
            watch.suspected_until_ms = at_ms + self.session_timeout_ms
            watch.refused_at_ms = None
            watch.probe_at_ms = at_ms

    def _clear(self, watch: _Watch) -> None:
        watch.suspected_until_ms = None
        watch.refused_at_ms = None
        if watch.reached:
            watch.probe_at_ms = None

    def _on_answer(self, watch: _Watch, node_id: NodeId, incarnation_id: Uuid, now_ms: int) -> list[Effect]:
        if (node_id, incarnation_id) == (watch.target.broker_id, watch.target.incarnation_id):
            watch.reached = True
            watch.refused_at_ms = None
            self._again(watch, now_ms)
            return []
        if node_id == watch.target.broker_id or watch.reached:
            return self._prove(watch, f"{watch.target.address} answers as another process", now_ms)
        self._again(watch, now_ms)
        return []

    def _on_refusal(self, watch: _Watch, now_ms: int) -> list[Effect]:
        if watch.suspected_until_ms is None or not watch.reached:
            self._again(watch, now_ms)
            return []
        if watch.refused_at_ms is None:
            watch.refused_at_ms = now_ms
            watch.probe_at_ms = now_ms + BETWEEN_REFUSALS_MS
            return []
        if now_ms - watch.refused_at_ms < BETWEEN_REFUSALS_MS:
            watch.probe_at_ms = watch.refused_at_ms + BETWEEN_REFUSALS_MS
            return []
        return self._prove(watch, f"{watch.target.address} refuses", now_ms)

    def _prove(self, watch: _Watch, evidence: str, now_ms: int) -> list[Effect]:
        """Nobody is fenced who is not suspected, nor while the rule is off."""
        if watch.suspected_until_ms is None or now_ms < self._off_until_ms.get(watch.target.broker_id, now_ms):
            self._again(watch, now_ms)
            return []
        watch.fenced_by_proof = True
        self._clear(watch)
        return [ProvenDead(watch.target, evidence)]

    def _again(self, watch: _Watch, now_ms: int) -> None:
        """Go on probing while suspected; until it is reached, ever more seldom; else not at all."""
        if watch.suspected_until_ms is not None and now_ms >= watch.suspected_until_ms:
            self._clear(watch)
        if watch.suspected_until_ms is not None:
            watch.probe_at_ms = now_ms + PROBE_AGAIN_MS
        elif not watch.reached:
            watch.probe_at_ms = now_ms + watch.reach_delay_ms
            watch.reach_delay_ms = min(2 * watch.reach_delay_ms, REACH_AGAIN_MAX_MS)
