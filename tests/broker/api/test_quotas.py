"""Produce and fetch under quotas: what counts, for whom, and what a client that is held back gets."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from broker_fakes import ORDERS, FakeContext, Fakes, image_of, usual_image
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.ids import NodeId
from quorumlog.messages.cluster import CreateTopicsRequest, CreateTopicsResponse
from quorumlog.messages.common import QuotaEntity
from quorumlog.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from quorumlog.messages.metadata_records import ClientQuotaRecord
from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceTopic
from quorumlog.messages.quotas import DescribeQuotaUseRequest
from quorumlog.proof.peer import Peer
from quorumlog.rpc.envelope import seal_answer
from quorumlog.rpc.transport import Context
from quorumlog.security.principal import Principal
from quorumlog.slices import at_once
from quorumlog_broker.api.handlers import HANDLERS
from quorumlog_broker.api.on_behalf import OnBehalf
from quorumlog_broker.api.quotas import BrokerQuotas
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.image_diff import delta_between
from quorumlog_quorum.metadata.quotas_in_force import QuotasInForce
from tests.parts import few
from tests.rules import rule

IN, OUT = "producer_byte_rate", "consumer_byte_rate"
ADA = FakeContext(principal=Principal("User", "ada"), client_id="c")
FOLLOWER = FakeContext(peer=Peer(cluster_id="cluster", node_id=NodeId(2), incarnation_id=bytes(16)))
BOB = FakeContext(principal=Principal("User", "bob"), client_id="c")


def quota(key: str, value: float, *, remove: bool = False, **entity: str | None) -> ClientQuotaRecord:
    parts = tuple(QuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity.items())
    return ClientQuotaRecord(entity=parts, key=key, value=value, remove=remove)


def fakes(*quotas: ClientQuotaRecord) -> Fakes:
    found = Fakes()
    publish(found, image_of(quotas, usual_image()))
    return found


def publish(fakes: Fakes, image: Image) -> None:
    delta = at_once(delta_between(fakes.subscription.image, image))
    fakes.subscription.image = image
    assert QuotasInForce(fakes.quotas).on_image(delta, image) is None


def node(fakes: Fakes) -> Any:
    """Asks handlers of one broker, which remembers what was used."""
    services = fakes.services()

    async def run(request: Any, context: FakeContext) -> Any:
        return await HANDLERS[type(request)](services, context, request)

    return lambda request, context=ADA: asyncio.run(run(request, context))


def produce(size_bytes: int, acks: int = 1) -> ProduceRequest:
    partition = ProducePartition(index=0, records=bytes(size_bytes))
    return ProduceRequest(acks=acks, timeout_ms=1, topics=(ProduceTopic(name="orders", partitions=(partition,)),))


def fetch(session_id: int = 0, session_epoch: int = -1, named: bool = True) -> FetchRequest:
    partitions = (FetchPartition(index=0, fetch_offset=0, max_bytes=1 << 20),)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=(FetchTopic(topic_id=ORDERS, name="orders", partitions=partitions),) if named else (),
    )


def test_what_is_produced_is_taken_and_paid_for_after() -> None:
    found = fakes(quota(IN, 100, user="ada"))
    ask = node(found)
    answer = ask(produce(1_500))
    assert answer.throttle_time_ms == 5_000 and len(found.replicas.appended) == 1
    assert answer.topics[0].partitions[0].error_code == 0
    assert ask(produce(10), BOB).throttle_time_ms == 0
    found.clock.time_ms += 11_000
    assert ask(produce(10)).throttle_time_ms == 0


def test_without_acks_the_client_is_held_back_too() -> None:
    ask = node(fakes(quota(IN, 100, user="ada")))
    assert ask(produce(1_000, acks=0)) is None
    assert ask(produce(500, acks=0)).throttle_time_ms == 5_000  # the wire sends nothing of it


def test_the_most_fetched_at_once_is_ten_seconds_worth() -> None:
    found = fakes(quota(OUT, 20, **{"client-id": None}))
    node(found)(fetch())
    assert found.replicas.fetched[0].max_bytes == 200  # the broker's own limit is 500
    node(found)(fetch(), FOLLOWER)
    assert found.replicas.fetched[1].max_bytes == 500


def test_a_reader_above_its_quota_gets_no_records_and_its_session_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    found = fakes(quota(OUT, 100, user="ada"))
    ask = node(found)
    waits = [0]
    monkeypatch.setattr(BrokerQuotas, "before_fetch", lambda _self, _context: waits[0])
    session = ask(fetch(session_epoch=0)).session_id
    assert session
    waits[0], reads = 700, len(found.replicas.fetched)
    held = ask(fetch(session, 1, named=False))
    assert (held.topics, held.throttle_time_ms, held.session_id, held.error_code) == ((), 700, session, 0)
    assert ask(fetch()).throttle_time_ms == 700, "also a request for all"
    assert len(found.replicas.fetched) == reads, "it is decided before anything is read"
    waits[0] = 0
    assert ask(fetch(session, 2, named=False)).error_code == 0 and len(found.replicas.fetched) == reads + 1


@rule("security 1.23")
def test_what_is_put_off_counts_nothing() -> None:
    quotas = fakes(quota(OUT, 100, user="ada")).services().quotas
    held_ms = quotas.fetched(ADA, 5_000)
    assert held_ms > 0
    assert [quotas.before_fetch(ADA) for _ in range(3)] == [held_ms] * 3


def test_use_counts_from_the_metadata_as_it_is() -> None:
    found = fakes()
    services = found.services()
    quotas = services.quotas
    assert quotas.produced(ADA, 1_500) == 0 and quotas.most_fetched(ADA, 77) == 77
    publish(found, image_of([quota(IN, 100, user="ada"), quota(OUT, 1, user="ada")], usual_image()))
    assert quotas.produced(ADA, 1_500) == 5_000 and quotas.most_fetched(ADA, 77) == 10
    assert quotas.fetched(ADA, 15) == 5_000 and quotas.before_fetch(ADA) == 5_000
    found.clock.time_ms += 5_000
    assert quotas.before_fetch(ADA) == 0, "served by the deadline"
    publish(
        found,
        image_of(
            [quota(IN, 100, user="ada", remove=True), quota(OUT, 1, user="ada", remove=True)], found.subscription.image
        ),
    )
    assert quotas.produced(ADA, 10**9) == 0 and quotas.before_fetch(ADA) == 0


def test_the_controller_is_told_for_whom_topics_are_made_where_that_has_a_quota() -> None:
    request = CreateTopicsRequest(topics=(), timeout_ms=1)
    plain = fakes(quota(IN, 1, user="ada"))
    plain.controller.answers.append(CreateTopicsResponse())
    node(plain)(request)
    assert plain.controller.calls == [request]
    found = fakes(quota("controller_mutation_rate", 1, user="bob"))
    assert isinstance(found.services().controller_for(cast(Context, ADA)), OnBehalf)
    found.controller.answers.append(seal_answer(CreateTopicsResponse(throttle_time_ms=700)))
    assert node(found)(request).throttle_time_ms == 700
    (envelope,) = found.controller.calls
    assert (envelope.principal_name, envelope.client_id) == ("ada", "c")


def test_who_uses_most_of_its_quota_comes_first() -> None:
    found = fakes(quota(IN, 100, user="ada"), quota(IN, 1_000, user="bob"), quota(OUT, 100, **{"client-id": "c"}))
    ask = node(found)
    assert ask(DescribeQuotaUseRequest(max_results=5)).uses == ()
    ask(produce(1_500))
    ask(produce(1_500), BOB)
    found.clock.time_ms += 2_000
    ask(produce(100))
    both = ask(DescribeQuotaUseRequest(max_results=5)).uses
    assert [(one.user, one.client_id, one.rate, one.quota) for one in both] == [
        ("ada", None, 160.0, 100.0),
        ("bob", None, 150.0, 1_000.0),
    ]
    assert [one.throttled_ms for one in both] == [2_000 + 6_000, 0], "what was waited, and what is to be waited yet"
    assert [one.user for one in ask(DescribeQuotaUseRequest(max_results=1)).uses] == ["ada"]
    assert ask(DescribeQuotaUseRequest(max_results=-1)).uses == ()


ENTITIES = st.sampled_from([{"user": None}, {"client-id": None}, {"user": "2"}, {"user": "ada"}, {"client-id": "test"}])


@settings(max_examples=few(50))
@given(
    st.lists(st.tuples(st.sampled_from([IN, OUT]), st.floats(1, 100).map(int), ENTITIES), max_size=5),
    st.lists(st.tuples(st.sampled_from([IN, OUT]), st.integers(0, 10**9), st.integers(0, 5_000)), max_size=20),
)
def test_replicas_are_never_held_back(quotas: list[Any], uses: list[tuple[str, int, int]]) -> None:
    """Invariant 24 of security, whatever quotas there are and whatever clients use."""
    made = {(key, repr(entity)): quota(key, value, **entity) for key, value, entity in quotas}
    found = fakes(*made.values())
    of_broker = found.services().quotas
    for key, size, after in uses:
        found.clock.time_ms += after
        of_broker.produced(ADA, size)
        assert (of_broker.produced if key == IN else of_broker.fetched)(FOLLOWER, size) == 0
        assert of_broker.before_fetch(FOLLOWER) == 0 and of_broker.most_fetched(FOLLOWER, 10**9) == 10**9


@rule("security 1.24")
def test_nodes_have_no_quota() -> None:
    quotas = fakes(quota(IN, 1, user=None), quota(OUT, 1, user=None)).services().quotas
    assert (quotas.produced(FOLLOWER, 10**6), quotas.fetched(FOLLOWER, 10**6), quotas.before_fetch(FOLLOWER)) == (
        0,
        0,
        0,
    )
