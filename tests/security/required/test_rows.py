"""The table of rights by itself: which rows there are, what they ask, and how answers are put together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages import fetch, groups, produce, transactions
from quorumlog.messages.brokers import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    UnregisterBrokerRequest,
)
from quorumlog.messages.cluster import DeleteTopicResult, DeleteTopicsRequest, DeleteTopicsResponse, TopicQuery
from quorumlog.messages.common import QuotaEntity
from quorumlog.messages.credentials import AlterUserScramCredentialsRequest, ScramUpsertion
from quorumlog.messages.quotas import AlterClientQuotasRequest, QuotaAlteration, QuotaOp
from quorumlog.messages.services import METHODS
from quorumlog.records import Record, encode_batch
from quorumlog.rpc.transport import Address, Listener
from quorumlog.security.principal import Principal
from quorumlog.security.required import fetch as of_fetch
from quorumlog.security.required import table
from quorumlog.security.required.fetch import FetchSessionRights
from quorumlog.security.required.guard import Guard, Rights
from quorumlog.security.required.need import GROUP_READ, ID_WRITE, TOPIC_READ, TOPIC_WRITE
from quorumlog.security.required.nodes_only import NODES_ONLY
from quorumlog.security.required.produce import is_transactional
from quorumlog.security.required.table import MissingRow, check_rows, rows
from quorumlog_broker.api.handlers import HANDLERS
from tests.rules import rule
from tests.scenarios.asking import errors_in
from tests.security.required.cases import CASES, DENIALS, Names
from tests.security.required.more_cases import MORE_ANSWERS, MORE_CASES
from tests.security.required.scripted_rules import Noted, ScriptedRules, SomeTopics

E = ErrorCode
ALICE = Principal("User", "alice")
ID = b"i" * 16
NAMES = Names("t", ID, "g", "x")
BY_REQUEST = {method.request: method for method in METHODS}


@dataclass
class Context:
    principal: Principal = ALICE
    client_host: str = "10.0.0.7"
    request_id: str = "7:9"
    listener: Listener = field(default_factory=lambda: Listener(name="CLIENT", address=Address("h", 1), internal=False))


class Asked:
    """A handler that answers every request with what `answer` says, and keeps what it was given."""

    def __init__(self, answer: Any = None) -> None:
        self.requests: list[Any] = []
        self._answer = answer

    async def __call__(self, _context: Any, request: Any) -> Any:
        self.requests.append(request)
        return BY_REQUEST[type(request)].response() if self._answer is None else self._answer(request)


class World:
    def __init__(self, answer: Any = None) -> None:
        self.rules, self.audit, self.handler = ScriptedRules(), Noted(), Asked(answer)
        self.topics = SomeTopics({"t": ID})
        self.guard = Guard(self.handler, Rights(self.rules, self.audit), self.topics)

    def ask(self, request: Any, context: Context | None = None) -> Any:
        """The response; its method's failure if it was refused whole."""
        try:
            return asyncio.run(self.guard(context or Context(), request))
        except ApiError as error:
            return BY_REQUEST[type(request)].response(error_code=error.code, error_message=error.message)


# --- which rows there are


def test_every_call_of_a_client_has_a_row_and_a_case() -> None:
    of_clients = {method.request for method in METHODS} - NODES_ONLY
    assert set(rows(FetchSessionRights())) == of_clients == set(CASES)


@rule("security 1.14")
def test_no_call_of_nodes_has_a_row() -> None:
    """Invariant 14: no rule lets a client make one."""
    assert not set(rows(FetchSessionRights())) & NODES_ONLY


def test_the_handlers_of_a_broker_have_rows() -> None:
    check_rows(HANDLERS)


@pytest.mark.parametrize("request_type", sorted(NODES_ONLY, key=lambda one: one.__name__))
@rule("security 1.14")
def test_what_has_no_row_reaches_no_handler(request_type: type) -> None:
    world = World()
    assert errors_in(world.ask(object.__new__(request_type))) == [E.CLUSTER_AUTHORIZATION_FAILED]
    assert not world.handler.requests


def test_a_handler_without_a_row_stops_the_start() -> None:
    """CVE-2023-50976, CVE-2026-33413: calls that nobody had thought of were open to everybody."""

    class StrangeRequest:
        pass

    with pytest.raises(MissingRow, match="StrangeRequest"):
        check_rows([*HANDLERS, StrangeRequest])


def test_a_broker_is_not_made_without_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_CLUSTER", table._CLUSTER[1:])
    with pytest.raises(MissingRow, match="DescribeFeaturesRequest"):
        check_rows(HANDLERS)


@pytest.mark.parametrize("request_type", CASES, ids=lambda one: one.__name__)
def test_what_a_row_asks_is_what_it_says(request_type: type) -> None:
    """CVE-2026-41115: the page said READ, and the code asked for DESCRIBE. Every need of a row is asked for by one of
    the cases, with everything allowed, or with one right denied; and nothing else is."""
    row = rows(FetchSessionRights())[request_type]
    asked = set()
    made = [CASES[request_type].make, *MORE_CASES.get(request_type, ())]
    for make in made:
        for denied in [(), *((need,) for need in row.needs), row.needs]:
            world = World(MORE_ANSWERS.get(request_type))
            world.rules.deny_needs(denied)
            world.ask(make(NAMES))
            asked |= world.rules.asked
    assert asked == set(row.needs)


@pytest.mark.parametrize("request_type", CASES, ids=lambda one: one.__name__)
def test_without_any_right_no_handler_is_asked_but_for_what_all_may_know(request_type: type) -> None:
    case = CASES[request_type]
    world = World(MORE_ANSWERS.get(request_type))
    world.rules.deny(lambda _need, _name: True)
    answer = world.ask(case.make(NAMES))
    codes = set(errors_in(answer))
    assert codes == ({case.denied} if case.denied is not None else set())
    asked_of_brokers = {one.__name__ for one in map(type, world.handler.requests)}
    passes = case.denied is None or request_type.__name__ in ("MetadataRequest", "FetchChunkRequest")
    assert bool(asked_of_brokers) == passes
    assert bool(world.audit.denials) == (case.denied is not None)
    assert all(one.principal == ALICE and one.host == "10.0.0.7" for one in world.audit.denials)


@pytest.mark.parametrize("request_type", CASES, ids=lambda one: one.__name__)
def test_with_every_right_the_handler_gets_the_request_as_it_came(request_type: type) -> None:
    request = CASES[request_type].make(NAMES)
    world = World(MORE_ANSWERS.get(request_type))
    answer = world.ask(request)
    assert world.handler.requests == [request]
    assert not DENIALS & set(errors_in(answer))
    assert world.rules.askers <= {(ALICE, "10.0.0.7")}
    assert not world.audit.denials


# --- items


def _too_large() -> list[Any]:
    many = 10_001
    topic = transactions.TransactionTopic(name="t")
    wanted = groups.OffsetFetchTopics(topics=(groups.OffsetFetchTopic(name="t"),) * 10_000)
    txn = transactions.TransactionToExtend(
        transactional_id="x", producer_id=1, producer_epoch=0, topics=(topic,) * 1_000
    )
    return [
        produce.ProduceRequest(acks=1, timeout_ms=1, topics=(produce.ProduceTopic(name="t"),) * many),
        groups.DescribeGroupsRequest(groups=("g",) * many),
        groups.OffsetFetchRequest(groups=(groups.OffsetFetchGroup(group_id="g", topics=wanted),) * 11),
        transactions.DescribeTransactionsRequest(transactional_ids=("x",) * many),
        transactions.AddPartitionsToTxnRequest(transactions=(txn,) * 101),
        groups.ConsumerGroupHeartbeatRequest(
            group_id="g", member_epoch=0, subscribed_topic_names=groups.SubscribedTopicNames(names=("t",) * many)
        ),
    ]


@pytest.mark.parametrize("request_", _too_large(), ids=lambda one: type(one).__name__)
def test_no_question_is_asked_about_a_request_that_is_too_large(request_: Any) -> None:
    world = World()
    assert errors_in(world.ask(request_)) == [E.INVALID_REQUEST]
    assert not world.rules.asked and not world.handler.requests


def test_answers_stand_in_the_order_of_the_request() -> None:
    def offsets(request: Any) -> Any:
        topics = tuple(
            fetch.ListOffsetsTopicResponse(
                name=topic.name, partitions=(fetch.ListOffsetsPartitionResponse(index=0, offset=7),)
            )
            for topic in request.topics
        )
        return fetch.ListOffsetsResponse(topics=topics)

    world = World(offsets)
    world.rules.deny_names("b", "d")
    one = fetch.ListOffsetsPartition(index=0, timestamp_ms=-1)
    asked = tuple(fetch.ListOffsetsTopic(name=name, partitions=(one,)) for name in "abcdba")
    answer = world.ask(fetch.ListOffsetsRequest(topics=asked))
    assert [topic.name for topic in answer.topics] == list("abcdba")
    assert [topic.partitions[0].error_code for topic in answer.topics] == [0, 29, 0, 29, 29, 0]
    assert [topic.name for topic in world.handler.requests[0].topics] == ["a", "c", "a"]


@rule("security 1.10")
def test_a_name_that_is_allowed_does_not_open_another_topic_by_its_id() -> None:
    """CVE-2026-73499: what is checked is what runs."""
    world = World()
    world.rules.deny_names("t")
    one = fetch.ListOffsetsPartition(index=0, timestamp_ms=-1)
    asked = fetch.ListOffsetsTopic(name="mine", topic_id=ID, partitions=(one,))
    assert errors_in(world.ask(fetch.ListOffsetsRequest(topics=(asked,)))) == [E.TOPIC_AUTHORIZATION_FAILED]
    assert not world.handler.requests


def test_an_id_that_is_not_known_never_reaches_a_handler() -> None:
    """It could be known by the time that the handler looks for it."""
    world = World()
    topic = produce.ProduceTopic(
        name="", topic_id=b"u" * 16, partitions=(produce.ProducePartition(index=0, records=b""),)
    )
    answer = world.ask(produce.ProduceRequest(acks=1, timeout_ms=1, topics=(topic,)))
    assert errors_in(answer) == [E.UNKNOWN_TOPIC_ID]
    assert not world.handler.requests


def test_each_item_of_a_batch_of_transactions_is_judged() -> None:
    """CVE-2026-33343: only the first one was."""
    world = World()
    world.rules.deny_names("theirs")
    topics = tuple(transactions.TransactionTopic(name=name, partitions=(0, 1)) for name in ("mine", "theirs"))
    one = transactions.TransactionToExtend(transactional_id="x", producer_id=1, producer_epoch=0, topics=topics)
    answer = world.ask(transactions.AddPartitionsToTxnRequest(transactions=(one,)))
    assert errors_in(answer) == [E.OPERATION_NOT_ATTEMPTED] * 2 + [E.TOPIC_AUTHORIZATION_FAILED] * 2
    assert not world.handler.requests
    two = transactions.AddPartitionsToTxnRequest(transactions=(one, one))
    world.rules.deny_needs([table.CLUSTER_ACTION])
    assert errors_in(world.ask(two)) == [E.CLUSTER_AUTHORIZATION_FAILED]


def test_acks_0_ends_the_connection_after_the_allowed_topics_were_appended() -> None:
    world = World(lambda _request: None)
    world.rules.deny_names("theirs")
    part = (produce.ProducePartition(index=0, records=b""),)
    topics = tuple(produce.ProduceTopic(name=name, partitions=part) for name in ("mine", "theirs"))
    request = produce.ProduceRequest(acks=0, timeout_ms=1, topics=topics)
    with pytest.raises(ApiError) as refused:
        asyncio.run(world.guard(Context(), request))
    assert refused.value.code is E.TOPIC_AUTHORIZATION_FAILED
    assert [topic.name for topic in world.handler.requests[0].topics] == ["mine"]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("transactional_id", ["x", None])
def test_a_transactional_batch_anywhere_needs_the_id(place: int, transactional_id: str | None) -> None:
    """CVE-2018-17196: of mixed batches the first one decided."""
    world = World()
    world.rules.deny_needs([ID_WRITE])
    batches = [_batch(transactional=number == place) for number in range(3)]
    topics = (
        produce.ProduceTopic(name="a", partitions=(produce.ProducePartition(index=0, records=_batch(False)),)),
        produce.ProduceTopic(name="t", partitions=(produce.ProducePartition(index=0, records=b"".join(batches)),)),
    )
    request = produce.ProduceRequest(acks=1, timeout_ms=1, topics=topics, transactional_id=transactional_id)
    assert errors_in(world.ask(request)) == [E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    assert not world.handler.requests


def test_an_id_beside_records_that_are_no_transaction_needs_nothing() -> None:
    """As in Kafka."""
    world = World()
    world.rules.deny_needs([ID_WRITE])
    part = (produce.ProducePartition(index=0, records=_batch(False)),)
    request = produce.ProduceRequest(
        acks=1, timeout_ms=1, topics=(produce.ProduceTopic(name="t", partitions=part),), transactional_id="x"
    )
    world.ask(request)
    assert world.handler.requests == [request]


def _batch(transactional: bool) -> bytes:
    batch = bytearray(encode_batch([Record(0, 1, None, b"v", ())]))
    if transactional:
        batch[22] |= 0x10
    return bytes(batch)


@pytest.mark.parametrize("size", [0, -1, -(2**31), 2**31 - 1])
def test_a_batch_of_an_impossible_size_ends_the_search(size: int) -> None:
    batch = bytearray(_batch(False))
    batch[8:12] = size.to_bytes(4, "big", signed=True)
    assert not is_transactional(bytes(batch) + _batch(True))
    assert not is_transactional(b"")
    assert not is_transactional(_batch(True)[:22])


# --- what the audit log hears of changes

CHANGES = (
    "CreateTopics", "DeleteTopics", "CreatePartitions", "IncrementalAlterConfigs", "DeleteRecords", "OffsetDelete",
    "DeleteGroups", "WriteTxnMarkers", "CreateAcls", "DeleteAcls", "AlterUserScramCredentials", "AlterClientQuotas",
    "AlterReplicaLogDirs", "BringLogDirOnline", "AlterPartitionReassignments", "ElectLeaders", "UpdateFeatures",
    "UnregisterBroker", "AddRaftVoter", "RemoveRaftVoter", "TransferLeadership", "BeginImport", "FinishImport",
    "ReadMetadata", "HoldCommits",
)  # fmt: skip


@pytest.mark.parametrize("request_type", CASES, ids=lambda one: one.__name__)
def test_each_change_of_the_cluster_is_told_with_its_client(request_type: type) -> None:
    world = World(MORE_ANSWERS.get(request_type))
    world.ask(CASES[request_type].make(NAMES))
    api = request_type.__name__.removesuffix("Request")
    told = [(one.api, one.principal, one.host, one.errors) for one in world.audit.changes]
    assert told == ([(api, ALICE, "10.0.0.7", ())] if api in CHANGES else [])
    assert all(one.names for one in world.audit.changes), "whose password, which rule, which quota, which node"


TOLD = [
    (
        CreateAclsRequest(
            creations=(
                AclCreation(
                    resource_type=2, resource_name="t", principal="User:a", host="*", operation=4, permission_type=3
                ),
            )
        ),
        "User:a may WRITE topic t from anywhere",
    ),
    (
        DeleteAclsRequest(
            filters=(
                DescribeAclsRequest(resource_type_filter=2, principal_filter="User:a", operation=1, permission_type=1),
            )
        ),
        "resource_type=2, pattern_type=3, principal=User:a, operation=1, permission_type=1",
    ),
    (
        AlterUserScramCredentialsRequest(
            upsertions=(ScramUpsertion(name="bob", mechanism=2, iterations=4096, salt=b"s", salted_password=b"secret"),)
        ),
        "bob",
    ),
    (
        AlterClientQuotasRequest(
            entries=(
                QuotaAlteration(
                    entity=(QuotaEntity(entity_type="user"), QuotaEntity(entity_type="client-id", entity_name="c")),
                    ops=(QuotaOp(key="producer_byte_rate", value=1.0),),
                ),
            )
        ),
        "user=(default), client-id=c: producer_byte_rate",
    ),
    (
        DeleteAclsRequest(
            filters=(
                DescribeAclsRequest(
                    resource_type_filter=2,
                    resource_name_filter="t",
                    principal_filter="User:a",
                    host_filter="*",
                    operation=4,
                    permission_type=3,
                ),
            )
        ),
        "User:a may WRITE topic t from anywhere",
    ),
    (UnregisterBrokerRequest(broker_id=99), "99"),
]


@pytest.mark.parametrize(("request_", "told"), TOLD, ids=[type(one).__name__ for one, _ in TOLD])
def test_a_change_of_rights_users_and_quotas_says_of_what(request_: Any, told: str) -> None:
    world = World(MORE_ANSWERS.get(type(request_)))
    world.ask(request_)
    assert [one.names for one in world.audit.changes] == [(told,)]


def test_a_change_names_what_was_let_pass_and_what_failed() -> None:
    def deleted(request: Any) -> Any:
        results = (DeleteTopicResult(name=one.name, error_code=3 * (one.name == "gone")) for one in request.topics)
        return DeleteTopicsResponse(topics=tuple(results))

    world = World(deleted)
    world.rules.deny(lambda need, name: name == "theirs" or need == table.CLUSTER_DELETE)
    topics = tuple(TopicQuery(name=name) for name in ("mine", "theirs", "gone"))
    world.ask(DeleteTopicsRequest(topics=topics, timeout_ms=1))
    (told,) = world.audit.changes
    assert (told.names, told.errors) == (("mine", "gone"), (3,))


# --- fetches, sessions, streams


def _fetch_request(*names: str, session: int = 0, epoch: int = 0) -> fetch.FetchRequest:
    part = (fetch.FetchPartition(index=0, fetch_offset=0, max_bytes=100),)
    topics = tuple(fetch.FetchTopic(topic_id=b"", name=name, partitions=part) for name in names)
    return fetch.FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=100, topics=topics, session_id=session, session_epoch=epoch
    )


def _with_records(*names: str, session: int = 0) -> fetch.FetchResponse:
    part = (fetch.FetchPartitionResponse(index=0, high_watermark=5, records=b"secret"),)
    topics = tuple(fetch.FetchTopicResponse(topic_id=b"", name=name, partitions=part) for name in names)
    return fetch.FetchResponse(topics=topics, session_id=session)


@rule("security 1.9")
def test_a_long_poll_that_ends_after_a_denial_brings_no_records() -> None:
    world = World()

    def revoke(_request: Any) -> Any:
        world.rules.deny_names("b")
        return _with_records("a", "b")

    world.handler._answer = revoke
    answer = world.ask(_fetch_request("a", "b"))
    assert [topic.partitions[0].error_code for topic in answer.topics] == [0, 29]
    assert answer.topics[0].partitions[0].records == b"secret"
    assert answer.topics[1].partitions[0] == fetch.FetchPartitionResponse(index=0, error_code=29)


@rule("security 1.9")
def test_a_session_is_judged_again_after_a_change_though_no_request_names_its_topics() -> None:
    world = World(lambda _request: _with_records("a", "b", session=9))
    assert not errors_in(world.ask(_fetch_request("a", "b")))
    world.handler._answer = lambda _request: _with_records(session=9)
    assert not errors_in(world.ask(_fetch_request(session=9, epoch=1)))
    world.rules.deny_names("c")  # another topic: the session goes on
    assert not errors_in(world.ask(_fetch_request(session=9, epoch=2)))
    world.rules.deny_names("b")
    handled = len(world.handler.requests)
    assert errors_in(world.ask(_fetch_request(session=9, epoch=3))) == [E.FETCH_SESSION_ID_NOT_FOUND]
    assert len(world.handler.requests) == handled


def test_a_denied_topic_gets_no_session_so_that_it_is_told_each_time() -> None:
    world = World(lambda _request: _with_records("a"))
    world.rules.deny_names("b")
    answer = world.ask(_fetch_request("b", "a"))
    assert [topic.partitions[0].error_code for topic in answer.topics] == [29, 0]
    assert world.handler.requests[0].session_epoch == -1


def test_a_topic_that_is_not_known_stays_in_its_session_and_is_judged_once_it_is() -> None:
    """Kafka begins a session with it, too. The broker may learn of the id between two questions."""
    strange = b"s" * 16
    part = (fetch.FetchPartition(index=0, fetch_offset=0, max_bytes=100),)
    begin = replace(_fetch_request(), topics=(fetch.FetchTopic(topic_id=strange, name="", partitions=part),))
    nothing = fetch.FetchPartitionResponse(index=0, error_code=E.UNKNOWN_TOPIC_ID)
    secret = fetch.FetchPartitionResponse(index=0, high_watermark=5, records=b"secret")

    def answer(partition: fetch.FetchPartitionResponse) -> fetch.FetchResponse:
        topic = fetch.FetchTopicResponse(topic_id=strange, name="", partitions=(partition,))
        return fetch.FetchResponse(topics=(topic,), session_id=9)

    world = World(lambda _request: answer(nothing))
    assert world.ask(begin) == answer(nothing)
    assert world.handler.requests[0].session_epoch == 0
    world.rules.deny_names("late")
    assert world.ask(_fetch_request(session=9, epoch=1)) == answer(nothing), "an unknown topic denies nothing"
    world.topics.ids["late"] = strange
    world.handler._answer = lambda _request: answer(secret)
    denied = fetch.FetchPartitionResponse(index=0, error_code=E.TOPIC_AUTHORIZATION_FAILED)
    assert world.ask(_fetch_request(session=9, epoch=2)) == answer(denied)


def test_a_topic_that_joins_a_session_is_judged() -> None:
    world = World(lambda _request: _with_records("a", session=9))
    world.ask(_fetch_request("a"))
    world.rules.deny_names("b")
    assert errors_in(world.ask(_fetch_request("b", session=9, epoch=1))) == [E.FETCH_SESSION_ID_NOT_FOUND]
    world.rules.allow_all()
    world.ask(_fetch_request("a"))
    assert not errors_in(world.ask(_fetch_request("b", session=9, epoch=1)))
    world.rules.deny_names("b")
    assert errors_in(world.ask(_fetch_request(session=9, epoch=2))) == [E.FETCH_SESSION_ID_NOT_FOUND]


@rule("security 1.9")
def test_a_session_serves_nobody_but_its_client() -> None:
    world = World(lambda _request: _with_records("a", session=9))
    world.ask(_fetch_request("a"))
    other = Context(principal=Principal("User", "mallory"))
    assert errors_in(world.ask(_fetch_request(session=9, epoch=1), other)) == [E.FETCH_SESSION_ID_NOT_FOUND]
    assert not errors_in(world.ask(_fetch_request(session=9, epoch=1)))


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_session_is_ended_by_nobody_but_its_client(epoch: int) -> None:
    world = World(lambda _request: _with_records("a", session=9))
    world.ask(_fetch_request("a"))
    world.handler._answer = lambda _request: _with_records("a")
    world.ask(_fetch_request("a", session=9, epoch=epoch), Context(principal=Principal("User", "mallory")))
    assert world.handler.requests[-1].session_id == 0
    assert not errors_in(world.ask(_fetch_request(session=9, epoch=1)))
    world.ask(_fetch_request("a", session=9, epoch=epoch))
    assert world.handler.requests[-1].session_id == 9
    assert errors_in(world.ask(_fetch_request(session=9, epoch=2))) == [E.FETCH_SESSION_ID_NOT_FOUND]


def test_what_is_remembered_of_a_session_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client may name other topics with each request, and give them up at once: a prefix allows it any names."""
    monkeypatch.setattr(of_fetch, "MAX_TOPICS_OF_SESSION", 10)
    world = World(lambda _request: _with_records("a", session=9))
    world.ask(_fetch_request("a"))
    for number in range(1, 11):
        assert not errors_in(world.ask(_fetch_request(f"a{number}", session=9, epoch=number)))
    assert errors_in(world.ask(_fetch_request(session=9, epoch=11))) == [E.FETCH_SESSION_ID_NOT_FOUND]


def test_no_long_name_is_remembered_of_a_session() -> None:
    sessions = FetchSessionRights()
    ask = World().guard._asker(Context(), _fetch_request("a"))
    sessions.begun(ask, 1, 1, _fetch_request("a" * 100_000).topics)
    sessions.named(_fetch_request("b" * 100_000, "c", session=1))
    assert sorted(len(name) for name, _ in sessions._sessions[1].topics) == [1, 250, 250]


def test_what_is_remembered_of_all_sessions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_fetch, "MAX_TOPICS", 5)
    sessions = FetchSessionRights()
    ask = World().guard._asker(Context(), _fetch_request("a"))
    for number in range(1, 4):
        sessions.begun(ask, number, 1, _fetch_request("a", "b").topics)
        sessions.begun(ask, number, 1, _fetch_request("a", "b").topics)  # the same again
    assert (len(sessions), sessions.topics) == (2, 4)
    sessions.named(_fetch_request("b", "c", "d", session=3))
    assert (len(sessions), sessions.topics) == (1, 4)
    sessions.end(3)
    assert sessions.topics == 0


def test_remembered_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_fetch, "MAX_SESSIONS", 3)
    world = World()
    sessions = FetchSessionRights()
    ask = world.guard._asker(Context(), _fetch_request("a"))
    for number in range(1, 8):
        sessions.begun(ask, number, 1, _fetch_request("a").topics)
    assert len(sessions) == 3
    sessions.check(ask, _fetch_request(session=7, epoch=1))
    with pytest.raises(ApiError):
        sessions.check(ask, _fetch_request(session=4, epoch=1))


@rule("security 1.9")
def test_each_message_of_a_stream_is_judged() -> None:
    world = World(lambda _request: fetch.FetchChunkResponse(records=b"secret", fetch=_with_records("a")))
    begin = fetch.FetchChunkRequest(fetch=_fetch_request("a"))
    assert world.ask(begin).records == b"secret"
    world.rules.deny_names("a")
    answer = world.ask(fetch.FetchChunkRequest())
    # A message is judged by the rules of its own moment, also where they changed before it was asked for.
    assert answer.records == b""
    assert errors_in(answer) == [E.TOPIC_AUTHORIZATION_FAILED]


def test_groups_and_their_topics_are_judged_apart() -> None:
    def found(request: Any) -> Any:
        topics = (groups.OffsetFetchTopicResult(name="t"), groups.OffsetFetchTopicResult(name="hidden"))
        return groups.OffsetFetchResponse(
            groups=tuple(groups.OffsetFetchGroupResult(group_id=one.group_id, topics=topics) for one in request.groups)
        )

    world = World(found)
    world.rules.deny_names("hidden", "theirs")
    asked = tuple(groups.OffsetFetchGroup(group_id=name) for name in ("theirs", "mine"))
    answer = world.ask(groups.OffsetFetchRequest(groups=asked))
    assert [(one.group_id, one.error_code) for one in answer.groups] == [("theirs", 30), ("mine", 0)]
    assert [topic.name for topic in answer.groups[1].topics] == ["t"]


def test_each_right_of_an_offset_commit_in_a_transaction_has_its_own_error() -> None:
    request = CASES[transactions.TxnOffsetCommitRequest].make(NAMES)
    for need, code in ((ID_WRITE, 53), (GROUP_READ, 30), (TOPIC_READ, 29)):
        world = World()
        world.rules.deny_needs([need])
        assert errors_in(world.ask(request)) == [code]
    assert TOPIC_WRITE.denied is E.TOPIC_AUTHORIZATION_FAILED
