"""The indexes of a directory that Apache Kafka 4.3.1 wrote: used as they are, and built again to the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorumlog.records import headers
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.files.names import LOG_SUFFIX, index_name, parse_segment_name, time_index_name
from quorumlog_storage.segment.segment import Segment
from tests.formats.kafka_directory import unpack_kafka
from tests.rules import rule

KAFKAS_INTERVAL = 4096  # `rolled` asked for 512; its bytes agree with 4096 as well, a batch is larger


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_kafka(tmp_path_factory.mktemp("kafka"))


def segments_of(data: Path) -> list[Segment]:
    paths = [path for path in sorted(data.glob("*/*.log")) if path.stat().st_size]
    bases = [(path.parent, found[0]) for path in paths if (found := parse_segment_name(path.name)) is not None]
    return [Segment(RealDisk(), str(folder), base, KAFKAS_INTERVAL) for folder, base in bases]


@rule("storage 2.1")
def test_a_rebuild_gives_kafkas_bytes(data: Path) -> None:
    """Also of compacted segments, and of the metadata log."""
    segments = segments_of(data)
    assert len(segments) >= 19 and all(segment.log.path.endswith(LOG_SUFFIX) for segment in segments)
    for segment in segments:
        folder = Path(segment.log.path).parent
        files = [folder / name(segment.base_offset) for name in (index_name, time_index_name)]
        kafkas = [file.read_bytes() for file in files]
        for file in files:
            file.unlink()
        segment.indexes.mend()
        assert [file.read_bytes() for file in files] == kafkas, segment.log.path


def test_kafkas_files_find_every_time_and_are_left_alone(data: Path) -> None:
    for segment in segments_of(data):
        size = segment.size
        found = headers(segment.log.read(0, size))
        assert segment.largest_timestamp == max(header.max_timestamp for header in found)
        for time in {header.max_timestamp + off for header in found for off in (-1, 0, 1)}:
            begin = segment.indexes.seek_time(time, size)
            got = next((at for at, header in segment.log.walk(begin, size) if header.max_timestamp >= time), None)
            assert got == next((header.position for header in found if header.max_timestamp >= time), None)
        assert not segment.indexes.is_rebuilt, segment.log.path
