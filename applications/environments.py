"""What an application needs: packages of Python in an environment of their own, or jars in a folder of their own.

Both are made once below a cache folder. `Unavailable` says what this machine lacks; then the application is skipped.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.peers.kafka_tools import (
    SLF4J_VERSION,
    VERSION,
    Kafka,
    Unavailable,
    alone,
    fetch_jars,
    get_kafka,
    maven_project,
)
from bench.peers.python_environment import is_complete, make_environment

__all__ = ["Unavailable", "get_jars", "get_python"]

CACHE = Path(__file__).resolve().parents[1] / "out" / "applications"


def get_python(cache: Path, name: str, requirements: Sequence[str]) -> Path:
    """The interpreter of an environment with these requirements. Raises Unavailable."""
    stamp = hashlib.sha256(repr((sys.version, *requirements)).encode()).hexdigest()[:12]
    folder = cache / f"{name}-{stamp}"
    cache.mkdir(parents=True, exist_ok=True)
    with alone(cache / "lock"):
        if not is_complete(folder):
            make_environment(folder, requirements, " ".join(requirements))
    return folder / "bin" / "python"


def get_jars(cache: Path, name: str, artifacts: Sequence[str]) -> Kafka:
    """A java with the jars of these artifacts of Kafka's release, and of all that they need. Raises Unavailable."""
    java = get_kafka(cache / "kafka").java
    jars = cache / f"{name}-{VERSION}"
    wanted = [("org.apache.kafka", artifact, VERSION) for artifact in artifacts]
    wanted.append(("org.slf4j", "slf4j-simple", SLF4J_VERSION))
    with alone(cache / "lock"):
        if not jars.is_dir():
            fetch_jars(cache, jars, maven_project(name, wanted), f"{', '.join(artifacts)} {VERSION}")
    return Kafka(java, jars)
