"""Options of a batch read: the names of Spark's Kafka source, and the client's options under `kafka.` or `quorumlog.`.

Spark passes every name in lower case. An unknown name raises an error that names the nearest option, so that a typo
does not go unnoticed. A name that Kafka's source knows but this one does not support yet is refused as such.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from quorumlog.client.errors import ConfigError
from quorumlog.client.offsets import EARLIEST, LATEST
from quorumlog.client.options import ConsumerOptions, parse_options
from quorumlog.spark.places import Place, parse_assign, parse_place

DEFAULT_CLIENT_ID = "spark-quorumlog-source"
DEFAULT_POLL_TIMEOUT_MS = 120_000  # spark.network.timeout, as in Kafka's source

_OWN = (
    "bootstrap.servers", "subscribe", "subscribePattern", "assign", "startingOffsets", "endingOffsets",
    "failOnDataLoss", "includeHeaders", "isolationLevel", "kafkaConsumer.pollTimeoutMs", "groupIdPrefix",
)  # fmt: skip
_NOT_YET = (
    "startingTimestamp", "endingTimestamp", "startingOffsetsByTimestamp", "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy", "minPartitions", "maxRecordsPerPartition", "maxBytesPerPartition",
    "includeMetadata", "keyFormat", "valueFormat", "columns", "pushdown", "wire", "readFrom", "table", "asOf",
    "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "includeValue", "prefetch",
)  # fmt: skip
_NOT_IN_BATCH = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "maxBytesPerTrigger", "pinId")
_NOT_YOURS = {
    "auto_offset_reset": "set startingOffsets and failOnDataLoss instead",
    "check_crcs": "it is always on",
    "group_id": "Spark keeps the offsets; set groupIdPrefix to name the reader",
    "key_deserializer": "keys are bytes: convert the column in Spark",
    "value_deserializer": "values are bytes: convert the column in Spark",
    "enable_auto_commit": "a batch read commits no offsets",
    "interceptor_classes": "they are Java classes",
}
_CLIENT = tuple(field.name for field in fields(ConsumerOptions))


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """Exactly one field is set. pattern: a Python regular expression that must match a topic's whole name."""

    names: tuple[str, ...] = ()
    pattern: str = ""
    assigned: Mapping[str, tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """client: options of quorumlog.client, by their underscored names."""

    client: Mapping[str, Any]
    subscription: Subscription
    starting: Place = EARLIEST
    ending: Place = LATEST
    fail_on_data_loss: bool = True
    include_headers: bool = False
    poll_timeout_ms: int = DEFAULT_POLL_TIMEOUT_MS


def parse_read_options(given: Mapping[str, str]) -> ReadOptions:
    """Options of `spark.read`, in any case. Raises ConfigError."""
    own, client = _sort(given)
    if "bootstrap_servers" not in client:
        raise ConfigError('set the address of the cluster: .option("bootstrap.servers", "host:9092")')
    client.setdefault("client_id", own.get("groupIdPrefix", DEFAULT_CLIENT_ID))
    if "isolationLevel" in own:
        client["isolation_level"] = own["isolationLevel"]
    parse_options(ConsumerOptions, client, {})
    return ReadOptions(
        client=client,
        subscription=_subscription(own),
        starting=_starting(own.get("startingOffsets", "earliest")),
        ending=_ending(own.get("endingOffsets", "latest")),
        fail_on_data_loss=_truth("failOnDataLoss", own.get("failOnDataLoss", "true")),
        include_headers=_truth("includeHeaders", own.get("includeHeaders", "false")),
        poll_timeout_ms=_positive(own, "kafkaConsumer.pollTimeoutMs", DEFAULT_POLL_TIMEOUT_MS),
    )


def _sort(given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Any]]:
    """The connector's options by their spelling in `_OWN`, and the client's by their underscored names."""
    spelling = {name.lower(): name for name in _OWN}
    own: dict[str, str] = {}
    client: dict[str, Any] = {}
    for key, value in given.items():
        name = key.lower()
        if name in ("bootstrap.servers", "kafka.bootstrap.servers", "quorumlog.bootstrap.servers"):
            client["bootstrap_servers"] = value
        elif name == "kafka.isolation.level":
            own["isolationLevel"] = value
        elif name in spelling:
            own[spelling[name]] = value
        elif name.startswith(("kafka.", "quorumlog.")):
            client[_client_name(key)] = value
        elif name.replace(".", "_") in _CLIENT:
            client[name.replace(".", "_")] = value
        else:
            raise ConfigError(_refusal(key))
    return own, client


def _client_name(key: str) -> str:
    name = key.partition(".")[2].lower().replace(".", "_")
    if name in _NOT_YOURS:
        raise ConfigError(f"option {key!r} cannot be set here: {_NOT_YOURS[name]}")
    if name not in _CLIENT:
        raise ConfigError(_refusal(key))
    return name


def _refusal(key: str) -> str:
    name = key.lower()
    if name in (known.lower() for known in _NOT_YET):
        return f"option {key!r} is not supported yet; supported: {', '.join(_OWN)}"
    if name in (known.lower() for known in _NOT_IN_BATCH):
        return f"option {key!r} is for streams, and this is a batch read"
    if name == "path":
        return 'name topics with .option("subscribe", "a,b") and call load() without a path'
    prefix = next((p for p in ("kafka.", "quorumlog.") if name.startswith(p)), "")
    known = [prefix + field.replace("_", ".") for field in _CLIENT] if prefix else list(_OWN)
    spelling = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(name, list(spelling), n=1)
    hint = f"did you mean {spelling[near[0]]!r}?" if near else f"known options: {', '.join(known)}"
    return f"unknown option {key!r}; {hint}"


def _subscription(own: Mapping[str, str]) -> Subscription:
    given = [name for name in ("subscribe", "subscribePattern", "assign") if name in own]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        raise ConfigError(f"give exactly one of subscribe, subscribePattern and assign; found {found}")
    text = own[given[0]]
    if given[0] == "assign":
        return Subscription(assigned=parse_assign(text))
    if given[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise ConfigError(f"subscribePattern {text!r} is not a regular expression: {error}") from error
        return Subscription(pattern=text)
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ConfigError("subscribe names no topic")
    return Subscription(names=names)


def _starting(text: str) -> Place:
    place = parse_place("startingOffsets", text)
    if place == LATEST or (not isinstance(place, int) and LATEST in place.values()):
        raise ConfigError("startingOffsets: a batch read cannot start at latest: it would always be empty")
    return place


def _ending(text: str) -> Place:
    place = parse_place("endingOffsets", text)
    if place == EARLIEST or (not isinstance(place, int) and EARLIEST in place.values()):
        raise ConfigError("endingOffsets: a batch read cannot end at earliest: it would always be empty")
    return place


def _truth(option: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConfigError(f"{option} must be true or false: {text!r}")
    return text.lower() == "true"


def _positive(own: Mapping[str, str], option: str, default: int) -> int:
    text = own.get(option, str(default))
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ConfigError(f"{option} must be a positive whole number: {text!r}")
    return int(text)
