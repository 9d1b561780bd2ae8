"""Who has logged in at the lane, and for how long that holds.

- login-of-a-stored-credential: who logs in has a credential in the metadata that the broker has put in force, at that
  moment.
- known-by-its-login: a connection is served as whom its login has proven, and no later login changes that.
- expired-session-is-served: nothing is carried out for a client whose login ended before the request came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.security.rules import RuleInvariants
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.watched_transport import OnOutcome
from jepsen.sim.settings import SESSION_MS
from quorumlog.rpc.transport import Context
from quorumlog.security.principal import Principal
from quorumlog.security.sasl.scram_mechanism import BY_TITLE
from quorumlog.security.sasl.session import SaslSession
from quorumlog.wire.serving.secured import SecuredConnection
from quorumlog_quorum.metadata.credentials import find_credential

LOGINS, SESSIONS, RENEWED = "logins", "requests in sessions", "of them after a renewal"
NEW_PASSWORDS = "logins by a password that was changed"


class LoginInvariants(Invariant):
    def __init__(self, rules: RuleInvariants, findings: Findings) -> None:
        self._rules, self._findings = rules, findings
        self._proven: dict[int, tuple[Principal, int]] = {}  # by the identity of what a login gave; with when, in ms
        self._sessions: dict[int, tuple[Context, SaslSession]] = {}  # by the identity of the context, which is kept
        self._keys: dict[tuple[str, str], bytes] = {}
        self.counts = dict.fromkeys((LOGINS, SESSIONS, RENEWED, NEW_PASSWORDS), 0)

    @property
    def exercised(self) -> Mapping[str, int]:
        return self.counts

    def on_login(self, machine: Machine, mechanism: str, principal: Principal) -> None:
        self.counts[LOGINS] += 1
        self._proven[id(principal)] = principal, machine.clock.now_ms()  # kept, so that no other one has its identity
        image = self._rules.in_force[machine.host].image
        credential = find_credential(image.access, BY_TITLE[mechanism], principal.name)
        if credential is None:
            what = f"{machine.host} lets {principal} in, who has no credential at {image.offset}"
            self._findings.broken("login-of-a-stored-credential", what)
            return
        before = self._keys.setdefault((mechanism, principal.name), credential.stored_key)
        self.counts[NEW_PASSWORDS] += before != credential.stored_key

    def on_served(self, machine: Machine, context: Context, request: Any) -> OnOutcome | None:
        if context.listener.internal or not context.listener.lane:
            return None
        session = self._session(machine, context)
        what = f"{machine.host} carries out {type(request).__name__} of {context.principal}"
        proven = self._proven.get(id(session.principal))
        if proven is None or proven[0] != context.principal:
            self._findings.broken("known-by-its-login", f"{what}; its login was of {proven and proven[0]}")
            return None
        age_ms = machine.clock.now_ms() - proven[1]
        self.counts[SESSIONS] += 1
        self.counts[RENEWED] += session.principal is not context.principal
        if age_ms > SESSION_MS:
            self._findings.broken("expired-session-is-served", f"{what}, {age_ms} ms after its login")
        return None

    def _session(self, machine: Machine, context: Context) -> SaslSession:
        """Of the connection, looked for at its first request: later ones may be begun when it has lost its socket."""
        known = self._sessions.get(id(context))
        if known is None:
            known = self._sessions[id(context)] = context, _session_of(machine, context)
        return known[1]


def _session_of(machine: Machine, context: Context) -> SaslSession:
    assert machine.loop is not None and machine.loop.sockets is not None
    for protocol in machine.loop.sockets.protocols:
        if isinstance(protocol, SecuredConnection) and protocol._context is context:
            assert protocol._session is not None, "clients of the lane log in"
            return protocol._session
    raise AssertionError("a request without a connection")
