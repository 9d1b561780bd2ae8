"""Reads the facts from a running cluster by the client's calls, ours or an Apache Kafka.

Each call that fails leaves its facts out and says so in `unknown`; only where no broker answers is there nothing. Calls
that need nothing of each other may be under way at once, and once those that got no answer have taken LOST_MS, nothing
more is asked: where a quorum is lost and a node hangs, each call would take its whole time. What costs a call for each
thing is bounded. Ends of partitions and offsets of groups are looked at twice, because a picture
shows neither a rate nor a standstill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from quorumlog.explaining.facts import (
    BrokerFact,
    DirectoryFact,
    EndsFact,
    Facts,
    GroupFact,
    GroupSample,
    OpenTransactionFact,
    PartitionFact,
    QuorumFact,
    QuotaFact,
    VoterFact,
    merged_events,
)
from quorumlog.explaining.thresholds import HOT_RECORDS, HOT_SHARE
from quorumlog.reserve import reserve_bytes

if TYPE_CHECKING:
    from quorumlog.client.blocking_admin import Admin
    from quorumlog.ids import NodeId, TopicPartition
    from quorumlog.messages.admin import LogDirDescription
    from quorumlog.messages.cluster import ClusterBroker

MAX_GROUPS = 500  # that are asked for, by name
MAX_PARTITIONS_WITH_TRANSACTIONS = 500  # whose producers are asked for
ASK_TIMEOUT_MS = 3_000
LOST_MS = 3_000  # of waiting for calls that failed; a healthy cluster never spends it
MIN_ISR = "min.insync.replicas"
THROTTLES = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
ENDS = "ends of partitions"
DIRECTORIES, REASSIGNMENTS, QUOTAS = "directories", "reassignments", "use of quotas"
RESERVE = "log.dir.free.space.reserve.bytes"
ALL_PARTS = frozenset(
    {"brokers", "partitions", "directories", "quorum", "groups", "transactions", "quotas", "ends", "events"}
)


Begin = Callable[[Callable[[], Any]], Callable[[], Any]]  # starts a call, and returns what waits for its result


def untimed() -> int:
    """A clock that stands still: whoever reads by it never gives up."""
    return 0


def at_its_turn(call: Callable[[], Any]) -> Callable[[], Any]:
    """The call is made when its result is wanted."""
    return call


@dataclass(slots=True)
class _Reading:
    """parts: what is wanted of ALL_PARTS. wall_ms, now_ms, sleep_s: of the machine. begun: calls that were started
    ahead, by their part. lost_ms: how long calls that failed have been waited for."""

    admin: Admin
    parts: frozenset[str]
    wall_ms: Callable[[], int]
    sleep_s: Callable[[float], None]
    now_ms: Callable[[], int] = untimed
    unknown: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    silent: dict[NodeId, str] = field(default_factory=dict)
    begun: dict[str, Callable[[], Any]] = field(default_factory=dict)
    lost_ms: int = 0

    @property
    def gives_up(self) -> bool:
        return self.lost_ms >= LOST_MS

    def ask(self, part: str, call: Callable[[], Any], empty: Any) -> Any:
        """What the call gives; `empty` where it fails, and `unknown` has the reason."""
        from quorumlog.client.errors import QuorumlogError
        from quorumlog.rpc.transport import RpcError

        begun = self.begun.pop(part, None)
        if begun is None and self.gives_up:
            self.unknown.setdefault(part, f"not asked: others gave no answer in {self.lost_ms / 1000:.0f} s")
            return empty
        began_ms = self.now_ms()
        try:
            return (begun or call)()
        except (QuorumlogError, RpcError, TimeoutError) as error:
            self.lost_ms += self.now_ms() - began_ms
            self.unknown.setdefault(part, f"{type(error).__name__}: {error}")
            return empty

    def wants(self, part: str) -> bool:
        return part in self.parts


def read_facts(
    admin: Admin,
    *,
    wall_ms: Callable[[], int],
    sleep_s: Callable[[float], None],
    parts: Iterable[str] = ALL_PARTS,
    groups: Iterable[str] | None = None,
    since_ms: int = 0,
    over_s: float = 10.0,
    is_local: bool = False,
    begin: Begin = at_its_turn,
    now_ms: Callable[[], int] = untimed,
) -> Facts:
    """now_ms: a clock that never goes back, for LOST_MS. begin: starts a call ahead of its turn, on a thread for
    example. groups: only these; None: all, MAX_GROUPS at most. since_ms: of events, ms since 1970; 0: all that are
    left. over_s: between the two looks; the second one is taken only if a group is behind, or rates are wanted: after
    one second, and again after over_s if one partition seems to take most of a topic's records."""
    from quorumlog.client.errors import QuorumlogError
    from quorumlog.rpc.transport import RpcError

    reading = _Reading(admin, frozenset(parts), wall_ms, sleep_s, now_ms)
    _begin_calls(reading, since_ms, begin)
    try:
        described = admin.describe_cluster()
        topics = admin.list_topics()
    except (QuorumlogError, RpcError, TimeoutError, OSError) as error:
        return Facts(at_ms=wall_ms(), unreachable=f"{type(error).__name__}: {error}", is_local=is_local)
    directories = _directories(reading)
    partitions = _partitions(reading, topics, directories)
    reading.asked.append(f"{len(described.brokers)} brokers, {len(partitions)} partitions")
    quorum = _quorum(reading) if reading.wants("quorum") else None
    found_groups, ends = _groups_and_ends(reading, partitions, groups, over_s)
    if ends is not None and _is_uneven(ends):
        ends = replace(ends, grown=_grown(reading, partitions, directories))
    transactions = _transactions(reading, partitions) if reading.wants("transactions") else ()
    events = _events(reading, since_ms) if reading.wants("events") else None
    return Facts(
        at_ms=wall_ms(),
        brokers=tuple(
            _broker(one, directories.get(one.node_id, ()), reading.silent, events is not None)
            for one in described.brokers
        ),
        partitions=partitions,
        directories=_directory_facts(reading, directories),
        quorum=quorum,
        groups=found_groups,
        transactions=transactions,
        quotas=_quotas(reading),
        ends=ends,
        events=events or (),
        has_events=events is not None,
        is_local=is_local,
        unknown=dict(reading.unknown),
        asked=tuple(reading.asked),
    )


def _begin_calls(reading: _Reading, since_ms: int, begin: Begin) -> None:
    """Those that need nothing of another's answer, by the parts under which they are asked."""
    admin = reading.admin
    calls: dict[str, Callable[[], Any]] = {
        DIRECTORIES: partial(_ask_directories, reading),
        REASSIGNMENTS: admin.list_partition_reassignments,
    }
    if reading.wants("quorum"):
        calls["quorum"] = admin.describe_quorum
    if reading.wants("groups"):
        calls["groups"] = admin.list_groups
    if reading.wants("quotas"):
        calls[QUOTAS] = partial(_ask_quotas, reading)
    if reading.wants("events"):
        calls["events"] = partial(_ask_events, reading, since_ms)
    reading.begun = {part: begin(call) for part, call in calls.items()}


def _ask_directories(reading: _Reading) -> dict[NodeId, tuple[LogDirDescription, ...]]:
    return reading.admin.describe_log_dirs(timeout_ms=ASK_TIMEOUT_MS, silent=reading.silent)


def _ask_quotas(reading: _Reading) -> Any:
    return reading.admin.describe_quota_use(silent={})


def _ask_events(reading: _Reading, since_ms: int) -> Any:
    return reading.admin.describe_events(since_ms=since_ms, limit=10_000, timeout_ms=ASK_TIMEOUT_MS, silent={})


def _broker(
    one: ClusterBroker, described: Iterable[LogDirDescription], silent: Mapping[NodeId, str], tells: bool
) -> BrokerFact:
    """tells: it is a cluster of ours, which says more than an Apache Kafka. described: its directories as it tells them
    itself; Kafka's DescribeCluster has no field for those that are cordoned."""
    online = set(one.log_directories)
    usable = [each for each in described if not each.error_code]
    return BrokerFact(
        node_id=one.node_id,
        fenced=one.fenced,
        leaving=one.in_controlled_shutdown if tells else None,
        directories=len(online) if tells else None,
        cordoned=(bool(online) and online <= set(one.cordoned_directories))
        or (bool(usable) and all(each.is_cordoned for each in usable)),
        silent=silent.get(one.node_id, ""),
    )


# --- brokers and partitions ---


def _directories(reading: _Reading) -> dict[NodeId, tuple[LogDirDescription, ...]]:
    found: dict[NodeId, tuple[LogDirDescription, ...]] = reading.ask(
        DIRECTORIES, partial(_ask_directories, reading), {}
    )
    reading.asked.append(f"{sum(map(len, found.values()))} log directories")
    return found


def _directory_facts(
    reading: _Reading, described: Mapping[NodeId, tuple[LogDirDescription, ...]]
) -> tuple[DirectoryFact, ...]:
    found = []
    for node_id, directories in described.items():
        setting = _reserve_of(reading, node_id) if reading.wants("directories") else -1
        for one in directories:
            is_known = setting is not None or one.total_bytes > 0
            found.append(
                DirectoryFact(
                    node_id=node_id,
                    path=one.path,
                    error=(one.error_message or "offline") if one.error_code else "",
                    total=one.total_bytes,
                    usable=one.usable_bytes,
                    reserve=reserve_bytes(one.total_bytes, setting) if is_known else -1,
                )
            )
    return tuple(found)


def _reserve_of(reading: _Reading, node_id: NodeId) -> int | None:
    """None: the rule holds; -1: this broker has no reserve, as an Apache Kafka, or does not tell it."""
    from quorumlog.client.admin import BROKER_RESOURCE

    def ask() -> int | None:
        found = reading.admin.describe_configs(str(node_id), resource_type=BROKER_RESOURCE, names=[RESERVE]).configs
        if not found:
            return -1
        return int(found[0].value) if found[0].value else None

    found: int | None = reading.ask("reserve of directories", ask, -1)
    return found


def _partitions(
    reading: _Reading, topics: Iterable[Any], directories: Mapping[NodeId, Any]
) -> tuple[PartitionFact, ...]:
    from quorumlog.client.administration.logs import current_replicas

    topics = list(topics)
    moving = reading.ask(REASSIGNMENTS, reading.admin.list_partition_reassignments, {})
    names = [topic.name for topic in topics]
    lags: dict[tuple[str, int], dict[NodeId, int]] = {}
    for (topic_name, index, node_id), part in current_replicas(directories).items():
        lags.setdefault((topic_name, index), {})[node_id] = part.offset_lag
    configs = reading.ask(
        "settings of topics", lambda: reading.admin.describe_topics_configs(names, names=[MIN_ISR, *THROTTLES]), {}
    )
    settings = {name: {one.name: one.value or "" for one in found.configs} for name, found in configs.items()}
    return tuple(
        _partition(topic.name, part, settings.get(topic.name, {}), moving.get((topic.name, part.index)), lags)
        for topic in topics
        for part in topic.partitions
    )


def _partition(
    topic: str,
    part: Any,
    settings: Mapping[str, str],
    moving: Any,
    lags: Mapping[tuple[str, int], Mapping[NodeId, int]],
) -> PartitionFact:
    return PartitionFact(
        topic=topic,
        index=part.index,
        leader=part.leader_id,
        leader_epoch=part.leader_epoch,
        replicas=part.replicas,
        isr=part.isr,
        elr=part.eligible_leader_replicas,
        last_known_elr=part.last_known_elr,
        recovering=part.leader_recovery_state == 1,
        min_isr=int(settings.get(MIN_ISR) or 1),
        adding=() if moving is None else moving.adding,
        removing=() if moving is None else moving.removing,
        throttled=any(settings.get(one) for one in THROTTLES),
        lags=lags.get((topic, part.index), {}),
    )


def _quorum(reading: _Reading) -> QuorumFact | None:
    found = reading.ask("quorum", reading.admin.describe_quorum, None)
    if found is None:
        return None
    reading.asked.append(f"{len(found.voters)} voters of the quorum")
    return QuorumFact(
        leader=found.leader_id,
        epoch=found.leader_epoch,
        high_watermark=found.high_watermark,
        voters=tuple(
            VoterFact(node_id=one.replica_id, end_offset=one.log_end_offset, since_fetch_ms=one.since_fetch_ms)
            for one in found.voters
        ),
    )


# --- groups and ends, looked at twice ---


def _groups_and_ends(
    reading: _Reading, partitions: tuple[PartitionFact, ...], only: Iterable[str] | None, over_s: float
) -> tuple[tuple[GroupFact, ...], EndsFact | None]:
    if not (reading.wants("groups") or reading.wants("ends")):
        return (), None
    led = [one.key for one in partitions if one.leader >= 0]
    names = _group_names(reading, only) if reading.wants("groups") else []
    first_ms, ends = reading.wall_ms(), _ends(reading, led) if reading.wants("ends") else {}
    groups = _groups(reading, names)
    reading.asked.append(f"{len(groups)} groups")
    behind = [one for one in groups if one.members and one.samples and one.samples[0].total > 0]
    if not behind and not reading.wants("ends"):
        return tuple(groups), None
    reading.sleep_s(over_s if behind else min(over_s, 1.0))
    found = _moved(reading, led, ends, first_ms) if reading.wants("ends") else None
    if found is not None and not behind and _is_uneven(found):
        reading.sleep_s(over_s)  # one second of a few records tells nothing
        found = _moved(reading, led, ends, first_ms)
    again = {one.group_id: one for one in _groups(reading, [one.group_id for one in behind])}
    groups = [
        replace(again[one.group_id], samples=(*one.samples, *again[one.group_id].samples))
        if one.group_id in again
        else one
        for one in groups
    ]
    return tuple(groups), found


def _moved(
    reading: _Reading, keys: Iterable[TopicPartition], before: Mapping[TopicPartition, int], since_ms: int
) -> EndsFact:
    later = _ends(reading, keys)
    moved = {key: later[key] - before[key] for key in later if key in before}
    return EndsFact(seconds=(reading.wall_ms() - since_ms) / 1000, moved=moved)


def _is_uneven(ends: EndsFact) -> bool:
    """One partition of a topic took most of its records, and many."""
    topics: dict[str, list[int]] = {}
    for (topic, _), moved in ends.moved.items():
        topics.setdefault(topic, []).append(moved)
    return any(max(found) > max(HOT_SHARE * sum(found), HOT_RECORDS * ends.seconds) for found in topics.values())


def _grown(
    reading: _Reading, partitions: Iterable[PartitionFact], before: Mapping[NodeId, Iterable[LogDirDescription]]
) -> dict[TopicPartition, int]:
    silent: dict[NodeId, str] = {}
    later = reading.ask(
        "sizes of partitions", lambda: reading.admin.describe_log_dirs(timeout_ms=ASK_TIMEOUT_MS, silent=silent), {}
    )
    first, last = _sizes(before), _sizes(later)
    led = {one.key: (one.leader, *one.key) for one in partitions}
    return {key: last[at] - first[at] for key, at in led.items() if at in first and at in last}


def _sizes(described: Mapping[NodeId, Iterable[LogDirDescription]]) -> dict[tuple[NodeId, str, int], int]:
    return {
        (node_id, topic.name, part.index): part.size_bytes
        for node_id, directories in described.items()
        for directory in directories
        for topic in directory.topics
        for part in topic.partitions
        if not part.is_future
    }


def _group_names(reading: _Reading, only: Iterable[str] | None) -> list[str]:
    listed = reading.ask("groups", reading.admin.list_groups, [])
    known = sorted(
        one.group_id for one in listed if one.group_type in ("", "classic", "consumer", "Classic", "Consumer")
    )
    wanted = known if only is None else [one for one in known if one in set(only)]
    if len(wanted) > MAX_GROUPS:
        reading.unknown["groups"] = f"only the first {MAX_GROUPS} of {len(wanted)} groups were asked for"
    return wanted[:MAX_GROUPS]


def _ends(reading: _Reading, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    from quorumlog.client.offsets import LATEST

    wanted = dict.fromkeys(keys, LATEST)
    if not wanted or ENDS in reading.unknown:  # who does not answer takes as long the next time
        return {}
    found = reading.ask(ENDS, lambda: reading.admin.list_offsets(wanted), {})
    return {key: one.offset for key, one in found.items()}


def _groups(reading: _Reading, names: Iterable[str]) -> list[GroupFact]:
    """Not those that would be asked for after LOST_MS: that their coordinator does not answer is not known."""
    found = []
    for name in names:
        if reading.gives_up:
            reading.unknown.setdefault("groups", f"not all were asked for: {name} and those after it were not")
            break
        found.append(_group(reading, name))
    return found


def _group(reading: _Reading, name: str) -> GroupFact:
    """Its lag is that of `quorumlog group lag`: offsets that no member reads do not count, nor topics that are gone."""
    from quorumlog.client.errors import QuorumlogError
    from quorumlog.rpc.transport import RpcError

    began_ms = reading.now_ms()
    try:
        described = reading.admin.describe_group(name)
    except (QuorumlogError, RpcError, TimeoutError) as error:
        reading.lost_ms += reading.now_ms() - began_ms
        return GroupFact(group_id=name, state="", coordinator_error=f"{type(error).__name__}: {error}")
    found = reading.ask("lag of groups", lambda: reading.admin.group_lag(name), None)
    counted = {} if found is None else found.partitions
    counted = {key: one for key, one in counted.items() if one.is_read and one.lag is not None}
    sample = GroupSample(
        at_ms=reading.wall_ms(),
        committed={key: one.committed for key, one in counted.items()},
        lag={key: one.lag or 0 for key, one in counted.items()},
    )
    return GroupFact(
        group_id=name,
        state=described.group.group_state,
        members=tuple(f"{one.client_id} ({one.client_host.lstrip('/')})" for one in described.group.members),
        coordinator=described.coordinator,
        samples=(sample,),
    )


def _transactions(reading: _Reading, partitions: tuple[PartitionFact, ...]) -> tuple[OpenTransactionFact, ...]:
    """Of partitions whose last stable offset is behind their end: nobody else waits for one."""
    from quorumlog.client.offsets import LATEST

    wanted = {one.key: LATEST for one in partitions if one.leader >= 0}
    if not wanted:
        return ()
    admin = reading.admin
    ends = _ends(reading, wanted)
    if not ends:
        return ()
    stable = reading.ask("stable offsets", lambda: admin.list_offsets(wanted, isolation_level="read_committed"), {})
    held = [key for key, one in stable.items() if key in ends and one.offset < ends[key]]
    reading.asked.append(f"{len(held)} partitions with open transactions")
    if len(held) > MAX_PARTITIONS_WITH_TRANSACTIONS:
        reading.unknown["transactions"] = f"only {MAX_PARTITIONS_WITH_TRANSACTIONS} of {len(held)} were asked"
        held = held[:MAX_PARTITIONS_WITH_TRANSACTIONS]
    if not held:
        return ()
    producers = reading.ask("producers", lambda: admin.describe_producers(held), {})
    open_ones = [
        (key, one) for key, found in producers.items() for one in found if one.current_transaction_start_offset >= 0
    ]
    ids = sorted({one.producer_id for _, one in open_ones})
    listed = reading.ask("transactions", lambda: admin.list_transactions(producer_ids=ids) if ids else [], None)
    if listed is None:
        return ()  # whose they are is not known, so nothing is said of them
    names = {one.transaction.producer_id: one.transaction.transactional_id for one in listed}
    described = reading.ask("transactions", lambda: admin.describe_transactions(sorted(names.values())), None)
    if described is None:
        return ()
    return tuple(
        _open(key, one, names.get(one.producer_id), described, stable[key].offset, ends[key]) for key, one in open_ones
    )


def _open(
    key: TopicPartition, one: Any, name: str | None, described: Mapping[str, Any], stable: int, end: int
) -> OpenTransactionFact:
    found = None if name is None else described.get(name)
    known = found is not None and any(topic.name == key[0] and key[1] in topic.partitions for topic in found.topics)
    return OpenTransactionFact(
        topic=key[0],
        index=key[1],
        producer_id=one.producer_id,
        producer_epoch=one.producer_epoch,
        name=name,
        known=known,
        state="" if found is None else found.state,
        started_ms=-1 if found is None or not known else found.transaction_start_time_ms,
        last_ms=one.last_timestamp_ms,
        timeout_ms=0 if found is None else found.transaction_timeout_ms,
        start_offset=one.current_transaction_start_offset,
        stable=stable,
        high_watermark=end,
    )


def _quotas(reading: _Reading) -> tuple[QuotaFact, ...]:
    if not reading.wants("quotas"):
        return ()
    answers = reading.ask(QUOTAS, partial(_ask_quotas, reading), {})
    return tuple(
        QuotaFact(
            node_id=node_id,
            key=one.key,
            who="/".join(part for part in (one.user, one.client_id) if part is not None) or "(all)",
            rate=one.rate,
            quota=one.quota,
            throttled_ms=one.throttled_ms,
        )
        for node_id, answer in answers.items()
        for one in answer.uses
    )


def _events(reading: _Reading, since_ms: int) -> tuple[Any, ...] | None:
    """None: no node tells any."""
    found = reading.ask("events", partial(_ask_events, reading, since_ms), {})
    if not found:
        reading.unknown.setdefault("events", "this cluster keeps none, so it is not told since when something is so")
        return None
    events = merged_events(answer.events for answer in found.values())
    reading.asked.append(f"{len(events)} events of {len(found)} nodes")
    return events
