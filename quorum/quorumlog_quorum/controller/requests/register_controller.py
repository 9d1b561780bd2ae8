"""RegisterController: a controller's process tells which levels of features its software supports.

Sources: KIP-919, KIP-584. Every controller tells each controller that becomes active, itself included.

- A controller whose ranges do not cover every finalized level is refused (UNSUPPORTED_VERSION).
- Where metadata.version has a record for it, the registration is written, unless the log has the same one.
- Below that level the active controller remembers it (announced.py): UpdateFeatures must know it to raise the level.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import UUID_BYTES
from quorumlog.messages.controller import RegisterControllerRequest, RegisterControllerResponse
from quorumlog.messages.metadata_records import RegisterControllerRecord
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.metadata.changes import registered_controller
from quorumlog_quorum.metadata.features import describe_range, uncovered
from quorumlog_quorum.metadata.frame import is_written_at


def register_controller(draft: Draft, request: RegisterControllerRequest) -> RegisterControllerResponse:
    """Raises ApiError."""
    _check(draft, request)
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        endpoints=request.endpoints,
        features=tuple(sorted(request.features, key=lambda supported: supported.name)),
    )
    registration = registered_controller(record)
    draft.state.announced.controllers[request.controller_id] = registration
    is_new = draft.image.controllers.get(request.controller_id) != registration
    if is_new and is_written_at(RegisterControllerRecord, draft.level):
        draft.add(record)
    return RegisterControllerResponse()


def _check(draft: Draft, request: RegisterControllerRequest) -> None:
    node = f"controller {request.controller_id}"
    if request.cluster_id != draft.state.cluster_id:
        text = f"{node} belongs to cluster {request.cluster_id!r}, this is {draft.state.cluster_id!r}"
        raise ApiError(ErrorCode.INCONSISTENT_CLUSTER_ID, text)
    names = [supported.name for supported in request.features]
    if request.controller_id < 0 or len(request.incarnation_id) != UUID_BYTES:
        text = f"{node} needs an id of 0 or more and an incarnation id of 16 bytes"
        raise ApiError(ErrorCode.INVALID_REGISTRATION, text)
    if len(set(names)) < len(names) or any(not 1 <= s.min_level <= s.max_level for s in request.features):
        text = f"{node} needs one range of levels from 1 on per feature, has {request.features}"
        raise ApiError(ErrorCode.INVALID_REGISTRATION, text)
    for name, level in uncovered(draft.image.features, request.features):
        supports = describe_range(name, request.features)
        text = f"{node} supports {supports}; the cluster uses level {level}: upgrade the controller"
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
