"""An import of real processes that is killed, with its brokers and its controller, and run again."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from quorumlog.ids import NO_NODE
from quorumlog.records import Record, encode_batch
from quorumlog.testing.cluster import LocalCluster
from quorumlog.testing.topic import LocalTopic
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.foreign.export import Export
from tests.formats.test_import import CONFIG, run
from tests.rules import rule

BATCHES, RECORDS = 400, 64  # of each batch
VALUE = b"v" * 1_500
RUN_S = 180.0
TOPIC = "big"
SHARE = re.compile(r"(\d+)%")


def make_source(folder: Path) -> Path:
    """A partition of about 40 MB, in several segments and epochs."""
    folder.mkdir()
    export = Export(RealDisk(), str(folder), (TOPIC, 0), b"i" * 16, segment_bytes=4 << 20, interval_bytes=4096)
    for number in range(BATCHES):
        base = number * RECORDS
        records = [Record(base + n, 1_700_000_000_000 + base + n, b"%d" % (base + n), VALUE) for n in range(RECORDS)]
        export.take(encode_batch(records, base_offset=base, leader_epoch=number // 100), 0)
    export.finish(0, BATCHES * RECORDS)
    return folder / f"{TOPIC}-0"


class RunningImport:
    def __init__(self, cluster: LocalCluster, source: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "quorumlog_cli.main",
            "log",
            "import",
            str(source),
            "-b",
            cluster.bootstrap_servers,
        ]
        self.process = subprocess.Popen(
            [*command, "-o", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def wait_for(self, percent: int) -> None:
        """Until so much is copied. Fails if the import ends before."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            shown = SHARE.search(line)
            if shown is not None and int(shown[1]) >= percent:
                return
        raise AssertionError(f"the import ended before {percent} %")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def leader_of(cluster: LocalCluster) -> int:
    (partition,) = cluster.client.admin.describe_topic(TOPIC).partitions
    return partition.leader_id


@rule("storage 10.14")
def test_an_import_goes_on_after_every_crash(tmp_path: Path) -> None:
    source = make_source(tmp_path / "source")
    with LocalCluster(tmp_path / "cluster", config=CONFIG) as cluster:
        first = RunningImport(cluster, source)
        first.wait_for(20)
        first.kill()
        assert leader_of(cluster) == NO_NODE

        second = RunningImport(cluster, source)
        second.wait_for(10)
        controller = cluster.client.admin.describe_quorum().leader_id
        cluster.kill(controller)
        second.kill()
        cluster.restart(controller)
        assert leader_of(cluster) == NO_NODE

        third = RunningImport(cluster, source)
        broker = next(node for node in (1, 2, 3) if node != controller)
        cluster.kill(broker)
        cluster.restart(broker)
        output, errors = third.process.communicate(timeout=RUN_S)
        assert third.process.returncode == 0, errors
        said = json.loads(output)
        assert said["resumed"]
        assert [row["end_offset"] for row in said["partitions"]] == [BATCHES * RECORDS]

        cluster.wait_in_sync(TOPIC)
        read = read_keys(cluster)
        assert read == [b"%d" % number for number in range(BATCHES * RECORDS)]
        refused = run("log", "import", source, servers=cluster.bootstrap_servers, code=6)
        assert "exists" in refused.stderr


def test_an_import_of_something_else_into_the_same_topic_is_refused(tmp_path: Path) -> None:
    source = make_source(tmp_path / "source")
    other = make_source(tmp_path / "other")
    segment = sorted(other.glob("*.log"))[0]
    records = [Record(n, 1, None, b"another") for n in range(RECORDS)]
    segment.write_bytes(
        b"".join(
            encode_batch(
                [Record(base + n, 1, None, b"another") for n in range(RECORDS)], base_offset=base, leader_epoch=0
            )
            for base in range(0, int(sorted(other.glob("*.log"))[1].stem), len(records))
        )
    )
    with LocalCluster(tmp_path / "cluster", config=CONFIG) as cluster:
        begun = RunningImport(cluster, source)
        begun.wait_for(0)
        begun.kill()
        refused = run("log", "import", other, servers=cluster.bootstrap_servers, code=6)
        assert "something else" in refused.stderr and leader_of(cluster) == NO_NODE
        run("topic", "delete", TOPIC, servers=cluster.bootstrap_servers)
        run("log", "import", other, servers=cluster.bootstrap_servers)


def read_keys(cluster: LocalCluster) -> list[bytes | None]:
    return [record.key for record in LocalTopic(cluster.client, TOPIC).records()]
