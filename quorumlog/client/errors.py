"""Errors that a client raises. Each of them is a `QuorumlogError`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quorumlog.errors import ErrorCode
from quorumlog.ids import Uuid, show_uuid
from quorumlog.rpc.transport import NotAuthenticated

if TYPE_CHECKING:
    from quorumlog.client.consumer import ConsumedRecord


class QuorumlogError(Exception):
    """Base of every error that a client raises on purpose."""


class Unavailable(QuorumlogError):
    """No broker could be reached, or no leader was found, in time."""


class NoSuchTopic(Unavailable):
    """The cluster knows no topic of this name, and has not made one."""


class NoProtocol(Unavailable):
    """No broker that answers speaks a protocol that carries this request. To ask again is of no use."""


class AuthenticationFailed(QuorumlogError, NotAuthenticated):
    """A broker refuses this client's certificate or credentials, or this client the broker's certificate.

    Nothing is sent again for it: a client with the same options is refused again, until somebody changes something.
    """


class WrongCluster(QuorumlogError):
    """A node of another cluster answered, and none of the one whose `cluster_id` was given. Nothing was asked of it."""

    def __init__(self, address: str, found: str, wanted: str) -> None:
        super().__init__(f"{address} belongs to cluster {found}, not to cluster {wanted}, which is meant")
        self.address, self.found, self.wanted = address, found, wanted


class RequestFailed(QuorumlogError):
    """The cluster answered with an error.

    outcome_unknown: the request, or an earlier try of it, may have been carried out nevertheless.
    """

    def __init__(self, code: ErrorCode, message: str, *, outcome_unknown: bool = False) -> None:
        super().__init__(f"{code.name}: {message}" if message else code.name)
        self.code = code
        self.message = message
        self.outcome_unknown = outcome_unknown


class CommitFailed(RequestFailed):
    """The group has given the partitions to another member, or is about to. Their records will be read again.

    Poll on; with REBALANCE_IN_PROGRESS a later commit may succeed. With FENCED_INSTANCE_ID another consumer has joined
    with its group_instance_id, and this one never commits again: close it.
    """


class WokenUp(QuorumlogError):
    """`Consumer.wakeup` was called: this poll, or the next one, ends without records."""


class CalledBack(QuorumlogError):
    """A callback of a rebalance may commit, seek and ask for positions.

    It cannot poll, unsubscribe or close: a poll has called it.
    """


class NotAssigned(QuorumlogError):
    """The consumer does not read this partition now."""


class TopicReplaced(QuorumlogError):
    """The topic was deleted, and made again: what the consumer reads is gone, and its offsets mean nothing there.

    topic_id, new_id: of the topic that was read, and of the one that has its name now (16 bytes each).

    Raised once for each topic, after everything that was fetched of the former one. Then a consumer with
    `auto_offset_reset` earliest or latest reads the new one from there, and a member of a group from what the group has
    committed in the new one. With "none", or with a stop, nothing is read until the application assigns or seeks. A
    `seek` or `commit` that is meant for the former topic raises it, too.
    """

    def __init__(self, topic: str, topic_id: Uuid, new_id: Uuid) -> None:
        super().__init__(
            f"topic {topic!r} was deleted and made again: id {show_uuid(topic_id)} was replaced by "
            f"{show_uuid(new_id)}, so offsets of the former topic mean nothing; poll on to read the new one from "
            "where auto_offset_reset says, or assign or seek"
        )
        self.topic, self.topic_id, self.new_id = topic, topic_id, new_id


class NoCommittedOffset(QuorumlogError):
    """The group has committed nothing for a partition, and `auto_offset_reset` is "none"."""


class DeliveryTimeout(QuorumlogError):
    """A record could not be delivered within `delivery.timeout.ms`.

    outcome_unknown: at least one try may have reached the log.
    """

    def __init__(self, message: str, *, outcome_unknown: bool) -> None:
        super().__init__(message)
        self.outcome_unknown = outcome_unknown


class BufferExhausted(QuorumlogError):
    """`buffer.memory` stayed full for `max.block.ms`: the application sends faster than the cluster accepts."""


class RecordTooLarge(QuorumlogError):
    """A record is larger than `max.request.size`. It was not sent."""


class SerializationFailed(QuorumlogError):
    """A serializer of the application has failed; the record was not sent. `__cause__` is what it raised.

    origin: "key" or "value".
    """

    def __init__(self, topic: str, origin: str, cause: BaseException) -> None:
        super().__init__(f"the {origin} for topic {topic!r} cannot be serialized: {type(cause).__name__}: {cause}")
        self.topic, self.origin = topic, origin


class DeserializationFailed(QuorumlogError):
    """A deserializer of the application has failed on this record. `__cause__` is what it raised.

    The records before it were returned, and the position stays at it: each poll raises this until the application seeks
    to `offset + 1`, or elsewhere. origin: "key" or "value". record: as it was read, with key and value as bytes. As
    Kafka's RecordDeserializationException (KIP-1036).
    """

    def __init__(self, record: ConsumedRecord, origin: str, cause: BaseException) -> None:
        super().__init__(
            f"{record.topic}-{record.partition} offset {record.offset}: the {origin} cannot be deserialized: "
            f"{type(cause).__name__}: {cause}; seek to {record.offset + 1} to read on behind it"
        )
        self.topic, self.partition, self.offset = record.topic, record.partition, record.offset
        self.record, self.origin = record, origin


class ConfigError(QuorumlogError, ValueError):
    """An option that does not exist or has an impossible value."""


class ClientClosed(QuorumlogError):
    """The client was closed before or during the call."""


NO_JOINT = "the cluster has no joint transactions, by which a batch is written exactly once"
NOT_OURS = f"{NO_JOINT}: it is an Apache Kafka, or a quorumlog that is older than they are"


class NoJointTransactions(QuorumlogError):
    """The cluster has none: it is an Apache Kafka, is older, or its feature is not in force."""


class NotOurs(NoJointTransactions):
    """No node has ever heard of the call: it is an Apache Kafka, or software from before joint transactions."""


class JointRefused(RequestFailed):
    """The coordinator has refused a BeginJoint, a CommitJoint or a ForgetJoint. Nothing was decided by it.

    The class says which rule has spoken (decision 112); the text is the coordinator's, and names Spark's options.
    """


class CheckpointCopied(JointRefused):
    """Another checkpoint location than that of the last decision."""


class Superseded(JointRefused):
    """Another run of the same query has decided since. This one never decides anything."""


class CheckpointRolledBack(JointRefused):
    """The sequence lies below the last decision's."""


class DecisionMissing(JointRefused):
    """A stream's sequence is above the one that follows the last decision."""


class ReplayDiffers(JointRefused):
    """The sequence was decided with other totals. What was decided stays."""


class ChildNotOpen(JointRefused):
    """A child has ended, or was never given to this attempt."""


class TooManyChildren(JointRefused):
    """One decision cannot hold as many."""


class JointGroupOpen(JointRefused):
    """A group is not forgotten while anything of it is open."""


OF_CODE: Mapping[ErrorCode, type[JointRefused]] = {
    ErrorCode.CHECKPOINT_COPIED: CheckpointCopied,
    ErrorCode.SUPERSEDED: Superseded,
    ErrorCode.CHECKPOINT_ROLLED_BACK: CheckpointRolledBack,
    ErrorCode.DECISION_MISSING: DecisionMissing,
    ErrorCode.REPLAY_DIFFERS: ReplayDiffers,
    ErrorCode.CHILD_NOT_OPEN: ChildNotOpen,
    ErrorCode.TOO_MANY_CHILDREN: TooManyChildren,
    ErrorCode.JOINT_GROUP_OPEN: JointGroupOpen,
}


def refused(code: ErrorCode, message: str) -> JointRefused:
    return OF_CODE.get(code, JointRefused)(code, message)
