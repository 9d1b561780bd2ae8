"""Calls from brokers to the active controller, and the probe that proves a process dead.

Written by `./dev proto` from proto/quorumlog/v1/controller.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.common import Endpoint, FeatureRange
from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRequest:
    """incarnation_id: 16 random bytes, created when the process started.
    endpoints: Client and internal listeners, each with the address that others should use.
    previous_broker_epoch: Broker epoch found in the clean-shutdown file; -1: the last stop was not clean.
    features: What the broker's software supports. A broker that tells no range of metadata.version supports level
    1 alone.
    damaged_partitions: Replicas whose logs end before a point that was synced once: they lack records that this
    broker may have
        acknowledged.
    cordoned_directories: Directories that get no new replicas (KIP-1066). Before its first metadata a broker
    tells what its file says.
    """

    broker_id: int
    cluster_id: str
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...] = ()
    log_directories: tuple[bytes, ...] = ()
    rack: str | None = None
    previous_broker_epoch: int = -1
    features: tuple[FeatureRange, ...] = ()
    damaged_partitions: tuple[DamagedPartition, ...] = ()
    cordoned_directories: tuple[bytes, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DamagedPartition:
    topic_id: bytes
    index: int


@message(frozen=True, slots=True, kw_only=True)
class RegisterBrokerResponse:
    error_code: int = 0
    error_message: str = ""
    broker_epoch: int = -1


@message(frozen=True, slots=True, kw_only=True)
class BrokerHeartbeatRequest:
    """current_metadata_offset: End offset of the metadata that the broker has applied, exclusive.
    offline_directories: Every registered directory that is offline; repeated in each heartbeat.
    at_rest: Nothing was written to this broker since its last heartbeat. While all brokers say so, the controller
    rests, too.
    deletions_done_before: This broker holds no directory of a topic that was deleted at a metadata offset below
    this one; 0: it does not know.
    cordoned_directories: Every directory that gets no new replicas (KIP-1066); repeated in each heartbeat.
    tells_cordoned: Whether `cordoned_directories` is told; not so before the first metadata, which may change it,
    and by older software.
    """

    broker_id: int
    broker_epoch: int
    current_metadata_offset: int
    want_fence: bool
    want_shutdown: bool
    offline_directories: tuple[bytes, ...] = ()
    incarnation_id: bytes
    at_rest: bool = False
    deletions_done_before: int = 0
    cordoned_directories: tuple[bytes, ...] = ()
    tells_cordoned: bool = False


@message(frozen=True, slots=True, kw_only=True)
class BrokerHeartbeatResponse:
    """session_timeout_ms: Silence after which this controller fences a broker; 0: older software does not say."""

    error_code: int = 0
    error_message: str = ""
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shutdown: bool = False
    session_timeout_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class AlterPartitionRequest:
    """metadata_end: Exclusive end of the metadata that the sender has applied; 0: it does not say."""

    broker_id: int
    broker_epoch: int
    partitions: tuple[AlterPartition, ...] = ()
    metadata_end: int = 0


@message(frozen=True, slots=True, kw_only=True)
class AlterPartition:
    """leader_recovery_state: 0: recovered; 1: recovering from an unclean election."""

    topic_id: bytes
    index: int
    leader_epoch: int
    partition_epoch: int
    new_isr: tuple[IsrMember, ...] = ()
    leader_recovery_state: int = 0


@message(frozen=True, slots=True, kw_only=True)
class IsrMember:
    """A broker, and the broker epoch of its fetches; -1 skips the check."""

    broker_id: int
    broker_epoch: int = -1


@message(frozen=True, slots=True, kw_only=True)
class AlterPartitionResponse:
    error_code: int = 0
    error_message: str = ""
    partitions: tuple[AlterPartitionResult, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class AlterPartitionResult:
    topic_id: bytes
    index: int
    error_code: int = 0
    leader_id: int = -1
    leader_epoch: int = -1
    partition_epoch: int = -1
    isr: tuple[int, ...] = ()
    leader_recovery_state: int = 0


@message(frozen=True, slots=True, kw_only=True)
class AssignReplicasToDirectoriesRequest:
    broker_id: int
    broker_epoch: int
    assignments: tuple[DirectoryAssignment, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DirectoryAssignment:
    """directory_id: The reserved id LOST: the replica is offline, although its directory may serve others.
    keeps_log: The log was there when this process started; false: it was made since, and is empty.
    """

    topic_id: bytes
    index: int
    directory_id: bytes
    keeps_log: bool = False


@message(frozen=True, slots=True, kw_only=True)
class AssignReplicasToDirectoriesResponse:
    error_code: int = 0
    error_message: str = ""
    results: tuple[DirectoryAssignmentResult, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DirectoryAssignmentResult:
    topic_id: bytes
    index: int
    error_code: int = 0


@message(frozen=True, slots=True, kw_only=True)
class AllocateProducerIdsRequest:
    """A block of producer ids. No other broker ever gets these ids."""

    broker_id: int
    broker_epoch: int


@message(frozen=True, slots=True, kw_only=True)
class AllocateProducerIdsResponse:
    """count: Number of ids, starting with the first."""

    error_code: int = 0
    error_message: str = ""
    first_producer_id: int = -1
    count: int = 0


@message(frozen=True, slots=True, kw_only=True)
class RegisterControllerRequest:
    """Kafka's ControllerRegistration. A controller tells the active one, and each that follows it, what it supports.

    incarnation_id: 16 random bytes, created when the process started.
    endpoints: The internal listener, with the address that others should use.
    """

    controller_id: int
    cluster_id: str
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...] = ()
    features: tuple[FeatureRange, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class RegisterControllerResponse:
    error_code: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class ProbeRequest:
    """Asks which process serves an internal listener: the death of a process is proven, not waited for."""


@message(frozen=True, slots=True, kw_only=True)
class ProbeResponse:
    """directory_id: Of the log directory that holds the metadata log.
    is_controller: Whether the node has the role controller, so that it may be a voter.
    min_kraft_version: Levels of kraft.version that its software supports; both inclusive.
    """

    error_code: int = 0
    error_message: str = ""
    node_id: int = -1
    incarnation_id: bytes = b""
    directory_id: bytes = b""
    is_controller: bool = False
    min_kraft_version: int = 0
    max_kraft_version: int = 0


@message(frozen=True, slots=True, kw_only=True)
class GetReplicaLogInfoRequest:
    """The active controller asks a broker for the ends of its logs (KIP-966). It elects the longest one where no
    replica is
    known to hold every committed record.

    broker_id: The broker that is asked.
    """

    broker_id: int
    partitions: tuple[ReplicaLogQuery, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ReplicaLogQuery:
    """leader_epoch: As the controller knows it. The broker has to know it, too: so its log takes no records of an
    older leader any more.
    """

    topic_id: bytes
    index: int
    leader_epoch: int


@message(frozen=True, slots=True, kw_only=True)
class GetReplicaLogInfoResponse:
    """broker_epoch: Of the broker's registration; an answer of an older process does not count."""

    error_code: int = 0
    error_message: str = ""
    broker_epoch: int = -1
    partitions: tuple[ReplicaLogInfo, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ReplicaLogInfo:
    """last_written_leader_epoch: Leader epoch of the last batch; -1: the log is empty.
    log_end_offset: Exclusive.
    """

    topic_id: bytes
    index: int
    error_code: int = 0
    last_written_leader_epoch: int = -1
    log_end_offset: int = -1


@message(frozen=True, slots=True, kw_only=True)
class EnvelopeRequest:
    """A broker passes on the request of a client, and says for whom: the controller decides by its own access rules,
    too
    (KIP-590, decision 129). Only sent where access rules are in force.

    client_host: The client's address without a port; empty if unknown.
    method: Path of the call, as gRPC has it.
    request: The request, as that call carries it.
    """

    principal_type: str
    principal_name: str
    client_host: str
    client_id: str
    method: str
    request: bytes


@message(frozen=True, slots=True, kw_only=True)
class EnvelopeResponse:
    """error_code: Of the answer, so that a broker need not open it to find another controller.
    response: Empty: the envelope was refused, and the error is its own.
    metadata_end: End of what the request has written to the metadata, exclusive; -1: nothing, or it is not known.
    """

    error_code: int = 0
    error_message: str = ""
    response: bytes = b""
    metadata_end: int = -1
