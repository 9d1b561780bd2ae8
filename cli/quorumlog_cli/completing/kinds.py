"""Which options and arguments take which names of a cluster, or of this machine."""

from __future__ import annotations

from enum import StrEnum


class Names(StrEnum):
    TOPICS = "topics"
    PARTITIONS = "partitions"
    GROUPS = "groups"
    BROKERS = "brokers"
    TRANSACTIONAL_IDS = "transactional-ids"
    USERS = "users"
    CONFIG_KEYS = "config-keys"
    CONFIG_VALUES = "config-values"  # KEY=, and a value behind it
    PROFILES = "profiles"
    NODES = "nodes"  # of the local cluster


_BY_METAVAR = {
    "TOPIC": Names.TOPICS,
    "TOPIC[:0,1]": Names.TOPICS,
    "GROUP": Names.GROUPS,
    "PARTITION": Names.PARTITIONS,
    "PARTITION[=ID,ID,…]": Names.PARTITIONS,
    "TOPIC-PARTITION": Names.PARTITIONS,
    "TRANSACTIONAL_ID": Names.TRANSACTIONAL_IDS,
    "USER": Names.USERS,
    "NODE": Names.NODES,
}
_BY_NAME = {
    ("ID", "broker_id"): Names.BROKERS,
    ("ID", "brokers"): Names.BROKERS,
    ("ID", "--broker-id"): Names.BROKERS,
    ("ID", "--node"): Names.BROKERS,
    ("ID", "--node-id"): Names.BROKERS,
    ("ID", "--to"): Names.BROKERS,
    ("ID", "--transactional-id"): Names.TRANSACTIONAL_IDS,
    ("NAME", "--user"): Names.USERS,
    ("NAME", "--profile"): Names.PROFILES,
    ("NAME", "--topic"): Names.TOPICS,
    ("KEY=VALUE", "-c"): Names.CONFIG_VALUES,
}
_BY_COMMAND = {
    ("config get", "name"): Names.TOPICS,
    ("config set", "name"): Names.TOPICS,
    ("config unset", "name"): Names.TOPICS,
    ("config get", "keys"): Names.CONFIG_KEYS,
    ("config unset", "keys"): Names.CONFIG_KEYS,
    ("config set", "values"): Names.CONFIG_VALUES,
    ("bench produce", "-t"): Names.TOPICS,
    ("bench consume", "-t"): Names.TOPICS,
    ("bench e2e", "-t"): Names.TOPICS,
    ("profile use", "name"): Names.PROFILES,
    ("profile show", "name"): Names.PROFILES,
    ("profile delete", "name"): Names.PROFILES,
}
NEW_OR_OTHER = {  # what looks like a name of the cluster and is none
    ("topic create", "topic"),
    ("user create", "name"),
    ("docs", "topic"),
    ("net cut", "groups"),
    ("net heal", "groups"),
    ("log import", "--topic"),
    ("log verify", "--compacted"),
}


def names_of(command: str, name: str, metavar: str) -> Names | None:
    """command: its words. name: of an argument, or the first of an option. None: it takes no such name."""
    if (command, name) in NEW_OR_OTHER:
        return None
    plain = metavar.removeprefix("[").removesuffix("]") if metavar.startswith("[") else metavar
    plain = plain.removesuffix("...").removesuffix("…")
    return _BY_COMMAND.get((command, name)) or _BY_NAME.get((plain, name)) or _BY_METAVAR.get(plain)
