"""Writes docs/settings.md from the settings' declarations: `python proto/generate_settings.py [--check]`.

The keys stand in the order in which DescribeConfigs answers. What Kafka does not have is marked.
--check exits with 1 if the page is stale.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "settings.md"
OF_KAFKA = ROOT / "tests" / "server" / "kafka_broker_keys.tsv"  # what the configuration of Kafka 4.3.1 defines
OF_KAFKAS_AUTHORIZER = {"super.users", "allow.everyone.if.no.acl.found"}  # which reads them itself
OF_LISTENER = ("listener.name.NAME.max.connections", "listener.name.NAME.max.connection.creation.rate")
HEAD = """\
# Settings of a node

Written by `./dev proto` from what the parts of a node say of their settings; [configuration.md](configuration.md)
explains files and listeners. Limits are inclusive. What is changed "while it runs" can also be set by
`quorumlog config set`, for one broker or for all. Sizes may be written as 1MiB or 1 GB.

## In force
"""
TOPICS = """
## Defaults of topics

What a broker's file sets here counts for topics that do not say it themselves.
"""
KAFKAS = """
## Keys of Kafka without effect

A file may have them. Those without effect are accepted with a warning, those that would deceive are refused.
"""


def page() -> str:
    """The page's text, made anew."""
    return "".join([HEAD, *_in_force(), TOPICS, *_of_topics(), KAFKAS, *_of_kafka()])


def _in_force() -> Iterable[str]:
    from quorumlog.configs.broker import CHANGEABLE
    from quorumlog.settings.key import type_of
    from quorumlog.settings.types import NAMES
    from quorumlog_server.config.keys import NODE_KEYS

    kafkas = {line.split("\t")[0] for line in OF_KAFKA.read_text().splitlines()} | OF_KAFKAS_AUTHORIZER
    rows = []
    for name, key in NODE_KEYS.items():
        changed = "while it runs" if name in CHANGEABLE else ""
        default = "" if key.default is None else _code(key.default)
        limits = _limits(key.minimum, key.maximum)
        in_kafka = "" if name in kafkas else "no"
        text = key.doc.removesuffix(" Not in Kafka.")
        rows.append((_code(name), in_kafka, default, NAMES[type_of(key)], limits, changed, text))
    for name in OF_LISTENER:
        one = CHANGEABLE[name.lower()]
        limits = _limits(one.minimum, one.maximum)
        rows.append((_code(name), "", _code(one.default), "int", limits, "while it runs", one.doc))
    return _table(("key", "in Kafka", "default", "type", "limits", "changed", "what it says"), rows)


def _of_topics() -> Iterable[str]:
    from quorumlog.configs.broker import TOPIC_SYNONYMS
    from quorumlog.configs.topic import TOPIC_CONFIGS
    from quorumlog_server.config.keys import COARSER

    rows = [
        (_code(key), _code(topic), _code(TOPIC_CONFIGS[topic].default), TOPIC_CONFIGS[topic].doc)
        for key, topic in sorted(TOPIC_SYNONYMS.items())
    ]
    rows += [(_code(key), _code(topic), "", "The same in a coarser unit.") for key, (topic, _) in COARSER.items()]
    return _table(("key", "setting of a topic", "default", "what it says"), rows)


def _of_kafka() -> Iterable[str]:
    from quorumlog_server.config.foreign_keys import IDLE, ONLY, PREFIXES

    found = {**IDLE, **ONLY, **{f"{prefix}*": one for prefix, one in PREFIXES.items()}}
    rows = [(_code(name), f"{one.effect}. {one.reason}") for name, one in sorted(found.items())]
    return _table(("key", "here"), rows)


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [titles, ["---"] * len(titles), *rows]
    return ["\n", *(f"| {' | '.join(line)} |\n" for line in lines)]


def _limits(minimum: float | None, maximum: float | None) -> str:
    low, high = (None if limit is None else f"{limit:,}" for limit in (minimum, maximum))
    if high is None:
        return "" if low is None else f"{low} or more"
    return f"up to {high}" if low is None else f"{low} to {high}"


def _code(text: str) -> str:
    return f"`{text}`" if text else "empty"


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description="Writes docs/settings.md.")
    parser.add_argument("--check", action="store_true", help="only compare")
    fresh = page()
    if parser.parse_args(arguments).check:
        stale = not PAGE.exists() or PAGE.read_text() != fresh
        if stale:
            print(f"stale: {PAGE.relative_to(ROOT)}; run ./dev proto")
        return int(stale)
    PAGE.write_text(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main())
