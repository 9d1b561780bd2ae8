"""The sequence of requests that a seed stands for. The same seed and the same versions are the same sequence.

Seeds go by turns: one in four asks every API in every version once as it is meant and once with an odd value, one
walks over the versions of one API with many odd values, and two tell a story: random calls about the same few topics,
groups and transactions.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from differential.builders import BUILDERS, NODE, STRANGER, World
from differential.conversation import Versions
from differential.odd import with_odd_value
from differential.step import Batch, Ref, Step, Values
from quorumlog.records.format.batch import Codec

STORY_CALLS = 60
WALK_CALLS = 6  # of each version
SETTING_STEPS = 5
KINDS = ("breadth", "story", "walk", "story")
# Calls that change what the others are about come oftener.
OFTEN = (
    "produce", "produce", "produce", "fetch", "fetch", "list_offsets", "create_topics", "incremental_alter_configs",
    "init_producer_id", "add_partitions_to_txn", "add_partitions_to_txn", "end_txn", "end_txn", "txn_offset_commit",
    "add_offsets_to_txn", "join_group", "join_group", "sync_group", "sync_group", "offset_commit", "offset_fetch",
    "consumer_group_heartbeat", "consumer_group_heartbeat", "consumer_group_heartbeat",
)  # fmt: skip
NOT_ACKNOWLEDGED = 0.05


def prefix_of(seed: int, turn: int) -> str:
    """Begins all names of a sequence. turn: how often these clusters have played it; groups stay, and names are new."""
    return f"d{seed}-{turn}-"


def sequence(seed: int, versions: Versions, api: str | None = None, turn: int = 0) -> list[Step]:
    """api: all its walks, and stories in which every second call is of it."""
    world = World(Random(seed), prefix_of(seed, turn))
    kind = KINDS[seed % len(KINDS)]
    known = [name for name in versions if name in BUILDERS]
    steps = setting(world, versions)
    if kind == "breadth" and api is None:
        return [*steps, *_breadth(world, versions, known)]
    if kind == "story":
        return [*steps, *_story(world, versions, known, api)]
    return [*steps, *_walk(world, versions, api or known[(seed // len(KINDS)) % len(known)])]


def setting(world: World, versions: Versions) -> list[Step]:
    """Two topics with records, producers, a transaction, a member of each kind of group, committed offsets."""
    prefix = world.prefix
    made = [_topic(prefix + "a", 2), _topic(prefix + "b", 1)]
    steps = [_newest("create_topics", versions, {"topics": made, "timeout": 5_000, "validate_only": False})]
    for name in ("p1", "t1"):
        values = {"transactional_id": prefix + name if name == "t1" else None, "transaction_timeout": 60_000}
        values |= {"producer_id": -1, "producer_epoch": -1}
        steps.append(_newest("init_producer_id", versions, values, label=prefix + name))
    batch = Batch(
        rows=((b"k1", b"one"), (None, b"two"), (b"k2", b"three")), times=(1_700_000_000_000,) * 3, codec=Codec.NONE
    )
    data = [{"index": 0, "records": batch}]
    topics = [{"name": prefix + "a", "topic_id": Ref("topic", prefix + "a"), "partition_data": data}]
    steps.append(
        _newest("produce", versions, {"transactional_id": None, "acks": -1, "timeout": 5_000, "topic_data": topics})
    )
    commit = {"partition_index": 0, "committed_offset": 2, "committed_leader_epoch": -1, "committed_metadata": "note"}
    of_group = {
        "group_id": prefix + "g1",
        "member_id": "",
        "generation_id_or_member_epoch": -1,
        "group_instance_id": None,
    }
    committed = [{"name": prefix + "a", "topic_id": Ref("topic", prefix + "a"), "partitions": [commit]}]
    steps.append(_newest("offset_commit", versions, {**of_group, "topics": committed}))
    assert len(steps) == SETTING_STEPS
    return steps


def _topic(name: str, partitions: int) -> Values:
    return {"name": name, "num_partitions": partitions, "replication_factor": 1, "assignments": [], "configs": []}


def closing(prefix: str) -> Values:
    """The topics that a sequence may have made, for a DeleteTopics of version 5 or older."""
    names = [prefix + name for name in ("a", "b", "c", "never", "new", "x.y", "x_y", "n" * 250)]
    return {"topic_names": names, "timeout": 10_000}


def _newest(api: str, versions: Versions, values: Values, label: str = "") -> Step:
    return Step(api=api, version=versions[api][1], values=values, label=label)


def _breadth(world: World, versions: Versions, known: Sequence[str]) -> list[Step]:
    steps = []
    for api in known:
        oldest, newest = versions[api]
        for version in range(oldest, newest + 1):
            steps += [step_of(world, api, version), odd_step(world, api, version)]
    world.rng.shuffle(steps)
    return steps


def _walk(world: World, versions: Versions, api: str) -> list[Step]:
    oldest, newest = versions[api]
    steps = []
    for version in range(oldest, newest + 1):
        steps.append(step_of(world, api, version))
        steps += [odd_step(world, api, version) for _ in range(WALK_CALLS)]
    return steps


def _story(world: World, versions: Versions, known: Sequence[str], api: str | None) -> list[Step]:
    names = [*known, *(name for name in OFTEN if name in versions)]
    steps = []
    for _ in range(STORY_CALLS):
        name = api if api is not None and world.rng.random() < 0.5 else world.rng.choice(names)
        oldest, newest = versions[name]
        steps.append(step_of(world, name, newest if world.rng.random() < 0.5 else world.rng.randint(oldest, newest)))
    return steps


def step_of(world: World, api: str, version: int) -> Step:
    """A meaningful request."""
    values = BUILDERS[api](world)
    if api == "produce" and world.rng.random() < NOT_ACKNOWLEDGED:
        return Step(api=api, version=version, values={**values, "acks": 0}, answered=False)
    return Step(api=api, version=version, values=values, label=_label(api, values), lane=_lane(api, values))


def odd_step(world: World, api: str, version: int) -> Step:
    values, odd = with_odd_value(world, api, version, BUILDERS[api](world))
    answered = api != "produce" or values["acks"] != 0
    return Step(
        api=api, version=version, values=values, odd=odd, label=_label(api, values), lane=_lane(api, values),
        answered=answered,
    )  # fmt: skip


def _label(api: str, values: Values) -> str:
    """Under which name the answer's ids are known."""
    if api == "init_producer_id":
        return str(values["transactional_id"] or "")
    if api in ("add_partitions_to_txn", "end_txn", "add_offsets_to_txn"):
        return str(values.get("transactional_id") or "")
    if api == "consumer_group_heartbeat":
        return str(values["member_id"])
    if api in ("join_group", "heartbeat", "sync_group"):
        member = values["member_id"]
        return member.label if isinstance(member, Ref) else f"{values['group_id']}:{STRANGER}"
    return ""


def _lane(api: str, values: Values) -> str:
    """A member that joins waits for the others, on a connection of its own."""
    return f"member {_label(api, values)}" if api in ("join_group", "sync_group") else "main"


assert NODE == 1, "the only node of each side"
