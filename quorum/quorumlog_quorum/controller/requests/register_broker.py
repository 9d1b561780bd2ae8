"""RegisterBroker: a process registers as broker N, with its addresses, directories and features.

Sources: KIP-631, KIP-858, KIP-584.

- An incarnation that registers again keeps its epoch and its state. A retry changes nothing.
- Another incarnation is refused while the session of the registered one is valid (DUPLICATE_BROKER_REGISTRATION).
  A registration begins a session, as a heartbeat does. So of two live processes with one id the first one keeps it,
  although neither has sent a heartbeat yet. A proof that the first one is dead ends its session at once.
- A broker whose feature ranges do not cover every finalized level is refused (UNSUPPORTED_VERSION).
- A new incarnation gets the offset of its record as broker epoch and starts fenced. Before that, the old incarnation
  is removed from every ISR.
- A replica that lacks records which it has synced once is in no ISR and no ELR once its broker is registered. The
  broker may tell of it with a later registration of the same incarnation, since it opens its logs meanwhile; it asks
  to stay fenced until then.
- A directory that was cordoned stays so while the broker starts: where they are set in the metadata, the broker tells
  here what its file says, and its first heartbeats tell the rest (KIP-1066).
- A previous_broker_epoch that equals the registered epoch proves that the broker was stopped cleanly.
"""

from __future__ import annotations

from dataclasses import replace

from immutables import Map

from quorumlog.configs.directory import CORDONED
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import UUID_BYTES, BrokerEpoch, NodeId, Uuid, format_uuid
from quorumlog.messages.controller import RegisterBrokerRequest, RegisterBrokerResponse
from quorumlog.messages.metadata_records import RegisterBrokerRecord
from quorumlog.slices import Sliced
from quorumlog_quorum.controller.bulk_changes.fencing import leave_damaged, replace_incarnation
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.metadata.changes import registered_broker
from quorumlog_quorum.metadata.features import describe_range, uncovered
from quorumlog_quorum.metadata.frame import has_field
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, Image
from quorumlog_quorum.metadata.partition_index import NO_PARTITIONS, Partitions
from quorumlog_quorum.metadata.registration import BrokerRegistration, is_reserved_directory


def register_broker(draft: Draft, request: RegisterBrokerRequest) -> Sliced[RegisterBrokerResponse]:
    """Raises ApiError."""
    existing = draft.image.brokers.get(request.broker_id)
    _check_cluster(request, draft.state.cluster_id)
    same_process = existing is not None and existing.incarnation_id == request.incarnation_id
    if existing is not None and not same_process and draft.state.sessions.is_valid(request.broker_id, draft.now_ms):
        raise ApiError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"broker {request.broker_id} is alive as incarnation {format_uuid(existing.incarnation_id)}; if that is "
            "not an earlier process of this node, which is forgotten with its session, give this one another node.id",
        )
    _check_identity(request)
    _check_features(draft.image, request)
    _check_directories(draft, request)
    ranges = tuple(sorted(request.features, key=lambda supported: supported.name))
    draft.state.announced.brokers[request.broker_id] = (request.incarnation_id, ranges)
    if existing is not None and same_process:
        return (yield from _register_again(draft, request, existing))
    return (yield from _register_new(draft, request, existing))


def _register_again(
    draft: Draft, request: RegisterBrokerRequest, existing: BrokerRegistration
) -> Sliced[RegisterBrokerResponse]:
    def record() -> RegisterBrokerRecord:
        return _record(draft, request, existing.broker_epoch, existing.fenced, existing.in_controlled_shutdown)

    yield from leave_damaged(draft, request.broker_id, _damaged(draft, request))
    after = registered_broker(record())
    if after != existing:
        kept = tuple(directory for directory in existing.log_directories if directory in after.log_directories)
        yield from replace_incarnation(
            draft, replace(existing, log_directories=kept), after.log_directories, clean=True, damaged=NO_PARTITIONS
        )
        draft.add(record())
        draft.state.elections_wanted = True  # a directory may have come back
    draft.state.sessions.renew(request.broker_id, draft.now_ms)
    return RegisterBrokerResponse(broker_epoch=existing.broker_epoch)


def _register_new(
    draft: Draft, request: RegisterBrokerRequest, existing: BrokerRegistration | None
) -> Sliced[RegisterBrokerResponse]:
    if existing is not None:
        clean = request.previous_broker_epoch == existing.broker_epoch
        after = registered_broker(_record(draft, request, existing.broker_epoch, fenced=True, stopping=False))
        yield from replace_incarnation(draft, after, after.log_directories, clean, _damaged(draft, request))
    epoch = draft.next_offset
    draft.add(_record(draft, request, epoch, fenced=True, stopping=False))
    draft.state.sessions.begin(request.broker_id, draft.now_ms)
    return RegisterBrokerResponse(broker_epoch=epoch)


def _damaged(draft: Draft, request: RegisterBrokerRequest) -> Partitions:
    """Those that are still there."""
    damaged: dict[Uuid, int] = {}
    for one in request.damaged_partitions:
        if draft.image.partition(one.topic_id, one.index) is not None:
            damaged[one.topic_id] = damaged.get(one.topic_id, 0) | 1 << one.index
    return Map(damaged)


def _record(
    draft: Draft, request: RegisterBrokerRequest, epoch: BrokerEpoch, fenced: bool, stopping: bool
) -> RegisterBrokerRecord:
    """With what the metadata.version in force has room for."""
    level = draft.image.metadata_version
    features = sorted(request.features, key=lambda supported: supported.name)
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        endpoints=request.endpoints,
        rack=request.rack,
        fenced=fenced,
        in_controlled_shutdown=stopping,
        log_directories=tuple(sorted(request.log_directories)),
        features=tuple(features) if has_field(RegisterBrokerRecord, "features", level) else (),
        cordoned_directories=(
            _cordoned(draft.image, request) if has_field(RegisterBrokerRecord, "cordoned_directories", level) else ()
        ),
    )


def _cordoned(image: Image, request: RegisterBrokerRequest) -> tuple[Uuid, ...]:
    existing = image.brokers.get(request.broker_id)
    is_set = CORDONED in image.configs.get((BROKER_RESOURCE, str(request.broker_id)), {})
    if existing is not None and is_set:
        return existing.cordoned_directories
    return tuple(sorted(set(request.cordoned_directories)))


def _check_cluster(request: RegisterBrokerRequest, cluster_id: str) -> None:
    if request.cluster_id != cluster_id:
        raise ApiError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"broker {request.broker_id} belongs to cluster {request.cluster_id!r}, this is {cluster_id!r}",
        )


def _check_identity(request: RegisterBrokerRequest) -> None:
    names = [endpoint.name for endpoint in request.endpoints]
    if request.broker_id < 0 or len(request.incarnation_id) != UUID_BYTES:
        raise _invalid(request, "needs an id of 0 or more and an incarnation id of 16 bytes")
    if not names or len(set(names)) < len(names):
        raise _invalid(request, f"needs one or more listeners with different names, has {names}")
    if any(not endpoint.host or not 0 < endpoint.port < 65_536 for endpoint in request.endpoints):
        raise _invalid(request, "has a listener without a host or a port")


def _check_features(image: Image, request: RegisterBrokerRequest) -> None:
    names = [supported.name for supported in request.features]
    if len(set(names)) < len(names) or any(not 1 <= s.min_level <= s.max_level for s in request.features):
        raise _invalid(request, f"needs one range of levels from 1 on per feature, has {request.features}")
    for name, level in uncovered(image.features, request.features):
        supports = describe_range(name, request.features)
        text = f"broker {request.broker_id} supports {supports}; the cluster uses level {level}: upgrade the broker"
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)


def _check_directories(draft: Draft, request: RegisterBrokerRequest) -> None:
    """No other broker has one of them, or is about to have it."""
    directories = request.log_directories
    if not directories:
        raise _invalid(request, "has no log directory")
    if len(set(directories)) < len(directories):
        raise _invalid(request, "names a log directory twice")
    for directory in directories:
        if len(directory) != UUID_BYTES or is_reserved_directory(directory):
            raise _invalid(request, f"{directory.hex()} is not usable as a directory id")
        owner = _owner(draft, directory)
        if owner not in (None, request.broker_id):
            raise _invalid(
                request,
                f"directory {format_uuid(directory)} belongs to broker {owner}; "
                "take it out of log.dirs, or unregister that broker if it is gone",
            )


def _owner(draft: Draft, directory: Uuid) -> NodeId | None:
    for broker in draft.image.sorted_brokers():
        if directory in broker.log_directories:
            return broker.broker_id
    return draft.state.pending.directory_owner(directory)


def _invalid(request: RegisterBrokerRequest, reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REGISTRATION, f"broker {request.broker_id}: {reason}")
