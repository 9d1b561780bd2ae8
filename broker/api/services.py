"""What the handlers of a broker's APIs have at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.api.producer_ids import ProducerIds
from broker.api.recently_fenced import RecentlyFenced
from broker.api.suspected_leaders import Doubts
from broker.fetch.session_cache import MAX_PARTITIONS_DEFAULT, SLOTS_DEFAULT
from broker.fetch.sessions import FetchSessions
from broker.lifecycle.controller_channel import ControllerChannel
from broker.replicas.manager import ReplicaManager
from quorum.metadata.image import Image
from quorum.subscription import MetadataSubscription
from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.cluster import DescribedConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerLimits:
    """What one request may ask for; more is refused, or cut where a wait or the size of an answer is meant."""

    max_topics_per_request: int = 10_000
    max_wait_ms: int = 300_000
    max_fetch_bytes: int = 55 << 20  # fetch.max.bytes
    max_auto_created_topics: int = 100  # of one metadata request
    fetch_session_slots: int = SLOTS_DEFAULT  # max.incremental.fetch.session.cache.slots
    fetch_session_partitions: int = MAX_PARTITIONS_DEFAULT  # of all sessions together


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """client_listener: by what name a broker's client endpoint is looked up when a request came by the internal one.
    topic_defaults: what this broker's file sets for all topics, by the topics' key names.
    settings: this broker's own configuration, as it is told to whoever asks.
    """

    node_id: NodeId
    cluster_id: str
    subscription: MetadataSubscription
    replicas: ReplicaManager
    controller: ControllerChannel
    clock: Clock
    fetch_sessions: FetchSessions
    producer_ids: ProducerIds
    auto_create_topics: bool
    client_listener: str
    internal_listener: str
    topic_defaults: Mapping[str, str]
    settings: tuple[DescribedConfig, ...]
    limits: HandlerLimits = field(default_factory=HandlerLimits)
    replication_listener: str = ""  # another internal one; none where empty
    doubts: Doubts = field(default_factory=Doubts)
    recently_fenced: RecentlyFenced = field(default_factory=RecentlyFenced)

    def caught_up_image(self) -> Image:
        """The metadata as it is; before its first publication a client is told to come again."""
        image = self.subscription.image
        if image.offset <= 0:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"broker {self.node_id} is still reading the metadata log")
        return image
