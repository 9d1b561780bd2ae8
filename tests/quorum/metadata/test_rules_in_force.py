"""The authorizer of a node decides by the rules of the newest image, however the images came."""

from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st
from immutables import Map
from metadata_samples import credential, quota, uuid

from quorumlog.messages.metadata_records import (
    AccessControlEntryRecord,
    FeatureLevelRecord,
    MetadataRecord,
    RemoveAccessControlEntryRecord,
)
from quorumlog.security.acl.authorizer import RuleAuthorizer
from quorumlog.security.acl.content import AclContent, content_of_rule
from quorumlog.security.authorizer import Operation, ResourceType
from quorumlog.security.principal import Principal
from quorumlog.slices import at_once
from quorumlog_quorum.metadata.access import Access
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.image_diff import delta_between, delta_from_empty
from quorumlog_quorum.metadata.rules_in_force import RulesInForce
from tests import rules as pages

ALICE = Principal("User", "alice")
NAMES = ["a", "ab", "b", "*"]


def rule(number: int, name: str = "a", *, permission: int = 3, pattern: int = 3) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=uuid(number),
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=pattern,
        principal="User:alice",
        host="*",
        operation=Operation.READ,
        permission_type=permission,
    )


def rule_ids_of(access: Access) -> object:
    found: dict[AclContent, tuple[bytes, ...]] = {}
    for entry in access.values():
        if isinstance(entry, AccessControlEntryRecord):
            content = content_of_rule(entry)
            found[content] = tuple(sorted((*found.get(content, ()), entry.id)))
    return Map(found)


def after(image: Image, *records: MetadataRecord) -> tuple[Delta, Image]:
    delta = Delta(image)
    for record in records:
        delta.replay(record)
    return delta, delta.apply(delta.next_offset, 1)


def answers(authorizer: RuleAuthorizer) -> list[int]:
    return [authorizer.operations(ALICE, "h", ResourceType.TOPIC, name) for name in NAMES]


def of_image(image: Image) -> list[int]:
    authorizer = RuleAuthorizer()
    take(RulesInForce(authorizer), delta_from_empty(image), image)
    return answers(authorizer)


def take(rules: RulesInForce, delta: Delta, image: Image) -> None:
    work = rules.on_image(delta, image)
    if work is not None:
        at_once(work)


def test_nothing_is_allowed_before_the_first_image() -> None:
    authorizer = RuleAuthorizer(super_users=("User:root",), allow_everyone=True)
    assert not authorizer.authorize(ALICE, "h", Operation.READ, ResourceType.TOPIC, "a")
    assert not authorizer.authorize_any(ALICE, "h", Operation.WRITE, ResourceType.TOPIC)
    assert authorizer.authorize(Principal("User", "root"), "h", Operation.READ, ResourceType.TOPIC, "a")
    generation = authorizer.generation
    take(RulesInForce(authorizer), *after(EMPTY, FeatureLevelRecord(name="metadata.version", level=7)))
    assert authorizer.generation != generation
    assert authorizer.authorize(ALICE, "h", Operation.READ, ResourceType.TOPIC, "a")
    assert authorizer.authorize_any(ALICE, "h", Operation.WRITE, ResourceType.TOPIC)


changes = st.lists(
    st.lists(st.tuples(st.booleans(), st.sampled_from(NAMES), st.sampled_from([2, 3]), st.sampled_from([3, 4]))),
    max_size=8,
)


@given(changes, st.integers(1, 6), st.sets(st.integers(0, 7)))
@pages.rule("security 1.6")
def test_the_rules_in_force_are_those_of_the_image(
    history: list[list[tuple[bool, str, int, int]]], changes_at_once: int, jumps: set[int]
) -> None:
    """jumps: images that the node gets as a snapshot, together with the one before."""
    authorizer, ids, image, there = RuleAuthorizer(), count(1), EMPTY, list[int]()
    rules = RulesInForce(authorizer, changes_at_once)
    taken = EMPTY
    for number, step in enumerate(history):
        records: list[MetadataRecord] = [quota(float(number), ("user", None)), credential(f"user{number}")]
        for adds, name, permission, pattern in step:
            if adds or not there:
                there.append(next(ids))
                records.append(rule(there[-1], name, permission=permission, pattern=pattern))
            else:
                records.append(RemoveAccessControlEntryRecord(id=uuid(there.pop(0))))
        delta, image = after(image, *records)
        assert image.rule_ids == rule_ids_of(image.access)
        if number in jumps:
            continue
        if taken is not delta.base:
            delta = at_once(delta_between(taken, image))
        take(rules, delta, image)
        taken = image
        assert answers(authorizer) == of_image(image)


def test_many_changes_take_effect_together() -> None:
    """An ALLOW that another one replaces is never missing in between, and a DENY never too late."""
    authorizer = RuleAuthorizer()
    rules = RulesInForce(authorizer, changes_at_once=3)
    delta, image = after(EMPTY, *(rule(number, f"t{number}") for number in range(1, 9)))
    take(rules, delta, image)
    replaced = [rule(20, "t"), *(rule(20 + number, f"s{number}") for number in range(1, 6))]
    delta, image = after(image, RemoveAccessControlEntryRecord(id=uuid(1)), rule(19, "t1"), *replaced)
    work = rules.on_image(delta, image)
    assert work is not None
    steps = 1
    for _ in work:
        steps += 1
        assert authorizer.authorize(ALICE, "h", Operation.READ, ResourceType.TOPIC, "t1")
        assert not authorizer.authorize(ALICE, "h", Operation.READ, ResourceType.TOPIC, "s1")
    assert steps > 3
    assert authorizer.authorize(ALICE, "h", Operation.READ, ResourceType.TOPIC, "t1")
    assert authorizer.authorize(ALICE, "h", Operation.READ, ResourceType.TOPIC, "s1")


def test_rules_that_say_the_same_are_both_in_force() -> None:
    """Only a log that other software wrote can have them."""
    authorizer = RuleAuthorizer()
    rules = RulesInForce(authorizer)
    delta, image = after(EMPTY, rule(1), rule(2))
    take(rules, delta, image)
    delta, image = after(image, RemoveAccessControlEntryRecord(id=uuid(2)))
    take(rules, delta, image)
    assert authorizer.authorize(ALICE, "h", Operation.READ, ResourceType.TOPIC, "a")
    delta, image = after(image, RemoveAccessControlEntryRecord(id=uuid(1)))
    take(rules, delta, image)
    assert not authorizer.authorize(ALICE, "h", Operation.READ, ResourceType.TOPIC, "a")
