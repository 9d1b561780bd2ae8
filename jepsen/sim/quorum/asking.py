"""How a client asks for a change of the metadata: the requests, and what each answer means.

A change goes to the controller itself, as a broker would send it, or through a broker. It is asked until one of them
carried it out, refused it for a reason that is an observation, or may have carried it out.
"""

from __future__ import annotations

from typing import Any

from jepsen.linear.models import ABSENT, CREATE, DELETE, DELETE_ID, EXISTS, FIND, SET
from jepsen.linear.operation import OK
from jepsen.sim.quorum.history import TOPIC_KEY
from quorumlog.client.administration.config_change import alterable
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import (
    AlterConfigsResource,
    FeatureUpdate,
    IncrementalAlterConfigsRequest,
    UpdateFeaturesRequest,
)
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest, TopicQuery
from quorumlog_quorum.metadata.features import LATEST_LEVEL, METADATA_VERSION

SETTINGS = {  # of all brokers: the name in the log, and the name under which a broker sets it
    "retention.bytes": "log.retention.bytes",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
}
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
CALL_MS = 2_000
AGAIN = (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER)  # certainly nothing was changed: ask another
REFUSED = (ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.INVALID_REQUEST)  # certainly nothing, and never will be
_OBSERVED = {  # the answers with an error that tell what is there
    ErrorCode.TOPIC_ALREADY_EXISTS: EXISTS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ABSENT,
    ErrorCode.UNKNOWN_TOPIC_ID: ABSENT,
}


def topic_request(kind: str, name: str, argument: str) -> Any:
    """FIND asks the controller whether it would create the topic."""
    if kind in (CREATE, FIND):
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        return CreateTopicsRequest(topics=(topic,), timeout_ms=CALL_MS, validate_only=kind == FIND)
    if kind == DELETE:
        return DeleteTopicsRequest(topics=(TopicQuery(name=name),), timeout_ms=CALL_MS)
    if kind == DELETE_ID:
        return DeleteTopicsRequest(topics=(TopicQuery(topic_id=bytes.fromhex(argument)),), timeout_ms=CALL_MS)
    assert kind == SET, kind
    return _alter(TOPIC_RESOURCE, name, TOPIC_KEY, argument)


def setting_request(key: str, value: str) -> Any:
    """value: "" takes it back."""
    return _alter(BROKER_RESOURCE, "", SETTINGS[key], value)


def level_request(level: int) -> UpdateFeaturesRequest:
    """Finalize a level of metadata.version, up or down, if nothing is lost by that."""
    kinds = {LATEST_LEVEL: 1}
    update = FeatureUpdate(name=METADATA_VERSION, level=level, upgrade_type=kinds.get(level, 2))
    return UpdateFeaturesRequest(updates=(update,), timeout_ms=CALL_MS)


def _alter(kind: int, name: str, key: str, value: str) -> IncrementalAlterConfigsRequest:
    configs = (alterable(key, value or None),)
    return IncrementalAlterConfigsRequest(
        resources=(AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs),)
    )


def code_of(response: Any) -> ErrorCode:
    """Of the whole response, or of its only part."""
    parts = getattr(response, "topics", None) or getattr(response, "results", ())
    return ErrorCode(response.error_code or (parts[0].error_code if parts else 0))


def answer_of(kind: str, response: Any) -> str | None:
    """In the words of the model; None: the outcome is not known."""
    code = code_of(response)
    if code in _OBSERVED:
        return _OBSERVED[code]
    if code != ErrorCode.NONE:
        return None
    if kind == CREATE:
        return str(response.topics[0].topic_id.hex())
    return ABSENT if kind == FIND else OK
