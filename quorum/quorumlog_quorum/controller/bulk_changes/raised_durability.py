"""Whose acknowledged records are on disk, where a topic's durability was raised from `replicated` to `synced`.

A record that was acknowledged under `replicated` may be in page caches alone, and a power cut takes it, whatever the
setting is when the broker comes back. So the raise is remembered: its end offset is a setting of a resource of its own
(RAISED_RESOURCE), by topic, or by CLUSTER_DEFAULT for all topics. A broker acts on partitions only once it has applied
its own registration. So a process that has registered behind the raise, as its broker epoch shows, has synced whatever
it has acknowledged. Of an earlier one an unclean end counts as under `replicated` (decision 84).

Brokers and older software ignore the resource.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.configs.topic import TopicConfig
from quorumlog.ids import Offset
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.controller.partitions.election import TopicRules, topic_rules
from quorumlog_quorum.metadata.image import (
    CLUSTER_DEFAULT,
    RAISED_END,
    RAISED_RESOURCE,
    TOPIC_RESOURCE,
    ConfigResource,
    Image,
)


def rules_of(draft: Draft, topic: str) -> TopicRules:
    """With the raise, which the settings themselves do not show."""
    raised_end = max(_raised_end(draft.image, one) for one in (topic, CLUSTER_DEFAULT))
    return topic_rules(draft.topic_config(topic), raised_end)


def is_raised(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """before, after: settings of a topic, or of all, with what they inherit."""
    return TopicConfig.from_map(after).synced and not TopicConfig.from_map(before).synced


def note_raised(draft: Draft, resource: ConfigResource) -> None:
    """Behind the records that have raised it, in the same slice."""
    _note(draft, resource[1] if resource[0] == TOPIC_RESOURCE else CLUSTER_DEFAULT, str(draft.next_offset))


def forget_raised(draft: Draft, topic: str) -> None:
    """The topic is about to be deleted: another one of its name has no past."""
    if (RAISED_RESOURCE, topic) in draft.image.configs:
        _note(draft, topic, None)


def _note(draft: Draft, topic: str, value: str | None) -> None:
    draft.add(ConfigRecord(resource_type=RAISED_RESOURCE, resource_name=topic, name=RAISED_END, value=value))


def _raised_end(image: Image, topic: str) -> Offset:
    """Exclusive end of the record that raised it last; 0: it never was."""
    values: Mapping[str, str] = image.configs.get((RAISED_RESOURCE, topic), {})
    return int(values.get(RAISED_END, "0"))
