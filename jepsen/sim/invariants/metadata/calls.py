"""What must hold for the calls between nodes, whatever the network does with them.

admitted-once: no listener carries out two calls that carry the same proof. A network may deliver a request twice.
secret-is-not-sent: no message holds the cluster's secret, on either wire.
"""

from __future__ import annotations

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.network.message import Message
from jepsen.sim.settings import SECRET

_SECRET = SECRET.encode()


class CallInvariants(Invariant):
    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._admitted: dict[bytes, str] = {}  # by proof: the call

    def on_message(self, message: Message) -> None:
        if _SECRET in message.data or (message.proof is not None and _SECRET in message.proof):
            self._findings.broken("secret-is-not-sent", f"{message.source} to {message.destination}: {message.name}")

    def on_admitted(self, message: Message) -> None:
        if message.proof is None:
            return  # to a client listener
        what = f"{message.name} of {message.source} to {message.destination}"
        before = self._admitted.setdefault(message.proof, "")
        if before:
            self._findings.broken("admitted-once", f"{what} was carried out before as {before}")
        self._admitted[message.proof] = what
