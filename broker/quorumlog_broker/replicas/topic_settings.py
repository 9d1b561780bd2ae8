"""The settings of a topic's replicas on this broker, and how a change reaches a log that is in use."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from operator import attrgetter

from quorumlog.configs.broker import DECIDED_TOGETHER, of_one_broker
from quorumlog.configs.topic import TopicConfig
from quorumlog.ids import NodeId
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, Lane
from quorumlog_broker.partition.events import MinIsrChanged, SettingsChanged
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica, Step, log_config
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from quorumlog_quorum.metadata.topic_settings import IGNORED, ignored

_log = logging.getLogger("quorumlog.broker")

RETRY_MS = 1_000

# What a replica's log (`log_config`) and its core (`SettingsChanged`) are told of the settings.
_TOLD = attrgetter(
    "segment_bytes",
    "segment_ms",
    "segment_jitter_ms",
    "segment_index_bytes",
    "index_interval_bytes",
    "preallocate",
    "durability",
    "flush_messages",
    "flush_ms",
    "file_delete_delay_ms",
    "cleanup_policy",
    "max_compaction_lag_ms",
)


class TopicSettings:
    """advance: reports a log's ends to the replica's core and to waiting requests.

    defaults: set for all topics by this broker's file.
    """

    def __init__(
        self,
        node_id: NodeId,
        registry: Registry,
        step: Step,
        advance: Callable[[Replica], None],
        defaults: Mapping[str, str],
    ) -> None:
        self._node_id = node_id
        self._registry = registry
        self._step = step
        self._advance = advance
        self._defaults = of_one_broker(defaults)
        self._file = {name: value for name, value in defaults.items() if name in DECIDED_TOGETHER}
        self._told: dict[str, str] = {}  # of all brokers, that are not what the file says

    def of(self, topic: str) -> TopicConfig:
        """By the newest image, the first that is set: the topic's, this broker's, all brokers', the file's.

        What leaders and the controller decide by is the topic's or all brokers' (DECIDED_TOGETHER).
        """
        image = self._registry.image
        own = of_one_broker(image.configs.get((BROKER_RESOURCE, str(self._node_id)), {}))
        on_topic: Mapping[str, str] = image.configs.get((TOPIC_RESOURCE, topic), {})
        return TopicConfig.from_map({**image.topic_config(topic), **own, **on_topic}, self._defaults)

    def tell_ignored(self) -> None:
        """Warn of what the file says otherwise than the metadata, once for each value there.

        Not before the cluster knows this broker: until then the first controller may yet write what its file says.
        """
        if self._node_id not in self._registry.image.brokers:
            return
        for name, value, in_force in ignored(self._registry.image, self._file):
            if self._told.get(name) != in_force:
                self._told[name] = in_force
                _log.warning(IGNORED, self._node_id, name, value, in_force)

    def minimum_raised(self, topic: str) -> None:
        """Before the partitions of the same image: a leader that learns of a smaller ISR knows the minimum already.

        No log has a part in it, so no disk is waited for.
        """
        min_isr = self.of(topic).min_insync_replicas
        for replica in self._replicas_of(topic):
            if replica.core.min_isr < min_isr:
                self._step(replica, MinIsrChanged(min_isr))

    def changed(self, topic: str) -> None:
        """After the partitions of the same image. The core gets the settings of its log after the log has them, and is
        synced if they require it.

        Most settings concern neither: they are read from `replica.config` when they are needed.
        """
        config = self.of(topic)
        for replica in self._replicas_of(topic):
            if replica.core.min_isr != config.min_insync_replicas:
                self._step(replica, MinIsrChanged(config.min_insync_replicas))
            if replica.config == config:
                continue
            before, replica.config = replica.config, config
            if replica.queue is not None and _TOLD(before) != _TOLD(config):
                self._tell_log(replica, replica.queue, config)

    def _replicas_of(self, topic: str) -> list[Replica]:
        found = self._registry.image.topic(topic)
        assert found is not None, f"settings of {topic}, which does not exist"
        replicas = self._registry.replicas
        return [replicas[found.id, index] for index in sorted(found.partitions) if (found.id, index) in replicas]

    def _tell_again(self, replica: Replica) -> None:
        if replica.queue is not None and self._registry.replicas.get(replica.key) is replica:
            self._tell_log(replica, replica.queue, replica.config)

    def _tell_log(self, replica: Replica, queue: DirectoryQueue, config: TopicConfig) -> None:
        if replica.exchange is not None:
            replica.exchange.waiting.append(partial(self._tell_again, replica))
            return

        def change() -> None:
            if replica.partition_log is not None:
                replica.partition_log.configure(log_config(config))

        changing = queue.run(change, Lane.BACKGROUND)
        queue.start(self._log_told(replica, config, changing), f"settings of {replica.name}")

    async def _log_told(self, replica: Replica, config: TopicConfig, changing: Awaitable[None]) -> None:
        try:
            await changing
        except Busy:  # too many files are open to sync the log; newer settings tell it themselves
            await asyncio.sleep(RETRY_MS / 1000)
            if _TOLD(replica.config) == _TOLD(config):
                self._tell_again(replica)
        except Exception:
            return  # told by the queue; a log that is opened again has the settings of then
        else:
            if replica.log is not None:
                self._advance(replica)
            self._step(replica, SettingsChanged(durable=config.synced, flush_messages=config.flush_messages))
