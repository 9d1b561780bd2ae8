"""The table of causes: each has a cluster in which it is found, and names what was read."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from cause_cases import (
    CASES,
    FENCED,
    LEAVING,
    NOW_MS,
    OFFLINE,
    REGISTERED,
    brokers,
    directory,
    event,
    group,
    healthy,
    partition,
    rebalances,
    transaction,
    without_leader,
)
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.events.kinds import KINDS
from quorumlog.explaining.causes import BY_NAME, CAUSES
from quorumlog.explaining.causes.table import AREAS
from quorumlog.explaining.facts import BrokerFact, DirectoryFact, EndsFact, Facts, PartitionFact, merged_events
from quorumlog.explaining.finding import Evidence, Finding, NoEvidence, Severity
from quorumlog.explaining.judging import UnknownSubject, explain, judge, subject_of, worst
from quorumlog.explaining.thresholds import Thresholds
from quorumlog.messages.events import Event
from quorumlog_cli.command_tree import all_commands

LIMITS = Thresholds()
CALM = ("broker.starting", "broker.shut-down", "broker.leaving", "broker.cordoned", "reassignment.running")
CALM += ("group.rebalancing", "group.no-members", "quota.throttles")


def names(facts: Facts) -> list[str]:
    return [one.cause for one in judge(facts, LIMITS)]


def test_every_cause_has_a_case() -> None:
    assert set(CASES) == set(BY_NAME) and {one.area for one in CAUSES} == set(AREAS)


def test_a_healthy_cluster_names_no_cause() -> None:
    assert names(healthy()) == []


@pytest.mark.parametrize("name", CASES)
def test_each_cause_is_found_where_it_holds(name: str) -> None:
    found = judge(CASES[name](), LIMITS)
    own = [one for one in found if one.cause == name]
    assert own, [one.cause for one in found]
    assert (own[0].severity is Severity.NOTICE) is (name in CALM)
    for one in found:
        assert one.state and one.next and one.do, one


@pytest.mark.parametrize("name", CASES)
def test_each_sentence_has_a_source(name: str) -> None:
    facts = CASES[name]()
    read = {(one.at_ms, one.offset, f"{one.subject}: {one.text}") for one in facts.events}
    for finding in judge(facts, LIMITS):
        assert finding.why, finding
        for one in finding.why:
            assert one.source and one.text
            if one.is_event:
                assert (one.at_ms, one.offset, one.text) in read, "an event that was not read"
            else:
                assert one.at_ms == NOW_MS


def test_a_finding_cannot_be_made_without_evidence() -> None:
    with pytest.raises(NoEvidence):
        Finding(cause="x", subject="y", severity=Severity.WARNING, state="s", why=(), next="n", do="d")


@cache
def known_commands() -> dict[tuple[str, ...], set[str]]:
    return {command.path: {name for one in command.options for name in one.names} for command in all_commands()}


@pytest.mark.parametrize("is_local", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_what_to_do_is_a_command_that_exists(name: str, is_local: bool) -> None:
    known = known_commands()
    for finding in judge(replace(CASES[name](), is_local=is_local), LIMITS):
        for line in finding.do.split(" && "):
            if line.startswith("quorumlog "):
                words = shlex.split(line)[1:]
                path = next(tuple(words[:n]) for n in (3, 2, 1) if tuple(words[:n]) in known)
                assert not [word for word in words if word.startswith("--") and word not in known[path]], line


def test_a_broker_that_was_shut_down_is_not_one_that_was_lost() -> None:
    """Also while its session ends, and also if it was lost in an earlier life."""
    before = [event("broker.fenced", "broker/3", "fenced", 90_000, offset=3), REGISTERED]
    facts = healthy(brokers=brokers(3), more_events=[*before, LEAVING, FENCED])
    assert names(facts) == ["broker.shut-down"]
    assert names(healthy(brokers=brokers(3), more_events=[*before, FENCED])) == ["broker.lost"]
    assert names(healthy(brokers=brokers(3), more_events=[*before[:1], REGISTERED])) == ["broker.starting"]


def test_a_restart_in_order_is_no_alarm_until_it_takes_long() -> None:
    gone = healthy(brokers=brokers(3), partitions=(partition(isr=(1, 2)),), more_events=[REGISTERED, LEAVING, FENCED])
    assert names(gone) == ["broker.shut-down", "replica.broker-away"] and worst(judge(gone, LIMITS)) == 0
    later = replace(gone, at_ms=NOW_MS + LIMITS.fenced_ms)
    assert {one.cause for one in judge(later, LIMITS) if one.severity} == {"broker.shut-down"}


def test_a_broker_whose_certificate_has_expired_is_not_told_as_one_that_does_not_answer() -> None:
    refused = "the certificate of 127.0.0.1:9192 is not trusted (certificate has expired): set ssl_truststore_location"
    found = judge(healthy(brokers=brokers(silent=refused)), LIMITS)
    assert [(one.cause, one.subject) for one in found] == [("certificate.expired", "broker/3")]


@pytest.mark.parametrize(("usable", "is_full"), [(0, True), (-1, False)])
def test_a_directory_that_went_offline_for_want_of_room_is_full(usable: int, is_full: bool) -> None:
    found = judge(healthy(directories=directory(error="offline", usable=usable)), LIMITS)
    assert [one.cause for one in found] == ["directory.offline", *(["directory.full"] if is_full else [])]
    assert {one.do for one in found} == {"quorumlog log-dirs online --node 3 /data/3"}


def test_an_isr_change_is_named_by_the_record_that_took_the_replica_out() -> None:
    facts = CASES["replica.broker-away"]()
    later = event("partition.isr", "partition/orders-0", "ISR [1,2] -> [1]", 1_000, offset=90)
    facts = replace(facts, partitions=(partition(isr=(1,)),), events=(*facts.events, later))
    [lost] = [one for one in judge(facts, LIMITS) if one.cause == "replica.broker-away"]
    assert 68 in [one.offset for one in lost.why] and 90 not in [one.offset for one in lost.why]


def test_a_record_that_all_nodes_have_applied_is_one_event() -> None:
    one = event("broker.fenced", "broker/3", "fenced", offset=7)
    own = event("loop.stall", "node/1", "held up for 900 ms")
    assert len(merged_events([[one, own], [replace(one, node_id=2)], [replace(own, node_id=2)]])) == 3


def test_what_is_wrong_with_a_broker_itself_comes_before_what_it_is_part_of() -> None:
    facts = healthy(brokers=brokers(3), partitions=(partition(isr=(1, 2)),), more_events=[REGISTERED, FENCED])
    silent = replace(
        facts.quorum, voters=(*facts.quorum.voters[:2], replace(facts.quorum.voters[2], since_fetch_ms=60_000))
    )
    facts = replace(facts, quorum=silent)
    found = explain("broker/3", facts, judge(facts, LIMITS))
    assert [one.cause for one in found.findings] == ["broker.lost", "quorum.voter-silent", "replica.broker-away"]
    assert found.state.startswith("broker 3 is FENCED")


def test_figures_count_as_the_metrics_do() -> None:
    """A replica that is being added is not missed, and one that is in sync already stands in for another."""
    moving = partition(replicas=(4, 1, 2, 3), adding=(4,), removing=(3,))
    for isr, lacks in [((1, 2, 3), False), ((1, 2), True), ((4, 1, 2), False), ((1, 2, 3, 4), False)]:
        assert replace(moving, isr=isr).is_under_replicated is lacks, isr


def test_a_batch_without_keys_makes_no_partition_hot() -> None:
    """The usual partitioner stays with one partition until it has a batch of 16 KiB."""
    hot = CASES["partition.hot"]()
    assert hot.ends is not None and names(hot) == ["partition.hot"]
    assert names(replace(hot, ends=replace(hot.ends, grown={("orders", 0): 500_000}))) == []
    assert names(replace(hot, ends=replace(hot.ends, grown={}))) == []


def test_a_subject_is_found_with_and_without_its_sort() -> None:
    facts = healthy()
    assert subject_of("orders-0", facts) == subject_of("partition/orders-0", facts) == "partition/orders-0"
    assert subject_of("orders", facts) == "topic/orders" and subject_of("2", facts) == "broker/2"
    assert subject_of("billing", facts) == "group/billing" and subject_of("quorum", facts) == "quorum"
    for nothing in ("payments", "partition/orders-9", "broker/9", "group/none"):
        with pytest.raises(UnknownSubject):
            subject_of(nothing, facts)
    both = replace(facts, groups=(replace(group(), group_id="orders"),))
    with pytest.raises(UnknownSubject, match="topic/orders or group/orders"):
        subject_of("orders", both)


def test_explain_tells_what_concerns_a_subject_the_worst_first() -> None:
    facts = CASES["isr.below-minimum"]()
    findings = judge(facts, LIMITS)
    found = explain("topic/orders", facts, findings)
    assert [one.severity for one in found.findings] == sorted((one.severity for one in found.findings), reverse=True)
    assert found.findings[0].cause == "isr.below-minimum" and found.state == found.findings[0].state
    assert explain("topic/others", facts, findings).findings == ()


def test_a_healthy_subject_says_what_was_read() -> None:
    for subject in ("partition/orders-0", "topic/orders", "broker/1", "group/billing", "quorum"):
        found = explain(subject, healthy(), ())
        assert found.read and isinstance(found.read[0], Evidence) and "nothing is wrong" in found.state


NODES = st.lists(st.integers(1, 4), unique=True, max_size=4).map(tuple)
PARTITIONS = st.builds(
    PartitionFact,
    topic=st.sampled_from(["a", "b"]),
    index=st.integers(0, 2),
    leader=st.integers(-1, 4),
    replicas=NODES,
    isr=NODES,
    elr=NODES,
    last_known_elr=NODES,
    adding=NODES,
    removing=NODES,
    throttled=st.booleans(),
    min_isr=st.integers(1, 3),
)
DIRECTORIES = st.builds(
    DirectoryFact,
    node_id=st.integers(1, 4),
    path=st.sampled_from(["/a", "/b c"]),
    error=st.sampled_from(["", "EIO"]),
    total=st.integers(-1, 9),
    usable=st.integers(-1, 9),
    reserve=st.integers(-1, 9),
)
BROKERS = st.builds(BrokerFact, node_id=st.integers(1, 4), fenced=st.booleans(), leaving=st.booleans())
EVENTS = st.builds(
    event,
    st.sampled_from([*KINDS]),
    st.sampled_from(["broker/1", "broker/3", "partition/a-0", "quorum", "directory//a", "group/g", "listener/C"]),
    st.sampled_from(["leader 1 in epoch 4", "expires in 3 days", "held up for 5000 ms", "ISR [1,2] -> [1]", ""]),
    st.integers(0, 700_000),
    st.integers(1, 4),
    st.integers(-1, 9),
)


@given(
    st.lists(PARTITIONS, max_size=4),
    st.lists(DIRECTORIES, max_size=3),
    st.lists(BROKERS, max_size=4, unique_by=lambda one: one.node_id),
    st.lists(EVENTS, max_size=8),
)
def test_whatever_is_read_each_partition_without_a_leader_is_named_once(
    partitions: list[PartitionFact], directories: list[DirectoryFact], brokers: list[BrokerFact], events: list[Event]
) -> None:
    facts = Facts(
        at_ms=NOW_MS,
        partitions=tuple(partitions),
        directories=tuple(directories),
        brokers=tuple(brokers),
        events=tuple(sorted(events, key=lambda one: one.at_ms)),
    )
    found = judge(facts, LIMITS)
    assert all(one.why for one in found)
    assert sum("NO LEADER" in one.state for one in found) == sum(one.leader < 0 for one in partitions)
    fenced = [one for one in found if one.subject.startswith("broker/") and "FENCED" in one.state]
    assert len(fenced) == sum(one.fenced for one in brokers), "each fenced broker has one cause"


def test_an_open_transaction_in_its_time_is_no_fault_and_is_told() -> None:
    facts = healthy(
        transactions=(transaction(name="app-1", known=True, state="Ongoing", started_ms=NOW_MS, timeout_ms=60_000),)
    )
    found = explain("transaction/app-1", facts, judge(facts, LIMITS))
    assert found.findings == () and "50 records of orders-0 wait for it" in found.state


def test_partitions_are_not_counted_again_for_each_of_them() -> None:
    """10,000 partitions took 19 s."""

    class Moved(dict[tuple[str, int], int]):
        passes = 0

        def __iter__(self) -> Iterator[tuple[str, int]]:
            self.passes += 1
            return super().__iter__()

    moved = Moved({("t", index): 1_000 if index == 3 else 1 for index in range(50)})
    assert names(replace(healthy(), ends=EndsFact(seconds=1.0, moved=moved, grown={("t", 3): 1 << 30}))) == [
        "partition.hot"
    ]
    assert moved.passes <= 2


def test_a_few_rebalances_of_a_group_are_no_storm() -> None:
    many = LIMITS.rebalances
    assert names(healthy(more_events=rebalances(many))) == []
    assert names(healthy(more_events=rebalances(3 * many, every_ms=LIMITS.recent_ms // many + 1))) == []
    ended = [event("group.rebalance", "group/billing", "a rebalance began after generation 7") for _ in range(9)]
    assert names(healthy(more_events=ended)) == []


def test_a_reassignment_to_brokers_that_live_can_end() -> None:
    moving = (partition(replicas=(1, 2, 3), isr=(1, 2), adding=(3,)),)
    assert names(healthy(partitions=moving)) == ["reassignment.running"]
    [found] = [one for one in judge(healthy(partitions=moving, **gone(3)), LIMITS) if "cannot" in one.cause]
    assert "broker/3" in found.also and 71 in [one.offset for one in found.why]


def gone(node: int) -> dict[str, Any]:
    return {"brokers": brokers(node), "more_events": (REGISTERED, FENCED)}


@pytest.mark.parametrize(
    ("trouble", "over", "cause"),
    [
        (("tls.trouble", "listener/CLIENT"), "tls.reloaded", "certificate.not-taken"),
        (("directory.damaged", "directory//data/1"), "directory.sound", "directory.damaged"),
    ],
)
def test_what_an_event_ends_is_told_until_then(trouble: tuple[str, str], over: str, cause: str) -> None:
    kind, subject = trouble
    began, ended = event(kind, subject, "it is so", 9_000), event(over, subject, "over", 5_000)
    assert names(healthy(more_events=[began])) == [cause]
    assert names(healthy(more_events=[began, ended])) == []
    assert names(healthy(more_events=[began, ended, event(kind, subject, "again", 1_000)])) == [cause]
    elsewhere = replace(ended, subject=f"{subject}-other")
    assert names(healthy(more_events=[began, elsewhere])) == [cause]


@pytest.mark.parametrize(("replicas", "cause"), [((3,), "leader.directory-offline"), ((2, 3), "leader.unclean-needed")])
def test_a_leader_whose_directory_failed_is_in_no_list(replicas: tuple[int, ...], cause: str) -> None:
    """With another replica that lives, an operator has a choice to make."""
    facts = healthy(partitions=without_leader(replicas), directories=(OFFLINE,))
    assert [one.cause for one in judge(facts, LIMITS) if one.cause.startswith("leader.")] == [cause]
