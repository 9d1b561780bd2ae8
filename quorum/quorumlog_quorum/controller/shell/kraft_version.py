"""UpdateFeatures of kraft.version: whether the voters are in the log (level 1) or in every node's configuration (0).

The level belongs to the quorum, not to the image (KIP-853): the leader writes it as a control record. So a request that
names it names nothing else, because one batch cannot hold both. It never falls: nodes without a list of voters would
find none.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import FeatureUpdate, UpdateFeatureResult, UpdateFeaturesRequest, UpdateFeaturesResponse
from quorumlog_quorum.controller.requests.update_features import UPGRADE
from quorumlog_quorum.controller.shell.runner import MetadataDriver
from quorumlog_quorum.metadata.features import KRAFT_VERSION, KRAFT_VERSIONS


def names_kraft_version(request: UpdateFeaturesRequest) -> bool:
    return any(update.name == KRAFT_VERSION for update in request.updates)


async def update_kraft_version(driver: MetadataDriver, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """request: one that names kraft.version. Raises ApiError(INVALID_REQUEST, NOT_CONTROLLER)."""
    if len(request.updates) > 1:
        text = f"{KRAFT_VERSION} cannot change together with other features; ask for it in a request of its own"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    (update,) = request.updates
    try:
        _check(update, driver.kraft_version)
        if update.level != driver.kraft_version:
            await driver.upgrade_kraft_version(validate_only=request.validate_only)
    except ApiError as error:
        if error.code in (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER):
            raise ApiError(ErrorCode.NOT_CONTROLLER, error.message) from error
        refused = UpdateFeatureResult(name=update.name, error_code=error.code, error_message=error.message)
        return UpdateFeaturesResponse(error_code=error.code, error_message=error.message, results=(refused,))
    return UpdateFeaturesResponse(results=(UpdateFeatureResult(name=update.name),))


def _check(update: FeatureUpdate, now: int) -> None:
    if not KRAFT_VERSIONS.min_level <= update.level <= KRAFT_VERSIONS.max_level:
        raise _invalid(update, f"its levels are {KRAFT_VERSIONS.min_level} to {KRAFT_VERSIONS.max_level}")
    if update.level < now:
        raise _invalid(update, f"level {now} is in force, and it never falls: the voters stay in the log")
    if update.level > now and update.upgrade_type != UPGRADE:
        raise _invalid(update, f"level {now} is in force, so this is an upgrade: ask for it as one")


def _invalid(update: FeatureUpdate, why: str) -> ApiError:
    text = f"{update.name} cannot be set to level {update.level}: {why}"
    return ApiError(ErrorCode.INVALID_UPDATE_VERSION, text)
