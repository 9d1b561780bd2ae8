"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/metadata_records.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.metadata_records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ChangedByRecord,
    ClientQuotaRecord,
    ClusterIncarnationRecord,
    ConfigRecord,
    DelegationTokenRecord,
    DeletedTopicRecord,
    DirectoryList,
    EndTransactionRecord,
    FeatureLevelRecord,
    ForgetDeletedTopicsRecord,
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
    SnapshotStateRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
)
from quorumlog.rpc.convert.common import (
    fill_Endpoint,
    fill_FeatureRange,
    fill_QuotaEntity,
    read_Endpoint,
    read_FeatureRange,
    read_QuotaEntity,
)
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.convert.record_type import RecordType
from quorumlog.rpc.pb import metadata_records_pb2 as pb


def fill_RegisterBrokerRecord(m: RegisterBrokerRecord, p: pb.RegisterBrokerRecord) -> None:
    p.broker_id = m.broker_id
    p.incarnation_id = m.incarnation_id
    p.broker_epoch = m.broker_epoch
    for x_endpoints in m.endpoints:
        fill_Endpoint(x_endpoints, p.endpoints.add())
    if m.rack is not None:
        p.rack = m.rack
    p.fenced = m.fenced
    p.in_controlled_shutdown = m.in_controlled_shutdown
    p.log_directories.extend(m.log_directories)
    for x_features in m.features:
        fill_FeatureRange(x_features, p.features.add())
    p.cordoned_directories.extend(m.cordoned_directories)


def read_RegisterBrokerRecord(p: pb.RegisterBrokerRecord) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=p.broker_id,
        incarnation_id=p.incarnation_id,
        broker_epoch=p.broker_epoch,
        endpoints=tuple([read_Endpoint(x) for x in p.endpoints]),
        rack=p.rack if p.HasField("rack") else None,
        fenced=p.fenced,
        in_controlled_shutdown=p.in_controlled_shutdown,
        log_directories=tuple(p.log_directories[:]),
        features=tuple([read_FeatureRange(x) for x in p.features]),
        cordoned_directories=tuple(p.cordoned_directories[:]),
    )


def encode_RegisterBrokerRecord(m: RegisterBrokerRecord) -> bytes:
    p = pb.RegisterBrokerRecord()
    fill_RegisterBrokerRecord(m, p)
    return p.SerializeToString()


def decode_RegisterBrokerRecord(data: Buffer) -> RegisterBrokerRecord:
    return read_RegisterBrokerRecord(parse(pb.RegisterBrokerRecord, data))


def fill_UnregisterBrokerRecord(m: UnregisterBrokerRecord, p: pb.UnregisterBrokerRecord) -> None:
    p.broker_id = m.broker_id
    p.broker_epoch = m.broker_epoch


def read_UnregisterBrokerRecord(p: pb.UnregisterBrokerRecord) -> UnregisterBrokerRecord:
    return UnregisterBrokerRecord(
        broker_id=p.broker_id,
        broker_epoch=p.broker_epoch,
    )


def encode_UnregisterBrokerRecord(m: UnregisterBrokerRecord) -> bytes:
    p = pb.UnregisterBrokerRecord()
    fill_UnregisterBrokerRecord(m, p)
    return p.SerializeToString()


def decode_UnregisterBrokerRecord(data: Buffer) -> UnregisterBrokerRecord:
    return read_UnregisterBrokerRecord(parse(pb.UnregisterBrokerRecord, data))


def fill_TopicRecord(m: TopicRecord, p: pb.TopicRecord) -> None:
    p.name = m.name
    p.topic_id = m.topic_id


def read_TopicRecord(p: pb.TopicRecord) -> TopicRecord:
    return TopicRecord(
        name=p.name,
        topic_id=p.topic_id,
    )


def encode_TopicRecord(m: TopicRecord) -> bytes:
    p = pb.TopicRecord()
    fill_TopicRecord(m, p)
    return p.SerializeToString()


def decode_TopicRecord(data: Buffer) -> TopicRecord:
    return read_TopicRecord(parse(pb.TopicRecord, data))


def fill_PartitionRecord(m: PartitionRecord, p: pb.PartitionRecord) -> None:
    p.partition = m.partition
    p.topic_id = m.topic_id
    p.replicas.extend(m.replicas)
    p.isr.extend(m.isr)
    p.removing_replicas.extend(m.removing_replicas)
    p.adding_replicas.extend(m.adding_replicas)
    p.leader = m.leader
    p.leader_recovery_state = m.leader_recovery_state
    p.leader_epoch = m.leader_epoch
    p.partition_epoch = m.partition_epoch
    p.directories.extend(m.directories)
    p.eligible_leader_replicas.extend(m.eligible_leader_replicas)
    p.last_known_elr.extend(m.last_known_elr)


def read_PartitionRecord(p: pb.PartitionRecord) -> PartitionRecord:
    return PartitionRecord(
        partition=p.partition,
        topic_id=p.topic_id,
        replicas=tuple(p.replicas[:]),
        isr=tuple(p.isr[:]),
        removing_replicas=tuple(p.removing_replicas[:]),
        adding_replicas=tuple(p.adding_replicas[:]),
        leader=p.leader,
        leader_recovery_state=p.leader_recovery_state,
        leader_epoch=p.leader_epoch,
        partition_epoch=p.partition_epoch,
        directories=tuple(p.directories[:]),
        eligible_leader_replicas=tuple(p.eligible_leader_replicas[:]),
        last_known_elr=tuple(p.last_known_elr[:]),
    )


def encode_PartitionRecord(m: PartitionRecord) -> bytes:
    p = pb.PartitionRecord()
    fill_PartitionRecord(m, p)
    return p.SerializeToString()


def decode_PartitionRecord(data: Buffer) -> PartitionRecord:
    return read_PartitionRecord(parse(pb.PartitionRecord, data))


def fill_ConfigRecord(m: ConfigRecord, p: pb.ConfigRecord) -> None:
    p.resource_type = m.resource_type
    p.resource_name = m.resource_name
    p.name = m.name
    if m.value is not None:
        p.value = m.value


def read_ConfigRecord(p: pb.ConfigRecord) -> ConfigRecord:
    return ConfigRecord(
        resource_type=p.resource_type,
        resource_name=p.resource_name,
        name=p.name,
        value=p.value if p.HasField("value") else None,
    )


def encode_ConfigRecord(m: ConfigRecord) -> bytes:
    p = pb.ConfigRecord()
    fill_ConfigRecord(m, p)
    return p.SerializeToString()


def decode_ConfigRecord(data: Buffer) -> ConfigRecord:
    return read_ConfigRecord(parse(pb.ConfigRecord, data))


def fill_NodeList(m: NodeList, p: pb.NodeList) -> None:
    p.nodes.extend(m.nodes)


def read_NodeList(p: pb.NodeList) -> NodeList:
    return NodeList(
        nodes=tuple(p.nodes[:]),
    )


def encode_NodeList(m: NodeList) -> bytes:
    p = pb.NodeList()
    fill_NodeList(m, p)
    return p.SerializeToString()


def decode_NodeList(data: Buffer) -> NodeList:
    return read_NodeList(parse(pb.NodeList, data))


def fill_DirectoryList(m: DirectoryList, p: pb.DirectoryList) -> None:
    p.directories.extend(m.directories)


def read_DirectoryList(p: pb.DirectoryList) -> DirectoryList:
    return DirectoryList(
        directories=tuple(p.directories[:]),
    )


def encode_DirectoryList(m: DirectoryList) -> bytes:
    p = pb.DirectoryList()
    fill_DirectoryList(m, p)
    return p.SerializeToString()


def decode_DirectoryList(data: Buffer) -> DirectoryList:
    return read_DirectoryList(parse(pb.DirectoryList, data))


def fill_PartitionChangeRecord(m: PartitionChangeRecord, p: pb.PartitionChangeRecord) -> None:
    p.partition = m.partition
    p.topic_id = m.topic_id
    if m.isr is not None:
        p.isr.SetInParent()
        fill_NodeList(m.isr, p.isr)
    if m.leader is not None:
        p.leader = m.leader
    if m.replicas is not None:
        p.replicas.SetInParent()
        fill_NodeList(m.replicas, p.replicas)
    if m.removing_replicas is not None:
        p.removing_replicas.SetInParent()
        fill_NodeList(m.removing_replicas, p.removing_replicas)
    if m.adding_replicas is not None:
        p.adding_replicas.SetInParent()
        fill_NodeList(m.adding_replicas, p.adding_replicas)
    if m.leader_recovery_state is not None:
        p.leader_recovery_state = m.leader_recovery_state
    if m.eligible_leader_replicas is not None:
        p.eligible_leader_replicas.SetInParent()
        fill_NodeList(m.eligible_leader_replicas, p.eligible_leader_replicas)
    if m.last_known_elr is not None:
        p.last_known_elr.SetInParent()
        fill_NodeList(m.last_known_elr, p.last_known_elr)
    if m.directories is not None:
        p.directories.SetInParent()
        fill_DirectoryList(m.directories, p.directories)


def read_PartitionChangeRecord(p: pb.PartitionChangeRecord) -> PartitionChangeRecord:
    return PartitionChangeRecord(
        partition=p.partition,
        topic_id=p.topic_id,
        isr=read_NodeList(p.isr) if p.HasField("isr") else None,
        leader=p.leader if p.HasField("leader") else None,
        replicas=read_NodeList(p.replicas) if p.HasField("replicas") else None,
        removing_replicas=read_NodeList(p.removing_replicas) if p.HasField("removing_replicas") else None,
        adding_replicas=read_NodeList(p.adding_replicas) if p.HasField("adding_replicas") else None,
        leader_recovery_state=p.leader_recovery_state if p.HasField("leader_recovery_state") else None,
        eligible_leader_replicas=read_NodeList(p.eligible_leader_replicas)
        if p.HasField("eligible_leader_replicas")
        else None,
        last_known_elr=read_NodeList(p.last_known_elr) if p.HasField("last_known_elr") else None,
        directories=read_DirectoryList(p.directories) if p.HasField("directories") else None,
    )


def encode_PartitionChangeRecord(m: PartitionChangeRecord) -> bytes:
    p = pb.PartitionChangeRecord()
    fill_PartitionChangeRecord(m, p)
    return p.SerializeToString()


def decode_PartitionChangeRecord(data: Buffer) -> PartitionChangeRecord:
    return read_PartitionChangeRecord(parse(pb.PartitionChangeRecord, data))


def fill_RemoveTopicRecord(m: RemoveTopicRecord, p: pb.RemoveTopicRecord) -> None:
    p.topic_id = m.topic_id


def read_RemoveTopicRecord(p: pb.RemoveTopicRecord) -> RemoveTopicRecord:
    return RemoveTopicRecord(
        topic_id=p.topic_id,
    )


def encode_RemoveTopicRecord(m: RemoveTopicRecord) -> bytes:
    p = pb.RemoveTopicRecord()
    fill_RemoveTopicRecord(m, p)
    return p.SerializeToString()


def decode_RemoveTopicRecord(data: Buffer) -> RemoveTopicRecord:
    return read_RemoveTopicRecord(parse(pb.RemoveTopicRecord, data))


def fill_DelegationTokenRecord(m: DelegationTokenRecord, p: pb.DelegationTokenRecord) -> None:
    p.owner = m.owner
    p.requester = m.requester
    p.renewers.extend(m.renewers)
    p.issue_timestamp = m.issue_timestamp
    p.max_timestamp = m.max_timestamp
    p.expiration_timestamp = m.expiration_timestamp
    p.token_id = m.token_id


def read_DelegationTokenRecord(p: pb.DelegationTokenRecord) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=p.owner,
        requester=p.requester,
        renewers=tuple(p.renewers[:]),
        issue_timestamp=p.issue_timestamp,
        max_timestamp=p.max_timestamp,
        expiration_timestamp=p.expiration_timestamp,
        token_id=p.token_id,
    )


def encode_DelegationTokenRecord(m: DelegationTokenRecord) -> bytes:
    p = pb.DelegationTokenRecord()
    fill_DelegationTokenRecord(m, p)
    return p.SerializeToString()


def decode_DelegationTokenRecord(data: Buffer) -> DelegationTokenRecord:
    return read_DelegationTokenRecord(parse(pb.DelegationTokenRecord, data))


def fill_UserScramCredentialRecord(m: UserScramCredentialRecord, p: pb.UserScramCredentialRecord) -> None:
    p.name = m.name
    p.mechanism = m.mechanism
    p.salt = m.salt
    p.stored_key = m.stored_key
    p.server_key = m.server_key
    p.iterations = m.iterations


def read_UserScramCredentialRecord(p: pb.UserScramCredentialRecord) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(
        name=p.name,
        mechanism=p.mechanism,
        salt=p.salt,
        stored_key=p.stored_key,
        server_key=p.server_key,
        iterations=p.iterations,
    )


def encode_UserScramCredentialRecord(m: UserScramCredentialRecord) -> bytes:
    p = pb.UserScramCredentialRecord()
    fill_UserScramCredentialRecord(m, p)
    return p.SerializeToString()


def decode_UserScramCredentialRecord(data: Buffer) -> UserScramCredentialRecord:
    return read_UserScramCredentialRecord(parse(pb.UserScramCredentialRecord, data))


def fill_FeatureLevelRecord(m: FeatureLevelRecord, p: pb.FeatureLevelRecord) -> None:
    p.name = m.name
    p.level = m.level


def read_FeatureLevelRecord(p: pb.FeatureLevelRecord) -> FeatureLevelRecord:
    return FeatureLevelRecord(
        name=p.name,
        level=p.level,
    )


def encode_FeatureLevelRecord(m: FeatureLevelRecord) -> bytes:
    p = pb.FeatureLevelRecord()
    fill_FeatureLevelRecord(m, p)
    return p.SerializeToString()


def decode_FeatureLevelRecord(data: Buffer) -> FeatureLevelRecord:
    return read_FeatureLevelRecord(parse(pb.FeatureLevelRecord, data))


def fill_ClientQuotaRecord(m: ClientQuotaRecord, p: pb.ClientQuotaRecord) -> None:
    for x_entity in m.entity:
        fill_QuotaEntity(x_entity, p.entity.add())
    p.key = m.key
    p.value = m.value
    p.remove = m.remove


def read_ClientQuotaRecord(p: pb.ClientQuotaRecord) -> ClientQuotaRecord:
    return ClientQuotaRecord(
        entity=tuple([read_QuotaEntity(x) for x in p.entity]),
        key=p.key,
        value=p.value,
        remove=p.remove,
    )


def encode_ClientQuotaRecord(m: ClientQuotaRecord) -> bytes:
    p = pb.ClientQuotaRecord()
    fill_ClientQuotaRecord(m, p)
    return p.SerializeToString()


def decode_ClientQuotaRecord(data: Buffer) -> ClientQuotaRecord:
    return read_ClientQuotaRecord(parse(pb.ClientQuotaRecord, data))


def fill_ProducerIdsRecord(m: ProducerIdsRecord, p: pb.ProducerIdsRecord) -> None:
    p.broker_id = m.broker_id
    p.broker_epoch = m.broker_epoch
    p.next_producer_id = m.next_producer_id


def read_ProducerIdsRecord(p: pb.ProducerIdsRecord) -> ProducerIdsRecord:
    return ProducerIdsRecord(
        broker_id=p.broker_id,
        broker_epoch=p.broker_epoch,
        next_producer_id=p.next_producer_id,
    )


def encode_ProducerIdsRecord(m: ProducerIdsRecord) -> bytes:
    p = pb.ProducerIdsRecord()
    fill_ProducerIdsRecord(m, p)
    return p.SerializeToString()


def decode_ProducerIdsRecord(data: Buffer) -> ProducerIdsRecord:
    return read_ProducerIdsRecord(parse(pb.ProducerIdsRecord, data))


def fill_BrokerRegistrationChangeRecord(
    m: BrokerRegistrationChangeRecord, p: pb.BrokerRegistrationChangeRecord
) -> None:
    p.broker_id = m.broker_id
    p.broker_epoch = m.broker_epoch
    if m.fenced is not None:
        p.fenced = m.fenced
    if m.in_controlled_shutdown is not None:
        p.in_controlled_shutdown = m.in_controlled_shutdown
    if m.log_directories is not None:
        p.log_directories.SetInParent()
        fill_DirectoryList(m.log_directories, p.log_directories)
    if m.cordoned_directories is not None:
        p.cordoned_directories.SetInParent()
        fill_DirectoryList(m.cordoned_directories, p.cordoned_directories)


def read_BrokerRegistrationChangeRecord(p: pb.BrokerRegistrationChangeRecord) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=p.broker_id,
        broker_epoch=p.broker_epoch,
        fenced=p.fenced if p.HasField("fenced") else None,
        in_controlled_shutdown=p.in_controlled_shutdown if p.HasField("in_controlled_shutdown") else None,
        log_directories=read_DirectoryList(p.log_directories) if p.HasField("log_directories") else None,
        cordoned_directories=read_DirectoryList(p.cordoned_directories) if p.HasField("cordoned_directories") else None,
    )


def encode_BrokerRegistrationChangeRecord(m: BrokerRegistrationChangeRecord) -> bytes:
    p = pb.BrokerRegistrationChangeRecord()
    fill_BrokerRegistrationChangeRecord(m, p)
    return p.SerializeToString()


def decode_BrokerRegistrationChangeRecord(data: Buffer) -> BrokerRegistrationChangeRecord:
    return read_BrokerRegistrationChangeRecord(parse(pb.BrokerRegistrationChangeRecord, data))


def fill_AccessControlEntryRecord(m: AccessControlEntryRecord, p: pb.AccessControlEntryRecord) -> None:
    p.id = m.id
    p.resource_type = m.resource_type
    p.resource_name = m.resource_name
    p.pattern_type = m.pattern_type
    p.principal = m.principal
    p.host = m.host
    p.operation = m.operation
    p.permission_type = m.permission_type


def read_AccessControlEntryRecord(p: pb.AccessControlEntryRecord) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=p.id,
        resource_type=p.resource_type,
        resource_name=p.resource_name,
        pattern_type=p.pattern_type,
        principal=p.principal,
        host=p.host,
        operation=p.operation,
        permission_type=p.permission_type,
    )


def encode_AccessControlEntryRecord(m: AccessControlEntryRecord) -> bytes:
    p = pb.AccessControlEntryRecord()
    fill_AccessControlEntryRecord(m, p)
    return p.SerializeToString()


def decode_AccessControlEntryRecord(data: Buffer) -> AccessControlEntryRecord:
    return read_AccessControlEntryRecord(parse(pb.AccessControlEntryRecord, data))


def fill_RemoveAccessControlEntryRecord(
    m: RemoveAccessControlEntryRecord, p: pb.RemoveAccessControlEntryRecord
) -> None:
    p.id = m.id


def read_RemoveAccessControlEntryRecord(p: pb.RemoveAccessControlEntryRecord) -> RemoveAccessControlEntryRecord:
    return RemoveAccessControlEntryRecord(
        id=p.id,
    )


def encode_RemoveAccessControlEntryRecord(m: RemoveAccessControlEntryRecord) -> bytes:
    p = pb.RemoveAccessControlEntryRecord()
    fill_RemoveAccessControlEntryRecord(m, p)
    return p.SerializeToString()


def decode_RemoveAccessControlEntryRecord(data: Buffer) -> RemoveAccessControlEntryRecord:
    return read_RemoveAccessControlEntryRecord(parse(pb.RemoveAccessControlEntryRecord, data))


def fill_NoOpRecord(m: NoOpRecord, p: pb.NoOpRecord) -> None:
    pass


def read_NoOpRecord(p: pb.NoOpRecord) -> NoOpRecord:
    return NoOpRecord()


def encode_NoOpRecord(m: NoOpRecord) -> bytes:
    p = pb.NoOpRecord()
    fill_NoOpRecord(m, p)
    return p.SerializeToString()


def decode_NoOpRecord(data: Buffer) -> NoOpRecord:
    return read_NoOpRecord(parse(pb.NoOpRecord, data))


def fill_RemoveUserScramCredentialRecord(
    m: RemoveUserScramCredentialRecord, p: pb.RemoveUserScramCredentialRecord
) -> None:
    p.name = m.name
    p.mechanism = m.mechanism


def read_RemoveUserScramCredentialRecord(p: pb.RemoveUserScramCredentialRecord) -> RemoveUserScramCredentialRecord:
    return RemoveUserScramCredentialRecord(
        name=p.name,
        mechanism=p.mechanism,
    )


def encode_RemoveUserScramCredentialRecord(m: RemoveUserScramCredentialRecord) -> bytes:
    p = pb.RemoveUserScramCredentialRecord()
    fill_RemoveUserScramCredentialRecord(m, p)
    return p.SerializeToString()


def decode_RemoveUserScramCredentialRecord(data: Buffer) -> RemoveUserScramCredentialRecord:
    return read_RemoveUserScramCredentialRecord(parse(pb.RemoveUserScramCredentialRecord, data))


def fill_BeginTransactionRecord(m: BeginTransactionRecord, p: pb.BeginTransactionRecord) -> None:
    if m.name is not None:
        p.name = m.name


def read_BeginTransactionRecord(p: pb.BeginTransactionRecord) -> BeginTransactionRecord:
    return BeginTransactionRecord(
        name=p.name if p.HasField("name") else None,
    )


def encode_BeginTransactionRecord(m: BeginTransactionRecord) -> bytes:
    p = pb.BeginTransactionRecord()
    fill_BeginTransactionRecord(m, p)
    return p.SerializeToString()


def decode_BeginTransactionRecord(data: Buffer) -> BeginTransactionRecord:
    return read_BeginTransactionRecord(parse(pb.BeginTransactionRecord, data))


def fill_EndTransactionRecord(m: EndTransactionRecord, p: pb.EndTransactionRecord) -> None:
    pass


def read_EndTransactionRecord(p: pb.EndTransactionRecord) -> EndTransactionRecord:
    return EndTransactionRecord()


def encode_EndTransactionRecord(m: EndTransactionRecord) -> bytes:
    p = pb.EndTransactionRecord()
    fill_EndTransactionRecord(m, p)
    return p.SerializeToString()


def decode_EndTransactionRecord(data: Buffer) -> EndTransactionRecord:
    return read_EndTransactionRecord(parse(pb.EndTransactionRecord, data))


def fill_AbortTransactionRecord(m: AbortTransactionRecord, p: pb.AbortTransactionRecord) -> None:
    if m.reason is not None:
        p.reason = m.reason


def read_AbortTransactionRecord(p: pb.AbortTransactionRecord) -> AbortTransactionRecord:
    return AbortTransactionRecord(
        reason=p.reason if p.HasField("reason") else None,
    )


def encode_AbortTransactionRecord(m: AbortTransactionRecord) -> bytes:
    p = pb.AbortTransactionRecord()
    fill_AbortTransactionRecord(m, p)
    return p.SerializeToString()


def decode_AbortTransactionRecord(data: Buffer) -> AbortTransactionRecord:
    return read_AbortTransactionRecord(parse(pb.AbortTransactionRecord, data))


def fill_RemoveDelegationTokenRecord(m: RemoveDelegationTokenRecord, p: pb.RemoveDelegationTokenRecord) -> None:
    p.token_id = m.token_id


def read_RemoveDelegationTokenRecord(p: pb.RemoveDelegationTokenRecord) -> RemoveDelegationTokenRecord:
    return RemoveDelegationTokenRecord(
        token_id=p.token_id,
    )


def encode_RemoveDelegationTokenRecord(m: RemoveDelegationTokenRecord) -> bytes:
    p = pb.RemoveDelegationTokenRecord()
    fill_RemoveDelegationTokenRecord(m, p)
    return p.SerializeToString()


def decode_RemoveDelegationTokenRecord(data: Buffer) -> RemoveDelegationTokenRecord:
    return read_RemoveDelegationTokenRecord(parse(pb.RemoveDelegationTokenRecord, data))


def fill_RegisterControllerRecord(m: RegisterControllerRecord, p: pb.RegisterControllerRecord) -> None:
    p.controller_id = m.controller_id
    p.incarnation_id = m.incarnation_id
    for x_endpoints in m.endpoints:
        fill_Endpoint(x_endpoints, p.endpoints.add())
    for x_features in m.features:
        fill_FeatureRange(x_features, p.features.add())


def read_RegisterControllerRecord(p: pb.RegisterControllerRecord) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=p.controller_id,
        incarnation_id=p.incarnation_id,
        endpoints=tuple([read_Endpoint(x) for x in p.endpoints]),
        features=tuple([read_FeatureRange(x) for x in p.features]),
    )


def encode_RegisterControllerRecord(m: RegisterControllerRecord) -> bytes:
    p = pb.RegisterControllerRecord()
    fill_RegisterControllerRecord(m, p)
    return p.SerializeToString()


def decode_RegisterControllerRecord(data: Buffer) -> RegisterControllerRecord:
    return read_RegisterControllerRecord(parse(pb.RegisterControllerRecord, data))


def fill_UnregisterControllerRecord(m: UnregisterControllerRecord, p: pb.UnregisterControllerRecord) -> None:
    p.controller_id = m.controller_id


def read_UnregisterControllerRecord(p: pb.UnregisterControllerRecord) -> UnregisterControllerRecord:
    return UnregisterControllerRecord(
        controller_id=p.controller_id,
    )


def encode_UnregisterControllerRecord(m: UnregisterControllerRecord) -> bytes:
    p = pb.UnregisterControllerRecord()
    fill_UnregisterControllerRecord(m, p)
    return p.SerializeToString()


def decode_UnregisterControllerRecord(data: Buffer) -> UnregisterControllerRecord:
    return read_UnregisterControllerRecord(parse(pb.UnregisterControllerRecord, data))


def fill_DeletedTopicRecord(m: DeletedTopicRecord, p: pb.DeletedTopicRecord) -> None:
    p.topic_id = m.topic_id
    p.name = m.name
    p.offset = m.offset


def read_DeletedTopicRecord(p: pb.DeletedTopicRecord) -> DeletedTopicRecord:
    return DeletedTopicRecord(
        topic_id=p.topic_id,
        name=p.name,
        offset=p.offset,
    )


def encode_DeletedTopicRecord(m: DeletedTopicRecord) -> bytes:
    p = pb.DeletedTopicRecord()
    fill_DeletedTopicRecord(m, p)
    return p.SerializeToString()


def decode_DeletedTopicRecord(data: Buffer) -> DeletedTopicRecord:
    return read_DeletedTopicRecord(parse(pb.DeletedTopicRecord, data))


def fill_ForgetDeletedTopicsRecord(m: ForgetDeletedTopicsRecord, p: pb.ForgetDeletedTopicsRecord) -> None:
    p.topic_ids.extend(m.topic_ids)


def read_ForgetDeletedTopicsRecord(p: pb.ForgetDeletedTopicsRecord) -> ForgetDeletedTopicsRecord:
    return ForgetDeletedTopicsRecord(
        topic_ids=tuple(p.topic_ids[:]),
    )


def encode_ForgetDeletedTopicsRecord(m: ForgetDeletedTopicsRecord) -> bytes:
    p = pb.ForgetDeletedTopicsRecord()
    fill_ForgetDeletedTopicsRecord(m, p)
    return p.SerializeToString()


def decode_ForgetDeletedTopicsRecord(data: Buffer) -> ForgetDeletedTopicsRecord:
    return read_ForgetDeletedTopicsRecord(parse(pb.ForgetDeletedTopicsRecord, data))


def fill_SnapshotStateRecord(m: SnapshotStateRecord, p: pb.SnapshotStateRecord) -> None:
    p.state_hash = m.state_hash
    p.records = m.records


def read_SnapshotStateRecord(p: pb.SnapshotStateRecord) -> SnapshotStateRecord:
    return SnapshotStateRecord(
        state_hash=p.state_hash,
        records=p.records,
    )


def encode_SnapshotStateRecord(m: SnapshotStateRecord) -> bytes:
    p = pb.SnapshotStateRecord()
    fill_SnapshotStateRecord(m, p)
    return p.SerializeToString()


def decode_SnapshotStateRecord(data: Buffer) -> SnapshotStateRecord:
    return read_SnapshotStateRecord(parse(pb.SnapshotStateRecord, data))


def fill_ClusterIncarnationRecord(m: ClusterIncarnationRecord, p: pb.ClusterIncarnationRecord) -> None:
    p.number = m.number
    p.id = m.id


def read_ClusterIncarnationRecord(p: pb.ClusterIncarnationRecord) -> ClusterIncarnationRecord:
    return ClusterIncarnationRecord(
        number=p.number,
        id=p.id,
    )


def encode_ClusterIncarnationRecord(m: ClusterIncarnationRecord) -> bytes:
    p = pb.ClusterIncarnationRecord()
    fill_ClusterIncarnationRecord(m, p)
    return p.SerializeToString()


def decode_ClusterIncarnationRecord(data: Buffer) -> ClusterIncarnationRecord:
    return read_ClusterIncarnationRecord(parse(pb.ClusterIncarnationRecord, data))


def fill_ChangedByRecord(m: ChangedByRecord, p: pb.ChangedByRecord) -> None:
    p.principal = m.principal
    p.host = m.host
    p.client_id = m.client_id


def read_ChangedByRecord(p: pb.ChangedByRecord) -> ChangedByRecord:
    return ChangedByRecord(
        principal=p.principal,
        host=p.host,
        client_id=p.client_id,
    )


def encode_ChangedByRecord(m: ChangedByRecord) -> bytes:
    p = pb.ChangedByRecord()
    fill_ChangedByRecord(m, p)
    return p.SerializeToString()


def decode_ChangedByRecord(data: Buffer) -> ChangedByRecord:
    return read_ChangedByRecord(parse(pb.ChangedByRecord, data))


RECORD_TYPES: tuple[RecordType, ...] = (
    RecordType(
        0,
        RegisterBrokerRecord,
        encode_RegisterBrokerRecord,
        pb.RegisterBrokerRecord,
        read_RegisterBrokerRecord,
        (1, 2, 7),
        (("features",), ("cordoned_directories",)),
    ),
    RecordType(
        1,
        UnregisterBrokerRecord,
        encode_UnregisterBrokerRecord,
        pb.UnregisterBrokerRecord,
        read_UnregisterBrokerRecord,
        (1,),
        (),
    ),
    RecordType(2, TopicRecord, encode_TopicRecord, pb.TopicRecord, read_TopicRecord, (1,), ()),
    RecordType(3, PartitionRecord, encode_PartitionRecord, pb.PartitionRecord, read_PartitionRecord, (1,), ()),
    RecordType(4, ConfigRecord, encode_ConfigRecord, pb.ConfigRecord, read_ConfigRecord, (1,), ()),
    RecordType(
        5,
        PartitionChangeRecord,
        encode_PartitionChangeRecord,
        pb.PartitionChangeRecord,
        read_PartitionChangeRecord,
        (1,),
        (),
    ),
    RecordType(9, RemoveTopicRecord, encode_RemoveTopicRecord, pb.RemoveTopicRecord, read_RemoveTopicRecord, (1,), ()),
    RecordType(
        10,
        DelegationTokenRecord,
        encode_DelegationTokenRecord,
        pb.DelegationTokenRecord,
        read_DelegationTokenRecord,
        (6,),
        (),
    ),
    RecordType(
        11,
        UserScramCredentialRecord,
        encode_UserScramCredentialRecord,
        pb.UserScramCredentialRecord,
        read_UserScramCredentialRecord,
        (5,),
        (),
    ),
    RecordType(
        12, FeatureLevelRecord, encode_FeatureLevelRecord, pb.FeatureLevelRecord, read_FeatureLevelRecord, (1,), ()
    ),
    RecordType(14, ClientQuotaRecord, encode_ClientQuotaRecord, pb.ClientQuotaRecord, read_ClientQuotaRecord, (5,), ()),
    RecordType(15, ProducerIdsRecord, encode_ProducerIdsRecord, pb.ProducerIdsRecord, read_ProducerIdsRecord, (1,), ()),
    RecordType(
        17,
        BrokerRegistrationChangeRecord,
        encode_BrokerRegistrationChangeRecord,
        pb.BrokerRegistrationChangeRecord,
        read_BrokerRegistrationChangeRecord,
        (1, 7),
        (("cordoned_directories",),),
    ),
    RecordType(
        18,
        AccessControlEntryRecord,
        encode_AccessControlEntryRecord,
        pb.AccessControlEntryRecord,
        read_AccessControlEntryRecord,
        (5,),
        (),
    ),
    RecordType(
        19,
        RemoveAccessControlEntryRecord,
        encode_RemoveAccessControlEntryRecord,
        pb.RemoveAccessControlEntryRecord,
        read_RemoveAccessControlEntryRecord,
        (5,),
        (),
    ),
    RecordType(20, NoOpRecord, encode_NoOpRecord, pb.NoOpRecord, read_NoOpRecord, (1,), ()),
    RecordType(
        22,
        RemoveUserScramCredentialRecord,
        encode_RemoveUserScramCredentialRecord,
        pb.RemoveUserScramCredentialRecord,
        read_RemoveUserScramCredentialRecord,
        (5,),
        (),
    ),
    RecordType(
        23,
        BeginTransactionRecord,
        encode_BeginTransactionRecord,
        pb.BeginTransactionRecord,
        read_BeginTransactionRecord,
        (6,),
        (),
    ),
    RecordType(
        24,
        EndTransactionRecord,
        encode_EndTransactionRecord,
        pb.EndTransactionRecord,
        read_EndTransactionRecord,
        (6,),
        (),
    ),
    RecordType(
        25,
        AbortTransactionRecord,
        encode_AbortTransactionRecord,
        pb.AbortTransactionRecord,
        read_AbortTransactionRecord,
        (6,),
        (),
    ),
    RecordType(
        26,
        RemoveDelegationTokenRecord,
        encode_RemoveDelegationTokenRecord,
        pb.RemoveDelegationTokenRecord,
        read_RemoveDelegationTokenRecord,
        (6,),
        (),
    ),
    RecordType(
        27,
        RegisterControllerRecord,
        encode_RegisterControllerRecord,
        pb.RegisterControllerRecord,
        read_RegisterControllerRecord,
        (3,),
        (),
    ),
    RecordType(
        29,
        UnregisterControllerRecord,
        encode_UnregisterControllerRecord,
        pb.UnregisterControllerRecord,
        read_UnregisterControllerRecord,
        (3,),
        (),
    ),
    RecordType(
        1000, DeletedTopicRecord, encode_DeletedTopicRecord, pb.DeletedTopicRecord, read_DeletedTopicRecord, (3,), ()
    ),
    RecordType(
        1001,
        ForgetDeletedTopicsRecord,
        encode_ForgetDeletedTopicsRecord,
        pb.ForgetDeletedTopicsRecord,
        read_ForgetDeletedTopicsRecord,
        (3,),
        (),
    ),
    RecordType(
        1002,
        ClusterIncarnationRecord,
        encode_ClusterIncarnationRecord,
        pb.ClusterIncarnationRecord,
        read_ClusterIncarnationRecord,
        (3,),
        (),
    ),
    RecordType(
        1003,
        SnapshotStateRecord,
        encode_SnapshotStateRecord,
        pb.SnapshotStateRecord,
        read_SnapshotStateRecord,
        (1,),
        (),
    ),
    RecordType(1004, ChangedByRecord, encode_ChangedByRecord, pb.ChangedByRecord, read_ChangedByRecord, (8,), ()),
)
