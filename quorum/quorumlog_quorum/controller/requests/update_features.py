"""UpdateFeatures: raises or lowers finalized levels of features. Sources: KIP-584, KIP-1022, decision 29.

- All updates of a request are carried out, in one batch of the log, or none. The first one that is refused decides.
- A level is finalized only if every registered broker (fenced ones, too), every voter and every registered controller
  supports it. A controller that is no voter and not there (it has told this active controller nothing) does not count:
  it is forgotten when a level rises.
- metadata.version falls only where nothing is lost (quorumlog_quorum/metadata/downgrade.py). An unsafe downgrade has no
  other meaning for it: what stands in the way must be removed first.
- Other features are on only where metadata.version has a place for the ranges of every node. One request may change
  both: what is turned off comes before metadata.version falls, what is turned on after it has risen.
- Whether a group or a transaction still needs a feature, brokers ask before they forward a downgrade
  (quorumlog_broker/api/handlers/features_in_use.py). The controller does not know of either.
- Each record is written at the level that is in force where it stands, so a change of the level rewrites, in the same
  batch, what differs: the ranges of brokers and controllers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import (
    FeatureUpdate,
    UpdateFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from quorumlog.messages.common import FeatureRange
from quorumlog.messages.metadata_records import (
    FeatureLevelRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterControllerRecord,
)
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.metadata.downgrade import obstacles, records_after, records_before
from quorumlog_quorum.metadata.features import (
    JOINT_VERSION,
    METADATA_VERSION,
    OTHERS_LEVEL,
    TRANSACTION_VERSION,
    describe_range,
    needs,
    uncovered,
)
from quorumlog_quorum.metadata.frame import differs_between, has_field, is_written_at
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.snapshot_records import broker_record, controller_record

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3  # Kafka's numbers
KAFKAS_OWN = "Kafka's metadata.version"  # as quorumlog/wire/protocol/features.py names it
MAX_LEVEL = 32_767  # Kafka's levels are 16 bits wide
MAX_UPDATES = 100  # of one request


def update_features(draft: Draft, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Raises ApiError for a request that names no feature, or one twice."""
    _check_request(request)
    after = {update.name: update.level for update in request.updates}
    for update in request.updates:
        try:
            _check_update(draft, update)
            _check_dependency(draft.image, update, after)
        except ApiError as error:
            return _refusal(request, update, error)
    if not request.validate_only:
        for update in sorted(request.updates, key=_turn):
            if update.level != _level_of(draft.image, update.name):
                _write(draft, update)
    return UpdateFeaturesResponse(results=tuple(UpdateFeatureResult(name=update.name) for update in request.updates))


def _refusal(request: UpdateFeaturesRequest, refused: FeatureUpdate, error: ApiError) -> UpdateFeaturesResponse:
    """As in Kafka, the error is that of the whole request; the features that are not to blame say why, too."""
    others = f"nothing was changed, because {refused.name} was refused"
    return UpdateFeaturesResponse(
        error_code=error.code,
        error_message=error.message,
        results=tuple(
            UpdateFeatureResult(
                name=update.name,
                error_code=error.code if update is refused else ErrorCode.FEATURE_UPDATE_FAILED,
                error_message=error.message if update is refused else others,
            )
            for update in request.updates
        ),
    )


def _check_request(request: UpdateFeaturesRequest) -> None:
    names = [update.name for update in request.updates]
    if not names or len(names) > MAX_UPDATES:
        text = f"{len(names)} features are named; name at least one, and at most {MAX_UPDATES}"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"named twice: {', '.join(twice)}; name each feature once")
    for update in request.updates:
        if not update.name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "a feature without a name")
        if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            text = f"{update.name}: upgrade type {update.upgrade_type}; must be 1 (upgrade), 2 or 3 (downgrade)"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)


def _check_update(draft: Draft, update: FeatureUpdate) -> None:
    """Raises ApiError(INVALID_UPDATE_VERSION)."""
    now = _level_of(draft.image, update.name)
    if not 0 <= update.level <= MAX_LEVEL:
        raise _invalid(update, f"a level is a number from 0 to {MAX_LEVEL}")
    if update.level == now:
        return
    if update.level < now and update.upgrade_type == UPGRADE:
        raise _invalid(update, f"level {now} is in force, so this is a downgrade: ask for it as one")
    if update.level > now and update.upgrade_type != UPGRADE:
        raise _invalid(update, f"level {now} is in force, so this is an upgrade: ask for it as one")
    _check_support(draft, update)
    if update.name == METADATA_VERSION and update.level < now:
        in_the_way = obstacles(draft.image, update.level)
        if in_the_way:
            raise _invalid(update, f"it cannot express {'; '.join(in_the_way)}. Nothing was changed")


def _check_dependency(image: Image, update: FeatureUpdate, after: Mapping[str, int]) -> None:
    """after: the levels that the request asks for. Raises ApiError(INVALID_UPDATE_VERSION)."""
    for name, level in needs(update.name, update.level).items():
        found = after.get(name, _level_of(image, name))
        if found < level:
            raise _invalid(update, f"it needs {name} {level}, and {found} would be in force")
    if update.name == METADATA_VERSION and update.level < OTHERS_LEVEL:
        still_on = [name for name, level in sorted(image.features.items()) if after.get(name, level) > 0]
        others = [name for name in still_on if name != METADATA_VERSION]
        if others:
            named = ", ".join(f"{name}=0" for name in others)
            raise _invalid(update, f"{' and '.join(others)} would stay on; turn it off in the same request: {named}")
    if update.name == TRANSACTION_VERSION:
        joint = after.get(JOINT_VERSION, image.joint_version)
        needed = needs(JOINT_VERSION, joint).get(TRANSACTION_VERSION, 0)
        if update.level < needed:
            raise _invalid(update, f"{JOINT_VERSION} {joint} would stay on, and needs {needed}; turn it off first")


def _turn(update: FeatureUpdate) -> int:
    """Of writing: turned off, metadata.version, the others."""
    if update.name == METADATA_VERSION:
        return 1
    return 0 if update.level == 0 else 2


def _check_support(draft: Draft, update: FeatureUpdate) -> None:
    own = draft.state.supported
    if update.name == KAFKAS_OWN:
        text = (
            "that numbering is Kafka's own, and this cluster does not use it; its level is quorumlog.metadata.version"
        )
        raise _invalid(update, text)
    if update.name not in (supported.name for supported in own):
        known = ", ".join(sorted(supported.name for supported in own))
        raise _invalid(update, f"this cluster has no feature of that name; it has {known}")
    if update.name == METADATA_VERSION and update.level == 0:
        raise _invalid(update, "it cannot be turned off; its lowest level is 1")
    if not _supports(own, update):
        raise _invalid(update, f"the active controller supports {describe_range(update.name, own)}: upgrade it first")
    for problem in (*_lacking_brokers(draft, update), *_lacking_controllers(draft, update)):
        raise _invalid(update, problem)


def _lacking_brokers(draft: Draft, update: FeatureUpdate) -> Iterator[str]:
    for broker in draft.image.sorted_brokers():
        ranges = draft.state.announced.ranges_of(broker)
        if not _supports(ranges, update):
            name = f"broker {broker.broker_id}{' (fenced)' if broker.fenced else ''}"
            yield f"{name} supports {describe_range(update.name, ranges)}: start it with newer software first"


def _lacking_controllers(draft: Draft, update: FeatureUpdate) -> Iterator[str]:
    known = {**draft.image.controllers, **draft.state.announced.controllers}
    voters = set(draft.state.voter_ids())
    for node_id in sorted(voters | draft.state.announced.controllers.keys()):
        if node_id not in known:
            yield (
                f"controller {node_id} has not said which levels it supports: "
                "start it with newer software, and ask again once it follows the quorum"
            )
        elif not _supports(known[node_id].features, update):
            supports = describe_range(update.name, known[node_id].features)
            yield f"controller {node_id} supports {supports}: start it with newer software first"


def _supports(ranges: tuple[FeatureRange, ...], update: FeatureUpdate) -> bool:
    return update.level == 0 or (update.name, update.level) not in uncovered({update.name: update.level}, ranges)


def _write(draft: Draft, update: FeatureUpdate) -> None:
    before = draft.image
    if update.name != METADATA_VERSION:
        draft.add(FeatureLevelRecord(name=update.name, level=update.level))
    elif update.level > before.metadata_version:
        draft.add(FeatureLevelRecord(name=update.name, level=update.level))
        _write_ranges(draft, before)
    else:
        for record in records_before(before, update.level):
            draft.add(record)
        draft.add(FeatureLevelRecord(name=update.name, level=update.level))
        for record in records_after(before, update.level):
            draft.add(record)


def _write_ranges(draft: Draft, before: Image) -> None:
    """The ranges that nodes have announced, which the level has a place for now."""
    announced = draft.state.announced
    crossed = differs_between(before.metadata_version, draft.level)
    if RegisterBrokerRecord in crossed and has_field(RegisterBrokerRecord, "features", draft.level):
        for broker in before.sorted_brokers():
            if not broker.features:
                draft.add(replace(broker_record(broker), features=announced.ranges_of(broker)))
    if not is_written_at(RegisterControllerRecord, draft.level):
        return
    for node_id in sorted(announced.controllers):
        if before.controllers.get(node_id) != announced.controllers[node_id]:
            draft.add(controller_record(announced.controllers[node_id]))
    counted = announced.controllers.keys() | set(draft.state.voter_ids())
    for node_id in sorted(set(before.controllers.keys()) - counted):
        draft.add(UnregisterControllerRecord(controller_id=node_id))


def _level_of(image: Image, name: str) -> int:
    """0: the feature is off."""
    return image.metadata_version if name == METADATA_VERSION else image.features.get(name, 0)


def _invalid(update: FeatureUpdate, reason: str) -> ApiError:
    text = f"{update.name} cannot be set to level {update.level}: {reason}"
    return ApiError(ErrorCode.INVALID_UPDATE_VERSION, text)
