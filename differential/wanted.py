"""The differences that we want, each with its reason. What no row of this table explains is a finding.

A row that explains nothing in a whole run of breadth and stories is named at its end: it may be out of date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from differential.broker_settings import is_brokers_own, is_other_synonym
from differential.builders import EPOCH_MS
from differential.compare import ABSENT, METADATA_TOPIC, NAMING, Difference
from differential.conversation import CLOSED, NOTHING, SILENT, codes_of
from differential.odd import tailed
from differential.step import NO_ID, Batch, Step
from quorumlog.records.format.batch import CONTROL, LOG_APPEND_TIME, Codec
from quorumlog.security.acl.index import ALLOW, PREFIXED
from quorumlog.security.authorizer import Operation, ResourceType
from quorumlog.topic_name import collision_key

Asked = Callable[[Step, Difference], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """name: of the row. api: kio's names, with "|" between them; "" for all. path: a regular expression for all of it.

    if_: what else must hold of the request and the difference. with_: of any difference in the answer. goes_apart:
    after it the two sides' states differ.
    """

    name: str
    reason: str
    api: str = ""
    path: str
    if_: Asked = lambda _step, _found: True
    with_: Callable[[Difference], bool] | None = None
    goes_apart: bool = False

    def explains(self, step: Step, found: Difference, every: Sequence[Difference]) -> bool:
        """every: all differences of this answer."""
        if self.api and step.api not in self.api.split("|"):
            return False
        if self.with_ is not None and not any(self.with_(other) for other in every):
            return False
        return re.fullmatch(self.path, found.path) is not None and self.if_(step, found)


def _is_name(step: Step) -> bool:
    """Of the client's software, as KIP-511 has it."""
    names = (step.values["client_software_name"], step.values["client_software_version"])
    return all(re.fullmatch(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", name or "") for name in names)


def _is_known_filter(step: Step) -> bool:
    asked = step.values
    about = 1 <= asked["resource_type_filter"] <= max(ResourceType) and 1 <= asked["pattern_type_filter"] <= PREFIXED
    return bool(about and 1 <= asked["operation"] <= max(Operation) and 1 <= asked["permission_type"] <= ALLOW)


def _only_ours(_step: Step, found: Difference) -> bool:
    return bool(found.theirs == ABSENT)


def _only_theirs(_step: Step, found: Difference) -> bool:
    return bool(found.ours == ABSENT)


def _is_other_order(step: Step, found: Difference) -> bool:
    """Both refuse, and each error is one that a request with several mistakes may get."""
    path = re.sub(r"\[[^\]]*\]", "[]", found.path)
    return (found.theirs, found.ours) in SEVERAL.get((step.api, path), ())


def _code_of(element: Any) -> Any:
    """The error of an element that only one side has."""
    return element.get("error_code") if isinstance(element, dict) else None


def _has_code(answer: Any, code: int) -> bool:
    return not isinstance(answer, str) and code in codes_of(answer)


def _is_damaged(step: Step) -> bool:
    return any(isinstance(one, Batch) and one.damage is not None for one in _batches(step))


def _has_colliding_names(step: Step) -> bool:
    names = {topic["name"] for topic in step.values["topics"] or () if topic["name"]}
    return len({collision_key(name) for name in names}) < len(names)


def _has_tail(step: Step) -> bool:
    return any(one.damage is tailed for one in _batches(step) if isinstance(one, Batch))


def _batches(step: Step) -> list[Any]:
    return [data["records"] for topic in step.values["topic_data"] or () for data in topic["partition_data"] or ()]


def _names_twice(values: Any) -> bool:
    """Some array of the request has two elements of one name, or twice the same number or text."""
    if isinstance(values, dict):
        return any(_names_twice(value) for value in values.values())
    if not isinstance(values, list | tuple):
        return False
    names = [
        repr([one[name] for name in NAMING if name in one]) if isinstance(one, dict) else repr(one) for one in values
    ]
    return len(dict.fromkeys(names)) < len(names) or any(_names_twice(value) for value in values)


def _has_a_type_twice(step: Step) -> bool:
    entities = [[part["entity_type"] for part in entry["entity"] or ()] for entry in step.values["entries"] or ()]
    return any(len(set(types)) < len(types) for types in entities)


def _is_empty(ours: Any) -> bool:
    """An element that holds nothing but its name."""
    return isinstance(ours, dict) and [] in ours.values() and "error_code" not in ours


def _is_refused_with(code: int) -> Asked:
    """On one of the two sides, where the difference is a whole element."""
    return lambda _step, found: any(
        isinstance(one, dict) and one.get("error_code") == code for one in (found.theirs, found.ours)
    )


def _takes_away(step: Step) -> bool:
    return any(
        one["config_operation"] == 1 for resource in step.values["resources"] for one in resource["configs"] or ()
    )


def _uses_zstd(step: Step) -> bool:
    """Also in a batch that is sent twice to one partition (`odd.py`)."""
    sent = [one for some in _batches(step) for one in (some if isinstance(some, list) else [some])]
    return any(isinstance(one, Batch) and one.codec is Codec.ZSTD for one in sent)


def _has_transactional(step: Step, _found: Difference) -> bool:
    return any(isinstance(one, Batch) and one.transactional for one in _batches(step))


def _asks_elsewhere(step: Step) -> bool:
    asked = [(topic["topic_name"], topic["partitions"]) for topic in step.values["topics"] or ()]
    return asked != [(METADATA_TOPIC, [{"partition_index": 0}])]


def _joins_without_topics(step: Step) -> bool:
    return not step.values["subscribed_topic_names"] or step.values["subscribed_topic_regex"] is not None


def _is_far(cursor: Any) -> bool:
    """In the middle of a topic that has no such partition."""
    return cursor is not None and not 0 <= cursor["partition_index"] < MOST_PARTITIONS


def _begins_later(batch: Any) -> bool:
    """Not at the beginning of a log."""
    offset = batch.get("base_offset") if isinstance(batch, dict) else None
    return isinstance(offset, int) and offset > 0


def _names_partition_twice(step: Step) -> bool:
    asked = [
        (topic["name"], one["partition"]) for topic in step.values["topics"] or () for one in topic["partitions"] or ()
    ]
    return len(dict.fromkeys(asked)) < len(asked)


def _has_little_room(step: Step, found: Difference) -> bool:
    """The partition that the difference is about is asked for with less room than a batch has, beside another one."""
    asked = [(topic, one) for topic in step.values["topics"] or () for one in topic["partitions"] or ()]
    few = [
        (str(topic["name"]), str(one["partition"]))
        for topic, one in asked
        if one["partition_max_bytes"] <= LITTLE_BYTES
    ]
    place = _FETCHED.match(found.path)
    return len(asked) > 1 and place is not None and place.groups() in few


def _is_of_today(missing: Difference) -> bool:
    """A batch that has the broker's time, a marker or one that was given its append time, while others are older."""
    return (
        missing.theirs == ABSENT and _begins_later(missing.ours) and bool(missing.ours.get("attributes", 0) & OF_TODAY)
    )


def _is_without_leader(other: Difference) -> bool:
    """Kafka lets a member join a generation that has no leader; here it has one, or is still waited for."""
    if other.path == "":
        theirs = other.theirs if isinstance(other.theirs, dict) else {}
        return bool(other.ours == SILENT and theirs.get("leader") == "" and theirs.get("error_code") == 0)
    return other.path == "leader" and other.theirs == "" and bool(other.ours)


def _has_sequence(step: Step) -> bool:
    """Some batch is of a producer whose repetitions are known as such."""
    return any(isinstance(one, Batch) and one.sequence >= 0 for one in _batches(step))


def _had_no_time(other: Difference) -> bool:
    """Kafka's answer to a change that it may have made all the same."""
    return REQUEST_TIMED_OUT in (_code_of(other.theirs), other.theirs if other.path.endswith("error_code") else None)


def _names_ids(step: Step) -> bool:
    return any(not topic["name"] or topic["topic_id"] != NO_ID for topic in step.values["topics"] or ())


def _has_cursor_elsewhere(step: Step) -> bool:
    cursor = step.values["cursor"]
    return cursor is not None and cursor["topic_name"] not in [topic["name"] for topic in step.values["topics"] or ()]


# Theirs and ours, by API and field. 2: damaged, 3: unknown topic, 21: acks, 23, 25: protocol or member of a group, 35:
# version or level, 40: setting, 42: another field, 47 to 49, 53: transactional producer, 69: unknown group, 71, 106:
# fetch session, 100: unknown topic, by its id, 104: another cluster, 111: place of another, 112: unknown assignor, 128:
# pattern. Kafka looks for
# transactional batches in a whole Produce before it looks for its topics: a batch that cannot be read, or that is
# transactional in a request without a transactional id, is refused there. Here a topic that is not there is told as
# such: its client has to learn that, whatever it sends.
SEVERAL: dict[tuple[str, str], tuple[tuple[int, int], ...]] = {
    ("remove_raft_voter", "error_code"): ((42, 35), (104, 35)),
    ("update_features", "error_code"): ((95, 42),),
    ("add_raft_voter", "error_code"): ((42, 35), (104, 35)),
    ("incremental_alter_configs", "responses[].error_code"): ((40, 42),),
    ("add_partitions_to_txn", "results_by_topic_v3_and_below[].results_by_partition[].partition_error_code"): (
        (3, 42), (55, 42),
    ),
    ("alter_replica_log_dirs", "results[].partitions[].error_code"): ((17, 57),),
    ("consumer_group_heartbeat", "error_code"): ((112, 69), (69, 128), (25, 128), (111, 128), (112, 25)),
    ("describe_configs", "results[].error_code"): ((17, 3),),
    ("offset_commit", "topics[].partitions[].error_code"): ((3, 24), (22, 24)),
    ("sync_group", "error_code"): ((23, 25),),
    ("fetch", "error_code"): ((106, 71), (71, 106), (70, 106)),
    ("fetch", "responses[].partitions[].error_code"): ((1, 74),),
    ("produce", "responses[].partition_responses[].error_code"): (
        (3, 21), (3, 42), (100, 21), (2, 3), (2, 100), (48, 21), (49, 21), (53, 3), (53, 100), (87, 2),
        (87, 48), (87, 49), (120, 21),
    ),
    ("txn_offset_commit", "topics[].partitions[].error_code"): ((3, 24), (3, 42), (47, 42), (3, 47), (3, 48), (3, 49)),
}  # fmt: skip
KINDS = (2, 4, 8, 16, 32)  # of resources: topic, broker, its loggers, clients' metrics, group
OUR_SETTINGS = (
    "durability|internal.segment.bytes|log.cleaner.paused.until.ms|retention.paused|unclean.recovery.strategy"
)
NOT_TOLD = -(2**31)
LITTLE_BYTES = 1  # less than any batch has
OF_TODAY = CONTROL | LOG_APPEND_TIME  # attributes of a batch
REQUEST_TIMED_OUT = 7
_FETCHED = re.compile(r"responses\[<?([^\]>]*)>?\]\.partitions\[(\d+)\]\.records\[")
MOST_PARTITIONS = 10  # of a topic of a sequence
# by their keys: client quotas, SCRAM, telemetry, share groups, streams groups, client metrics
LEFT_OUT_APIS = "17|36|48|49|50|51|71|72|74|76|77|78|79|83|84|85|86|87|88|89|90|91|92"

WANTED: tuple[Wanted, ...] = (
    Wanted(
        name="a transaction that a refused batch extends",
        api="produce",
        path=r"responses\[.*\]\.error_message",
        if_=lambda step, _found: (
            step.version >= 12 and step.values["acks"] not in (0, 1, -1) and step.values["transactional_id"] is not None
        ),
        reason="acks is looked at first; Kafka adds the partition to the transaction, and refuses the batch then",
        goes_apart=True,
    ),
    Wanted(
        name="explained",
        path=r"(.*\.)?(batch_index_)?error_message",
        if_=lambda _step, found: found.theirs in (None, "") and found.ours == "<text>",
        reason="we say what is wrong and what to do where Kafka says nothing",
    ),
    Wanted(
        name="settings of ours",
        api="create_topics|describe_configs",
        path=rf".*\.configs\[({OUR_SETTINGS})\]",
        if_=_only_ours,
        reason="settings that Kafka does not have, beside its own",
    ),
    Wanted(
        name="features of ours",
        api="api_versions",
        path=r"(supported|finalized)_features(\[.*)?",
        reason="each names levels of its own metadata; of Kafka's we have those of groups and transactions",
    ),
    Wanted(
        name="nothing asked of a topic",
        path=r".*\[[^\]]*\]",
        if_=lambda _step, found: found.theirs == ABSENT and _is_empty(found.ours),
        reason="a topic of which no partition is named is answered as such; Kafka leaves it out",
    ),
    Wanted(
        name="client names",
        api="api_versions",
        path=r".*",
        if_=lambda step, _found: step.version >= 3 and not _is_name(step),
        reason="KIP-511 lets a broker refuse a client for its name; we use the name for nothing, and refuse nobody",
    ),
    Wanted(
        name="calls of brokers",
        api="add_partitions_to_txn|write_txn_markers",
        path=r".*",
        if_=lambda step, _found: step.api == "write_txn_markers" or step.version >= 4,
        reason="only brokers, which have the cluster's secret, may; Kafka without an authorizer serves anybody",
        goes_apart=True,
    ),
    Wanted(
        name="no time to wait",
        api="create_topics|delete_topics|create_partitions|elect_leaders|alter_partition_reassignments",
        path=r"error_code|allow_replication_factor_change|(topics|responses|results|replica_election_results)\[.*",
        if_=lambda step, _found: step.values.get("timeout", 1) <= 0,
        with_=_had_no_time,
        reason="without time to wait Kafka answers REQUEST_TIMED_OUT, and may obey; we say what was done",
        goes_apart=True,
    ),
    Wanted(
        name="other resources",
        api="describe_configs",
        path=r"results\[(8|16):.*",
        reason="loggers of a virtual machine and subscriptions to clients' metrics are not part of quorumlog",
    ),
    Wanted(
        name="no error, no message",
        api="find_coordinator",
        path=r"(coordinators\[.*\]\.)?error_message",
        if_=lambda _step, found: found.ours is None,
        reason="Kafka sends the text NONE, or an empty one, where there is no error",
    ),
    Wanted(
        name="no entries of a refusal",
        api="describe_client_quotas",
        path=r"entries",
        if_=lambda _step, found: found.theirs is None and found.ours == [],
        reason="Kafka's answer has no list beside an error; ours has an empty one",
    ),
    Wanted(
        name="a type of entity that is named twice",
        api="alter_client_quotas",
        path=r"entries\[.*\]\.(error_code|error_message|entity.*)",
        if_=lambda step, _found: _has_a_type_twice(step),
        reason="Kafka takes the last of both, so the quota is of somebody else than one half of the request says",
        goes_apart=True,
    ),
    Wanted(
        name="salted passwords of another length",
        api="alter_user_scram_credentials",
        path=r"results\[.*\.error_code",
        if_=lambda _step, found: found.ours == 93,
        reason="a salted password that is not as long as its hash lets nobody log in; Kafka stores it",
        goes_apart=True,
    ),
    Wanted(
        name="rules of unknown kinds",
        api="create_acls|delete_acls",
        path=r".*",
        with_=lambda other: other.path.endswith("error_code") and other.theirs == -1,
        reason="Kafka does not expect some kinds in a rule, and takes none of the request; we refuse that rule",
        goes_apart=True,
    ),
    Wanted(
        name="unknown server error",
        path=r".*",
        with_=lambda other: other.path.endswith("error_code") and other.theirs == -1,
        reason="an exception that Kafka did not expect; we say what is wrong",
    ),
    Wanted(
        name="results of features",
        api="update_features",
        path=r"results\[.*",
        if_=_only_ours,
        reason="Kafka refuses the whole request since 4.0, and we also say which feature is wrong",
    ),
    Wanted(
        name="operations of what is not there",
        api="consumer_group_describe|describe_groups",
        path=r"groups\[.*\]\.authorized_operations",
        if_=lambda _step, found: found.theirs == NOT_TOLD,
        reason="whoever asks what it may do with a group that is not there is told so; Kafka says nothing",
    ),
    Wanted(
        name="ids of topics before version 12",
        api="metadata",
        path=r".*",
        if_=lambda step, _found: step.version in (10, 11) and _names_ids(step),
        reason="versions 10 and 11 have the ids of topics; Kafka refuses them there because of a mistake of its own",
    ),
    Wanted(
        name="where to go on",
        api="fetch|produce",
        path=r"(responses\[.*\]\.(current_leader|log_start_offset))|node_endpoints",
        if_=lambda _step, found: found.theirs in (ABSENT, -1),
        reason="with an error we also name the leader and where the log begins; Kafka does for fewer errors",
    ),
    Wanted(
        name="a topic without an id in a session",
        api="fetch",
        path=r"",
        if_=lambda step, found: step.version >= 13 and found.theirs == SILENT and _code_of(found.ours) == 106,
        reason="Kafka counts the request and gives no answer; we say FETCH_SESSION_TOPIC_ID_ERROR, and do not count it",
        goes_apart=True,
    ),
    Wanted(
        name="sessions of nothing",
        api="fetch",
        path=r"session_id",
        if_=lambda step, found: (
            found.ours == 0 and not any(topic["partitions"] for topic in step.values["topics"] or ())
        ),
        reason="no session is kept for a request that names no partition",
    ),
    Wanted(
        name="transactions that are not there",
        api="describe_transactions",
        path=r"transaction_states\[.*",
        if_=_is_refused_with(105),
        reason="numbers of a transaction that is not there are -1, not 0, which would be a producer's id",
    ),
    Wanted(
        name="isolation of an unknown kind",
        api="fetch",
        path=r".*",
        if_=lambda step, _found: step.values["isolation_level"] not in (0, 1),
        reason="it is refused in every version; Kafka takes it where the client is an older one",
    ),
    Wanted(
        name="no aborted transactions",
        api="fetch",
        path=r"responses\[.*\]\.aborted_transactions",
        if_=lambda _step, found: (found.theirs, found.ours) == ([], None),
        reason="an empty list and none mean the same; with an error Kafka sends the one, we the other",
    ),
    Wanted(
        name="members of refused heartbeats",
        api="consumer_group_heartbeat|join_group",
        path=r"member_id",
        if_=lambda _step, found: not found.theirs or not found.ours,
        reason="a refusal may repeat the member's id, or not; a client knows its own",
    ),
    Wanted(
        name="operations of topics that are not there",
        api="metadata|describe_topic_partitions",
        path=r"topics\[.*\]\.topic_authorized_operations",
        if_=lambda _step, found: found.ours == NOT_TOLD,
        reason="what may be done with a topic that is not there is not told",
    ),
    Wanted(
        name="the one quorum",
        api="describe_quorum",
        path=r".*",
        if_=lambda step, found: "error_message" in found.path or _asks_elsewhere(step),
        reason="there is one quorum, and it is described whatever topic or partition is named",
    ),
    Wanted(
        name="a cursor elsewhere",
        api="describe_topic_partitions",
        path=r".*",
        if_=lambda step, _found: _has_cursor_elsewhere(step),
        reason="a cursor at a topic that is not asked for means the next one by name; Kafka refuses it",
    ),
    Wanted(
        name="names that no topic can have",
        api="describe_producers",
        path=r".*error_code",
        if_=lambda _step, found: (found.theirs, found.ours) == (17, 3),
        reason="such a topic is unknown, as others are",
    ),
    Wanted(
        name="no error, empty message",
        api="describe_configs",
        path=r"results\[.*\]\.(error_message|configs\[.*\]\.documentation)",
        if_=lambda _step, found: (found.theirs, found.ours) in ((None, ""), ("", None)),
        reason="null and an empty text both say that there is none",
    ),
    Wanted(
        name="reassignments of no topic",
        api="alter_partition_reassignments",
        path=r"allow_replication_factor_change|error_message",
        if_=lambda step, found: not step.values["topics"] and (found.theirs, found.ours) in ((True, False), ("", None)),
        reason="whether the number of replicas may change is told as it was asked, also for no topic (KIP-860)",
    ),
    Wanted(
        name="replicas that are none",
        api="fetch",
        path=r".*",
        if_=lambda step, _found: step.values["replica_id"] >= 0,
        reason="only a broker, which has the cluster's secret, fetches as a replica",
    ),
    Wanted(
        name="epochs of a member without topics",
        api="consumer_group_heartbeat",
        path=r"member_epoch",
        if_=lambda step, _found: _joins_without_topics(step),
        reason="who joins raises the group's epoch; in Kafka only who brings topics, and a pattern does so later",
        goes_apart=True,
    ),
    Wanted(
        name="one resource of an unknown kind",
        api="describe_configs",
        path=r"results\[.*",
        if_=lambda step, _found: any(one["resource_type"] not in KINDS for one in step.values["resources"] or ()),
        reason="each resource is answered by itself; Kafka refuses all of them for one of an unknown kind",
    ),
    Wanted(
        name="taking away what there cannot be",
        api="incremental_alter_configs",
        path=r"responses\[.*",
        if_=lambda step, found: (
            (found.theirs, found.ours) in ((0, 40), (3, 40), (None, "<text>")) and _takes_away(step)
        ),
        reason="to take away a setting that the resource does not know is a mistake; Kafka does nothing and says yes",
    ),
    Wanted(
        name="settings of what we leave out",
        api="describe_configs|create_topics",
        path=r"(.*\.)?configs\[(share|streams|errors)\..*\](\..*)?",
        if_=lambda _step, found: found.theirs != ABSENT,
        reason="settings of share groups and streams groups, which are not part of quorumlog",
    ),
    Wanted(
        name="bytes behind a batch",
        api="produce",
        path=r"responses\[.*",
        if_=lambda step, _found: _has_tail(step),
        reason="a batch that is not whole is refused; Kafka drops it in silence",
        goes_apart=True,
    ),
    Wanted(
        name="an instance that joins again",
        api="consumer_group_heartbeat",
        path=r"error_code|error_message|member_id|member_epoch|heartbeat_interval|assignment(\..*)?",
        if_=lambda step, _found: step.values["instance_id"] is not None and step.values["member_epoch"] == 0,
        with_=lambda other: (other.theirs, other.ours) == (111, 0),
        reason="a static member whose answer was lost joins again by its own id; Kafka lets its session end first",
        goes_apart=True,
    ),
    Wanted(
        name="the last place of the consumer protocol",
        api="join_group",
        path=r"|generation_id|leader|members\[.*",
        if_=lambda step, _found: step.values["group_instance_id"] is not None,
        with_=_is_without_leader,
        reason="who takes it makes the group a classic one, and waits for its generation and its leader (decision 104)",
        goes_apart=True,
    ),
    Wanted(
        name="ids of no topic",
        api="offset_fetch|offset_commit|delete_topics",
        path=r"(groups\[.*\]\.)?(topics|responses)\[.*",
        if_=lambda step, _found: step.version >= 6,
        with_=lambda other: other.path.endswith(("topics[]", "[].name")) or "[]." in other.path,
        reason="a topic that is named by neither name nor id is one that is not there; OffsetFetch 10 leaves it out",
    ),
    Wanted(
        name="the time of a repetition",
        api="produce",
        path=r"responses\[.*\]\.log_append_time",
        if_=lambda step, found: (found.theirs, found.ours) == ("<time>", -1) and _has_sequence(step),
        reason="a batch that was there already was not given a time either; Kafka tells that of its records",
    ),
    Wanted(
        name="members who have not joined yet",
        api="leave_group",
        path=r"members\[.*",
        if_=lambda _step, found: (found.theirs, found.ours) == (0, 25),
        reason="who leaves under the name of an instance is looked for by it, also before it has joined",
        goes_apart=True,
    ),
    Wanted(
        name="limits of no partition",
        api="describe_topic_partitions",
        path=r".*",
        if_=lambda step, _found: step.values["response_partition_limit"] <= 0 or _is_far(step.values["cursor"]),
        reason="a page holds at least one partition, so that a reader comes on",
    ),
    Wanted(
        name="epochs of the future",
        api="fetch",
        path=r"responses\[.*",
        if_=lambda step, _found: "last_fetched_epoch" in step.odd,
        reason="a reader that names a later epoch than the log's is told where they part, as any other",
    ),
    Wanted(
        name="taking away from other resources",
        api="incremental_alter_configs",
        path=r"responses\[16:.*",
        reason="subscriptions to clients' metrics are not part of quorumlog",
    ),
    Wanted(
        name="no pattern",
        api="consumer_group_describe",
        path=r".*\.subscribed_topic_regex",
        if_=lambda _step, found: (found.theirs, found.ours) == ("", None),
        reason="null and an empty text both say that there is none",
    ),
    Wanted(
        name="a feature that is not there",
        api="update_features",
        path=r"error_(code|message)",
        if_=lambda step, _found: all(not one["max_version_level"] for one in step.values["feature_updates"] or ()),
        with_=lambda other: (other.theirs, other.ours) == (95, 0),
        reason="a feature that nobody knows is at level 0 already",
    ),
    Wanted(
        name="epochs below the first",
        api="offset_for_leader_epoch",
        path=r"topics\[.*\]\.(leader_epoch|end_offset)",
        if_=lambda step, _found: "leader_epoch = -" in step.odd,
        reason="an epoch below 0 is no leadership, and has no end",
    ),
    Wanted(
        name="names beside ids",
        api="metadata",
        path=r"topics\[.*\]",
        if_=lambda step, found: step.version >= 12 and found.theirs == ABSENT and _names_ids(step),
        reason="each topic is answered, also beside one that is named by its id, where Kafka drops names in silence",
    ),
    Wanted(
        name="where a log begins that refuses records",
        api="produce",
        path=r"responses\[.*:-1\]\.log_start_offset",
        if_=lambda _step, found: found.ours == -1,
        reason="it is told with what was appended; clients read it there",
    ),
    Wanted(
        name="all offsets of a transaction, or none",
        api="txn_offset_commit",
        path=r"topics\[.*\]\.error_code",
        if_=lambda _step, found: found.ours == 120,
        reason="where one offset of a call is refused, none becomes part of the transaction; Kafka takes the others",
        goes_apart=True,
    ),
    Wanted(
        name="an empty transactional id",
        api="produce",
        path=r"responses\[.*",
        if_=lambda step, _found: step.values["transactional_id"] == "",
        reason="a transactional id is never empty; Kafka looks at it only where a batch is transactional",
        goes_apart=True,
    ),
    Wanted(
        name="epochs of no leader",
        api="fetch|list_offsets|offset_for_leader_epoch",
        path=r"(responses|topics)\[.*",
        if_=lambda step, _found: "current_leader_epoch = -" in step.odd,
        reason="a leader's epoch below -1 is an old one; Kafka takes it for none at all",
    ),
    Wanted(
        name="topics without an election",
        api="elect_leaders",
        path=r"replica_election_results\[.*\]",
        if_=lambda _step, found: (
            found.ours == ABSENT and isinstance(found.theirs, dict) and found.theirs.get("partition_result") == []
        ),
        reason="who asks for all elections hears of those that took place",
    ),
    Wanted(
        name="half a producer",
        api="init_producer_id",
        path=r".*",
        if_=lambda step, _found: step.values["transactional_id"] is None,
        with_=lambda other: (other.theirs, other.ours) == (42, 0),
        reason="without a transactional id a producer gets a new id, whatever it says that it had (KIP-360)",
    ),
    Wanted(
        name="no feature",
        api="update_features",
        path=r".*error_code",
        if_=lambda step, found: (found.theirs, found.ours) == (0, 42) and not step.values["feature_updates"],
        reason="an update that names no feature is a mistake; Kafka says yes",
    ),
    Wanted(
        name="no assignments",
        api="create_partitions",
        path=r"results\[.*",
        if_=lambda step, _found: any(topic["assignments"] in ([], "") for topic in step.values["topics"] or ()),
        reason="an empty list of assignments is none; Kafka wants as many as there are new partitions",
        goes_apart=True,
    ),
    Wanted(
        name="an unknown kind of election",
        api="elect_leaders",
        path=r"error_code|replica_election_results\[.*",
        if_=lambda step, _found: step.values["election_type"] not in (0, 1),
        reason="it is refused once, for the whole request",
    ),
    Wanted(
        name="groups without a name",
        api="add_offsets_to_txn|offset_commit|txn_offset_commit",
        path=r".*error_code",
        if_=lambda step, found: not step.values["group_id"] and found.ours == 24,
        reason="a group has a name; Kafka keeps offsets under an empty one, for consumers of before 0.9",
        goes_apart=True,
    ),
    Wanted(
        name="unknown kinds",
        api="create_acls|delete_acls|describe_acls",
        path=r"",
        if_=lambda _step, found: found.theirs == CLOSED,
        reason="Kafka closes the connection where an enumeration has an unknown value; we answer",
        goes_apart=True,
    ),
    Wanted(
        name="filters of unknown kinds",
        api="describe_acls",
        path=r"error_code|error_message",
        if_=lambda step, _found: not _is_known_filter(step),
        reason="a filter with a kind that nobody knows is refused, as DeleteAcls refuses it; Kafka finds nothing",
    ),
    Wanted(
        name="transactions without a producer",
        api="produce",
        path=r"responses\[.*\]\.partition_responses\[.*",
        if_=_has_transactional,
        with_=lambda other: _code_of(other.ours) == 49 or (other.ours == 49 and other.path.endswith("error_code")),
        reason="a transactional batch without a producer's id belongs to no transaction; Kafka appends it all the same",
        goes_apart=True,
    ),
    Wanted(
        name="transactions without a producer that wants an answer",
        api="produce",
        path=r"",
        if_=_has_transactional,
        with_=lambda other: (other.theirs, other.ours) == (NOTHING, CLOSED),
        reason="as the row before; without acknowledgement the closed connection tells of the refusal",
        goes_apart=True,
    ),
    Wanted(
        name="a resource that is named twice",
        api="alter_configs",
        path=r"",
        if_=lambda step, found: found.theirs == SILENT and _names_twice(step.values["resources"]),
        with_=lambda other: _has_code(other.ours, 42),
        reason="each is refused; Kafka fails at the second one, and says nothing",
    ),
    Wanted(
        name="APIs that we leave out",
        api="api_versions",
        path=rf"api_keys\[({LEFT_OUT_APIS})\]",
        if_=_only_theirs,
        reason="telemetry, share groups and streams groups are not part of quorumlog",
    ),
    Wanted(
        name="a partition that is named twice",
        api="produce",
        path=r"responses\[.*\]\.partition_responses\[.*",
        if_=lambda step, found: found.theirs == ABSENT and _names_twice(step.values["topic_data"]),
        reason="both batches of one partition are appended, and answered; Kafka keeps one, and loses the other",
        goes_apart=True,
    ),
    Wanted(
        name="one of several mistakes",
        path=r".*error_code",
        if_=_is_other_order,
        reason="of several mistakes in one request each side names one; which comes first nobody promises",
    ),
    Wanted(
        name="settings of a broker",
        api="describe_configs",
        path=r"results\[4:.*\]\.configs\[.*\].*",
        if_=lambda _step, found: is_brokers_own(found),
        reason="a broker describes its own settings; docs/settings.md tells what becomes of each key of Kafka's",
    ),
    Wanted(
        name="synonyms",
        api="describe_configs",
        path=r"results\[2:.*\]\.configs\[.*\]\.synonyms\[.*",
        if_=lambda _step, found: is_other_synonym(found),
        reason="each names the settings that it would take the value from, and these are not the same",
    ),
    Wanted(
        name="zstd from older producers",
        api="produce",
        path=r"responses\[.*\]\.partition_responses\[.*",
        if_=lambda step, _found: step.version < 7 and _uses_zstd(step),
        with_=lambda other: _code_of(other.theirs) == 76 or (other.theirs == 76 and other.path.endswith("error_code")),
        reason=(
            "who sends zstd can write it; Kafka takes it from version 7 of Produce on (KIP-110), and looks for "
            "that at a partition's first batch, before it looks for a second one and asks for its transaction"
        ),
        goes_apart=True,
    ),
    Wanted(
        name="zstd from older producers that want no answer",
        api="produce",
        path=r"",
        if_=lambda step, found: (
            step.version < 7 and _uses_zstd(step) and (found.theirs, found.ours) == (CLOSED, NOTHING)
        ),
        reason="who sends zstd can write it; Kafka closes the connection of who does before version 7 of Produce",
        goes_apart=True,
    ),
    Wanted(
        name="a producer that its coordinator fenced",
        api="end_txn",
        path=r"error_code|producer_id|producer_epoch",
        if_=lambda step, _found: step.version == 5,
        with_=lambda other: other.path == "error_code" and (other.theirs, other.ours) in ((0, 90), (48, 90)),
        reason="an abort by the coordinator is no producer's: who comes after it hears that it is fenced (decision 80)",
        goes_apart=True,
    ),
    Wanted(
        name="names beside unknown ids",
        api="metadata",
        path=r"topics\[.*<another topic>\]",
        if_=lambda step, _found: step.version >= 12 and any(one["name"] for one in step.values["topics"] or ()),
        with_=lambda other: _code_of(other.ours) == 100,
        reason="a topic whose id is unknown keeps the name that the request gives it",
    ),
    Wanted(
        name="an empty name beside an id",
        api="delete_topics",
        path=r"responses\[.*",
        if_=lambda step, _found: step.version == 6 and any(one["name"] == "" for one in step.values["topics"] or ()),
        with_=lambda other: 42 in (other.theirs, _code_of(other.theirs)),
        reason="an empty name is none, so the topic is named by its id alone; Kafka takes it for a second name",
        goes_apart=True,
    ),
    Wanted(
        name="unknown ids that wait",
        api="fetch",
        path=r"",
        if_=lambda step, found: step.version >= 13 and found.theirs == SILENT and _has_code(found.ours, 100),
        reason="Kafka fails while it answers a Fetch that waited and names an unknown id, and says nothing (KIP-516)",
    ),
    Wanted(
        name="one batch that cannot be read",
        api="produce",
        path=r"responses\[.*\]\.partition_responses\[.*",
        if_=lambda step, _found: len(_batches(step)) > 1 and _is_damaged(step),
        with_=lambda other: _code_of(other.theirs) == 2 or (other.theirs == 2 and other.path.endswith("error_code")),
        reason="each partition is answered by itself; Kafka refuses all for a batch whose records it cannot tell apart",
        goes_apart=True,
    ),
    Wanted(
        name="new names that collide",
        api="create_topics",
        path=r"topics\[.*",
        if_=lambda step, _found: _has_colliding_names(step),
        with_=lambda other: 17 in (other.ours, _code_of(other.ours)),
        reason="the names of metrics of x.y and x_y collide also where one request makes both; Kafka makes both",
        goes_apart=True,
    ),
    Wanted(
        name="offsets of a group that rebalances",
        api="offset_delete",
        path=r"topics\[.*\]\.partitions\[.*\]\.error_code",
        if_=lambda _step, found: (found.theirs, found.ours) == (0, 86),
        reason="while members join nobody knows what they will consume; Kafka goes by what they have said so far",
        goes_apart=True,
    ),
    Wanted(
        name="a batch of each partition",
        api="fetch",
        path=r"responses\[.*\]\.partitions\[.*\]\.records\[.*",
        if_=lambda step, found: found.theirs == ABSENT and _has_little_room(step, found),
        reason="while there is room each partition gives a batch, however large; in Kafka only the first does (KIP-74)",
    ),
    Wanted(
        name="the assignor of a member that leaves",
        api="consumer_group_heartbeat",
        path=r"error_code|error_message|member_id|member_epoch",
        if_=lambda step, _found: isinstance(step.values["member_epoch"], int) and step.values["member_epoch"] < 0,
        with_=lambda other: other.path == "error_code" and (other.theirs, other.ours) == (112, 0),
        reason="who leaves is let go, whatever assignor the request names",
        goes_apart=True,
    ),
    Wanted(
        name="the next segment",
        api="fetch",
        path=r"responses\[.*\]\.partitions\[.*\]\.records\[.*",
        if_=lambda _step, found: found.theirs == ABSENT and _begins_later(found.ours),
        with_=_is_of_today,
        reason="a read goes on in the next segment, which a marker of today begins; Kafka's stops at a segment's end",
    ),
    Wanted(
        name="a partition that is read twice",
        api="fetch",
        path=r"responses\[.*\]\.partitions\[.*",
        if_=lambda step, _found: _names_partition_twice(step),
        reason="a partition that a request names twice is read twice; Kafka reads from the last position",
    ),
    Wanted(
        name="the time of a compressed batch that claims an append time",
        api="fetch",
        path=r"responses\[.*\]\.partitions\[.*\]\.records\[.*\]\.max_timestamp",
        if_=lambda _step, found: found.theirs == EPOCH_MS and isinstance(found.ours, int) and found.ours > EPOCH_MS,
        reason="the header has the largest time of the records; Kafka keeps what is claimed, though it drops the claim",
    ),
)


def explaining(step: Step, found: Difference, every: Sequence[Difference] = ()) -> Wanted | None:
    """The first row that explains it. every: all differences of its answer."""
    return next((one for one in WANTED if one.explains(step, found, every)), None)


def parts_in_silence(step: Step) -> bool:
    """The two sides' states differ after it, although no answer tells: zstd from an older producer that wants no
    answer is appended here, also where another batch of the request closes both connections."""
    return step.api == "produce" and step.version < 7 and not step.answered and _uses_zstd(step)
