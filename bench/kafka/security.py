"""Security beside Kafka, both clusters up, rounds alternating: the same clients against each (bench/peers/secured.py).

- produce and consume, 1 KiB, by librdkafka: in clear, over TLS, after a login in clear and after one over TLS. Who has
  logged in is held to 10,000 access rules, the others are super users: so the login in clear beside the plain listener
  is what rules cost.
- processor time of the three nodes for each MB of these: the figure to look at while other work runs.
- p99 at half the rate that TLS reached, in clear and over TLS.
- TLS handshakes with certificates of both sides, and logins by SCRAM-SHA-512, 64 at a time, by one process (logins.py).
- a rule everywhere: from asking for it until each of the three brokers shows it.
- decisions a second (bench/access_rules.py): ours, of one core; once.

The first round warms up and is not counted.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from bench import access_rules
from bench.kafka import clients
from bench.kafka.lives import start_peer
from bench.kafka.table import NotMeasured, Samples, figure_beside, or_why, ratios
from bench.measuring.machine import MEGABYTE
from bench.measuring.processor_time import spent_by
from bench.measuring.report import Row, percentile
from bench.measuring.rounds import in_turn
from bench.peers.peer import NODES
from bench.peers.secured import LOGIN, MECHANISM, MUTUAL, PASSWORD, PLAIN, SECURE, TLS, USER, Secured
from bench.raw.logins import Login, Salted, handshakes_per_s, logins_per_s
from quorumlog.client import real_edges as edge
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.administration.acls import exactly
from quorumlog.errors import ErrorCode
from quorumlog.security.acl.content import AclContent
from quorumlog.security.acl.index import ALLOW, LITERAL, PREFIXED
from quorumlog.security.authorizer import Operation, ResourceType

PARTITIONS, KIB = 6, 1024
TOPICS = "versus-"  # as `clients.new_topic` names them
AT_ONCE = 64
WAIT_S = 30
LISTENERS = {PLAIN: "in clear", TLS: "TLS", LOGIN: "SCRAM and 10,000 rules", SECURE: "TLS, SCRAM and 10,000 rules"}
CONSUMED = (PLAIN, TLS)
HALF = 0.5


@dataclass(frozen=True, slots=True)
class SecurityWork:
    """Of a round. records: of 1 KiB. changes: of rules, each waited for everywhere."""

    records: int = 150_000
    latency_s: float = 5.0
    handshakes: int = 2_000
    logins: int = 4_000
    changes: int = 100


QUICK = SecurityWork(records=30_000, latency_s=1.0, handshakes=400, logins=600, changes=10)


class _Side(NamedTuple):
    cluster: Secured
    figures: Samples


def measure(sides: Sequence[tuple[Callable[[], Secured], Samples]], work: SecurityWork, rounds: int) -> None:
    """Starts both clusters, measures, and stops both."""
    with ExitStack() as running:
        started: list[_Side] = []
        for make, figures in sides:
            figures.attempt(["security"], partial(_start, make, figures, started, running))
        if len(started) < len(sides):
            return
        for turn in range(rounds + 1):
            print(f"security: round {turn} of {rounds}{'' if turn else ', not counted'}", flush=True)
            for _, side in in_turn(started, turn):
                _round(side if turn else _Side(side.cluster, Samples("warm-up")), work, turn)
    ours = sides[-1][1]
    ours.attempt(["decisions"], partial(_decisions, rounds, ours))


def _start(make: Callable[[], Secured], figures: Samples, started: list[_Side], running: ExitStack) -> None:
    cluster = make()
    running.callback(cluster.close)
    start_peer(cluster.peer)
    _make_user(cluster)
    asyncio.run(_make_rules(cluster, figures))
    started.append(_Side(cluster, figures))


def _make_user(cluster: Secured) -> None:
    import confluent_kafka.admin

    kinds: Any = confluent_kafka.admin
    info = kinds.ScramCredentialInfo(kinds.ScramMechanism.SCRAM_SHA_512, 4_096)
    admin = clients.make_admin(cluster.servers(PLAIN))
    wanted = kinds.UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
    for future in admin.alter_user_scram_credentials([wanted]).values():
        future.result(WAIT_S)


def rules() -> list[AclContent]:
    """10,000 different ones, and those of the user's topics and group."""
    names = AclContent._fields
    others = dict.fromkeys(AclContent(*(getattr(one, name) for name in names)) for one in access_rules.rules())
    who, everything, count = f"User:{USER}", Operation.ALL, access_rules.RULES
    more = [
        AclContent(ResourceType.TOPIC, f"topic-{number}", LITERAL, f"User:u{number}", "*", everything, ALLOW)
        for number in range(count, 2 * count - len(others))
    ]
    return [
        *others,
        *more,
        AclContent(ResourceType.TOPIC, TOPICS, PREFIXED, who, "*", everything, ALLOW),
        AclContent(ResourceType.GROUP, "none", LITERAL, who, "*", everything, ALLOW),
    ]


async def _make_rules(cluster: Secured, figures: Samples) -> None:
    admin = _admin(cluster)
    try:
        begun = time.perf_counter()
        results = await admin.create_acls(rules())
        assert all(one.error_code == ErrorCode.NONE for one in results), "a rule was refused"
        figures.add("rules made", time.perf_counter() - begun)
    finally:
        await admin.close()


def _admin(cluster: Secured) -> AsyncAdmin:
    return edge.admin({"bootstrap.servers": cluster.servers(PLAIN)}, request_timeout_ms=WAIT_S * 1_000)


# --- a round of one cluster


def _round(side: _Side, work: SecurityWork, turn: int) -> None:
    for _, listener in in_turn(list(LISTENERS), turn):
        figures = [f"produce {listener}", *([f"consume {listener}"] if listener in CONSUMED else [])]
        side.figures.attempt(figures, partial(_transfer, side, listener, work.records))
    rate = int(HALF * _last(side.figures, f"produce {TLS}") * MEGABYTE / KIB)
    for _, listener in in_turn(CONSUMED, turn):
        side.figures.attempt([f"p99 {listener}"], partial(_latency, side, listener, rate, work.latency_s))
    side.figures.attempt(["handshakes"], partial(_handshakes, side, work.handshakes))
    side.figures.attempt(["logins"], partial(_logins, side, work.logins))
    side.figures.attempt(["everywhere p99"], lambda: asyncio.run(_everywhere(side, work.changes, turn)))


def _last(figures: Samples, figure: str) -> float:
    """Of this round; 0: it was not measured."""
    try:
        return figures[figure][-1]
    except NotMeasured:
        return 0.0


def _transfer(side: _Side, listener: str, records: int) -> None:
    cluster, settings = side.cluster, side.cluster.client(listener)
    servers = cluster.servers(listener)
    pids, megabytes = cluster.peer.pids(), records * KIB / MEGABYTE

    def measured(verb: str, transfer: Callable[[], float]) -> None:
        before = spent_by(pids)
        side.figures.add(f"{verb} {listener}", transfer() * KIB / MEGABYTE)
        side.figures.add(f"{verb} {listener} cost", spent_by(pids).since(before).total_s * 1_000 / megabytes)

    with clients.new_topic(cluster.servers(PLAIN), PARTITIONS) as topic:
        measured("produce", lambda: clients.rdkafka_produce(servers, topic, records, bytes(KIB), settings))
        if listener in CONSUMED:
            measured("consume", lambda: clients.rdkafka_consume(servers, topic, records, settings))


def _latency(side: _Side, listener: str, rate: int, seconds: float) -> None:
    assert rate, "the rate of TLS is not known"
    cluster = side.cluster
    with clients.new_topic(cluster.servers(PLAIN), PARTITIONS) as topic:
        found = clients.rdkafka_latencies(cluster.servers(listener), topic, rate, seconds, cluster.client(listener))
    side.figures.add(f"p99 {listener}", found.p99)


def _handshakes(side: _Side, count: int) -> None:
    certificates = side.cluster.certificates
    context = ssl.create_default_context(cafile=str(certificates.authority))
    context.load_cert_chain(certificates.client)
    servers = side.cluster.servers(MUTUAL)
    side.figures.add("handshakes", asyncio.run(handshakes_per_s(servers, count, AT_ONCE, context)))


def _logins(side: _Side, count: int) -> None:
    salted: Salted = {}

    def make() -> Login:
        return Login(MECHANISM, USER, PASSWORD, salted)

    side.figures.add("logins", asyncio.run(logins_per_s(side.cluster.servers(LOGIN), count, AT_ONCE, make)))


async def _everywhere(side: _Side, changes: int, turn: int) -> None:
    admin, took = _admin(side.cluster), []
    try:
        for number in range(changes):
            rule = AclContent(
                ResourceType.TOPIC, f"new-{turn}-{number}", LITERAL, f"User:{USER}", "*", Operation.READ, ALLOW
            )
            begun = time.perf_counter()
            await admin.create_acls([rule])
            for node_id in range(1, NODES + 1):
                while not await admin.describe_acls(exactly(rule), node_id=node_id):
                    assert time.perf_counter() - begun < WAIT_S, f"node {node_id} does not know {rule}"
            took.append((time.perf_counter() - begun) * 1_000)
    finally:
        await admin.close()
    side.figures.add("everywhere p99", percentile(took, 99))


def _decisions(rounds: int, ours: Samples) -> None:
    for row in access_rules.measure(rounds):
        for value in row.rounds:
            ours.add(row.name, value)
    ours.add("decisions", 1.0)


# --- rows

PRODUCE_SHARE, PRODUCE_GOAL, CONSUME_SHARE, CONSUME_GOAL = 0.6, 1.0, 0.5, 0.8
RULES_SHARE, LATER_GOAL_MS = 0.97, 1.0
HANDSHAKES_GOAL, LOGINS_GOAL, LOGINS_SHARE, EVERYWHERE_GOAL_MS = 400.0, 1_500.0, 1.0, 200.0
SHARES: Mapping[tuple[str, str], float] = {
    ("produce", TLS): PRODUCE_SHARE, ("consume", TLS): CONSUME_SHARE, ("produce", LOGIN): RULES_SHARE,
}  # fmt: skip
GOALS: Mapping[tuple[str, str], float] = {("produce", TLS): PRODUCE_GOAL, ("consume", TLS): CONSUME_GOAL}


def security_rows(theirs: Samples, ours: Samples) -> list[Row]:
    rows: list[Row] = []
    for verb, listeners in (("produce", tuple(LISTENERS)), ("consume", CONSUMED)):
        for listener in listeners:
            name, figure, goal = f"{verb} 1 KiB, {LISTENERS[listener]}", f"{verb} {listener}", (verb, listener)
            rows += figure_beside(name, "MB/s", figure, GOALS.get(goal), theirs, ours, at_least=True)
            if listener != PLAIN:
                rows += _of_plain("Kafka: " + name, figure, f"{verb} {PLAIN}", theirs, None)
                rows += _of_plain(name, figure, f"{verb} {PLAIN}", ours, SHARES.get(goal))
            rows += figure_beside(f"{name}, nodes", "ms/MB", f"{figure} cost", None, theirs, ours)
    for of, goal_ms in ((theirs, None), (ours, LATER_GOAL_MS)):
        rows += _later("" if of is ours else "Kafka: ", of, goal_ms)
    for name, figure, least in (
        ("TLS handshakes, both certificates", "handshakes", HANDSHAKES_GOAL),
        ("logins by SCRAM-SHA-512", "logins", LOGINS_GOAL),
    ):
        share = LOGINS_SHARE if figure == "logins" else None
        rows += figure_beside(name, "1/s", figure, share, theirs, ours, at_least=True)
        rows += or_why(name, partial(_alone, name, figure, least, ours))
    name = "an access rule at each broker, p99"
    rows += figure_beside(name, "ms", "everywhere p99", None, theirs, ours)
    rows += or_why(
        name, lambda: [Row(name=f"{name}, ours", unit="ms", rounds=ours["everywhere p99"], goal=EVERYWHERE_GOAL_MS,
                           at_least=False)]
    )  # fmt: skip
    rows += figure_beside("10,000 access rules made", "s", "rules made", None, theirs, ours)
    return [*rows, *_decision_rows(ours)]


def _of_plain(name: str, figure: str, plain: str, of: Samples, goal: float | None) -> list[Row]:
    """A rate beside that in clear of the same cluster."""
    name += " / clear"

    def make() -> list[Row]:
        rates = of[figure]
        return [Row(name=name, unit="MB/s", rounds=rates, shares=ratios(of[plain], rates), of="clear", goal=goal)]

    return or_why(name, make)


def _later(whose: str, of: Samples, goal_ms: float | None) -> list[Row]:
    """How much later than in clear, of the same round."""
    name = f"{whose}p99 at half the rate of TLS"

    def make() -> list[Row]:
        clear, tls = of[f"p99 {PLAIN}"], of[f"p99 {TLS}"]
        later = [two - one for one, two in zip(clear, tls, strict=True)]
        return [
            Row(name=f"{name}, in clear", unit="ms", rounds=clear),
            Row(name=f"{name}, TLS", unit="ms", rounds=tls),
            Row(name=f"{name}, later by TLS", unit="ms", rounds=later, goal=goal_ms, at_least=False),
        ]

    return or_why(name, make)


def _alone(name: str, figure: str, least: float, ours: Samples) -> list[Row]:
    return [Row(name=f"{name}, ours", unit="1/s", rounds=ours[figure], goal=least)]


def _decision_rows(ours: Samples) -> list[Row]:
    """As `bench/access_rules.py` has them."""

    def make() -> list[Row]:
        assert ours["decisions"]
        return [
            Row(name=name, unit=unit, rounds=ours[name], goal=goal, at_least=at_least)
            for name, (unit, goal, at_least) in access_rules.FIGURES.items()
        ]

    return or_why("decisions", make)
