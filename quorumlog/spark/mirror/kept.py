"""The mirror's own file, beside Spark's checkpoint: which clusters and topics it mirrors, by their ids. Pure.

Spark's checkpoint has the source's ids only, and names, not ids, of what is written. So a target that was made anew,
and is empty, would get the rest of the records and never the first ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from quorumlog.client.errors import ConfigError, QuorumlogError

VERSION = 1


class SideMadeAnew(QuorumlogError):
    """A cluster or topic is not the one that the mirror began with. kept, found: ids; found "": it is gone."""

    def __init__(self, what: str, kept: str, found: str) -> None:
        now = f"now it is {found}: it was made anew" if found else "it is not there any more"
        super().__init__(
            f"{what} was {kept} when this mirror began, and {now}. Nothing was written. To go on, name an empty "
            "--checkpoint: the mirror then begins behind the last copy that the target has of each topic, and copies "
            "from the beginning what has none"
        )
        self.kept, self.found = kept, found


@dataclass(frozen=True, slots=True)
class KeptTopic:
    """source_id, target_id: as texts show them. to: its name on the target."""

    source_id: str
    to: str
    target_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """source, target: cluster ids. source_alias: which topics' names on the target have it. salt: drawn once, so that a
    later mirror of this name is another writer. start: JSON of where the query begins; "": at the earliest."""

    source: str
    target: str
    source_alias: str
    names: str
    salt: str
    start: str = ""
    topics: Mapping[str, KeptTopic] = field(default_factory=dict)
    before: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # ends of homes, before the last batch


def kept_text(kept: Kept) -> str:
    topics = {name: [one.source_id, one.to, one.target_id] for name, one in sorted(kept.topics.items())}
    told = {
        "v": VERSION, "source": kept.source, "target": kept.target, "alias": kept.source_alias, "names": kept.names,
        "salt": kept.salt, "start": kept.start, "topics": topics, "before": kept.before,
    }  # fmt: skip
    return json.dumps(told, indent=1) + "\n"


def read_kept(text: str) -> Kept:
    """Raises ConfigError."""
    try:
        told: dict[str, Any] = json.loads(text)
        if told["v"] != VERSION:
            raise ConfigError(
                f"the mirror's file in the checkpoint has version {told['v']}, and this quorumlog knows {VERSION}: "
                "mirror with the quorumlog that wrote it, or with a newer one"
            )
        return Kept(
            source=told["source"], target=told["target"], source_alias=told["alias"], names=told["names"],
            salt=told["salt"], start=told["start"],
            topics={str(name): KeptTopic(*one) for name, one in told["topics"].items()}, before=told["before"],
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"the mirror's file in the checkpoint is damaged ({error}): name an empty --checkpoint"
        ) from error


def check_sides(kept: Kept, source: str, target: str, source_alias: str, names: str) -> None:
    """Raises SideMadeAnew; ConfigError if the mirror would give other names than before."""
    if kept.source != source:
        raise SideMadeAnew("the source's cluster", kept.source, source)
    if kept.target != target:
        raise SideMadeAnew("the target's cluster", kept.target, target)
    if (kept.source_alias, kept.names) != (source_alias, names):
        raise ConfigError(
            f"the checkpoint is of a mirror from {kept.source_alias!r} with --names {kept.names}, and this one is from "
            f"{source_alias!r} with --names {names}: its topics would have other names; say what it was, or name an "
            "empty --checkpoint"
        )


def with_topics(kept: Kept, found: Mapping[str, KeptTopic]) -> Kept:
    """found: what is mirrored now. Raises SideMadeAnew. A topic that has left the source is kept: who makes it again
    makes another one."""
    check_topics(kept, found)
    return replace(kept, topics={**kept.topics, **found})


def check_topics(kept: Kept, found: Mapping[str, KeptTopic]) -> None:
    """found: as they are now. Raises SideMadeAnew."""
    for name, now in found.items():
        before = kept.topics.get(name)
        if before is None:
            continue
        if before.source_id != now.source_id:
            raise SideMadeAnew(f"topic {name!r} of the source", before.source_id, now.source_id)
        if before.target_id != now.target_id:
            raise SideMadeAnew(f"topic {now.to!r} of the target", before.target_id, now.target_id)
