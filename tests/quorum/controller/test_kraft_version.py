"""UpdateFeatures of kraft.version: it goes to the quorum's log, alone, and only upward."""

from __future__ import annotations

import asyncio

import pytest

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import FeatureUpdate, UpdateFeaturesRequest, UpdateFeaturesResponse
from quorumlog_quorum.controller.shell.kraft_version import names_kraft_version, update_kraft_version
from tests.rules import rule

UPGRADE, DOWNGRADE = 1, 2


class FakeLog:
    """asked: validate_only of each upgrade."""

    def __init__(self, level: int, refusal: ApiError | None = None) -> None:
        self.kraft_version, self.refusal = level, refusal
        self.asked: list[bool] = []

    async def upgrade_kraft_version(self, *, validate_only: bool) -> None:
        self.asked.append(validate_only)
        if self.refusal is not None:
            raise self.refusal


def request(*levels: tuple[str, int, int], validate_only: bool = False) -> UpdateFeaturesRequest:
    updates = tuple(FeatureUpdate(name=name, level=level, upgrade_type=kind) for name, level, kind in levels)
    return UpdateFeaturesRequest(updates=updates, timeout_ms=1_000, validate_only=validate_only)


def ask(log: FakeLog, asked: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    return asyncio.run(update_kraft_version(log, asked))


@pytest.mark.parametrize("validate_only", [False, True])
def test_an_upgrade_asks_the_log(validate_only: bool) -> None:
    log = FakeLog(0)
    answer = ask(log, request(("kraft.version", 1, UPGRADE), validate_only=validate_only))
    assert (answer.error_code, log.asked) == (ErrorCode.NONE, [validate_only])
    assert [result.name for result in answer.results] == ["kraft.version"]


@pytest.mark.parametrize("level", [0, 1])
def test_the_level_in_force_changes_nothing(level: int) -> None:
    log = FakeLog(level)
    assert ask(log, request(("kraft.version", level, UPGRADE))).error_code == ErrorCode.NONE
    assert log.asked == []


@rule("kraft 6.22")
@pytest.mark.parametrize(
    ("now", "level", "kind", "says"),
    [
        (1, 0, DOWNGRADE, "never falls"),
        (1, 0, UPGRADE, "never falls"),
        (0, 2, UPGRADE, "its levels are 0 to 1"),
        (0, -1, UPGRADE, "its levels are 0 to 1"),
        (0, 1, DOWNGRADE, "this is an upgrade"),
    ],
)
def test_what_is_refused(now: int, level: int, kind: int, says: str) -> None:
    log = FakeLog(now)
    answer = ask(log, request(("kraft.version", level, kind)))
    assert answer.error_code == answer.results[0].error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert says in answer.error_message and log.asked == []


def test_it_changes_alone() -> None:
    both = request(("kraft.version", 1, UPGRADE), ("metadata.version", 3, UPGRADE))
    assert names_kraft_version(both) and not names_kraft_version(request(("metadata.version", 3, UPGRADE)))
    with pytest.raises(ApiError, match="a request of its own") as caught:
        ask(FakeLog(0), both)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_the_reason_of_the_quorum_is_told() -> None:
    log = FakeLog(0, ApiError(ErrorCode.INVALID_UPDATE_VERSION, "voter 3 has not told what it supports"))
    answer = ask(log, request(("kraft.version", 1, UPGRADE)))
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION and "voter 3" in answer.results[0].error_message


@pytest.mark.parametrize("code", [ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_a_lost_leadership_is_an_error_of_the_call_which_brokers_retry(code: ErrorCode) -> None:
    log = FakeLog(0, ApiError(code, "node 1 does not lead"))
    with pytest.raises(ApiError) as caught:
        ask(log, request(("kraft.version", 1, UPGRADE)))
    assert caught.value.code is ErrorCode.NOT_CONTROLLER
