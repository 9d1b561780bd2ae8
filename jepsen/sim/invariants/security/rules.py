"""Every decision about a right, at every node, when it is made.

The truth is an oracle that looks at all rules of the image which the node has put in force (oracle.py).

- verdict-is-the-oracles: what the node decides, of all operations at once, is what the oracle says.
- cached-as-decided: the answer is the one that the node would give without its cache.
- index-is-fresh: the index of the rules is the one that a node would make of that image.
- same-rules-same-verdict: two nodes with the same rules decide alike.
- super-users-get-in: a super user may do everything, and is told no refusal (served.py).
- judged-for-its-client: a controller decides about nobody but clients of requests that brokers have passed on to it,
  and about each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.security.oracle import READ, all_of, may
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.watched_transport import OnOutcome
from jepsen.sim.users import ROOT
from quorumlog.messages.controller import EnvelopeRequest
from quorumlog.messages.metadata_records import AccessControlEntryRecord as Rule
from quorumlog.rpc.transport import Context
from quorumlog.security.acl.authorizer import RuleAuthorizer
from quorumlog.security.acl.index import RuleIndex
from quorumlog.security.authorizer import EVERYTHING, Operation, ResourceType
from quorumlog.security.principal import USER, Principal
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_server.process.node import Node

VERDICTS, REFUSALS, CHANGES_SEEN, SHARED = (
    "verdicts checked", "of them refusals", "changes of rules seen", "verdicts of two nodes compared",
)  # fmt: skip
PASSED_ON = "requests judged for their clients"
SUPER = Principal(USER, ROOT)
_MAX_REMEMBERED = 20_000  # verdicts that are compared between nodes


@dataclass(slots=True)
class InForce:
    """What one process decides by. image: the newest that its rules are of. under_way: clients of requests that brokers
    have passed on to it, with how many there are; judged: of them, those about whom it has decided."""

    authorizer: RuleAuthorizer
    image: Image = EMPTY
    rules: frozenset[Rule] = frozenset()
    is_ready: bool = False
    under_way: dict[tuple[Principal, str], int] = field(default_factory=dict)
    decisions: dict[tuple[Principal, str], int] = field(default_factory=dict)


class RuleInvariants(Invariant):
    """in_force: by host, of the process that runs, or ran last."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.in_force: dict[str, InForce] = {}
        self._told: dict[tuple[object, ...], tuple[int, str]] = {}
        self._oracle: dict[tuple[object, ...], int] = {}
        self.counts = dict.fromkeys((VERDICTS, REFUSALS, CHANGES_SEEN, SHARED, PASSED_ON), 0)

    @property
    def exercised(self) -> Mapping[str, int]:
        return self.counts

    def may_read(self, machine: Machine, who: Principal, host: str, topic: str) -> bool:
        """As the oracle says, by the rules that this process has put in force."""
        if who == SUPER:
            return True
        return may(self.in_force[machine.host].rules, who, host, READ, ResourceType.TOPIC, topic)

    def on_node(self, machine: Machine, node: Node) -> None:
        authorizer = node.authorizer
        assert isinstance(authorizer, RuleAuthorizer), "a secured cluster has rules"
        here = self.in_force[machine.host] = InForce(authorizer)
        decide: Callable[..., int] = authorizer.operations

        def operations(principal: Principal, host: str, kind: ResourceType, name: str) -> int:
            told = decide(principal, host, kind, name)
            self._on_decision(machine, here, principal, host, kind, name, told)
            return told

        setattr(authorizer, "operations", operations)  # noqa: B010 - all questions but `authorize_any` go by it
        node.loader.subscribe(lambda _delta, image: self._on_rules(machine, here, image))  # behind the authorizer's own

    def on_served(self, machine: Machine, context: Context, request: Any) -> OnOutcome | None:
        if not isinstance(request, EnvelopeRequest):
            return None
        here = self.in_force[machine.host]
        client = Principal(request.principal_type, request.principal_name), request.client_host
        before = here.decisions.get(client, 0)
        here.under_way[client] = here.under_way.get(client, 0) + 1

        def on_outcome(_outcome: object) -> None:
            here.under_way[client] -= 1
            self.counts[PASSED_ON] += 1
            if here.decisions.get(client, 0) == before:
                what = f"{machine.host} has carried out {request.method} for {client[0]} without a decision about it"
                self._findings.broken("judged-for-its-client", what)

        return on_outcome

    # --- within

    def _on_rules(self, machine: Machine, here: InForce, image: Image) -> None:
        if here.is_ready and image.access is here.image.access:
            here.image = image
            return
        here.image, here.is_ready = image, True
        rules = frozenset(one for one in image.access.values() if isinstance(one, Rule))
        if rules != here.rules:
            self.counts[CHANGES_SEEN] += 1
        here.rules = rules
        fresh = RuleIndex()
        for rule in sorted(rules, key=lambda one: one.id):
            fresh.add(rule)
        if _shape(fresh) != _shape(here.authorizer.index):
            what = f"{machine.host} at {image.offset}: the index is not the one of the image's {len(rules)} rules"
            self._findings.broken("index-is-fresh", what)

    def _on_decision(
        self, machine: Machine, here: InForce, who: Principal, host: str, kind: ResourceType, name: str, told: int
    ) -> None:
        self.counts[VERDICTS] += 1
        here.decisions[who, host] = here.decisions.get((who, host), 0) + 1
        what = f"{machine.host} about {who} on {host!r} and {ResourceType(kind).name} {name!r}"
        if not machine.config.is_broker and not here.under_way.get((who, host)):
            self._findings.broken("judged-for-its-client", f"{what}: no broker has passed a request of it on")
        if who == SUPER:
            if told != EVERYTHING:
                self._findings.broken("super-users-get-in", f"{what}: {_shown(told)}")
            return
        uncached = here.authorizer._decide(who, host, kind, name)
        if told != uncached:
            self._findings.broken(
                "cached-as-decided", f"{what}: {_shown(told)}, and {_shown(uncached)} without a cache"
            )
        key = (here.rules, who, host, int(kind), name)
        if key not in self._oracle:
            self._forget()
            self._oracle[key] = all_of(here.rules, who, host, kind, name) if here.is_ready else 0
        wanted = self._oracle[key] if here.is_ready else 0
        if told != wanted:
            text = f"{what}: {_shown(told)}, and {_shown(wanted)} by the {len(here.rules)} rules at {here.image.offset}"
            self._findings.broken("verdict-is-the-oracles", text)
        self.counts[REFUSALS] += told != EVERYTHING
        if here.is_ready:
            self._compare(machine, key, told, what)

    def _compare(self, machine: Machine, key: tuple[object, ...], told: int, what: str) -> None:
        other, host = self._told.setdefault(key, (told, machine.host))
        self.counts[SHARED] += host != machine.host
        if other != told:
            self._findings.broken("same-rules-same-verdict", f"{what}: {_shown(told)}, and {_shown(other)} at {host}")

    def _forget(self) -> None:
        if len(self._oracle) >= _MAX_REMEMBERED:
            self._oracle.clear()
            self._told.clear()


def _shown(mask: int) -> str:
    names = [operation.name for operation in Operation if mask >> operation & 1]
    return ", ".join(names) or "nothing"


def _shape(index: RuleIndex) -> object:
    """All that it answers by."""
    found: dict[object, object] = {}
    for kind, patterns in index._types.items():
        found[kind, "lengths"] = patterns.lengths
        for pattern_type, named in ((3, patterns.literal), (4, patterns.prefixed)):
            for name, principals in named.items():
                for principal, hosts in principals.items():
                    for host, cell in hosts.items():
                        found[kind, pattern_type, name, principal, host] = cell.allow, cell.deny, frozenset(cell.rules)
    return {key: value for key, value in found.items() if value != ()}
