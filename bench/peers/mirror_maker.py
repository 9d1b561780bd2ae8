"""MirrorMaker 2 for a comparison: Kafka's connect-mirror-maker, from Maven, between two clusters of one node each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.peers.kafka_tools import (
    FOLDER,
    QUIET,
    SLF4J_VERSION,
    VERSION,
    Kafka,
    alone,
    fetch_jars,
    get_kafka,
    maven_project,
    properties_text,
)

MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
INTERNAL = (
    "checkpoints.topic", "heartbeats.topic", "offset-syncs.topic", "offset.storage", "status.storage", "config.storage",
)  # fmt: skip


def get_mirror_maker(folder: Path = FOLDER) -> Kafka:
    """Its jars in `folder`, downloaded if they are not there yet. Raises Unavailable."""
    java = get_kafka(folder).java
    jars = _jars(folder)
    with alone(folder / "lock"):
        if not jars.is_dir():
            wanted = [
                ("org.apache.kafka", "connect-mirror", VERSION),
                ("org.apache.kafka", "connect-runtime", VERSION),
                ("org.slf4j", "slf4j-simple", SLF4J_VERSION),
            ]
            fetch_jars(folder, jars, maven_project("mirror-peer", wanted), f"MirrorMaker 2 {VERSION}")
    return Kafka(java, jars)


def is_downloaded(folder: Path = FOLDER) -> bool:
    """Whether `get_mirror_maker` would download nothing."""
    return (folder / f"jars-{VERSION}").is_dir() and _jars(folder).is_dir()


def _jars(folder: Path) -> Path:
    return folder / f"mirror-maker-{VERSION}"


def command(maker: Kafka, properties: Path) -> list[str]:
    return maker.command(MAIN, [str(properties)], ("-Xms256M", "-Xmx2G", *QUIET))  # the heap of its own script


def properties(
    source: tuple[str, str], target: tuple[str, str], topic: str, *, exactly_once: bool
) -> Mapping[str, object]:
    """source, target: alias and addresses. As it comes, but for one replica of each topic, because each side has one
    node; the file that comes with it says so, too. Nothing flows back."""
    (one, from_), (other, to) = source, target
    found: dict[str, object] = {
        "clusters": f"{one}, {other}",
        f"{one}.bootstrap.servers": from_,
        f"{other}.bootstrap.servers": to,
        f"{one}->{other}.enabled": "true",
        f"{one}->{other}.topics": topic,
        f"{other}->{one}.enabled": "false",
        "replication.factor": 1,
        **{f"{name}.replication.factor": 1 for name in INTERNAL},
    }
    if exactly_once:
        found |= {
            f"{other}.exactly.once.source.support": "enabled",
            "dedicated.mode.enable.internal.rest": "true",
            "listeners": "http://127.0.0.1:0",
        }
    return found


def write_properties(file: Path, values: Mapping[str, object]) -> Path:
    file.write_text(properties_text(values))
    return file
