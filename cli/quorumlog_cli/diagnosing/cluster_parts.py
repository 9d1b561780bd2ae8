"""The parts that the cluster tells by its protocol. Fields are named one by one: a new field of a message stays out
until somebody has decided that it is no secret. Record contents, credentials and committed metadata are not asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorumlog.client.blocking_admin import Admin
    from quorumlog.explaining.facts import Facts
    from quorumlog.messages.cluster import ConfigDescription
    from quorumlog_cli.diagnosing.bundle import Bundle

MOST = 200  # topics and groups, without --all
BROKER = 4  # a kind of resource
MEMBER_FIELDS = ("member_id", "group_instance_id", "client_id", "client_host")
FEATURE_FIELDS = ("name", "min_level", "max_level", "finalized_level")
SOURCES = {1: "topic", 2: "this broker", 3: "all brokers", 4: "file", 5: "default", 8: "group"}


def add_cluster(bundle: Bundle, admin: Admin, *, everything: bool, since_ms: int) -> None:
    """since_ms: of events, ms since 1970."""
    bundle.add_json("cluster/brokers.json", lambda: brokers(admin))
    bundle.add_json("cluster/quorum.json", lambda: quorum(admin))
    bundle.add_json("cluster/features.json", lambda: features(admin))
    bundle.add_json("cluster/topics.json", lambda: topics(admin, everything=everything))
    bundle.add_json("cluster/directories.json", lambda: directories(admin))
    bundle.add_json("cluster/reassignments.json", lambda: reassignments(admin))
    bundle.add_json("cluster/groups.json", lambda: groups(admin, everything=everything))
    bundle.add_json("cluster/transactions.json", lambda: transactions(admin))
    bundle.add_json("cluster/quotas-in-use.json", lambda: quotas(admin))
    bundle.add_json("cluster/events.json", lambda: events(admin, since_ms))
    for broker in _brokers_of(bundle, admin):
        bundle.add_json(f"config/broker-{broker}.json", partial(broker_config, admin, broker))


def add_findings(bundle: Bundle, facts: Facts, findings: Iterable[Any]) -> None:
    told = [one.document() for one in findings]
    bundle.add_json("check.json", lambda: {"unknown": dict(facts.unknown), "looked_at": facts.asked, "findings": told})


def _brokers_of(bundle: Bundle, admin: Admin) -> list[int]:
    try:
        return [one.node_id for one in admin.describe_cluster().brokers if not one.fenced]
    except Exception as error:  # as in `Bundle`: the other parts are made all the same
        bundle.missing("config", f"{type(error).__name__}: {error}")
        return []


def _taken(one: Any, *names: str) -> dict[str, Any]:
    found = {name: getattr(one, name) for name in names}
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in found.items()}


def brokers(admin: Admin) -> dict[str, Any]:
    found = admin.describe_cluster()
    return {
        **_taken(found, "cluster_id", "controller_id", "metadata_offset", "state_hash"),
        "brokers": [
            {
                **_taken(one, "node_id", "host", "port", "rack", "fenced", "in_controlled_shutdown", "broker_epoch"),
                "listeners": [_taken(each, "name", "host", "port") for each in one.endpoints],
                "directories": [each.hex() for each in one.log_directories],
                "cordoned": [each.hex() for each in one.cordoned_directories],
                "features": [_taken(each, "name", "min_level", "max_level") for each in one.features],
            }
            for one in found.brokers
        ],
    }


def quorum(admin: Admin) -> dict[str, Any]:
    found = admin.describe_quorum()

    def replica(one: Any) -> dict[str, Any]:
        return _taken(one, "replica_id", "log_end_offset", "since_fetch_ms", "since_caught_up_ms", "last_fetch_wall_ms")

    return {
        **_taken(found, "leader_id", "leader_epoch", "high_watermark", "kraft_version"),
        "voters": [replica(one) for one in found.voters],
        "observers": [replica(one) for one in found.observers],
    }


def features(admin: Admin) -> list[dict[str, Any]]:
    return [_taken(one, *FEATURE_FIELDS) for one in admin.describe_features().features]


def topics(admin: Admin, *, everything: bool) -> dict[str, Any]:
    """Settings that differ from the defaults, with their origin."""
    found = admin.list_topics()
    chosen = found if everything else found[:MOST]
    configs = admin.describe_topics_configs([one.name for one in chosen])
    return {
        "topics": len(found),
        "left_out": len(found) - len(chosen),
        "described": [
            {
                **_taken(one, "name", "topic_id", "is_internal"),
                "settings": _settings(configs.get(one.name), changed_only=True),
                "partitions": [
                    _taken(
                        each, "index", "leader_id", "leader_epoch", "replicas", "isr", "offline_replicas",
                        "eligible_leader_replicas", "last_known_elr", "leader_recovery_state",
                    )
                    for each in one.partitions
                ],
            }
            for one in chosen
        ],
    }  # fmt: skip


def _settings(found: ConfigDescription | None, *, changed_only: bool) -> list[dict[str, Any]]:
    """Known settings alone: an unknown name may hold anything. A sensitive one has no value here."""
    if found is None:
        return []
    known = known_settings()
    return [
        {
            "name": one.name,
            "value": one.value if one.name in known and not one.is_sensitive else None,
            "origin": SOURCES.get(one.source, str(one.source)),
        }
        for one in found.configs
        if not changed_only or one.source != 5
    ]


def known_settings() -> frozenset[str]:
    """Names whose values may be shown: declared by us, and not as secrets."""
    from quorumlog.configs.broker import BROKER_CONFIGS
    from quorumlog.configs.topic import TOPIC_CONFIGS
    from quorumlog_server.config.keys import NODE_KEYS

    keys = {name for name, key in NODE_KEYS.items() if not key.secret}
    return frozenset({*keys, *BROKER_CONFIGS, *TOPIC_CONFIGS})


def broker_config(admin: Admin, broker: int) -> list[dict[str, Any]]:
    return _settings(admin.describe_configs(str(broker), resource_type=BROKER), changed_only=False)


def directories(admin: Admin) -> dict[str, Any]:
    silent: dict[int, str] = {}
    found = admin.describe_log_dirs(silent=silent)
    names = ("path", "directory_id", "error_code", "error_message", "total_bytes", "usable_bytes", "is_cordoned")
    return {
        "silent": silent,
        "brokers": {
            node: [
                {
                    **_taken(one, *names),
                    "replicas": [
                        {"topic": topic.name, **_taken(each, "index", "size_bytes", "offset_lag", "is_future")}
                        for topic in one.topics
                        for each in topic.partitions
                    ],
                }
                for one in described
            ]
            for node, described in found.items()
        },
    }


def reassignments(admin: Admin) -> list[dict[str, Any]]:
    found = admin.list_partition_reassignments()
    return [{"topic": key[0], "partition": key[1], **one._asdict()} for key, one in found.items()]


def groups(admin: Admin, *, everything: bool) -> dict[str, Any]:
    """Without what members and committers have written: subscriptions, assignments, metadata of commits."""
    listed = admin.list_groups()
    chosen = listed if everything else listed[:MOST]
    return {
        "groups": len(listed),
        "left_out": len(listed) - len(chosen),
        "described": [_group(admin, one) for one in chosen],
    }


def _group(admin: Admin, one: Any) -> dict[str, Any]:
    base = _taken(one, "group_id", "protocol_type", "state", "group_type")
    try:
        described = admin.describe_group(one.group_id)
        committed = admin.group_offsets(one.group_id)
    except Exception as error:  # likewise: the other groups are told
        return {**base, "error": f"{type(error).__name__}: {error}"}
    return {
        **base,
        "coordinator": described.coordinator,
        "members": [_taken(each, *MEMBER_FIELDS) for each in described.group.members],
        "committed": [
            {"topic": key[0], "partition": key[1], "offset": each.offset} for key, each in sorted(committed.items())
        ],
    }


def transactions(admin: Admin) -> list[dict[str, Any]]:
    names = ("transactional_id", "producer_id", "producer_epoch", "state", "timeout_ms", "start_time_ms")
    return [{"coordinator": one.coordinator, **_taken(one.transaction, *names)} for one in admin.list_transactions()]


def quotas(admin: Admin) -> dict[int, Any]:
    names = ("key", "user", "client_id", "rate", "quota", "throttled_ms")
    return {
        node: [_taken(one, *names) for one in found.uses] for node, found in admin.describe_quota_use(silent={}).items()
    }


def events(admin: Admin, since_ms: int) -> dict[int, Any]:
    names = ("at_ms", "number", "kind", "subject", "text", "offset", "record")
    found = admin.describe_events(since_ms=since_ms, limit=10_000, silent={})
    return {
        node: {
            **_taken(answer, "lost", "complete_since_ms"),
            "events": [_taken(one, *names) for one in answer.events],
        }
        for node, answer in found.items()
    }
