"""`table=metadata.records` from files: a row for each record of the metadata log, and nothing secret in it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.errors import ConfigError
from quorumlog.messages.metadata_records import TopicRecord, UserScramCredentialRecord
from quorumlog.records import Record, encode_batch, headers
from quorumlog.records.control import LeaderChange, control_batch
from quorumlog.spark.format.source import DefaultSource
from quorumlog.spark.read.files import UnreadableLog
from quorumlog.spark.read.options import parse_table_options
from quorumlog_quorum.metadata.frame import encode_record
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.batch import stamped_batches
from quorumlog_storage.segment.log_config import LogConfig
from tests.formats.kafka_directory import unpack_kafka

LEVEL = 6  # of metadata.version
FIRST_MS = 1_700_000_000_000
SECRET = UserScramCredentialRecord(
    name="alice", mechanism=1, salt=b"salt", stored_key=b"stored", server_key=b"server", iterations=4096
)
RECORDS = [TopicRecord(name="orders", topic_id=b"i" * 16), SECRET]


def rows(path: Path | str, **given: str) -> list[dict[str, Any]]:
    source = DefaultSource({"readfrom": "files", "path": str(path), "table": "metadata.records", **given})
    reader = source.reader(source.schema())
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A log directory, with a leader's first record and two of metadata, in three segments."""
    folder = tmp_path / "logs"
    folder.mkdir()
    log = Log.open(RealDisk(), str(folder / "__cluster_metadata-0"), LogConfig(segment_bytes=256))
    leader = control_batch([LeaderChange(1, (1, 2), (2,))], base_offset=0, timestamp_ms=FIRST_MS)
    values = [encode_record(record, LEVEL) for record in RECORDS]
    made = [encode_batch([Record(0, FIRST_MS + n, None, value, ())]) for n, value in enumerate(values, 1)]
    for data in (leader, *made):
        log.append(stamped_batches(data, headers(data), log.end_offset, 4))
        log.roll()
    log.close()
    return folder


def test_rows_are_the_records_with_types_and_versions(logs: Path) -> None:
    leader, topic, secret = rows(logs)
    assert (leader["offset"], leader["epoch"], leader["type"], leader["version"]) == (0, 4, "LeaderChange", None)
    assert json.loads(leader["record"]) == {"leader_id": 1, "voters": [1, 2], "granting_voters": [2]}
    assert (topic["offset"], topic["type"], topic["version"]) == (1, "TopicRecord", 0)
    assert json.loads(topic["record"]) == {"name": "orders", "topic_id": "aWlpaWlpaWlpaWlpaWlpaQ"}
    assert topic["timestamp"].timestamp() * 1000 == FIRST_MS + 1
    told = json.loads(secret["record"])
    assert told["name"] == "alice" and {told[name] for name in ("salt", "stored_key", "server_key")} == {"(hidden)"}


def test_of_kafkas_records_types_and_versions_are_told(tmp_path: Path) -> None:
    found = rows(unpack_kafka(tmp_path))
    types = {row["type"] for row in found}
    assert {"LeaderChange", "TopicRecord", "PartitionRecord", "FeatureLevelRecord", "ProducerIdsRecord"} <= types
    assert all((row["record"] is None) == (row["version"] is not None) for row in found)
    assert [row["offset"] for row in found] == sorted({row["offset"] for row in found})


def test_a_directory_without_a_metadata_log_is_told(logs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "orders-0").mkdir(parents=True)
    assert len(rows(f"{other},{logs}")) == 3
    with pytest.raises(ConfigError, match=r"none has __cluster_metadata-0; give one directory.*metadata\.log\.dir"):
        rows(other)
    shutil.copytree(logs, tmp_path / "copy")
    with pytest.raises(ConfigError, match=r"logs and .*copy has __cluster_metadata-0"):
        rows(f"{logs},{tmp_path / 'copy'}")


def test_damage_is_told_with_its_place(logs: Path) -> None:
    segment = sorted((logs / "__cluster_metadata-0").glob("*.log"))[1]
    segment.write_bytes(segment.read_bytes()[:-1] + b"?")
    with pytest.raises(UnreadableLog, match=f"{segment} at byte 0: checksum") as told:
        rows(logs)
    names_no_option_that_is_not_there(told)


def names_no_option_that_is_not_there(told: pytest.ExceptionInfo[UnreadableLog]) -> None:
    assert "read the directory of another node" in str(told.value)
    assert not any(option in str(told.value) for option in ("startingOffsets", "endingOffsets", "assign"))


def test_a_log_without_a_segment_is_told(logs: Path) -> None:
    for segment in (logs / "__cluster_metadata-0").glob("*.log"):
        segment.unlink()
    with pytest.raises(UnreadableLog, match="holds no segment") as told:
        rows(logs)
    names_no_option_that_is_not_there(told)


def test_what_the_last_file_has_behind_its_records_is_told(logs: Path) -> None:
    *_, full, last = sorted((logs / "__cluster_metadata-0").glob("*.log"))
    last.write_bytes(bytes(8) + (60).to_bytes(4) + b"\x09" * 200)
    with pytest.raises(UnreadableLog, match=f"{last} at byte 0: magic"):
        rows(logs)
    last.write_bytes(full.read_bytes()[:70])  # an append that never ended
    assert len(rows(logs)) == 3


def test_a_file_that_is_missing_is_told(logs: Path) -> None:
    second = sorted((logs / "__cluster_metadata-0").glob("*.log"))[1]
    second.unlink()
    with pytest.raises(UnreadableLog, match="offsets 1 to 1 are missing between two segments; read the directory of"):
        rows(logs)


def test_other_options_are_refused() -> None:
    files = {"readFrom": "files", "path": "/mnt/a", "table": "metadata.records"}
    found = parse_table_options(files)
    assert found is not None and found.directories == ("/mnt/a",)
    for extra, text in (
        ({"subscribe": "t"}, "'subscribe' has no meaning with table"),
        ({"bootstrap.servers": "h:1"}, "'bootstrap.servers' has no meaning with readFrom=files"),
        ({"path": ""}, "needs a log directory"),
    ):
        with pytest.raises(ConfigError, match=text):
            parse_table_options({**files, **extra})
