"""IncrementalAlterConfigs: settings of topics, brokers and groups, one key at a time (KIP-339), or all of a resource.

Each resource is changed as a whole or refused alone. A lower `min.insync.replicas` concerns partitions too: an ISR that
is large enough then needs no ELR any more (KIP-966). Their records come first, so that each prefix of the records is
a sound state. A higher one is written at once, and counts for an ISR that is too small only once its leader commits by
it, too (alter_partition.py). A setting that allows more elections is written first; a separate operation holds them.

What the operations of one request make of a resource's settings. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping

from immutables import Map

from quorumlog.configs.broker import (
    BROKER_CONFIGS,
    BROKER_NAMES,
    DECIDED_TOGETHER,
    OF_ALL_BROKERS,
    PER_BROKER,
    stored_name_of,
)
from quorumlog.configs.group import GROUP_SETTINGS, check_together
from quorumlog.configs.topic import TOPIC_CONFIGS, validate, validate_all, validate_words
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Uuid
from quorumlog.messages.admin import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog.settings.config_key import ConfigKey, Kind, words
from quorumlog.slices import Sliced
from quorumlog.topic_name import validate_topic_name
from quorumlog_quorum.controller.bulk_changes.change_partitions import change_partitions
from quorumlog_quorum.controller.bulk_changes.raised_durability import is_raised, note_raised
from quorumlog_quorum.controller.engine.draft import WORK_OF_A_TOPIC, Draft
from quorumlog_quorum.controller.partitions.election import topic_rules
from quorumlog_quorum.metadata.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ConfigResource,
    Image,
)

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3  # Kafka's numbers of operations


def changed_values(
    before: Mapping[str, str],
    inherited: Mapping[str, str],
    changes: Collection[AlterableConfig],
    name_of: Callable[[str], str],
    keys: Mapping[str, ConfigKey] = TOPIC_CONFIGS,
) -> dict[str, str]:
    """The resource's own values after the changes, which are still to be judged. Raises ApiError: INVALID_REQUEST;
    INVALID_CONFIG for what is no list, or not known where it is taken away.

    before: the resource's own values. inherited: the value that APPEND and SUBTRACT start from where the resource has
    none; if that is missing too, the default.
    name_of: the name under which a key is kept. keys: those that the resource may have.
    """
    after = dict(before)
    counts = Counter(name_of(change.name) for change in changes)
    for name, count in counts.items():
        if count > 1:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{name} is in the request twice")
    for change in changes:  # before any is looked at, as Kafka's ConfigAdminManager does
        if change.operation != DELETE and change.value is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{change.name} needs a value; delete takes it back")
    for change in changes:
        _apply(after, inherited, name_of(change.name), change, keys)
    return after


def _apply(
    after: dict[str, str],
    inherited: Mapping[str, str],
    name: str,
    change: AlterableConfig,
    keys: Mapping[str, ConfigKey],
) -> None:
    if change.operation == DELETE:
        if name not in after:
            _require_known(name, keys)
        after.pop(name, None)
        return
    if change.operation not in (SET, APPEND, SUBTRACT):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"operation {change.operation}: must be 0, 1, 2 or 3")
    assert change.value is not None, "it was looked at before"
    if change.operation == SET:
        after[name] = change.value
        return
    _require_list(name, change, keys)
    now = after.get(name, inherited.get(name, keys[name].default))
    after[name] = _list_after(now, change.value, add=change.operation == APPEND)


def _require_known(name: str, keys: Mapping[str, ConfigKey]) -> None:
    if name not in keys:
        validate(name, "", keys)  # its error names the most similar key


def _require_list(name: str, change: AlterableConfig, keys: Mapping[str, ConfigKey]) -> None:
    _require_known(name, keys)
    if keys[name].kind not in (Kind.CHOICES, Kind.LIST):
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{change.name} is no list: set it, or delete it")


def _list_after(now: str, named: str, *, add: bool) -> str:
    held = words(now)
    if add:
        return ",".join(dict.fromkeys([*held, *words(named)]))
    gone = words(named)
    return ",".join(word for word in held if word not in gone)


MIN_ISR = "min.insync.replicas"
OF_ELECTIONS = (MIN_ISR, "unclean.leader.election.enable", "unclean.recovery.strategy")
MAX_RESOURCES_PER_REQUEST = 10_000


def alter_configs(draft: Draft, request: IncrementalAlterConfigsRequest) -> Sliced[IncrementalAlterConfigsResponse]:
    """With `validate_only` the response is the same, but nothing is changed. Raises ApiError."""
    if len(request.resources) > MAX_RESOURCES_PER_REQUEST:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"{len(request.resources)} resources, limit {MAX_RESOURCES_PER_REQUEST}"
        )
    counts = Counter((one.resource_type, one.resource_name) for one in request.resources)
    results = []
    for one in request.resources:
        if draft.full:
            yield
        draft.spend(WORK_OF_A_TOPIC)
        error = yield from _try(draft, one, counts[one.resource_type, one.resource_name] > 1, request.validate_only)
        results.append(
            AlterConfigsResult(
                resource_type=one.resource_type,
                resource_name=one.resource_name,
                error_code=error.code if error else ErrorCode.NONE,
                error_message=error.message if error else "",
            )
        )
    return IncrementalAlterConfigsResponse(results=tuple(results))


def _try(draft: Draft, asked: AlterConfigsResource, twice: bool, validate_only: bool) -> Sliced[ApiError | None]:
    try:
        if twice:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the resource is in the request twice")
        after = _settings_after(draft, asked)
        if not validate_only:
            yield from _alter(draft, (asked.resource_type, asked.resource_name), after)
    except ApiError as error:
        return error
    return None


def _settings_after(draft: Draft, asked: AlterConfigsResource) -> dict[str, str]:
    """The resource's own settings after the change. Raises ApiError: first for the settings, as Kafka does, and then
    for a topic that is not there."""
    image = draft.image
    resource = (asked.resource_type, asked.resource_name)
    is_topic = asked.resource_type == TOPIC_RESOURCE
    _check_resource(image, resource)
    before: Mapping[str, str] = image.configs.get(resource, {})
    is_list = any(change.operation in (APPEND, SUBTRACT) for change in asked.configs)
    inherited = image.topic_config(asked.resource_name) if is_topic and is_list else {}
    kept = {} if asked.replace else before
    name_of, keys = NAMES_AND_KEYS[asked.resource_type]
    after = changed_values(kept, inherited, asked.configs, name_of, keys)
    if is_topic:
        validate_topic_name(asked.resource_name)
    validate_all(after, keys)
    named = {name_of(change.name) for change in asked.configs}
    validate_words({name: after[name] for name in named & after.keys()}, keys)
    if is_topic and asked.resource_name not in image.topic_ids:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic is named {asked.resource_name}")
    if asked.resource_type == GROUP_RESOURCE:
        check_together(after)
    if asked.resource_type == BROKER_RESOURCE:
        _check_decided_together(asked.resource_name, before, after)
        _check_per_broker(asked.resource_name, after)
    return after


def _alter(draft: Draft, resource: ConfigResource, after: Mapping[str, str]) -> Sliced[None]:
    """Raises ApiError if the topic was deleted meanwhile."""
    topic_id = draft.image.topic_ids.get(resource[1]) if resource[0] == TOPIC_RESOURCE else None
    now, then = _min_isr(draft.image, resource, after)
    if then < now:
        yield from _clear_needless_elrs(draft, resource, topic_id, then)
    if topic_id is not None and draft.image.topic_ids.get(resource[1]) != topic_id:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {resource[1]} was deleted meanwhile")
    before: Mapping[str, str] = draft.image.configs.get(resource, {})
    raises_durability = _raises_durability(draft.image, resource, after)
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            draft.add(
                ConfigRecord(resource_type=resource[0], resource_name=resource[1], name=name, value=after.get(name))
            )
            draft.state.elections_wanted |= name in OF_ELECTIONS
    if then > now:
        draft.state.minimum_raised_end = draft.next_offset
    if raises_durability:
        note_raised(draft, resource)


def _as_named(name: str) -> str:
    return name


NAMES_AND_KEYS: Mapping[int, tuple[Callable[[str], str], Mapping[str, ConfigKey]]] = {
    TOPIC_RESOURCE: (_as_named, TOPIC_CONFIGS),
    BROKER_RESOURCE: (stored_name_of, BROKER_CONFIGS),
    GROUP_RESOURCE: (_as_named, GROUP_SETTINGS),
}
"""By type of resource: the name under which a setting is stored, and the settings that there are."""
_NAMED = {TOPIC_RESOURCE: "topic", GROUP_RESOURCE: "group"}  # that have no settings for all of their kind


def _check_resource(image: Image, resource: ConfigResource) -> None:
    """What is refused before its settings are looked at. Raises ApiError."""
    kind, name = resource
    if kind in _NAMED:
        if not name:
            text = f"the name of a {_NAMED[kind]} is needed; all {_NAMED[kind]}s have no settings here"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
    elif kind != BROKER_RESOURCE:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"resource type {kind}: 2 is a topic, 4 a broker, 32 a group")
    elif name != CLUSTER_DEFAULT:
        if not (name.isascii() and name.isdigit() and len(name) < 11 and str(int(name)) == name):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{name!r} is no broker id; the empty name means all brokers")
        if int(name) not in image.brokers:
            raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {name} is not registered")


def _check_decided_together(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Elections depend on min.insync.replicas, so the cluster must always have a default for it (KIP-966).

    What older software has set for one broker counts for nobody, and can be taken back.
    """
    for key in sorted(DECIDED_TOGETHER):
        if before.get(key) == after.get(key):
            continue
        if name != CLUSTER_DEFAULT and key in after:
            text = f"{BROKER_NAMES[key]} is set for all brokers or for a topic, not for one broker"
            raise ApiError(ErrorCode.INVALID_CONFIG, text)
        if name == CLUSTER_DEFAULT and key not in after and key == MIN_ISR:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{MIN_ISR} of all brokers can be set, not taken back")


def _check_per_broker(name: str, after: Mapping[str, str]) -> None:
    for key in sorted(PER_BROKER & after.keys() if name == CLUSTER_DEFAULT else ()):
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{key} is set for one broker, not for all: name the broker's id")
    for key in sorted(OF_ALL_BROKERS & after.keys() if name != CLUSTER_DEFAULT else ()):
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{key} is set for all brokers, not for one")


def _min_isr(image: Image, resource: ConfigResource, after: Mapping[str, str]) -> tuple[int, int]:
    """min.insync.replicas of the topics concerned, now and then; the same if it does not change."""
    if resource[0] != TOPIC_RESOURCE and resource != (BROKER_RESOURCE, CLUSTER_DEFAULT):
        return 0, 0
    before: Mapping[str, str] = image.configs.get(resource, {})
    if before.get(MIN_ISR) == after.get(MIN_ISR):
        return 0, 0
    now, then = _now_and_then(image, resource, after)
    return topic_rules(now).min_insync_replicas, topic_rules(then).min_insync_replicas


def _raises_durability(image: Image, resource: ConfigResource, after: Mapping[str, str]) -> bool:
    if resource[0] != TOPIC_RESOURCE and resource != (BROKER_RESOURCE, CLUSTER_DEFAULT):
        return False
    return is_raised(*_now_and_then(image, resource, after))


def _now_and_then(
    image: Image, resource: ConfigResource, after: Mapping[str, str]
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """What holds for the topic, or for all topics that do not say otherwise. after: the resource's own settings."""
    cluster: Mapping[str, str] = image.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {})
    if resource[0] == TOPIC_RESOURCE:
        return image.topic_config(resource[1]), {**cluster, **after}
    return cluster, after


def _clear_needless_elrs(draft: Draft, resource: ConfigResource, topic_id: Uuid | None, min_isr: int) -> Sliced[None]:
    """Remove the ELRs that a smaller minimum makes needless, before it is written. topic_id: None for every topic.

    Only the minimum is pending meanwhile: an unclean election must not precede the setting that allows it.
    """
    with_elr = draft.image.index.with_elr
    which = with_elr if topic_id is None else Map({topic_id: with_elr[topic_id]} if topic_id in with_elr else {})
    values = {**draft.image.configs.get(resource, {}), MIN_ISR: str(min_isr)}
    with draft.state.pending.settings(resource, values):
        yield from change_partitions(draft, which, lambda partition: bool(partition.eligible_leader_replicas))
