"""The cleaner's settings, changed while brokers run."""

from __future__ import annotations

import pytest
from replica_cluster import ReplicaCluster
from test_manager import compacted, fill, records

from quorumlog.configs.cleaner import CLEANER_SETTINGS, check_change
from quorumlog.errors import ApiError
from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog.settings.cleaner import CleanerConfig
from quorumlog_quorum.metadata.image import BROKER_RESOURCE
from quorumlog_server.config.keys import NODE_KEYS
from tests.rules import rule

THREADS, BACKOFF, RATE = "log.cleaner.threads", "log.cleaner.backoff.ms", "log.cleaner.io.max.bytes.per.second"


def change(cluster: ReplicaCluster, name: str, value: str | None, broker: str = "") -> None:
    cluster.commit(ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=broker, name=name, value=value))
    cluster.run_for(100)


def config(cluster: ReplicaCluster, node: int = 1) -> CleanerConfig:
    return cluster.nodes[node].data_plane.cleaner.config.now


def test_names_defaults_and_ranges_are_those_of_the_file() -> None:
    for name, key in CLEANER_SETTINGS.items():
        in_file = NODE_KEYS[name]
        assert in_file.default is not None and float(in_file.default) == float(key.default)
        assert (in_file.minimum, in_file.doc) == (key.minimum, key.doc)


def test_a_broker_s_own_setting_goes_before_that_of_all_and_the_file_is_what_is_left() -> None:
    cluster = compacted(backoff_ms=200)
    change(cluster, BACKOFF, "300")
    change(cluster, BACKOFF, "400", broker="2")
    assert [config(cluster, node).backoff_ms for node in (1, 2, 3)] == [300, 400, 300]
    change(cluster, BACKOFF, None)
    assert [config(cluster, node).backoff_ms for node in (1, 2, 3)] == [200, 400, 200]


def test_what_a_newer_controller_allows_is_ignored() -> None:
    cluster = compacted()
    change(cluster, RATE, "as fast as it gets")
    change(cluster, THREADS, "2")
    assert config(cluster) == CleanerConfig(backoff_ms=200, threads=2)


@rule("storage 9.22")
def test_loops_begin_and_end_with_the_threads() -> None:
    cluster = compacted(threads=0)
    fill(cluster)
    cluster.run_for(5_000)
    assert len(records(cluster.nodes[1].log())) == 80, "nothing is compacted without a thread"
    change(cluster, THREADS, "2", broker="1")
    cluster.run_for(5_000)
    left = len(records(cluster.nodes[1].log()))
    assert left < 40 and len(records(cluster.nodes[2].log())) == 80
    change(cluster, THREADS, "0", broker="1")
    cluster.run_for(1_000)
    fill(cluster, first=40)
    cluster.run_for(5_000)
    assert len(records(cluster.nodes[1].log())) == left + 80
    change(cluster, THREADS, "1", broker="1")
    cluster.run_for(5_000)
    assert len(records(cluster.nodes[1].log())) < left + 40


@rule("storage 9.22")
def test_a_round_that_is_throttled_goes_on_at_the_new_rate_at_once() -> None:
    cluster = compacted(bytes_per_s=1.0)
    fill(cluster)
    cluster.run_for(20_000)
    assert cluster.nodes[1].data_plane.cleaner.totals.rounds == 0
    change(cluster, RATE, "1E9")
    cluster.run_for(70_000)  # the pause of the step before is over
    assert cluster.nodes[1].data_plane.cleaner.totals.rounds > 0


def test_a_longer_pause_ends_when_it_becomes_shorter() -> None:
    cluster = compacted(backoff_ms=10_000_000)
    cluster.run_for(1_000)
    fill(cluster)
    cluster.run_for(5_000)
    assert cluster.nodes[1].data_plane.cleaner.totals.rounds == 0
    change(cluster, BACKOFF, "100")
    cluster.run_for(2_000)
    assert cluster.nodes[1].data_plane.cleaner.totals.rounds > 0


@rule("storage 9.22")
@pytest.mark.parametrize(
    ("old", "new", "buffer", "is_allowed"),
    [
        (1, 2, 128 << 20, True),
        (1, 3, 128 << 20, False),
        (4, 2, 128 << 20, True),
        (4, 1, 128 << 20, False),
        (4, 4, 128 << 20, True),
        (3, 1, 128 << 20, True),
        (1, 0, 128 << 20, False),
        (0, 1, 128 << 20, False),
        (1, 2, 1 << 20, False),
    ],
)
def test_steps(old: int, new: int, buffer: int, is_allowed: bool) -> None:
    try:
        check_change(old, new, buffer)
    except ApiError:
        assert not is_allowed
    else:
        assert is_allowed


@pytest.mark.parametrize(
    ("broker", "value", "is_refused"),
    [("", "2", False), ("1", "2", False), ("", "9", True), ("1", "9", True), ("2", "9", False), ("", None, False)],
)
def test_a_change_is_compared_with_what_is_in_force_here(broker: str, value: str | None, is_refused: bool) -> None:
    """Broker 2 is asked itself."""
    live = compacted().nodes[1].data_plane.cleaner.config
    configs = (AlterableConfig(name=THREADS, operation=0 if value else 1, value=value),)
    asked = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name=broker, configs=configs)
    if is_refused:
        with pytest.raises(ApiError, match="between 1 and 2"):
            live.check(asked)
    else:
        live.check(asked)
