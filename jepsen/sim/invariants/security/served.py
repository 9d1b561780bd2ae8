"""What is served to whom: each request at each listener, and its answer.

- denied-record-leaves: once a broker has put a rule in force, no record leaves it that the rule denies: not from a
  fetch that waited, nor in a session, nor in a stream.
- served-before-login: a listener at which clients log in carries out nothing of one that has not.
- client-is-a-node: a client is never of type `Node`; a node is the one that has proven itself.
- super-users-get-in: no answer tells a super user that it is not authorized.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.security.rules import SUPER, RuleInvariants
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.watched_transport import OnOutcome
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.fetch import FetchChunkRequest, FetchRequest, FetchTopicResponse
from quorumlog.rpc.transport import Context
from quorumlog.security.principal import ANONYMOUS, USER, node_principal

READ_CHECKED, CHANGED_MEANWHILE, REFUSED, OF_ROOT = (
    "fetched topics checked", "rules changed in a fetch", "requests refused", "answers to a super user",
)  # fmt: skip
IN_SESSIONS, IN_STREAMS = "of them in sessions", "of them in streams"
DENIALS = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


class ServedInvariants(Invariant):
    def __init__(self, rules: RuleInvariants, findings: Findings) -> None:
        self._rules, self._findings = rules, findings
        names = (READ_CHECKED, IN_SESSIONS, IN_STREAMS, CHANGED_MEANWHILE, REFUSED, OF_ROOT)
        self.counts = dict.fromkeys(names, 0)

    @property
    def exercised(self) -> Mapping[str, int]:
        return self.counts

    def on_served(self, machine: Machine, context: Context, request: Any) -> OnOutcome | None:
        what = f"{machine.host} carries out {type(request).__name__} of {context.principal}"
        if context.peer is not None:
            if context.principal != node_principal(context.peer.node_id):
                self._findings.broken("client-is-a-node", f"{what}, who is node {context.peer.node_id}")
            return None
        if context.principal.type != USER:
            self._findings.broken("client-is-a-node", what)
        if context.listener.internal:
            return None
        if context.principal == ANONYMOUS:
            self._findings.broken("served-before-login", what)
        rules = self._rules.in_force[machine.host].rules

        def on_outcome(outcome: Any) -> None:
            denied = DENIALS.intersection(_codes(outcome))
            self.counts[REFUSED] += bool(denied)
            if context.principal == SUPER:
                self.counts[OF_ROOT] += 1
                if denied:
                    self._findings.broken("super-users-get-in", f"{what}: {min(denied).name}")
            elif isinstance(request, FetchRequest | FetchChunkRequest) and not isinstance(outcome, ApiError):
                self.counts[CHANGED_MEANWHILE] += rules != self._rules.in_force[machine.host].rules
                self._on_fetched(machine, context, request, outcome)

        return on_outcome

    def _on_fetched(self, machine: Machine, context: Context, request: Any, response: Any) -> None:
        is_stream = isinstance(request, FetchChunkRequest)
        for topic in _topics_with_records(response, is_stream):
            image = self._rules.in_force[machine.host].image
            found = image.topics.get(topic.topic_id) if topic.topic_id else None
            name = topic.name if found is None else found.name
            self.counts[READ_CHECKED] += 1
            self.counts[IN_STREAMS] += is_stream
            self.counts[IN_SESSIONS] += not is_stream and request.session_epoch > 0
            if not self._rules.may_read(machine, context.principal, context.client_host, name):
                what = f"{machine.host} sends {context.principal} on {context.client_host!r} records of {name!r}"
                self._findings.broken("denied-record-leaves", f"{what}, which the rules at {image.offset} deny")


def _topics_with_records(response: Any, is_stream: bool) -> Iterator[FetchTopicResponse]:
    fetch = response.fetch if is_stream else response
    if fetch is None:
        return
    for topic in fetch.topics:
        if (is_stream and response.records) or any(partition.records for partition in topic.partitions):
            yield topic


def _codes(outcome: Any) -> Iterator[int]:
    """Of the answer, and of all in it."""
    if isinstance(outcome, ApiError):
        yield outcome.code
    elif is_dataclass(outcome):
        for one in fields(outcome):
            value = getattr(outcome, one.name)
            if one.name == "error_code":
                yield value
            elif isinstance(value, tuple):
                for part in value:
                    yield from _codes(part)
            elif is_dataclass(value):
                yield from _codes(value)
