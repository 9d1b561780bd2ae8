"""Decisions by access rules, against an oracle that looks at every rule, and against Kafka's own examples."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.messages.metadata_records import AccessControlEntryRecord as Rule
from quorumlog.security.acl.authorizer import RuleAuthorizer, Verdict, Why
from quorumlog.security.acl.index import ALLOW, DENY, LITERAL, PREFIXED, RuleIndex
from quorumlog.security.authorizer import EVERYTHING, Operation, ResourceType
from quorumlog.security.host import host_text
from quorumlog.security.principal import ANONYMOUS, Principal, node_principal
from tests import rules as pages
from tests.security.acl.oracle import may, may_any

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
HERE, THERE = "10.0.0.1", "10.0.0.2"
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
ASKED = [READ, WRITE, Operation.CREATE, DESCRIBE, Operation.DESCRIBE_CONFIGS]
NAMES = ["a", "ab", "abc", "b", "*", "*a", "__consumer_offsets", "__mine"]

_ids = iter(range(1, 1 << 60))


def rule(
    name: str = "a",
    operation: int = READ,
    *,
    permission: int = ALLOW,
    principal: str = "User:alice",
    host: str = "*",
    pattern: int = LITERAL,
    kind: int = TOPIC,
) -> Rule:
    return Rule(
        id=next(_ids).to_bytes(16, "big"),
        resource_type=kind,
        resource_name=name,
        pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def authorizer(*rules: Rule, super_users: tuple[str, ...] = (), everyone: bool = False) -> RuleAuthorizer:
    index = RuleIndex()
    for one in rules:
        index.add(one)
    return RuleAuthorizer(index, super_users, everyone)


CASES = [
    ("no rule", [], READ, "a", False),
    ("allowed", [rule()], READ, "a", True),
    ("another operation", [rule()], WRITE, "a", False),
    ("another name", [rule()], READ, "b", False),
    ("another principal", [rule(principal="User:bob")], READ, "a", False),
    ("another type of principal", [rule(principal="Group:alice")], READ, "a", False),
    ("another host", [rule(host=THERE)], READ, "a", False),
    ("this host", [rule(host=HERE)], READ, "a", True),
    ("everybody", [rule(principal="User:*")], READ, "a", True),
    ("every name", [rule("*")], READ, "b", True),
    ("a prefix", [rule("a", pattern=PREFIXED)], READ, "abc", True),
    ("a prefix is the name itself", [rule("abc", pattern=PREFIXED)], READ, "abc", True),
    ("a name is no prefix of a longer prefix", [rule("abc", pattern=PREFIXED)], READ, "ab", False),
    ("a prefixed * is a character", [rule("*", pattern=PREFIXED)], READ, "a", False),
    ("a name that begins with *", [rule("*", pattern=PREFIXED)], READ, "*a", True),
    ("another type", [rule(kind=GROUP)], READ, "a", False),
    ("ALL", [rule(operation=Operation.ALL)], Operation.ALTER_CONFIGS, "a", True),
    ("ALL of DENY", [rule(), rule(operation=Operation.ALL, permission=DENY)], READ, "a", False),
    ("DENY after ALLOW", [rule(), rule(permission=DENY)], READ, "a", False),
    ("DENY before ALLOW", [rule(permission=DENY), rule()], READ, "a", False),
    ("DENY of all names", [rule(), rule("*", permission=DENY)], READ, "a", False),
    ("DENY of a prefix", [rule("ab"), rule("a", permission=DENY, pattern=PREFIXED)], READ, "ab", False),
    ("DENY of everybody", [rule(), rule(permission=DENY, principal="User:*")], READ, "a", False),
    ("DENY of another host", [rule(), rule(permission=DENY, host=THERE)], READ, "a", True),
    ("DENY of this host", [rule(), rule(permission=DENY, host=HERE)], READ, "a", False),
    ("READ implies DESCRIBE", [rule()], DESCRIBE, "a", True),
    ("WRITE implies DESCRIBE", [rule(operation=WRITE)], DESCRIBE, "a", True),
    ("DELETE implies DESCRIBE", [rule(operation=Operation.DELETE)], DESCRIBE, "a", True),
    ("ALTER implies DESCRIBE", [rule(operation=Operation.ALTER)], DESCRIBE, "a", True),
    ("CREATE does not", [rule(operation=Operation.CREATE)], DESCRIBE, "a", False),
    ("configs", [rule(operation=Operation.ALTER_CONFIGS)], Operation.DESCRIBE_CONFIGS, "a", True),
    ("configs are not the topic", [rule(operation=Operation.ALTER_CONFIGS)], DESCRIBE, "a", False),
    ("DENY of READ leaves DESCRIBE", [rule(operation=WRITE), rule(permission=DENY)], DESCRIBE, "a", True),
    ("DENY of DESCRIBE leaves READ", [rule(), rule(operation=DESCRIBE, permission=DENY)], READ, "a", True),
    ("an unknown operation", [rule(operation=99), rule(operation=-1), rule(operation=0)], READ, "a", False),
    ("internal by *", [rule("*")], READ, "__consumer_offsets", False),
    ("internal by prefix", [rule("__", pattern=PREFIXED)], READ, "__consumer_offsets", False),
    ("internal by name", [rule("__consumer_offsets")], READ, "__consumer_offsets", True),
    ("internal by * may be described", [rule("*")], DESCRIBE, "__consumer_offsets", True),
    ("a group of that name", [rule("*", kind=GROUP)], READ, "__consumer_offsets", False),
    ("other names with __", [rule("*")], READ, "__mine", True),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "operation", "name", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
@pages.rule("security 1.3", "security 1.4")
def test_a_decision(rules: list[Rule], operation: Operation, name: str, want: bool) -> None:
    for order in (rules, rules[::-1]):
        decides = authorizer(*order)
        assert decides.authorize(ALICE, HERE, operation, TOPIC, name) is want
        assert decides.explain(ALICE, HERE, operation, TOPIC, name).allowed is want


def test_nothing_is_allowed_where_no_rule_is_found_unless_the_setting_says_so() -> None:
    assert not authorizer().authorize(ALICE, HERE, READ, TOPIC, "a")
    assert authorizer(everyone=True).authorize(ALICE, HERE, READ, TOPIC, "a")
    somebody = authorizer(rule(principal="User:bob"), everyone=True)
    assert not somebody.authorize(ALICE, HERE, READ, TOPIC, "a"), "a rule of anybody ends the default"
    assert somebody.authorize(ALICE, HERE, READ, TOPIC, "b")
    assert not authorizer(everyone=True).authorize(ALICE, HERE, READ, TOPIC, "__consumer_offsets")


@pages.rule("security 1.29")
def test_super_users_and_nodes_get_in_whatever_is_denied() -> None:
    decides = authorizer(rule("*", Operation.ALL, permission=DENY, principal="User:*"), super_users=("User:bob",))
    assert decides.operations(BOB, HERE, TOPIC, "a") == EVERYTHING
    assert decides.operations(node_principal(1), HERE, TOPIC, "a") == EVERYTHING
    assert decides.operations(Principal("User", "1"), HERE, TOPIC, "a") == 0
    assert decides.operations(ANONYMOUS, HERE, TOPIC, "a") == 0
    assert decides.authorize_any(BOB, HERE, WRITE, TOPIC)


@pytest.mark.parametrize(
    ("host", "of_rule", "want"),
    [
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("::1", "0:0:0:0:0:0:0:1", True),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0", True),
        ("10.0.0.1", "10.0.0.0/8", False),
        ("", "10.0.0.1", False),
        ("::2", "::1", False),
    ],
)
def test_a_host_is_compared_as_text_of_an_address(host: str, of_rule: str, want: bool) -> None:
    assert authorizer(rule(host=of_rule)).authorize(ALICE, host, READ, TOPIC, "a") is want


@pytest.mark.parametrize("text", ["", "a:b", ":::", "localhost", "::ffff:1.2.3.4.5", "%", ":" * 10_000])
def test_what_is_no_address_stays_as_it_is(text: str) -> None:
    assert host_text(text) == text


ANY = [
    ("nothing", [], False),
    ("a literal", [rule(operation=WRITE)], True),
    ("a prefix", [rule("a", WRITE, pattern=PREFIXED)], True),
    ("all names", [rule("*", WRITE)], True),
    ("ALL", [rule(operation=Operation.ALL)], True),
    ("another operation", [rule()], False),
    ("another host", [rule(operation=WRITE, host=THERE)], False),
    ("a DENY of all names", [rule(operation=WRITE), rule("*", WRITE, permission=DENY)], False),
    ("a DENY of the same name", [rule(operation=WRITE), rule(operation=WRITE, permission=DENY)], False),
    ("a DENY of another name", [rule(operation=WRITE), rule("b", WRITE, permission=DENY)], True),
    ("a DENY of a prefix", [rule("ab", WRITE), rule("a", WRITE, permission=DENY, pattern=PREFIXED)], False),
    ("a DENY of a longer prefix", [rule("a", WRITE), rule("ab", WRITE, permission=DENY, pattern=PREFIXED)], True),
    ("a DENY of a part of all", [rule("*", WRITE), rule("a", WRITE, permission=DENY, pattern=PREFIXED)], True),
    (
        "a literal DENY of a prefix's text",
        [rule("a", WRITE, pattern=PREFIXED), rule("a", WRITE, permission=DENY)],
        True,
    ),
    ("a group", [rule(operation=WRITE, kind=GROUP)], False),
]


@pytest.mark.parametrize(("rules", "want"), [c[1:] for c in ANY], ids=[c[0] for c in ANY])
def test_whether_some_topic_may_be_written(rules: list[Rule], want: bool) -> None:
    assert authorizer(*rules).authorize_any(ALICE, HERE, WRITE, TOPIC) is want


def test_some_topic_may_be_written_where_the_default_allows_it() -> None:
    assert authorizer(rule(operation=WRITE, permission=DENY), everyone=True).authorize_any(ALICE, HERE, WRITE, TOPIC)
    others = authorizer(rule("*", WRITE, principal="User:bob"), everyone=True)
    assert not others.authorize_any(ALICE, HERE, WRITE, TOPIC), "some rule is about every name"


def test_the_rule_that_decides_is_named() -> None:
    allow, deny = rule(), rule(permission=DENY, principal="User:*")
    assert authorizer(allow).explain(ALICE, HERE, DESCRIBE, TOPIC, "a") == Verdict(True, Why.RULE, allow)
    assert authorizer(allow, deny).explain(ALICE, HERE, READ, TOPIC, "a") == Verdict(False, Why.RULE, deny)
    assert authorizer(allow, deny).explain(BOB, HERE, WRITE, TOPIC, "a") == Verdict(False, Why.NO_RULE_FITS)
    assert authorizer(allow).explain(ALICE, HERE, READ, TOPIC, "b") == Verdict(False, Why.NO_RULE_OF_NAME)
    assert authorizer(everyone=True).explain(ALICE, HERE, READ, TOPIC, "b") == Verdict(True, Why.NO_RULE_OF_NAME)
    internal = authorizer(rule("*")).explain(ALICE, HERE, READ, TOPIC, "__consumer_offsets")
    assert internal == Verdict(False, Why.INTERNAL_TOPIC)
    assert authorizer(super_users=("User:bob",)).explain(BOB, HERE, READ, TOPIC, "a") == Verdict(True, Why.SUPER_USER)


@pages.rule("security 1.7")
def test_an_answer_is_forgotten_when_a_rule_changes() -> None:
    decides = authorizer()
    allow, deny = rule(), rule(permission=DENY)
    for change, want in (
        (lambda: None, False),
        (lambda: decides.index.add(allow), True),
        (lambda: decides.index.add(deny), False),
        (lambda: decides.index.remove(deny), True),
        (lambda: decides.index.remove(allow), False),
    ):
        change()
        assert decides.authorize(ALICE, HERE, READ, TOPIC, "a") is want
        assert decides.authorize_any(ALICE, HERE, READ, TOPIC) is want


@pages.rule("security 1.7")
def test_cached_answers_of_two_hosts_and_principals_are_kept_apart() -> None:
    decides = authorizer(rule(host=HERE), rule(operation=WRITE, principal="User:bob"))
    for _ in range(2):
        assert decides.authorize(ALICE, HERE, READ, TOPIC, "a")
        assert not decides.authorize(ALICE, THERE, READ, TOPIC, "a")
        assert not decides.authorize(BOB, HERE, READ, TOPIC, "a")
        assert not decides.authorize(ALICE, HERE, READ, GROUP, "a")
        assert decides.authorize_any(ALICE, HERE, READ, TOPIC)
        assert not decides.authorize_any(ALICE, THERE, READ, TOPIC)
        assert not decides.authorize_any(ALICE, HERE, WRITE, TOPIC)


# Random histories.

# Few of each, and many rules: an ALLOW and a DENY must often meet.
principals = st.sampled_from(["User:alice", "User:alice", "User:bob", "User:*", "Group:alice"])
rules = st.builds(
    rule,
    st.sampled_from(NAMES),
    st.sampled_from([2, 3, 4, 8, 11]),
    permission=st.sampled_from([ALLOW, DENY]),
    principal=principals,
    host=st.sampled_from(["*", "*", HERE, THERE]),
    pattern=st.sampled_from([LITERAL, PREFIXED]),
    kind=st.sampled_from([TOPIC, TOPIC, TOPIC, GROUP]),
)
histories = st.lists(
    st.tuples(st.sampled_from([True, True, False]), st.integers(0, 1 << 30), rules), min_size=10, max_size=40
)


def play(history: list[tuple[bool, int, Rule]]) -> tuple[RuleIndex, list[Rule]]:
    """The index after the history, and the rules that are left."""
    index, left = RuleIndex(), []
    for adds, which, one in history:
        if adds or not left:
            one = replace(one, id=next(_ids).to_bytes(16, "big"))  # hypothesis gives an example of it twice
            index.add(one)
            left.append(one)
        else:
            index.remove(left.pop(which % len(left)))
    return index, left


@given(histories, st.booleans(), st.sampled_from([ALICE, BOB]))
@pages.rule("security 1.3", "security 1.6")
def test_the_index_agrees_with_the_oracle_after_any_history(
    history: list[tuple[bool, int, Rule]], everyone: bool, who: Principal
) -> None:
    """CVE-2024-27309: a removal took other rules of the name along."""
    index, left = play(history)
    decides = RuleAuthorizer(index, (), everyone)
    asked = product((TOPIC, GROUP), NAMES, ASKED, (HERE, THERE))
    for kind, name, operation, host in asked:
        want = may(left, str(who), host, operation, kind, name, everyone)
        verdict = decides.explain(who, host, operation, kind, name)
        assert decides.authorize(who, host, operation, kind, name) is want, (name, operation)
        assert verdict.allowed is want
        assert verdict.rule is None or (verdict.rule.permission_type == ALLOW) is want


@given(histories, st.booleans(), st.sampled_from([WRITE, Operation.CREATE]), st.sampled_from([ALICE, BOB]))
def test_some_name_is_allowed_exactly_if_the_oracle_finds_one(
    history: list[tuple[bool, int, Rule]], everyone: bool, operation: Operation, who: Principal
) -> None:
    """A name outside every pattern, and one below each pattern, stand for all names."""
    index, left = play(history)
    names = [*NAMES, "zz", *(f"{name}zz" for name in NAMES)]
    want = may_any(left, str(who), HERE, operation, TOPIC, everyone, names)
    assert RuleAuthorizer(index, (), everyone).authorize_any(who, HERE, operation, TOPIC) is want


@given(histories, st.randoms(use_true_random=False))
@pages.rule("security 1.4", "security 1.6")
def test_the_index_is_the_same_however_its_rules_came(history: list[tuple[bool, int, Rule]], rng: Random) -> None:
    index, left = play(history)
    fresh = RuleIndex()
    for one in rng.sample(left, len(left)):
        fresh.add(one)
    assert content(index) == content(fresh)
    assert len(index) == len(fresh) == len(left)


def content(index: RuleIndex) -> object:
    return {
        kind: (
            patterns.lengths,
            {
                (pattern_type, name, principal, host): (cell.allow, cell.deny, set(cell.rules))
                for pattern_type in (LITERAL, PREFIXED)
                for name, of_name in patterns.named(pattern_type).items()
                for principal, hosts in of_name.items()
                for host, cell in hosts.items()
            },
        )
        for kind, patterns in index._types.items()
        if patterns.literal or patterns.prefixed
    }


@given(histories, rules.map(lambda one: replace(one, permission_type=ALLOW)))
@pages.rule("security 1.5")
def test_another_allow_takes_nothing_away(history: list[tuple[bool, int, Rule]], more: Rule) -> None:
    index, _ = play(history)
    decides = RuleAuthorizer(index)
    before = {name: decides.operations(ALICE, HERE, TOPIC, name) for name in NAMES}
    index.add(replace(more, id=bytes(16)))
    for name, operations in before.items():
        assert operations & ~decides.operations(ALICE, HERE, TOPIC, name) == 0


def test_no_long_name_is_kept_with_its_answer() -> None:
    """65,536 names of some MB would fill the memory; each client may ask for any name."""
    asked = authorizer(rule("a", pattern=PREFIXED), rule("ab", permission=DENY, pattern=PREFIXED))
    for number in range(10):
        long = "a" * 1_000 + str(number)
        assert asked.authorize(ALICE, HERE, READ, TOPIC, long)
        assert not asked.authorize(ALICE, HERE, READ, TOPIC, "ab" + long)
    assert asked._cached.cache_info().currsize == 0
    assert asked.authorize(ALICE, HERE, READ, TOPIC, "a" * 249)
    assert asked._cached.cache_info().currsize == 1
