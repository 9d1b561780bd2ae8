"""One node with a listener for each protection, its users, rules and quotas, which all cells share.

Whoever may set it up shows a certificate at MUTUAL; nobody else is a super user.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from logins import Login
from security_matrix import (
    CELLS,
    EXPIRED,
    GRPCURL,
    MUTUAL,
    NO_ACL,
    OAUTH,
    PLAIN_TO_TLS,
    REAUTH,
    SERVED,
    SSL,
    THROTTLED,
    TLS_TO_PLAIN,
    WRONG_CA,
    WRONG_HOST,
    WRONG_PASSWORD,
    WRONG_USER,
    Cell,
)

from quorumlog.client.administration.quotas import QuotaChange
from quorumlog.client.blocking import Cluster
from quorumlog.settings.rights import AUTHORIZER
from quorumlog.testing.waiting import TimedOut, wait_until
from tests.live.one_process import OneProcess, formatted_config
from tests.security.sasl import tokens
from tests.security.serving.authority import Authority, Pair

WAIT_S = 30
USER, PASSWORD = "ops,eu=1", 'p"\\;,=%+ w'  # signs that some clients escape
PRINCIPALS = {SSL: "User:ANONYMOUS", MUTUAL: "User:CN=ada", OAUTH: "User:ada"}  # the others are USER
QUOTA = 10_000  # bytes a second
REAUTH_MS = 2_000
REFUSED_MS = 3_000  # some clients tell why they cannot connect only when they give up
AGED_S = (3, 10, 30)  # how long the certificate of AGED lasts; the first that is taken in time
PROTOCOLS = {
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "LOGIN": "SASL_SSL",
    "BRIEF": "SASL_SSL",
    "ELSE": "SSL",
    "ELSE_LOGIN": "SASL_SSL",
    "AGED": "SSL",
}
GRPC_PROTOCOLS = {f"GRPC_{name}": found for name, found in PROTOCOLS.items() if name != "BRIEF"}
CLEAR = ("CLIENT", "GRPC")


class World:
    """listeners: HOST:PORT by name."""

    def __init__(self, folder: Path, node: OneProcess, authority: Authority) -> None:
        self._folder, self._node, self._authority = folder, node, authority
        self._aged_until: dict[str, datetime] = {}  # by listener
        self.listeners = {name: address.replace("127.0.0.1", "localhost") for name, address in node.listeners.items()}
        self._ca, self._foreign = str(authority.ca), Authority(folder, "foreign")
        self._ada, self._stranger = str(authority.issue("ada").pem), str(self._foreign.issue("ada").pem)
        self._old = str(authority.issue("old", lasts=-timedelta(hours=1)).pem)
        root = str(authority.issue("root").pem)
        self._own = {
            "bootstrap.servers": self.listeners["MUTUAL"], "security.protocol": "SSL", "ssl.ca.location": self._ca,
            "ssl.certificate.location": root, "ssl.key.location": root,
        }  # fmt: skip
        self._admin = AdminClient(self._own)
        self._reloading = threading.Lock()
        self._tokens = {
            "right": tokens.signed(self._claims()),
            WRONG_PASSWORD: tokens.signed(self._claims(), "RS256", "rsa", tokens.OTHER_RSA),
            WRONG_USER: tokens.signed(self._claims(aud="billing")),
            EXPIRED: tokens.signed(self._claims(iat=time.time() - 7200, exp=time.time() - 3600)),
        }
        for name, token in self._tokens.items():
            self._token(name).write_text(token)

    @staticmethod
    def _claims(**changes: object) -> dict[str, object]:
        return tokens.claims(**{"iat": time.time() - 10, "exp": time.time() + 36_000, **changes})

    def _token(self, name: str) -> Path:
        return self._folder / f"token-{name.replace(' ', '-')}"

    def prepare(self, cells: Iterable[Cell]) -> None:
        """Users, a topic for each cell, its rule, and its quota."""
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            wanted = UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
            for user in self._admin.alter_user_scram_credentials([wanted]).values():
                user.result(WAIT_S)
        chosen = list(cells)
        topics = [NewTopic(topic_of(cell), 1, 1) for cell in chosen]
        rules = [_rule(cell, operation) for cell in chosen if cell.situation != NO_ACL for operation in _OPERATIONS]
        groups = [_may_read_groups(who) for who in (*PRINCIPALS.values(), f"User:{USER}")]
        for made in (self._admin.create_topics(topics), self._admin.create_acls([*rules, *groups])):
            for future in made.values():
                future.result(WAIT_S)
        wait_until(lambda: self._leads_all(len(topics)), WAIT_S * 2, "each topic to have a leader")
        rate = {"producer_byte_rate": float(QUOTA)}
        throttled = [QuotaChange({"client-id": str(cell)}, rate) for cell in chosen if cell.situation == THROTTLED]
        root = self._own["ssl.key.location"]
        options = {"security_protocol": "SSL", "ssl_truststore_location": self._ca, "ssl_keystore_location": root}
        with Cluster(self.listeners["MUTUAL"], **options) as cluster:
            for outcome in cluster.admin.alter_client_quotas(throttled).values() if throttled else ():
                assert not outcome.error, outcome

    def _leads_all(self, count: int) -> bool:
        found = self._admin.list_topics(timeout=WAIT_S).topics.values()
        led = [topic for topic in found if all(one.leader >= 0 for one in topic.partitions.values())]
        return len(led) >= count

    def login(self, cell: Cell) -> Login:
        """What the client is told in this situation, the wrong of it included."""
        situation, protection = cell.situation, cell.protection
        has_ca = situation not in (PLAIN_TO_TLS,)
        foreign = situation == WRONG_CA
        given: dict[str, Any] = {"client_id": str(cell), "wait_ms": 8_000 if cell.situation in SERVED else REFUSED_MS}
        if has_ca:
            given["ca"] = str(self._foreign.ca) if foreign else self._ca
        if protection == MUTUAL and has_ca:
            shown = {WRONG_PASSWORD: self._stranger, WRONG_USER: "", EXPIRED: self._old}
            given["pair"] = shown.get(situation, self._ada)
        elif protection == OAUTH:
            named = situation if situation in self._tokens else "right"
            given |= {"mechanism": OAUTH, "token": str(self._token(named))}
        elif protection not in (SSL, MUTUAL):
            given |= {
                "mechanism": protection, "user": "nobody" if situation == WRONG_USER else USER,
                "password": "wrong" if situation == WRONG_PASSWORD else PASSWORD,
            }  # fmt: skip
        return Login(servers=self.listeners[listener_of(cell)], **given)

    def revoke(self, cell: Cell) -> None:
        """Take the rules of the cell's topic away."""
        everything = AclBindingFilter(
            ResourceType.TOPIC, topic_of(cell), ResourcePatternType.LITERAL, None, None, AclOperation.ANY,
            AclPermissionType.ANY,
        )  # fmt: skip
        for future in self._admin.delete_acls([everything]).values():
            assert len(future.result(WAIT_S)) == len(_OPERATIONS)

    def reload(self, cell: Cell) -> None:
        """Give the listener another certificate of the same name, and wait until it is served."""
        with self._reloading:
            assert self._serve(listener_of(cell), self._authority.issue("node"), 10), self._node.log()

    def age(self, cell: Cell) -> None:
        """Give the listener a certificate that ends soon, as it takes none that has ended, and wait until it has."""
        name = listener_of(cell)
        with self._reloading:
            for lasts_s in () if name in self._aged_until else AGED_S:
                until = datetime.now(UTC) + timedelta(seconds=lasts_s)
                if self._serve(name, self._authority.issue("node", lasts=timedelta(seconds=lasts_s)), lasts_s):
                    self._aged_until[name] = until
                    break
        time.sleep(max(0.0, (self._aged_until[name] - datetime.now(UTC)).total_seconds()))

    def _serve(self, name: str, new: Pair, wait_s: float) -> bool:
        """Whether the listener serves the new certificate after so long."""
        said = f"{name}: new connections get certificate generation"
        before = self._node.log().count(said)
        Path(self._folder / f"{name}.pem").write_bytes(new.pem.read_bytes())
        self._node.hang_up()
        try:
            wait_until(lambda: self._node.log().count(said) > before, wait_s, said)
        except TimedOut:
            return False
        return True


_OPERATIONS = (AclOperation.READ, AclOperation.WRITE)


def _rule(cell: Cell, operation: AclOperation) -> AclBinding:
    who = PRINCIPALS.get(cell.protection, f"User:{USER}")
    return AclBinding(
        ResourceType.TOPIC, topic_of(cell), ResourcePatternType.LITERAL, who, "*", operation, AclPermissionType.ALLOW
    )  # fmt: skip


def _may_read_groups(who: str) -> AclBinding:
    kind, pattern, allow = ResourceType.GROUP, ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    return AclBinding(kind, "*", pattern, who, "*", AclOperation.READ, allow)


def topic_of(cell: Cell) -> str:
    return str(cell).replace(" ", "_")


def listener_of(cell: Cell) -> str:
    is_login = cell.protection not in (SSL, MUTUAL)
    usual = "LOGIN" if is_login else "MUTUAL" if cell.protection == MUTUAL else "TLS"
    match cell.situation:
        case found if found == WRONG_HOST:
            name = "ELSE_LOGIN" if is_login else "ELSE"
        case found if found == EXPIRED and cell.protection == SSL:
            name = "AGED"
        case found if found == REAUTH:
            name = "BRIEF"
        case found if found == TLS_TO_PLAIN:
            name = ""
        case _:
            name = usual
    if cell.family == GRPCURL:
        return f"GRPC_{name}" if name else "GRPC"
    return name or "CLIENT"


def _configuration(folder: Path, authority: Authority, keys: Path) -> str:
    """Each listener has a file of its own, so that one is renewed at a time."""
    protocols = PROTOCOLS | GRPC_PROTOCOLS
    anonymous = [*CLEAR, *(name for name, found in protocols.items() if found == "SSL" and "MUTUAL" not in name)]
    lines = [
        f"listener.security.protocol.map={','.join(f'{name}:{found}' for name, found in protocols.items())}",
        f"allow.anonymous.listeners={','.join(anonymous)}",
        f"authorizer.class.name={AUTHORIZER}", "super.users=User:CN=root",
        "offsets.topic.replication.factor=1", "offsets.topic.num.partitions=1", "group.initial.rebalance.delay.ms=0",
        "default.replication.factor=1", "auto.create.topics.enable=false",
        f"sasl.oauthbearer.jwks.endpoint.url=file://{keys}", f"sasl.oauthbearer.allowed.urls=file://{keys}",
        f"sasl.oauthbearer.expected.issuer={tokens.ISSUER}", f"sasl.oauthbearer.expected.audience={tokens.AUDIENCE}",
        f"listener.name.brief.connections.max.reauth.ms={REAUTH_MS}",
    ]  # fmt: skip
    for name, protocol in protocols.items():
        own = f"listener.name.{name.lower()}"
        kind = name.removeprefix("GRPC_")
        pem = folder / f"{name}.pem"
        issued = authority.issue("node", hosts=("other.test",) if kind.startswith("ELSE") else None)
        pem.write_bytes(issued.pem.read_bytes())
        pem.chmod(0o600)
        lines.append(f"{own}.ssl.keystore.location={pem}")
        if kind == "MUTUAL":
            lines += [f"{own}.ssl.client.auth=required", f"{own}.ssl.truststore.location={authority.ca}"]
        if protocol == "SASL_SSL":
            scrams = "" if name in GRPC_PROTOCOLS else ",SCRAM-SHA-256,SCRAM-SHA-512"
            lines.append(f"{own}.sasl.enabled.mechanisms=PLAIN,OAUTHBEARER{scrams}")
    return "\n".join(lines) + "\n"


@contextmanager
def secured_cluster(folder: Path, cells: Iterable[Cell] = CELLS) -> Iterator[World]:
    authority, keys = Authority(folder), folder / "keys.json"
    keys.write_bytes(tokens.document("p256"))
    more = _configuration(folder, authority, keys)
    names = [*PROTOCOLS, "GRPC", *GRPC_PROTOCOLS]
    path = formatted_config(folder, more, "".join(f"{name}://127.0.0.1:0," for name in names))
    with OneProcess(path) as node:
        made = World(folder, node, authority)
        made.prepare(cells)
        yield made
