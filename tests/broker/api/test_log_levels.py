"""Levels of loggers while a broker runs: which there are, who may be changed how, and what Kafka answers otherwise."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource
from quorumlog_broker.api import log_levels
from quorumlog_quorum.metadata.image import BROKER_LOGGER_RESOURCE

NODE, NAME = NodeId(3), "quorumlog.test.levels"
SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    root_level, found = logging.root.level, logging.getLogger(NAME)
    yield found
    logging.root.setLevel(root_level)
    found.setLevel(logging.NOTSET)


def asked(*changes: tuple[str, int, str | None], node: str = "3", replace: bool = False) -> AlterConfigsResource:
    configs = tuple(AlterableConfig(name=name, operation=operation, value=value) for name, operation, value in changes)
    return AlterConfigsResource(
        resource_type=BROKER_LOGGER_RESOURCE, resource_name=node, configs=configs, replace=replace
    )


def levels() -> dict[str, str | None]:
    return {one.name: one.value for one in log_levels.describe("3", NODE)}


def test_a_level_is_set_and_taken_back(logger: logging.Logger) -> None:
    log_levels.alter(asked(("root", SET, "WARN"), (NAME, SET, "DEBUG")), NODE, validate_only=False)
    assert logger.isEnabledFor(logging.DEBUG) and not logging.root.isEnabledFor(logging.INFO)
    assert (levels()["root"], levels()[NAME]) == ("WARN", "DEBUG")
    log_levels.alter(asked((NAME, DELETE, "")), NODE, validate_only=False)
    assert levels()[NAME] == "WARN" and not logger.isEnabledFor(logging.INFO)


@pytest.mark.parametrize(("word", "level"), [("TRACE", 5), ("DEBUG", 10), ("INFO", 20), ("ERROR", 40), ("FATAL", 50)])
def test_words_are_kafkas(logger: logging.Logger, word: str, level: int) -> None:
    log_levels.alter(asked((NAME, SET, word)), NODE, validate_only=False)
    assert logger.level == level and levels()[NAME] == word


@pytest.mark.parametrize("node", ["3", "03", "+3"])
def test_a_broker_is_named_as_java_reads_numbers(logger: logging.Logger, node: str) -> None:
    log_levels.alter(asked((NAME, SET, "ERROR"), node=node), NODE, validate_only=False)
    assert logger.level == logging.ERROR


def test_a_package_of_loggers_is_one(logger: logging.Logger) -> None:
    log_levels.alter(asked(("quorumlog.test", SET, "ERROR")), NODE, validate_only=False)
    assert levels()[NAME] == "ERROR"
    logging.getLogger("quorumlog.test").setLevel(logging.NOTSET)


INVALID, CONFIG = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG
REFUSED = [
    ("another broker", asked((NAME, SET, "INFO"), node="4"), INVALID, "Unexpected node id. Expected 3, but received 4"),
    ("no broker", asked((NAME, SET, "INFO"), node="x"), INVALID, "Node id must be an integer, but it is: x"),
    ("no logger", asked(("no.such", SET, "INFO")), CONFIG, "Logger no.such does not exist!"),
    ("none to reset", asked(("no.such", DELETE, None)), CONFIG, "Logger no.such does not exist!"),
    (
        "no level",
        asked((NAME, SET, "LOUD")),
        CONFIG,
        f"Cannot set the log level of {NAME} to LOUD as it is not a supported log level. "
        "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN",
    ),
    ("small letters", asked((NAME, SET, "info")), CONFIG, None),
    ("no value", asked((NAME, SET, None)), INVALID, f"Null value not supported for : {NAME}"),
    ("twice", asked((NAME, SET, "INFO"), (NAME, SET, "INFO")), INVALID, "Error due to duplicate config keys"),
    ("root", asked(("root", DELETE, "")), INVALID, "Removing the log level of the root logger is not allowed"),
    (
        "append",
        asked((NAME, APPEND, "INFO")),
        INVALID,
        "APPEND operation is not allowed for the BROKER_LOGGER resource",
    ),
    ("subtract", asked((NAME, SUBTRACT, "INFO")), INVALID, None),
    ("unknown", asked((NAME, 9, "INFO")), INVALID, None),
    ("the older call", asked((NAME, SET, "INFO"), replace=True), INVALID, None),
]


@pytest.mark.parametrize(("request_", "code", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_refused(request_: AlterConfigsResource, code: ErrorCode, message: str | None) -> None:
    """Nothing of it is carried out, and no logger comes to be."""
    before = levels()
    with pytest.raises(ApiError) as refused:
        log_levels.alter(request_, NODE, validate_only=False)
    assert refused.value.code == code and (message is None or refused.value.message == message)
    assert levels() == before


def test_one_wrong_change_keeps_the_others_from_being_made() -> None:
    before = levels()
    with pytest.raises(ApiError):
        log_levels.alter(asked((NAME, SET, "DEBUG"), ("no.such", SET, "INFO")), NODE, validate_only=False)
    log_levels.alter(asked((NAME, SET, "DEBUG")), NODE, validate_only=True)
    assert levels() == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "Broker id must not be empty"),
        ("4", "Unexpected broker id, expected 3 but received 4"),
        ("x", "Broker id must be an integer, but it is: x"),
    ],
)
def test_only_the_broker_itself_shows_them(name: str, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        log_levels.describe(name, NODE)
    assert (refused.value.code, refused.value.message) == (INVALID, message)
