"""Records and images for the tests of the metadata package."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from quorumlog.messages.common import Endpoint, FeatureRange, QuotaEntity
from quorumlog.messages.metadata_records import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ChangedByRecord,
    ClientQuotaRecord,
    ClusterIncarnationRecord,
    ConfigRecord,
    DelegationTokenRecord,
    DeletedTopicRecord,
    DirectoryList,
    FeatureLevelRecord,
    ForgetDeletedTopicsRecord,
    MetadataRecord,
    NodeList,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
)
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.frame import ReplayError
from quorumlog_quorum.metadata.image import EMPTY, Image


def uuid(number: int) -> bytes:
    """A readable id, above the reserved ones."""
    return (1000 + number).to_bytes(16, "big")


def register(
    broker_id: int,
    *,
    fenced: bool = False,
    epoch: int = 0,
    rack: str | None = None,
    features: tuple[FeatureRange, ...] = (),
    cordoned: tuple[bytes, ...] = (),
) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=uuid(100 + broker_id),
        broker_epoch=epoch,
        endpoints=(Endpoint(name="INTERNAL", host="127.0.0.1", port=9000 + broker_id),),
        rack=rack,
        fenced=fenced,
        log_directories=(uuid(200 + broker_id),),
        features=features,
        cordoned_directories=cordoned,
    )


def register_controller(controller_id: int, incarnation: int = 0) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller_id,
        incarnation_id=uuid(300 + 10 * controller_id + incarnation),
        endpoints=(Endpoint(name="INTERNAL", host="127.0.0.1", port=9000 + controller_id),),
        features=(FeatureRange(name="metadata.version", min_level=1, max_level=3),),
    )


def partition(index: int, replicas: tuple[int, ...], topic: int = 1) -> PartitionRecord:
    """Every replica is in sync; the first one leads."""
    return PartitionRecord(
        partition=index,
        topic_id=uuid(topic),
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        directories=tuple(uuid(200 + broker_id) for broker_id in replicas),
    )


EVERY_RECORD: tuple[MetadataRecord, ...] = (
    FeatureLevelRecord(name="metadata.version", level=3),
    register(1),
    register(2, fenced=True, rack="r"),
    TopicRecord(name="t", topic_id=uuid(1)),
    partition(0, (1, 2)),
    partition(1, (2, 1)),
    ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="5"),
    ConfigRecord(resource_type=2, resource_name="t", name="segment.ms", value="6"),
    ConfigRecord(resource_type=2, resource_name="t", name="segment.ms"),
    PartitionChangeRecord(
        partition=1,
        topic_id=uuid(1),
        isr=NodeList(nodes=(1,)),
        leader=1,
        eligible_leader_replicas=NodeList(nodes=()),
        directories=DirectoryList(directories=(uuid(7), uuid(8))),
    ),
    ProducerIdsRecord(broker_id=1, broker_epoch=0, next_producer_id=1000),
    BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=0, fenced=False),
    TopicRecord(name="gone", topic_id=uuid(2)),
    partition(0, (1,), topic=2),
    ConfigRecord(resource_type=2, resource_name="gone", name="retention.ms", value="5"),
    RemoveTopicRecord(topic_id=uuid(2)),
    UnregisterBrokerRecord(broker_id=2, broker_epoch=0),
    NoOpRecord(),
    FeatureLevelRecord(name="metadata.version", level=3),
    register_controller(1),
    register_controller(2),
    UnregisterControllerRecord(controller_id=2),
    DeletedTopicRecord(topic_id=uuid(3), name="old", offset=2),
    DeletedTopicRecord(topic_id=uuid(4), name="older", offset=1),
    ForgetDeletedTopicsRecord(topic_ids=(uuid(3),)),
    ChangedByRecord(principal="User:alice", host="10.0.0.1", client_id="ops"),
)


def rule(number: int) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=uuid(400 + number),
        resource_type=2,
        resource_name="t",
        pattern_type=3,
        principal=f"User:{number}",
        host="*",
        operation=3,
        permission_type=3,
    )


def credential(name: str, iterations: int = 4096) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(
        name=name, mechanism=1, salt=b"salt", stored_key=b"stored", server_key=b"server", iterations=iterations
    )


def quota(value: float, *entity: tuple[str, str | None], remove: bool = False) -> ClientQuotaRecord:
    parts = tuple(QuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity)
    return ClientQuotaRecord(entity=parts, key="producer_byte_rate", value=value, remove=remove)


AT_LEVEL_5: tuple[MetadataRecord, ...] = (
    FeatureLevelRecord(name="metadata.version", level=5),
    rule(1),
    rule(2),
    RemoveAccessControlEntryRecord(id=uuid(401)),
    credential("b"),
    credential("a"),
    credential("a", 8192),
    RemoveUserScramCredentialRecord(name="b", mechanism=1),
    quota(1024.5, ("user", "x"), ("client-id", None)),
    quota(0.0, ("user", None)),
    quota(2.0, ("user", "")),
    quota(9.0, ("client-id", None), ("user", "x")),
    quota(0.0, ("user", ""), remove=True),
)


def token(token_id: str, expires: int = 20) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner="User:o",
        requester="User:q",
        renewers=("User:r", "User:s"),
        issue_timestamp=10,
        max_timestamp=30,
        expiration_timestamp=expires,
        token_id=token_id,
    )


AT_LEVEL_6: tuple[MetadataRecord, ...] = (
    FeatureLevelRecord(name="metadata.version", level=6),
    quota(2.0, ("user", "")),
    token("b"),
    token("a"),
    token("a", expires=25),
    RemoveDelegationTokenRecord(token_id="b"),
)


AT_LEVEL_7: tuple[MetadataRecord, ...] = (
    FeatureLevelRecord(name="metadata.version", level=7),
    register(7, cordoned=(uuid(207), uuid(208))),
    BrokerRegistrationChangeRecord(
        broker_id=7, broker_epoch=0, cordoned_directories=DirectoryList(directories=(uuid(207),))
    ),
)


AT_LEVEL_3: tuple[MetadataRecord, ...] = (
    FeatureLevelRecord(name="metadata.version", level=3),
    ClusterIncarnationRecord(number=1, id=uuid(9)),
)


def image_of(records: Iterable[MetadataRecord], base: Image = EMPTY) -> Image:
    delta = Delta(base)
    offset = base.offset
    for record in records:
        delta.replay(record)
        offset += 1
    return delta.apply(offset, 1)


def fitting_image(records: Iterable[MetadataRecord]) -> Image:
    """The image of those records that fit what came before them."""
    delta, offset = Delta(EMPTY), 0
    for record in records:
        try:
            delta.replay(record)
        except ReplayError:
            continue
        offset += 1
    return delta.apply(offset, 1)


small = st.integers(0, 3)
any_features = st.sampled_from([(), (FeatureRange(name="metadata.version", min_level=1, max_level=2),)])

any_cordoned = st.sampled_from([(), (uuid(200),), (uuid(200), uuid(201))])

any_record: st.SearchStrategy[MetadataRecord] = st.one_of(
    st.builds(register, small, fenced=st.booleans(), features=any_features, cordoned=any_cordoned),
    st.builds(UnregisterBrokerRecord, broker_id=small, broker_epoch=st.just(0)),
    st.builds(TopicRecord, name=st.sampled_from("abc"), topic_id=small.map(uuid)),
    st.builds(partition, small, st.permutations([0, 1, 2]).map(tuple), topic=small),
    st.builds(
        ConfigRecord,
        resource_type=st.just(2),
        resource_name=st.sampled_from("abc"),
        name=st.sampled_from(["retention.ms", "segment.ms"]),
        value=st.none() | st.sampled_from("12"),
    ),
    st.builds(
        PartitionChangeRecord,
        partition=small,
        topic_id=small.map(uuid),
        isr=st.none() | st.lists(small, unique=True).map(lambda nodes: NodeList(nodes=tuple(nodes))),
        leader=st.none() | st.integers(-1, 3),
    ),
    st.builds(RemoveTopicRecord, topic_id=small.map(uuid)),
    st.builds(ForgetDeletedTopicsRecord, topic_ids=st.lists(small.map(uuid), max_size=2, unique=True).map(tuple)),
    st.builds(FeatureLevelRecord, name=st.sampled_from("fg"), level=small),
    st.builds(ProducerIdsRecord, broker_id=small, broker_epoch=small, next_producer_id=st.integers(0, 9)),
    st.builds(
        BrokerRegistrationChangeRecord,
        broker_id=small,
        broker_epoch=st.just(0),
        fenced=st.none() | st.booleans(),
        cordoned_directories=st.none() | any_cordoned.map(lambda ids: DirectoryList(directories=ids)),
    ),
    st.just(NoOpRecord()),
    st.builds(ChangedByRecord, principal=st.just("User:a"), host=st.just(""), client_id=st.sampled_from("xy")),
    st.builds(register_controller, small, small),
    st.builds(UnregisterControllerRecord, controller_id=small),
    st.builds(rule, small),
    st.builds(RemoveAccessControlEntryRecord, id=st.integers(400, 403).map(uuid)),
    st.builds(credential, st.sampled_from("ab"), small),
    st.builds(RemoveUserScramCredentialRecord, name=st.sampled_from("ab"), mechanism=st.just(1)),
    st.builds(
        lambda value, names, remove: quota(value, *names, remove=remove),
        st.sampled_from([0.0, 1.5]),
        st.lists(st.sampled_from([("user", None), ("user", ""), ("user", "x"), ("ip", "y")]), max_size=2),
        st.booleans(),
    ),
)
