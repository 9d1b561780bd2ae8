"""What the handlers of a broker's APIs use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.api.producer_ids import ProducerIds
from broker.api.recently_fenced import RecentlyFenced
from broker.api.suspected_leaders import SuspectedLeaders
from broker.fetch.fetch_path import FetchPath
from broker.fetch.offset_queries import OffsetQueries
from broker.fetch.session_cache import MAX_PARTITIONS_DEFAULT, SLOTS_DEFAULT
from broker.fetch.sessions import FetchSessions
from broker.lifecycle.controller_channel import ControllerChannel
from broker.produce.delete_records import DeletePath
from broker.produce.produce_path import ProducePath
from broker.replicas.directory_report import DirectoryReport
from quorum.metadata.image import Image
from quorum.subscription import MetadataSubscription
from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.cluster import DescribedConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerLimits:
    """Limits of one request. A longer wait or a larger response is cut to the limit; anything else is refused."""

    max_topics_per_request: int = 10_000
    max_wait_ms: int = 300_000
    max_fetch_bytes: int = 55 << 20  # fetch.max.bytes
    max_auto_created_topics: int = 100  # of one metadata request
    fetch_session_slots: int = SLOTS_DEFAULT  # max.incremental.fetch.session.cache.slots
    fetch_session_partitions: int = MAX_PARTITIONS_DEFAULT  # of all sessions together


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """client_listener: the listener whose addresses are given to a request that came on the internal listener.
    topic_defaults: what this broker's file sets for all topics, by the topics' key names.
    settings: this broker's own configuration, for DescribeConfigs.
    """

    node_id: NodeId
    cluster_id: str
    subscription: MetadataSubscription
    produce_path: ProducePath
    fetch_path: FetchPath
    delete_path: DeletePath
    offset_queries: OffsetQueries
    directory_report: DirectoryReport
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
    replication_listener: str = ""  # another internal listener; empty: none
    suspected_leaders: SuspectedLeaders = field(default_factory=SuspectedLeaders)
    recently_fenced: RecentlyFenced = field(default_factory=RecentlyFenced)

    def caught_up_image(self) -> Image:
        """The newest metadata. Raises ApiError(LEADER_NOT_AVAILABLE), which clients retry, before the first image."""
        image = self.subscription.image
        if image.offset <= 0:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"broker {self.node_id} is still reading the metadata log")
        return image
