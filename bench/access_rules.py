"""Decisions by access rules a second, of 10,000 rules with prefixes of 20 lengths, on one core.

"again" is a question that was asked before, "anew" one that was not: another name each time. "loaded" is the whole
index, as of a snapshot.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

from bench.measuring.report import Row
from quorumlog.messages.metadata_records import AccessControlEntryRecord
from quorumlog.security.acl.authorizer import RuleAuthorizer
from quorumlog.security.acl.index import ALLOW, LITERAL, PREFIXED, RuleIndex
from quorumlog.security.authorizer import Operation, ResourceType
from quorumlog.security.principal import Principal

RULES, LENGTHS, USERS, NAMES = 10_000, 20, 500, 1_000
SEED = 4711
HOST = "10.0.0.1"
GOAL_AGAIN, GOAL_ANEW = 1_500_000, 100_000
GOAL_LOAD_MS = 300
AGAIN_ROUNDS = 200  # over all names


def rules() -> list[AccessControlEntryRecord]:
    """Half of them literal, half prefixes, 20 lengths of them; each user has 20."""
    rng = Random(SEED)
    made = []
    for number in range(RULES):
        prefixed = number % 2 == 1
        text = f"{rng.randrange(10**6):06d}-{'x' * LENGTHS}"
        made.append(
            AccessControlEntryRecord(
                id=number.to_bytes(16, "big"),
                resource_type=ResourceType.TOPIC,
                resource_name=text[: 1 + number // 2 % LENGTHS] if prefixed else f"topic-{number}",
                pattern_type=PREFIXED if prefixed else LITERAL,
                principal=f"User:u{number % USERS}",
                host="*",
                operation=rng.choice((Operation.READ, Operation.WRITE)),
                permission_type=ALLOW,
            )
        )
    return made


LOADED, AGAIN, ANEW = f"{RULES:,} rules loaded", "a decision asked again", "a decision asked anew"
FIGURES = {LOADED: ("ms", GOAL_LOAD_MS, False), AGAIN: ("1/s", GOAL_AGAIN, True), ANEW: ("1/s", GOAL_ANEW, True)}


def measure(rounds: int) -> list[Row]:
    made = rules()
    values = {
        LOADED: [_seconds(lambda: _index(made)) * 1e3 for _ in range(rounds)],
        AGAIN: [_again(RuleAuthorizer(_index(made))) for _ in range(rounds)],
        ANEW: [_anew(RuleAuthorizer(_index(made))) for _ in range(rounds)],
    }
    return [
        Row(name=name, unit=unit, rounds=values[name], goal=goal, at_least=at_least)
        for name, (unit, goal, at_least) in FIGURES.items()
    ]


def _index(made: list[AccessControlEntryRecord]) -> RuleIndex:
    index = RuleIndex()
    for rule in made:
        index.add(rule)
    return index


def _again(authorizer: RuleAuthorizer) -> float:
    who, names = Principal("User", "u7"), [f"topic-{number}" for number in range(NAMES)]
    authorize, operation, kind = authorizer.authorize, Operation.READ, ResourceType.TOPIC

    def ask() -> None:
        for name in names:
            authorize(who, HOST, operation, kind, name)

    def ask_often() -> None:
        for _ in range(AGAIN_ROUNDS):
            ask()

    ask()
    return NAMES * AGAIN_ROUNDS / _seconds(ask_often)


def _anew(authorizer: RuleAuthorizer) -> float:
    users = [Principal("User", f"u{number}") for number in range(20)]
    names = [f"{number:06d}-{'x' * LENGTHS}-orders" for number in range(NAMES)]
    authorize, operation, kind = authorizer.authorize, Operation.READ, ResourceType.TOPIC

    def ask() -> None:
        for who in users:
            for name in names:
                authorize(who, HOST, operation, kind, name)

    return len(users) * NAMES / _seconds(ask)


def _seconds(call: Callable[[], object]) -> float:
    """Of processor time."""
    begin = time.process_time()
    call()
    return time.process_time() - begin
