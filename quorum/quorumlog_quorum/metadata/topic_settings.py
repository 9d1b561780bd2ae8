"""Settings as DescribeConfigs shows them: each value, its source, and its synonyms in the other layers.

The first of these layers that has the key decides: the topic, this broker, all brokers (these two can be changed while
they run), the broker's file, the default. What leaders and the controller decide by (DECIDED_TOGETHER) is in the first
and the third alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from quorumlog.configs.broker import BROKER_CONFIGS, BROKER_NAMES, CHANGEABLE, DECIDED_TOGETHER, of_one_broker
from quorumlog.configs.group import GROUP_SETTINGS
from quorumlog.configs.live import IDLE, key_of_listener
from quorumlog.configs.throttle import NOT_IN_A_FILE
from quorumlog.configs.topic import TOPIC_CONFIGS
from quorumlog.ids import NodeId
from quorumlog.messages.cluster import ConfigSynonym, DescribedConfig
from quorumlog.settings.config_key import ConfigKey, Kind
from quorumlog.settings.types import BOOLEAN, DOUBLE, LIST, STRING, TOLD, number_type
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, GROUP_RESOURCE, TOPIC_RESOURCE, Image

SET_ON_TOPIC, SET_ON_BROKER, SET_ON_ALL_BROKERS, SET_IN_FILE, DEFAULT = 1, 2, 3, 4, 5  # Kafka's numbers of sources
SET_ON_GROUP = 8
BELOW = (SET_ON_BROKER, SET_ON_ALL_BROKERS, SET_IN_FILE, DEFAULT)  # what belongs to no single topic or group


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """The layers from which a broker takes settings. file: the broker's file, by the names of topic settings."""

    image: Image
    node_id: NodeId | None = None  # None: without the layer of one broker, as on a controller
    file: Mapping[str, str]

    def of_topic(self, name: str, only: Collection[str] = ()) -> Iterator[DescribedConfig]:
        """Every setting of a topic, by name. only: none but these; empty: all."""
        layers = [(SET_ON_TOPIC, self.image.configs.get((TOPIC_RESOURCE, name), {})), *self._below()]
        for key in TOPIC_CONFIGS.values():
            if not only or key.name in only:
                yield _described(key, key.name, layers)

    def of_broker(self) -> Iterator[DescribedConfig]:
        """The settings for topics that a broker can change while it runs, by their names as broker settings."""
        for name in sorted(BROKER_NAMES.values()):
            yield _described(TOPIC_CONFIGS[_TOPIC_NAMES[name]], name, self._below())

    def of_throttles(self) -> Iterator[DescribedConfig]:
        """The rates of replication, which no file has: nothing else shows that one was left behind."""
        for name, key in NOT_IN_A_FILE.items():
            yield _described(key, name, self._below())

    def of_idle(self) -> Iterator[DescribedConfig]:
        """What was set and has no effect, so that nobody takes it for lost."""
        layers = self._below()
        for name, key in IDLE.items():
            if any(name in values for _, values in layers):
                yield _described(key, name, layers)

    def of_listeners(self, in_file: Collection[str]) -> Iterator[DescribedConfig]:
        """The maxima of listeners that were set while the broker runs. in_file: names that its file has, too."""
        layers = self._below()
        names = {name for _, values in layers for name in values if name not in in_file}
        for name in sorted(names):
            key = key_of_listener(name)
            if key is not None:
                yield _described(key, name, layers)

    def own(self, in_file: DescribedConfig) -> DescribedConfig:
        """A setting of the broker itself. in_file: as its file has it. What can be changed while it runs is layered."""
        name = in_file.name
        if name not in CHANGEABLE:
            return in_file
        changed = [(source, values[name]) for source, values in self._below() if name in values]
        synonyms = (
            *(ConfigSynonym(name=name, value=value, source=source) for source, value in changed),
            *in_file.synonyms,
        )
        source, value = (synonyms[0].source, synonyms[0].value) if synonyms else (in_file.source, in_file.value)
        return replace(in_file, value=value, source=source, synonyms=synonyms, read_only=False)

    def _below(self) -> list[tuple[int, Mapping[str, str]]]:
        configs = self.image.configs
        own: Mapping[str, str] = {}
        if self.node_id is not None:
            own = configs.get((BROKER_RESOURCE, str(self.node_id)), {})
        return [
            (SET_ON_BROKER, of_one_broker(own)),
            (SET_ON_ALL_BROKERS, configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {})),
            (SET_IN_FILE, of_one_broker(self.file)),
        ]


IGNORED = "node %d: %s=%s in its file has no effect: the cluster has %s (change it with: quorumlog config set)"


def ignored(image: Image, file: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """What a file says otherwise than the metadata, which alone counts: the key, its value there, that in force."""
    values: Mapping[str, str] = image.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {})
    for name in sorted(DECIDED_TOGETHER & file.keys()):
        in_force = values.get(name, TOPIC_CONFIGS[name].default)
        if file[name] != in_force:
            yield BROKER_NAMES[name], file[name], in_force


def of_all_brokers(image: Image) -> Iterator[DescribedConfig]:
    """The settings that were made for all brokers while they run, without defaults."""
    values: Mapping[str, str] = image.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {})
    for stored in sorted(values):
        key = BROKER_CONFIGS.get(stored)
        if key is not None:
            yield _described(key, BROKER_NAMES.get(stored, stored), [(SET_ON_ALL_BROKERS, values)])


def of_group(image: Image, name: str, file: Mapping[str, str]) -> Iterator[DescribedConfig]:
    """Every setting of a group. file: what the broker's file says of all groups, by the same names."""
    own: Mapping[str, str] = image.configs.get((GROUP_RESOURCE, name), {})
    for key in GROUP_SETTINGS.values():
        set_in_file = {key.name: file[key.name]} if file[key.name] != key.default else {}
        yield _described(key, key.name, [(SET_ON_GROUP, own), (SET_IN_FILE, set_in_file)], f"group.{key.name}")


_TOPIC_NAMES = {name: topic_name for topic_name, name in BROKER_NAMES.items()}


def _described(
    key: ConfigKey, name: str, layers: list[tuple[int, Mapping[str, str]]], below: str = ""
) -> DescribedConfig:
    """below: its name in the layers of brokers, where it is not that of a topic's setting."""
    found = [(source, values[key.name]) for source, values in layers if key.name in values]
    synonyms = [*found, (DEFAULT, key.default)]
    source, value = synonyms[0]
    below = below or BROKER_NAMES.get(key.name, key.name)
    return DescribedConfig(
        name=name,
        value=value,
        source=source,
        documentation=key.doc,
        config_type=TOLD.get(name) or _type(key),
        synonyms=tuple(
            ConfigSynonym(name=below if source in BELOW else key.name, value=value, source=source)
            for source, value in synonyms
        ),
    )


def _type(key: ConfigKey) -> int:
    match key.kind:
        case Kind.WHOLE:
            return number_type(key.maximum)
        case Kind.FRACTION:
            return DOUBLE
        case Kind.BOOLEAN:
            return BOOLEAN
        case Kind.CHOICE:
            return STRING
        case Kind.CHOICES | Kind.LIST:
            return LIST
