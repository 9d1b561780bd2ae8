"""The settings of single groups, at the broker that is asked."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from broker_fakes import FakeContext, Fakes, image_of, usual_image
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.configs.group import GROUP_SETTINGS, check, in_file, settings_of
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quorumlog.messages.cluster import ConfigResource, DescribeConfigsRequest
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog.settings.groups import ConsumerGroupConfig, ConsumerSettings
from quorumlog_broker.api.handlers import HANDLERS
from quorumlog_broker.api.services import Services
from tests.rules import rule

GROUP = 32


def ask(services: Services, request: Any) -> Any:
    async def run() -> Any:
        return await HANDLERS[type(request)](services, FakeContext(), request)

    return asyncio.run(run())


SESSION, HEARTBEAT, INTERVAL = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)


def fakes_with(**values: str) -> Fakes:
    fakes = Fakes()
    records = [
        ConfigRecord(resource_type=GROUP, resource_name="g", name=name.replace("_", "."), value=value)
        for name, value in values.items()
    ]
    fakes.subscription.image = image_of(records, usual_image())
    return fakes


def alter(fakes: Fakes, *changes: tuple[str, int, str | None], **fields: Any) -> list[tuple[str, int]]:
    fakes.controller.answers = [
        IncrementalAlterConfigsResponse(results=(AlterConfigsResult(resource_type=GROUP, resource_name="forwarded"),))
    ]
    configs = tuple(AlterableConfig(name=name, operation=operation, value=value) for name, operation, value in changes)
    resource = AlterConfigsResource(resource_type=GROUP, resource_name="g", configs=configs, **fields)
    response = ask(fakes.services(), IncrementalAlterConfigsRequest(resources=(resource,)))
    return [(one.resource_name, one.error_code) for one in response.results]


REFUSED = [("g", ErrorCode.INVALID_CONFIG)]
FORWARDED = [("forwarded", ErrorCode.NONE)]


@rule("group 5.10")
@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ([(SESSION, 0, "45000")], FORWARDED),
        ([(SESSION, 0, "60000"), (HEARTBEAT, 0, "15000"), (INTERVAL, 0, "0")], FORWARDED),
        ([(SESSION, 0, "44999")], REFUSED),
        ([(SESSION, 0, "60001")], REFUSED),
        ([(HEARTBEAT, 0, "4999")], REFUSED),
        ([(INTERVAL, 0, "15001")], REFUSED),
        ([(SESSION, 1, None)], FORWARDED),
        ([("retention.ms", 0, "1")], FORWARDED),  # refused by the controller, which names the nearest key
    ],
)
def test_a_broker_refuses_what_its_file_does_not_allow(changes: list[Any], want: list[Any]) -> None:
    assert alter(fakes_with(), *changes) == want


def test_what_the_group_has_already_is_checked_too() -> None:
    fakes = fakes_with(consumer_session_timeout_ms="99000")
    assert alter(fakes, (HEARTBEAT, 0, "6000")) == REFUSED
    assert alter(fakes, (HEARTBEAT, 0, "6000"), (SESSION, 1, None)) == FORWARDED
    assert alter(fakes, (HEARTBEAT, 0, "6000"), replace=True) == FORWARDED


def test_a_group_is_described_by_all_its_settings() -> None:
    fakes = fakes_with(consumer_session_timeout_ms="50000")
    services = dataclasses.replace(fakes.services(), consumer_groups=ConsumerGroupConfig(heartbeat_interval_ms=6_000))
    request = DescribeConfigsRequest(
        resources=tuple(ConfigResource(resource_type=GROUP, resource_name=name) for name in ("g", "other", "")),
        include_synonyms=True,
    )
    mine, other, unnamed = ask(services, request).results
    found = {config.name: config for config in mine.configs}
    assert {name: (one.value, one.source) for name, one in found.items()} == {
        SESSION: ("50000", 8),
        HEARTBEAT: ("6000", 4),
        INTERVAL: ("1000", 5),
    }
    assert [(one.name, one.value, one.source) for one in found[SESSION].synonyms] == [
        (SESSION, "50000", 8),
        (f"group.{SESSION}", "45000", 5),
    ]
    assert {one.source for one in other.configs} == {4, 5}
    assert unnamed.error_code == ErrorCode.INVALID_REQUEST


def test_a_group_is_described_by_what_was_changed_of_all_groups() -> None:
    fakes = Fakes()
    record = ConfigRecord(resource_type=4, resource_name="", name=f"group.{INTERVAL}", value="2500")
    fakes.subscription.image = image_of([record], usual_image())
    request = DescribeConfigsRequest(resources=(ConfigResource(resource_type=GROUP, resource_name="g"),))
    (found,) = ask(fakes.services(), request).results
    assert {one.name: one.value for one in found.configs}[INTERVAL] == "2500"


VALUES = st.dictionaries(
    st.sampled_from([*GROUP_SETTINGS, "consumer.of.the.future"]),
    st.integers(-1, 10**6).map(str) | st.sampled_from(["", "many", "1e3"]),
)


@given(VALUES)
def test_a_broker_keeps_to_its_limits_whatever_metadata_says(values: dict[str, str]) -> None:
    config = ConsumerGroupConfig()
    found = settings_of(config, values)
    assert config.min_session_timeout_ms <= found.session_timeout_ms <= config.max_session_timeout_ms
    assert config.min_heartbeat_interval_ms <= found.heartbeat_interval_ms <= config.max_heartbeat_interval_ms
    assert config.min_assignment_interval_ms <= found.assignment_interval_ms <= config.max_assignment_interval_ms
    try:
        check(config, values)
    except ApiError:
        return
    numbers = {
        name: int(text) for name, text in values.items() if name in GROUP_SETTINGS and text.lstrip("-").isdigit()
    }
    taken = dict(zip((SESSION, HEARTBEAT, INTERVAL), found, strict=True))
    assert all(taken[name] == one for name, one in numbers.items() if one >= GROUP_SETTINGS[name].minimum)


def test_a_group_without_settings_has_those_of_the_file() -> None:
    config = ConsumerGroupConfig(session_timeout_ms=50_000)
    assert settings_of(config, {}) == ConsumerSettings(50_000, 5_000, 1_000) == config.settings
    assert in_file(config) == {SESSION: "50000", HEARTBEAT: "5000", INTERVAL: "1000"}
