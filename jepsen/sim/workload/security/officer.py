"""An operator who changes access rules, users and quotas at random, by the production client.

It remembers what was acknowledged. In the end the metadata say so, whatever has died meanwhile:
acknowledged-rule-lost, acknowledged-user-lost, acknowledged-quota-lost. A change whose outcome is not known may be
carried out at any time later, so nothing is said any more of what it was about.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping

from jepsen.checkers.findings import Finding
from jepsen.sim.cluster import SimCluster
from jepsen.sim.users import ROOT, TENANTS
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.administration.acls import exactly
from quorumlog.client.administration.quotas import QuotaChange
from quorumlog.client.administration.users import DeleteCredential, SetPassword
from quorumlog.client.errors import ConfigError, QuorumlogError
from quorumlog.errors import ErrorCode
from quorumlog.messages.metadata_records import AccessControlEntryRecord
from quorumlog.rpc.transport import RpcError
from quorumlog.security.acl.content import AclContent, content_of_rule
from quorumlog.security.authorizer import Operation, ResourceType
from quorumlog.security.quota.entity import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, Entity, entity_of
from quorumlog.security.sasl.scram_mechanism import ScramMechanism
from quorumlog_quorum.metadata.credentials import find_credential
from quorumlog_quorum.metadata.quotas import quota_value

GIVEN, TAKEN, PASSWORDS, USERS_GONE, QUOTAS_SET, IN_DOUBT = (
    "rules made", "rules removed", "passwords changed", "users deleted", "quotas set", "changes of rights in doubt",
)  # fmt: skip
SHARED_TOPICS, GROUP, IDS = ("shared-a", "shared-b"), "shared-group", "shared-id"
_MECHANISM = ScramMechanism.SHA_256
_LITERAL, _PREFIXED, _DENY, _ALLOW = 3, 4, 2, 3
_GAP_S = (0.05, 0.5)
_MOST_RULES = 24
_UNLIMITED = 1e12
_RATES = (100.0, 400.0, 2_000.0)  # bytes a second; a record has some hundred bytes
_TOPIC, _GROUP, _ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
_PATTERNS = (
    *((_TOPIC, name, _LITERAL) for name in (*SHARED_TOPICS, "*")),
    *((_TOPIC, name, _PREFIXED) for name in ("shared-", "shared-a", "sh")),
    *((_GROUP, GROUP, _LITERAL), (_GROUP, "shared", _PREFIXED), (_GROUP, "*", _LITERAL)),
    *((_ID, IDS, _PREFIXED), (_ID, "*", _LITERAL)),
    (ResourceType.CLUSTER, "kafka-cluster", _LITERAL),
)
_OPERATIONS: Mapping[ResourceType, tuple[Operation, ...]] = {
    _TOPIC: (Operation.ALL, Operation.READ, Operation.READ, Operation.WRITE, Operation.WRITE, Operation.DESCRIBE,
             Operation.ALTER_CONFIGS),
    _GROUP: (Operation.ALL, Operation.READ, Operation.DESCRIBE),
    _ID: (Operation.ALL, Operation.WRITE),
    ResourceType.CLUSTER: (Operation.ALTER, Operation.ALTER_CONFIGS, Operation.IDEMPOTENT_WRITE, Operation.DESCRIBE),
}  # fmt: skip


class Officer:
    """counts: acknowledged changes. Ends soon after `stopping`."""

    def __init__(self, cluster: SimCluster, rng: random.Random, admin: Callable[[], AsyncAdmin]) -> None:
        self._cluster, self._rng, self._admin = cluster, rng, admin
        self.stopping = False
        self.counts = dict.fromkeys((GIVEN, TAKEN, PASSWORDS, USERS_GONE, QUOTAS_SET, IN_DOUBT), 0)
        self._rules: dict[AclContent, bool | None] = {}  # whether it is there; None: not known
        self._users: dict[str, bool | None] = dict.fromkeys(TENANTS, True)
        self._quotas: dict[tuple[Entity, str], float | None] = {}  # acknowledged; None: there is none
        self._doubtful: set[tuple[Entity, str]] = set()
        self.is_ready = False

    async def run(self) -> None:
        """Topics and first rights, then one change after the other."""
        while not self.is_ready and not self.stopping:
            self.is_ready = await self._ask(self._prepare)
            await asyncio.sleep(0.2)
        while not self.stopping:
            await asyncio.sleep(self._rng.uniform(*_GAP_S))
            change = self._rng.choices(
                (self._give, self._take, self._take_all, self._password, self._delete_user, self._quota),
                (8, 4, 1, 1, 1, 3),
            )[0]
            await self._ask(change)

    # --- changes

    async def _prepare(self, admin: AsyncAdmin) -> None:
        unlimited = {PRODUCER_BYTE_RATE: _UNLIMITED, CONSUMER_BYTE_RATE: _UNLIMITED}
        await admin.alter_client_quotas([QuotaChange({"user": ROOT}, unlimited)])
        for name in SHARED_TOPICS:
            await admin.create_topic(name, 2, 3, exist_ok=True)
        first = [
            AclContent(_TOPIC, "shared-", _PREFIXED, "User:*", "*", Operation.ALL, _ALLOW),
            AclContent(_GROUP, GROUP, _PREFIXED, "User:*", "*", Operation.ALL, _ALLOW),
            AclContent(_ID, IDS, _PREFIXED, "User:*", "*", Operation.ALL, _ALLOW),
        ]
        await self._create(admin, first)

    async def _give(self, admin: AsyncAdmin) -> None:
        if sum(there is True for there in self._rules.values()) >= _MOST_RULES:
            await self._take(admin)
            return
        rng = self._rng
        kind, name, pattern = rng.choice(_PATTERNS)
        principal = f"User:{rng.choice((*TENANTS, *TENANTS, '*'))}"
        host = rng.choice(("*", "*", "*", "tenants", "10.0.0.1"))
        permission = _DENY if rng.random() < 0.3 else _ALLOW
        operation = rng.choice(_OPERATIONS[kind])
        await self._create(admin, [AclContent(kind, name, pattern, principal, host, operation, permission)])

    async def _create(self, admin: AsyncAdmin, rules: list[AclContent]) -> None:
        doubt = {rule: self._rules.get(rule, False) for rule in rules}
        self._rules |= dict.fromkeys(rules, None)
        for rule, result in zip(rules, await admin.create_acls(rules), strict=True):
            assert result.error_code == ErrorCode.NONE, result
            self._rules[rule] = None if doubt[rule] is None else True
            self.counts[GIVEN] += 1

    async def _take(self, admin: AsyncAdmin) -> None:
        there = [rule for rule, is_there in self._rules.items() if is_there]
        if there:
            await self._delete(admin, [self._rng.choice(there)])

    async def _take_all(self, admin: AsyncAdmin) -> None:
        """All rules of one user, at once."""
        who = f"User:{self._rng.choice(TENANTS)}"
        await self._delete(admin, [rule for rule, there in self._rules.items() if there and rule.principal == who])

    async def _delete(self, admin: AsyncAdmin, rules: list[AclContent]) -> None:
        if rules:
            self._rules |= dict.fromkeys(rules, None)
            await admin.delete_acls([exactly(rule) for rule in rules])
            self._rules |= dict.fromkeys(rules, False)
            self.counts[TAKEN] += len(rules)

    async def _password(self, admin: AsyncAdmin) -> None:
        name, users = self._rng.choice(TENANTS), self._cluster.users
        assert users is not None
        password = f"{name}-{self._rng.randrange(10**6)}"
        before, self._users[name] = self._users[name], None
        users.passwords[name] = password
        (outcome,) = (await admin.alter_user_scram_credentials([SetPassword(name, password, _MECHANISM)])).values()
        assert outcome.error is ErrorCode.NONE, outcome
        self._users[name] = None if before is None else True
        self.counts[PASSWORDS] += 1

    async def _delete_user(self, admin: AsyncAdmin) -> None:
        """Most of them come back soon."""
        name = self._rng.choice(TENANTS)
        before, self._users[name] = self._users[name], None
        (outcome,) = (await admin.alter_user_scram_credentials([DeleteCredential(name, _MECHANISM)])).values()
        assert outcome.error in (ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND), outcome
        if outcome.error is ErrorCode.RESOURCE_NOT_FOUND and before:
            self._broken("acknowledged-user-lost", f"{name} has a password, and none was there to delete")
        self._users[name] = None if before is None else False
        self.counts[USERS_GONE] += 1

    async def _quota(self, admin: AsyncAdmin) -> None:
        rng = self._rng
        user, client = rng.choice((None, *TENANTS)), rng.choice((None, "shared-client"))
        given = rng.choice(({"user": user}, {"user": user}, {"client-id": client}, {"user": user, "client-id": client}))
        key = rng.choice((PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE))
        value = rng.choice((None, *_RATES))
        place = entity_of(given.items()), key
        is_sure = place not in self._doubtful
        self._doubtful.add(place)
        (outcome,) = (await admin.alter_client_quotas([QuotaChange(given, {key: value})])).values()
        assert outcome.error is ErrorCode.NONE, outcome
        if is_sure:
            self._doubtful.discard(place)
        self._quotas[place] = value
        self.counts[QUOTAS_SET] += 1

    # --- the end

    def check(self) -> list[Finding]:
        access = self._cluster.image.access
        found = {content_of_rule(one) for one in access.values() if isinstance(one, AccessControlEntryRecord)}
        for rule, there in self._rules.items():
            if there is not None and there is not (rule in found):
                self._broken("acknowledged-rule-lost", f"{rule}: it is there: {rule in found}, not {there}")
        for name, there in self._users.items():
            has = find_credential(access, _MECHANISM, name) is not None
            if there is not None and has is not there:
                self._broken("acknowledged-user-lost", f"{name} has a password: {has}, not {there}")
        for entity, key, wanted in self._sure_quotas():
            value = quota_value(access, entity, key)
            if value != wanted:
                self._broken("acknowledged-quota-lost", f"{key} of {entity} is {value}, not {wanted}")
        return []

    def _sure_quotas(self) -> Iterator[tuple[Entity, str, float | None]]:
        for (entity, key), value in self._quotas.items():
            if (entity, key) not in self._doubtful:
                yield entity, key, value

    # --- asking

    async def _ask(self, change: Callable[[AsyncAdmin], Awaitable[None]]) -> bool:
        async with self._admin() as admin:
            try:
                await change(admin)
            except ConfigError:  # nothing was sent, and nothing ever will be
                raise
            except (QuorumlogError, RpcError):
                self.counts[IN_DOUBT] += 1
                return False
        return True

    def _broken(self, name: str, text: str) -> None:
        self._cluster.findings.broken(name, text)
