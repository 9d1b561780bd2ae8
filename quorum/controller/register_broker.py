"""RegisterBroker: a process registers as broker N, with its addresses, directories and features.

Sources: KRAFT 2.6, KIP-631, KIP-858, KIP-584.

- An incarnation that registers again keeps its epoch and its state. A retry changes nothing.
- Another incarnation is refused while the session of the registered one is valid (DUPLICATE_BROKER_REGISTRATION).
- A broker whose feature ranges do not cover every finalized level is refused (UNSUPPORTED_VERSION).
- A new incarnation gets the offset of its record as broker epoch and starts fenced. Before that, the old incarnation
  is removed from every ISR.
- A previous_broker_epoch that equals the registered epoch proves that the broker was stopped cleanly.
"""

from __future__ import annotations

from dataclasses import replace

from quorum.controller.fencing import elect_missing_leaders, replace_incarnation
from quorum.controller.outcome import Draft
from quorum.controller.sessions import Sessions
from quorum.metadata.changes import registered_broker
from quorum.metadata.features import describe_range, uncovered
from quorum.metadata.frame import has_field
from quorum.metadata.image import Image
from quorum.metadata.registration import BrokerRegistration, is_reserved_directory
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import UUID_BYTES, Offset, format_uuid
from quorumlog.messages.controller import RegisterBrokerRequest, RegisterBrokerResponse
from quorumlog.messages.metadata_records import RegisterBrokerRecord


def register_broker(
    draft: Draft,
    request: RegisterBrokerRequest,
    *,
    cluster_id: str,
    sessions: Sessions,
    next_offset: Offset,
    now_ms: int,
) -> RegisterBrokerResponse:
    """next_offset: where the operation's first record will be appended. Raises ApiError."""
    image = draft.image
    _check_cluster(request, cluster_id)
    existing = image.brokers.get(request.broker_id)
    same_process = existing is not None and existing.incarnation_id == request.incarnation_id
    if existing is not None and not same_process and sessions.is_valid(request.broker_id, now_ms):
        raise ApiError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"broker {request.broker_id} is alive as incarnation {format_uuid(existing.incarnation_id)}",
        )
    _check_identity(request)
    _check_features(image, request)
    _check_directories(image, request)
    if existing is not None and same_process:
        return _register_again(draft, request, existing)
    return _register_new(draft, request, existing, next_offset)


def _register_again(
    draft: Draft, request: RegisterBrokerRequest, existing: BrokerRegistration
) -> RegisterBrokerResponse:
    level = draft.image.metadata_version
    record = _record(request, level, existing.broker_epoch, existing.fenced, existing.in_controlled_shutdown)
    after = registered_broker(record)
    if after != existing:
        kept = tuple(directory for directory in existing.log_directories if directory in after.log_directories)
        replace_incarnation(draft, replace(existing, log_directories=kept), clean=True)
        draft.add(record)
        elect_missing_leaders(draft)  # a directory may have come back
    return RegisterBrokerResponse(broker_epoch=existing.broker_epoch)


def _register_new(
    draft: Draft, request: RegisterBrokerRequest, existing: BrokerRegistration | None, next_offset: Offset
) -> RegisterBrokerResponse:
    level = draft.image.metadata_version
    if existing is not None:
        clean = request.previous_broker_epoch == existing.broker_epoch
        replace_incarnation(draft, registered_broker(_record(request, level, -1, True, False)), clean)
    epoch = next_offset + len(draft.records)
    draft.add(_record(request, level, epoch, True, False))
    return RegisterBrokerResponse(broker_epoch=epoch)


def _record(
    request: RegisterBrokerRequest, level: int, epoch: int, fenced: bool, stopping: bool
) -> RegisterBrokerRecord:
    """level: the metadata.version in force."""
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
    )


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


def _check_directories(image: Image, request: RegisterBrokerRequest) -> None:
    directories = request.log_directories
    if not directories:
        raise _invalid(request, "has no log directory")
    if len(set(directories)) < len(directories):
        raise _invalid(request, "names a log directory twice")
    for directory in directories:
        if len(directory) != UUID_BYTES or is_reserved_directory(directory):
            raise _invalid(request, f"{directory.hex()} is not usable as a directory id")
        for other in image.sorted_brokers():
            if other.broker_id != request.broker_id and directory in other.log_directories:
                raise _invalid(request, f"directory {format_uuid(directory)} belongs to broker {other.broker_id}")


def _invalid(request: RegisterBrokerRequest, reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REGISTRATION, f"broker {request.broker_id}: {reason}")
