"""Settings of a node as a whole, as its file says them: who it is, where it listens, its voters, its directories.

The server makes addresses and paths of them, and checks them against each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.settings.key import (
    NodeKey,
    flag,
    maybe,
    names,
    number,
    parse_int,
    parse_list,
    setting,
    text,
    word,
)
from quorumlog.settings.types import MAX_INT

MOVED_VOTERS = "controller.quorum.voters.moved"
RELATIVE_TO = "paths.relative.to"
TO_FILE, TO_PROCESS = "file", "process"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentitySettings:
    node_id: int = setting(
        NodeKey(
            name="node.id", parse=parse_int, default=None, minimum=0, maximum=MAX_INT, doc="This node's id, 0 or more."
        )
    )
    broker_id: int = setting(
        number("broker.id", -1, -1, "The older name of node.id, which must say the same; -1: not set.")
    )
    roles: tuple[str, ...] = setting(names("process.roles", "broker,controller", "Roles: broker, controller, or both."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSettings:
    listeners: tuple[str, ...] = setting(
        names(
            "listeners",
            "CLIENT://127.0.0.1:9092,INTERNAL://127.0.0.1:9093,GRPC://127.0.0.1:9094,REPLICATION://127.0.0.1:9095",
            "NAME://HOST:PORT of each listener; port 0 takes a free port (not on the internal listener). A broker "
            "without a listener for gRPC gets one, GRPC, at a free port.",
        )
    )
    advertised: tuple[str, ...] | None = setting(
        maybe("advertised.listeners", parse_list, "Addresses that others connect to, if they differ from `listeners`.")
    )
    between_brokers: str = setting(
        word(
            "inter.broker.listener.name",
            "INTERNAL",
            "The listener for calls between nodes: quorum, controller, replication. Where controller.listener.names "
            "names another one, that one serves them all.",
        )
    )
    lanes: tuple[str, ...] | None = setting(
        maybe(
            "lane.listeners",
            parse_list,
            "Names of the listeners that speak Kafka's own protocol; the others speak gRPC. Default: all but the "
            "internal listener and those whose names begin with GRPC. Not in Kafka.",
        )
    )
    replication: str = setting(
        word(
            "replication.listener.name",
            "REPLICATION",
            "A second internal listener, for replica fetches, if `listeners` has this name. Not in Kafka.",
        )
    )
    of_controllers: tuple[str, ...] | None = setting(
        maybe("controller.listener.names", parse_list, "Kafka's other name for the listener for calls between nodes.")
    )
    protocols: tuple[str, ...] | None = setting(
        maybe(
            "listener.security.protocol.map",
            parse_list,
            "NAME:PROTOCOL for each listener: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. A listener that is not named "
            "has the protocol of its name, or PLAINTEXT.",
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterSettings:
    voters: tuple[str, ...] = setting(
        names(
            "controller.quorum.voters",
            "",
            "ID@HOST:PORT of every controller's internal listener, the same on all nodes. Not needed where the voters "
            "are in the metadata log (kraft.version 1).",
        )
    )
    bootstrap_servers: tuple[str, ...] = setting(
        names(
            "controller.quorum.bootstrap.servers",
            "",
            "HOST:PORT of the internal listeners of some controllers: a node that knows no leader asks them.",
        )
    )
    moved: tuple[str, ...] = setting(
        names(
            MOVED_VOTERS,
            "",
            "ID@HOST:PORT>HOST:PORT for controllers that all got other addresses while they were stopped, with "
            "kraft.version 1: where the metadata log names the first address of a voter, it is called at the second "
            "one. Take it out when `quorumlog quorum replication` works. Not in Kafka.",
        )
    )
    auto_join: bool = setting(
        flag(
            "controller.quorum.auto.join.enable",
            False,
            "A controller that is no voter makes itself one, after it has removed its former self on another "
            "directory. Once for each directory: what was removed stays removed.",
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectorySettings:
    log_dirs: tuple[str, ...] = setting(names("log.dirs", "/tmp/quorumlog-logs", "Directories of the partitions."))
    log_dir: tuple[str, ...] | None = setting(maybe("log.dir", parse_list, "The older name of `log.dirs`."))
    relative_to: str = setting(
        word(
            RELATIVE_TO,
            TO_PROCESS,
            "Where relative paths of this file begin: process, at the working directory of the node's process, as in "
            "Kafka; file, at the folder of the file, so that it can be moved with its data. Not in Kafka.",
        )
    )
    cordoned: tuple[str, ...] = setting(
        names(
            "cordoned.log.dirs",
            "",
            "Those of `log.dirs`, or * for all, that get new partitions only where no other directory is online.",
        )
    )
    metadata_log_dir: str | None = setting(
        maybe("metadata.log.dir", text, "Directory of the metadata log; the first of `log.dirs` if not set.")
    )
