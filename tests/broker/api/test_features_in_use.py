"""A downgrade of a feature that groups or transactions use: every coordinator is asked, and none may need the level."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from broker_fakes import FakeContext, FakeController, Fakes, image_of, topic_records, usual_image, uuid

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import (
    FeatureUpdate,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from quorumlog.messages.joint import ListedJointGroup, ListJointRequest, ListJointResponse, OpenJointChild
from quorumlog.messages.metadata_records import FeatureLevelRecord
from quorumlog.messages.transactions import ListedTransaction, ListTransactionsRequest, ListTransactionsResponse
from quorumlog.rpc.transport import NotDelivered
from quorumlog.settings.groups import GroupConfig
from quorumlog_broker.api.handlers import HANDLERS
from quorumlog_broker.api.services import Services
from quorumlog_broker.coordinator.groups.shard import GroupShard
from quorumlog_quorum.metadata.image import Image
from tests.rules import rule

GV, TV, JV = "group.version", "transaction.version", "joint.version"
TOPICS = {GV: "__consumer_offsets", TV: "__transaction_state"}


@dataclass
class FakePeers:
    """Every other broker gives these answers."""

    groups: tuple[str, ...] = ()
    transactions: dict[str, int] = field(default_factory=dict)  # id -> version
    joint: tuple[ListedJointGroup, ...] = ()
    joint_version: int = 1
    error: Exception | None = None
    asked: list[tuple[int, Any]] = field(default_factory=list)

    async def call(self, broker: int, request: Any) -> Any:
        self.asked.append((broker, request))
        if self.error is not None:
            raise self.error
        if isinstance(request, ListGroupsRequest):
            assert request.types == ("consumer",)
            return ListGroupsResponse(
                groups=tuple(
                    ListedGroup(group_id=name, protocol_type="consumer", state="Empty", group_type="consumer")
                    for name in self.groups
                )
            )
        if isinstance(request, ListJointRequest):
            return ListJointResponse(groups=self.joint, joint_version=self.joint_version)
        assert isinstance(request, ListTransactionsRequest) and "Ongoing" in request.state_filters
        return ListTransactionsResponse(
            transactions=tuple(
                ListedTransaction(transactional_id=name, producer_id=1, state="Ongoing", transaction_version=version)
                for name, version in self.transactions.items()
            )
        )


def image(leaders: list[int] | None, *, group: int = 1, transaction: int = 2, joint: int = 1) -> Image:
    """leaders: of the partitions of both internal topics; None: nobody has made them."""
    levels = {GV: group, TV: transaction, JV: joint}
    records: list[Any] = [FeatureLevelRecord(name=name, level=level) for name, level in levels.items()]
    for number, name in enumerate(TOPICS.values()):
        records += [] if leaders is None else topic_records(name, uuid(900 + number), leaders)
    return image_of(records, usual_image())


class NothingHere:
    """A coordinator of this broker, of groups or of transactions."""

    def __init__(self) -> None:
        self._shard = GroupShard(GroupConfig(), str)

    def check_active(self) -> None:
        """It is."""

    async def list(self, *_: Any) -> tuple[()]:
        return ()

    async def list_joint(self) -> tuple[()]:
        return ()


def take_up(services: Services, found: Image) -> None:
    """Make coordinators of what broker 1 leads."""
    for coordinators in (services.groups, services.transactions.coordinators):
        topic = found.topic(coordinators.TOPIC)
        for index, partition in {} if topic is None else topic.partitions.items():
            assert topic is not None
            if partition.leader == 1:
                coordinators._led[topic.id, index] = NothingHere()  # type: ignore[assignment]


def lower(
    found: Image, peers: FakePeers, *updates: tuple[str, int], validate_only: bool = True, taken_up: bool = True
) -> FakeController:
    """validate_only: so that the broker waits for no metadata. Raises ApiError."""
    fakes = Fakes()
    fakes.subscription.image = found
    fakes.controller.answers = [UpdateFeaturesResponse()]
    request = UpdateFeaturesRequest(
        updates=tuple(FeatureUpdate(name=name, level=level, upgrade_type=2) for name, level in updates),
        timeout_ms=1_000,
        validate_only=validate_only,
    )

    async def run() -> None:
        services = fakes.services()
        services.transactions.peers = peers  # type: ignore[assignment]
        if taken_up:
            take_up(services, found)
        await HANDLERS[UpdateFeaturesRequest](services, FakeContext(), request)

    asyncio.run(run())
    return fakes.controller


def refusal(found: Image, peers: FakePeers, *updates: tuple[str, int]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        lower(found, peers, *updates)
    return caught.value


def test_every_other_broker_that_leads_a_partition_is_asked_once() -> None:
    peers = FakePeers()
    lower(image([1, 2, 2, 1]), peers, (GV, 0), (TV, 1), (JV, 0))
    assert [(broker, type(request)) for broker, request in peers.asked] == [
        (2, ListGroupsRequest),
        (2, ListTransactionsRequest),
        (2, ListJointRequest),
    ]


NOT_ASKED = [
    ("no level falls", image([2]), [(GV, 1), (TV, 2)]),
    ("a level rises", image([2], group=0, transaction=1), [(GV, 1), (TV, 2)]),
    ("another feature", image([2]), [("metadata.version", 3)]),
    ("nobody has made the topics", image(None), [(GV, 0), (TV, 0)]),
    ("no level at all", image([2]), [(TV, -1), (JV, -1)]),
    ("joint transactions begin no more", image([2], joint=2), [(JV, 1)]),
    ("joint transactions are off", image([2], joint=0), [(JV, 0)]),
]


@pytest.mark.parametrize(("found", "updates"), [one[1:] for one in NOT_ASKED], ids=[one[0] for one in NOT_ASKED])
def test_nobody_is_asked_where_nothing_is_taken_away(found: Image, updates: list[tuple[str, int]]) -> None:
    peers = FakePeers(error=AssertionError("asked"))
    lower(found, peers, *updates)


@rule("kraft 12.17", "group 5.12")
def test_a_group_of_the_consumer_protocol_is_in_the_way_by_its_name() -> None:
    error = refusal(image([1, 2]), FakePeers(groups=("flights",)), (GV, 0))
    assert error.code is ErrorCode.INVALID_UPDATE_VERSION
    assert "group 'flights' of the consumer protocol (KIP-848) exists" in error.message


def test_of_many_groups_some_are_named() -> None:
    error = refusal(image([2]), FakePeers(groups=("d", "b", "a", "c", "e")), (GV, 0))
    assert "groups 'a', 'b', 'c' and 2 more of the consumer protocol (KIP-848) exist." in error.message


OPEN = [(2, 1, True), (2, 0, True), (1, 0, True), (1, 1, False), (0, 0, False)]


@rule("kraft 12.17", "group 5.12")
@pytest.mark.parametrize(("version", "level", "refused"), OPEN)
def test_an_open_transaction_of_a_higher_level_is_in_the_way(version: int, level: int, refused: bool) -> None:
    peers = FakePeers(transactions={"x": version})
    if not refused:
        lower(image([2]), peers, (TV, level))
        return
    error = refusal(image([2]), peers, (TV, level))
    assert error.code is ErrorCode.INVALID_UPDATE_VERSION
    assert "transaction 'x' of a higher level is open" in error.message


CHILD = OpenJointChild(transactional_id="joint:q:0:1", run="r", sequence=0, started_at_ms=0, timeout_ms=1, location="")
JOINT = [
    ("a child is open", ListedJointGroup(group_id="q", open=(CHILD,)), True),
    ("markers are to be written", ListedJointGroup(group_id="q", sequence=0, ending=1), True),
    ("it has decided and is at rest", ListedJointGroup(group_id="q", sequence=0), False),
]


@pytest.mark.parametrize(("group", "refused"), [one[1:] for one in JOINT], ids=[one[0] for one in JOINT])
def test_what_is_open_of_a_joint_group_is_in_the_way(group: ListedJointGroup, refused: bool) -> None:
    peers = FakePeers(joint=(group,))
    if not refused:
        lower(image([2]), peers, (JV, 0))
        return
    error = refusal(image([2]), peers, (JV, 0))
    assert error.code is ErrorCode.INVALID_UPDATE_VERSION
    assert "group 'q' of joint transactions is open. Stop the queries" in error.message


def test_joint_transactions_are_left_in_two_steps() -> None:
    peers = FakePeers(error=AssertionError("asked"))
    error = refusal(image([2], joint=2), peers, (JV, 0))
    assert error.code is ErrorCode.INVALID_UPDATE_VERSION and "set it to 1 first" in error.message


def test_a_coordinator_that_has_not_heard_of_the_first_step_may_begin_one() -> None:
    error = refusal(image([2]), FakePeers(joint_version=2), (JV, 0))
    assert error.code is ErrorCode.FEATURE_UPDATE_FAILED
    assert "broker 2 does not know yet that none may begin" in error.message


UNKNOWN = [
    ("a broker is gone", [2], FakePeers(error=NotDelivered("refused")), "broker 2 did not say so: refused"),
    (
        "a coordinator loads",
        [2],
        FakePeers(error=ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "loading")),
        "broker 2 did not say so",
    ),
    ("no leader", [1, -1], FakePeers(), "-1 has no leader now"),
    ("a fenced leader", [3], FakePeers(), "-0 has no leader now"),
]


@rule("kraft 12.17")
@pytest.mark.parametrize(("feature", "level"), [(GV, 0), (TV, 1), (JV, 0)], ids=[GV, TV, JV])
@pytest.mark.parametrize(("leaders", "peers", "says"), [one[1:] for one in UNKNOWN], ids=[one[0] for one in UNKNOWN])
def test_a_coordinator_that_says_nothing_may_know_of_one(
    feature: str, level: int, leaders: list[int], peers: FakePeers, says: str
) -> None:
    error = refusal(image(leaders), peers, (feature, level))
    assert error.code is ErrorCode.FEATURE_UPDATE_FAILED
    assert error.message.startswith(f"{feature} stays") and says in error.message


@rule("group 1.6")
@pytest.mark.parametrize(("feature", "level"), [(GV, 0), (TV, 1), (JV, 0)], ids=[GV, TV, JV])
def test_a_broker_that_was_elected_a_moment_ago_does_not_know_what_it_coordinates(feature: str, level: int) -> None:
    with pytest.raises(ApiError, match="broker 1 did not say so: COORDINATOR_LOAD_IN_PROGRESS") as caught:
        lower(image([2, 1]), FakePeers(), (feature, level), taken_up=False)
    assert caught.value.code is ErrorCode.FEATURE_UPDATE_FAILED
