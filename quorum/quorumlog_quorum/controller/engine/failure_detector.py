"""When may a broker be fenced before its session ends? A dead process is proven, not waited for.

Proof of death is one of

- a refusal on every resolved address, twice, at least 50 ms apart, at an address where this node has already reached
  that incarnation; or
- an answer from another incarnation: of the same broker, or, at an address where this incarnation was reached before,
  of any process that has the port now.

Everything else (a time-out, no route, a paused process) proves nothing, and the session decides. A broker is
*suspected* when its heartbeat stream broke, when another process wants its id, or when it has not opened a stream
300 ms after this controller became active. (At once if that broker's node was the active controller before: its
leadership ended for a reason.) The suspicion ends with the broker's next heartbeat, with the proof, or after a session.

The proof needs an address where the incarnation was reached. So every controller, active or not, probes each
registered incarnation until it has answered once. A broker that heartbeats after it was fenced by proof was fenced
wrongly: the rule is then off for it for one session.

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
    """Effect: ask the process there for its identity, and report it with `on_probed`."""

    target: Target


@dataclass(frozen=True, slots=True)
class ProvenDead:
    """Effect: fence the broker now, if this incarnation is still the registered one."""

    target: Target
    evidence: str


DetectorEffect = Probe | ProvenDead


@dataclass(slots=True)
class _Monitored:
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
class FailureDetector:
    """session_timeout_ms: how long the rule is off after a wrong fencing."""

    session_timeout_ms: int
    _monitored: dict[NodeId, _Monitored] = field(default_factory=dict)
    _off_until_ms: dict[NodeId, int] = field(default_factory=dict)

    def on_registered(self, target: Target, now_ms: int) -> None:
        """Metadata says that this incarnation is at this address. The same again changes nothing."""
        one = self._monitored.get(target.broker_id)
        if one is None or one.target != target:
            self._monitored[target.broker_id] = _Monitored(target, probe_at_ms=now_ms)

    def on_unregistered(self, broker_id: NodeId) -> None:
        self._monitored.pop(broker_id, None)

    def on_heartbeat(self, broker_id: NodeId, incarnation_id: Uuid, now_ms: int) -> None:
        """The incarnation is alive; a suspicion ends."""
        one = self._of(broker_id, incarnation_id)
        if one is None:
            return
        if one.fenced_by_proof:
            one.fenced_by_proof = False
            self._off_until_ms[broker_id] = now_ms + self.session_timeout_ms
        self._clear(one)

    def on_active(self, unfenced: list[NodeId], former: NodeId | None, now_ms: int) -> None:
        """This controller became active: a broker that opens no stream in time is suspected.

        former: the node that was active before.
        """
        for broker_id in unfenced:
            self._suspect_at(broker_id, now_ms if broker_id == former else now_ms + STREAM_GRACE_MS)

    def on_inactive(self) -> None:
        """Another controller fences brokers now. The addresses where incarnations were reached stay known."""
        for one in self._monitored.values():
            one.fenced_by_proof = False
            self._clear(one)

    def on_stream_closed(self, broker_id: NodeId, incarnation_id: Uuid, now_ms: int) -> None:
        if self._of(broker_id, incarnation_id) is not None:
            self._suspect_at(broker_id, now_ms)

    def on_id_wanted(self, broker_id: NodeId, now_ms: int) -> None:
        """Another process asks to be this broker while the registered one's session is valid."""
        self._suspect_at(broker_id, now_ms)

    def on_probed(self, target: Target, result: ProbeResult, now_ms: int) -> list[DetectorEffect]:
        one = self._monitored.get(target.broker_id)
        if one is None or one.target != target:
            return []  # another incarnation has been registered meanwhile
        one.probing = False
        match result:
            case Answered(node_id, incarnation_id):
                return self._on_answer(one, node_id, incarnation_id, now_ms)
            case Refused():
                return self._on_refusal(one, now_ms)
            case NoProof():
                one.refused_at_ms = None
                self._again(one, now_ms)
                return []

    def on_timer(self, now_ms: int) -> list[DetectorEffect]:
        """Probes that are due, in the order of broker ids."""
        effects: list[DetectorEffect] = []
        for broker_id in sorted(self._monitored):
            one = self._monitored[broker_id]
            if one.probe_at_ms is not None and one.probe_at_ms <= now_ms and not one.probing:
                one.probe_at_ms = None
                one.probing = True
                effects.append(Probe(one.target))
        return effects

    def deadline_ms(self) -> int | None:
        """When `on_timer` has something to do next; None: nothing is due."""
        due = [w.probe_at_ms for w in self._monitored.values() if w.probe_at_ms is not None and not w.probing]
        return min(due, default=None)

    def _of(self, broker_id: NodeId, incarnation_id: Uuid) -> _Monitored | None:
        one = self._monitored.get(broker_id)
        return one if one is not None and one.target.incarnation_id == incarnation_id else None

    def _suspect_at(self, broker_id: NodeId, at_ms: int) -> None:
        one = self._monitored.get(broker_id)
        if one is not None and one.suspected_until_ms is None and not one.fenced_by_proof:
            one.suspected_until_ms = at_ms + self.session_timeout_ms
            one.refused_at_ms = None
            one.probe_at_ms = at_ms

    def _clear(self, one: _Monitored) -> None:
        one.suspected_until_ms = None
        one.refused_at_ms = None
        if one.reached:
            one.probe_at_ms = None

    def _on_answer(self, one: _Monitored, node_id: NodeId, incarnation_id: Uuid, now_ms: int) -> list[DetectorEffect]:
        if (node_id, incarnation_id) == (one.target.broker_id, one.target.incarnation_id):
            one.reached = True
            one.refused_at_ms = None
            self._again(one, now_ms)
            return []
        if node_id == one.target.broker_id or one.reached:
            return self._prove(one, f"{one.target.address} answers as another process", now_ms)
        self._again(one, now_ms)
        return []

    def _on_refusal(self, one: _Monitored, now_ms: int) -> list[DetectorEffect]:
        if one.suspected_until_ms is None or not one.reached:
            self._again(one, now_ms)
            return []
        if one.refused_at_ms is None:
            one.refused_at_ms = now_ms
            one.probe_at_ms = now_ms + BETWEEN_REFUSALS_MS
            return []
        if now_ms - one.refused_at_ms < BETWEEN_REFUSALS_MS:
            one.probe_at_ms = one.refused_at_ms + BETWEEN_REFUSALS_MS
            return []
        return self._prove(one, f"{one.target.address} refuses", now_ms)

    def _prove(self, one: _Monitored, evidence: str, now_ms: int) -> list[DetectorEffect]:
        """Only a suspected broker is fenced, and not while the rule is off for it."""
        if one.suspected_until_ms is None or now_ms < self._off_until_ms.get(one.target.broker_id, now_ms):
            self._again(one, now_ms)
            return []
        one.fenced_by_proof = True
        self._clear(one)
        return [ProvenDead(one.target, evidence)]

    def _again(self, one: _Monitored, now_ms: int) -> None:
        """Schedule the next probe: soon if the target is suspected, with backoff if it was never reached, else none."""
        if one.suspected_until_ms is not None and now_ms >= one.suspected_until_ms:
            self._clear(one)
        if one.suspected_until_ms is not None:
            one.probe_at_ms = now_ms + PROBE_AGAIN_MS
        elif not one.reached:
            one.probe_at_ms = now_ms + one.reach_delay_ms
            one.reach_delay_ms = min(2 * one.reach_delay_ms, REACH_AGAIN_MAX_MS)
