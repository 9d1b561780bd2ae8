"""`quorumlog log ...` on directories: what is printed, the exit codes, and that nothing is changed."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from quorumlog.records import Codec, Record, encode_batch, headers
from quorumlog.records.coordinator import GROUP_TYPES, encode_key
from quorumlog.records.coordinator.offsets import OffsetCommitValue, OffsetKey
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import Exit
from quorumlog_storage.directory.directory import CLEAN_SHUTDOWN, format_directory
from quorumlog_storage.directory.log_checkpoints import checkpoint_high_watermarks, checkpoint_logs
from quorumlog_storage.directory.meta_properties import MetaProperties
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.files.names import log_name
from quorumlog_storage.segment.batch import stamped_batches
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule

TIME_MS = 1_700_000_000_000
TOPIC_ID = bytes([5]) * 16
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100, remembers_producers=True)


def made_directory(path: Path, node: int = 1, batches: int = 12, topic: str = "t") -> Path:
    """A log directory with partition 0 of a topic, as a clean stop leaves it."""
    disk = RealDisk()
    format_directory(disk, str(path), MetaProperties("c", node, bytes([node]) * 16))
    directories = PartitionDirectories(disk, str(path), clean=True)
    held = PartitionLog.create(directories, (topic, 0), TOPIC_ID, CONFIG)
    for number in range(batches):
        at = held.log.end_offset
        records = [Record(n, TIME_MS + at + n, b"key-%d" % (at + n), b"value %d" % (at + n)) for n in range(3)]
        codec = Codec.ZSTD if number % 4 == 3 else Codec.NONE
        data = encode_batch(records, codec=codec, producer_id=7, producer_epoch=0, base_sequence=at)
        held.log.append(stamped_batches(data, headers(data), at, 1 + number // 5))
    held.close()
    checkpoint_logs(directories, [held])
    checkpoint_high_watermarks(directories, {held: held.log.end_offset})
    (path / CLEAN_SHUTDOWN).write_text('{"version":0,"brokerEpoch":5}')
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return made_directory(tmp_path / "data")


def first_segment(data: Path) -> Path:
    return data / "t-0" / f"{0:020d}.log"


def damage(path: Path, position: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def state_of(data: Path) -> dict[str, tuple[bytes, int]]:
    return {str(p): (p.read_bytes(), p.stat().st_mtime_ns) for p in sorted(data.rglob("*")) if p.is_file()}


def documents(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


# --- verify ---


@pytest.mark.parametrize("below", ["", "t-0"])
def test_verify_a_directory_or_one_log_in_it(data: Path, below: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = state_of(data)
    assert main(["log", "verify", str(data / below)]) == Exit.DONE
    table = capsys.readouterr().out.splitlines()
    assert table[0].split()[0] == "LOG" and len(table) == 2
    assert table[1].split()[0] == str(data / "t-0") and table[1].split()[2:4] == ["12", "36"]
    assert state_of(data) == before


@rule("storage 12.1")
def test_verify_tells_the_place_of_each_fault(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage(first_segment(data))
    assert main(["log", "verify", str(data), "-o", "json"]) == Exit.DATA_INVALID
    captured = capsys.readouterr()
    (fault,) = json.loads(captured.out)["faults"]
    assert (fault["check"], fault["path"]) == ("batch-checksum", str(first_segment(data)))
    assert fault["position"] > 0 and fault["offset"] >= 3 and fault["expected"] != fault["found"]
    assert json.loads(captured.err)["error"]["exit_code"] == Exit.DATA_INVALID
    assert main(["log", "verify", str(data)]) == Exit.DATA_INVALID
    assert f"fault  batch-checksum: {first_segment(data)} at byte {fault['position']}" in capsys.readouterr().out


@rule("storage 12.1")
def test_verify_names_a_file_that_it_may_not_read(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refuse(path: str, *rest: Any, **options: Any) -> int:
        if str(path).endswith(".log"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *rest, **options)

    monkeypatch.setattr(os, "open", refuse)
    assert main(["log", "verify", str(data)]) == Exit.DATA_INVALID
    told = capsys.readouterr()
    assert f"unreadable: {first_segment(data)}" in told.out + told.err and "Traceback" not in told.err


def test_verify_compares_the_directories_of_several_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [made_directory(tmp_path / f"node{number}", number) for number in (1, 2)]
    assert main(["log", "verify", *map(str, nodes), "--at-rest"]) == Exit.DONE
    assert "1 partition compared between nodes" in capsys.readouterr().out
    third = made_directory(tmp_path / "node3", 3, batches=11)
    assert main(["log", "verify", str(nodes[0]), str(third), "--at-rest", "-o", "json"]) == Exit.DATA_INVALID
    checks = {fault["check"] for fault in json.loads(capsys.readouterr().out)["faults"]}
    assert checks == {"replica-end"}
    copies = [str(node / "t-0") for node in (nodes[0], third)]
    assert main(["log", "verify", "--replicas", *copies]) == Exit.DONE


@rule("storage 12.2")
def test_a_directory_in_use_is_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = os.open(data / ".lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        for place in (data, data / "t-0"):
            assert main(["log", "verify", str(place)]) == Exit.PRECONDITION
            assert "in use by a running node" in capsys.readouterr().err
    finally:
        os.close(lock)
    assert main(["log", "verify", str(data)]) == Exit.DONE


def test_no_node_can_start_on_a_directory_that_is_verified(data: Path) -> None:
    from quorumlog_storage.edge.read_only_disk import ReadOnlyDisk
    from quorumlog_storage.files.disk import DirectoryLocked

    (data / ".lock").touch()
    held = ReadOnlyDisk().lock(str(data / ".lock"))
    with pytest.raises(DirectoryLocked):
        RealDisk().lock(str(data / ".lock"))
    ReadOnlyDisk().lock(str(data / ".lock")).release()  # a second reader may
    held.release()
    RealDisk().lock(str(data / ".lock")).release()


USAGE = [
    (["log", "verify", "/nowhere"], Exit.NOT_FOUND),
    (["log", "segments", "/nowhere"], Exit.NOT_FOUND),
    (["log", "index", "/nowhere"], Exit.NOT_FOUND),
    (["log", "dump", "/nowhere"], Exit.NOT_FOUND),
    (["log", "hexdump", "/nowhere"], Exit.NOT_FOUND),
    (["log", "grep", "/nowhere", "--key", "a"], Exit.NOT_FOUND),
    (["log", "grep", "DATA/t-0"], Exit.USAGE),
    (["log", "grep", "DATA/t-0", "--key", "("], Exit.USAGE),
    (["log", "index", "DATA/meta.properties"], Exit.USAGE),
    (["log", "verify", "DATA/.kafka_cleanshutdown"], Exit.USAGE),
    (["log", "verify", "DATA", "DATA/meta.properties"], Exit.USAGE),
    (["log", "hexdump", "SEGMENT", "--offset", "1", "--position", "2"], Exit.USAGE),
    (["log", "hexdump", "SEGMENT", "--offset", "999"], Exit.NOT_FOUND),
    (["log", "hexdump", "SEGMENT", "--position", "999999"], Exit.NOT_FOUND),
    (["log", "segments", "SEGMENT"], Exit.NOT_FOUND),
    (["log", "segments", "EMPTY"], Exit.NOT_FOUND),
    (["log", "dump", "EMPTY"], Exit.NOT_FOUND),
    (["log", "index", "EMPTY"], Exit.NOT_FOUND),
    (["log", "grep", "EMPTY", "--key", "a"], Exit.NOT_FOUND),
    (["log", "hexdump", "DATA/t-0"], Exit.USAGE),
]


@rule("storage 12.4")
@pytest.mark.parametrize(("words", "code"), USAGE)
def test_bad_usage(data: Path, words: list[str], code: Exit, capsys: pytest.CaptureFixture[str]) -> None:
    (data / "empty").mkdir()
    words = [word.replace("EMPTY", "DATA/empty") for word in words]
    arguments = [word.replace("DATA", str(data)).replace("SEGMENT", str(first_segment(data))) for word in words]
    assert main(arguments) == code
    assert capsys.readouterr().err.startswith("error")


# --- the others ---


@rule("storage 12.4")
def test_segments(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "segments", str(data / "t-0"), "-o", "json"]) == Exit.DONE
    found = json.loads(capsys.readouterr().out)
    assert [one["base_offset"] for one in found][1:] == [one["end_offset"] for one in found][:-1]
    assert found[-1]["end_offset"] == 36 and found[-1]["largest_timestamp"] == TIME_MS + 35
    assert [one["largest_timestamp"] for one in found] == [TIME_MS + one["end_offset"] - 1 for one in found]
    (data / "t-0" / f"{0:020d}.timeindex").unlink()
    assert main(["log", "segments", str(data), "-o", "json"]) == Exit.DONE
    again = json.loads(capsys.readouterr().out)
    assert again[0]["timeindex"] is None
    again[0]["timeindex"] = found[0]["timeindex"]
    assert again == found, "without its index, and named by the log directory"
    assert found[0]["first_timestamp"] == TIME_MS + 2 and found[0]["index"] > 0 and found[0]["timeindex"] > 0


def test_index_shows_and_checks_each_entry(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "index", str(data / "t-0"), "-o", "json"]) == Exit.DONE
    entries = documents(capsys)
    assert entries and all(entry["problem"] == "" and entry["kind"] in ("index", "timeindex") for entry in entries)
    path = first_segment(data).with_suffix(".index")
    damage(path, 3)
    assert main(["log", "index", str(path), "--faults-only"]) == Exit.DATA_INVALID
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{path}: 1 fault" and "index-offset: expected 5, the last offset" in said[1] and len(said) == 2


@rule("storage 12.4")
@pytest.mark.parametrize("records", [[], ["--records"]])
def test_hexdump_covers_every_byte_of_a_batch(
    data: Path, records: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = first_segment(data)
    assert main(["log", "hexdump", str(path), "--offset", "4", *records, "-o", "json"]) == Exit.DONE
    fields = documents(capsys)
    start = fields[0]["position"]
    shown = b"".join(bytes.fromhex(field["bytes"]) for field in fields)
    assert shown == path.read_bytes()[start : start + len(shown)]
    named = {field["name"]: field["value"] for field in fields}
    assert named["baseOffset"] == "3 (to 5)" and named["crc"].endswith("right") and named["recordsCount"] == "3"
    if records:
        assert named["record 1 key"] == "'key-4'" and named["record 1 offsetDelta"] == "1 (offset 4)"


def test_hexdump_of_damage(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = first_segment(data)
    damage(path, 16)  # the magic
    assert main(["log", "hexdump", str(path)]) == Exit.DATA_INVALID
    assert "no batch: magic is 3, not 2" in capsys.readouterr().out
    assert main(["log", "hexdump", str(path), "--position", "0"]) == Exit.DATA_INVALID


GREPS = [
    (["--key", "^key-1[0-2]$"], [10, 11, 12]),
    (["--value", "VALUE 3", "-i", "--start", "4"], [30, 31, 32, 33, 34, 35]),
    (["--value", "value", "--end", "3"], [0, 1, 2]),
    (["--key", "key", "--value", "value 7"], [7]),
    (["--key", "key", "--max", "2"], [0, 1]),
]


@pytest.mark.parametrize(("words", "offsets"), GREPS)
def test_grep(data: Path, words: list[str], offsets: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "grep", str(data / "t-0"), *words, "-o", "json"]) == Exit.DONE
    assert [record["offset"] for record in documents(capsys)] == offsets
    assert main(["log", "grep", str(data / "t-0"), *words, "--count"]) == Exit.DONE
    assert capsys.readouterr().out == f"{len(offsets)}\n"


def test_grep_searches_an_old_wrapper_in_which_its_end_lies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its header says the last of its offsets only."""
    builder = LegacyRecordBatchBuilder(1, Codec.GZIP, 1 << 20)
    for number in range(10):
        builder.append(number, 1_700_000_000_000, b"key", b"value")
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / log_name(0)).write_bytes((9).to_bytes(8) + bytes(builder.build())[8:])
    assert main(["log", "grep", str(tmp_path / "t-0"), "--key", "key", "--end", "5", "--count"]) == Exit.DONE
    assert capsys.readouterr().out.split() == ["5"]


def test_grep_names_what_it_could_not_search(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "grep", str(data / "t-0"), "--key", "nobody"]) == Exit.NOT_FOUND
    capsys.readouterr()
    damage(first_segment(data))
    assert main(["log", "grep", str(data / "t-0"), "--key", "key-30"]) == Exit.DATA_INVALID
    captured = capsys.readouterr()
    assert "key: key-30" in captured.out and "wrong checksum" in captured.err


@rule("storage 12.4")
def test_dump_of_every_kind_of_file(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "dump", str(data / "t-0"), "-o", "json"]) == Exit.DONE
    kinds = {document["kind"] for document in documents(capsys)}
    assert kinds == {"batch", "index", "timeindex", "producer"}
    assert main(["log", "dump", str(data / "t-0" / "leader-epoch-checkpoint")]) == Exit.DONE
    assert capsys.readouterr().out.splitlines()[1:] == ["0", "3", "1 0", "2 15", "3 30"]


def test_memory_does_not_grow_with_the_segment(tmp_path: Path) -> None:
    """A segment of 24 MiB is looked at with less than 8 MiB; without windows it would take all of it."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    records = [Record(n, TIME_MS, None, b"v" * 1000) for n in range(64)]
    with (folder / f"{0:020d}.log").open("wb") as file:
        for number in range(384):
            data = encode_batch(records)
            (batch,) = stamped_batches(data, headers(data), number * 64, 1)
            file.writelines(batch.parts)
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
    assert main(["log", "verify", str(folder)]) == Exit.DONE  # what is imported is not counted
    tracemalloc.start()
    try:
        assert main(["log", "verify", str(folder)]) == Exit.DONE
        assert main(["log", "grep", str(folder), "--value", "x", "--count"]) == Exit.NOT_FOUND
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20, peak


# --- internal topics ---


def internal_segment(folder: Path) -> Path:
    folder.mkdir()
    key = encode_key(OffsetKey("g", "t", 0))
    value = GROUP_TYPES[1].value.encode(OffsetCommitValue(42, "m", TIME_MS), 4)
    records = [Record(0, TIME_MS, key, value), Record(1, TIME_MS, key, None), Record(2, TIME_MS, b"\0\x0b", b"share")]
    path = folder / f"{0:020d}.log"
    path.write_bytes(encode_batch(records, leader_epoch=0))
    return path


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("__consumer_offsets-7", ["--print-data-log"]),
        ("other-7", ["--print-data-log", "--offsets-decoder"]),
        ("a-decoder-alone-prints-records-in-kafka-too-7", ["--offsets-decoder"]),
    ],
)
def test_committed_offsets_are_decoded(
    name: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = internal_segment(tmp_path / name)
    assert main(["log", "dump", "-o", "json", *options, str(path)]) == Exit.DONE
    _, committed, gone, unknown = documents(capsys)
    assert committed["key"]["data"] == {"group": "g", "topic": "t", "partition": 0}
    assert committed["payload"]["data"]["offset"] == 42
    assert gone["payload"] == "<DELETE>"
    assert (unknown["type"], unknown["key_type"]) == ("unsupported", 11)


def test_damage_in_a_committed_offset_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = internal_segment(tmp_path / "__transaction_state-0")
    assert main(["log", "dump", "--print-data-log", str(path)]) == Exit.DONE
    assert "key_type: 1" in capsys.readouterr().out
    path.write_bytes(encode_batch([Record(0, TIME_MS, b"\0\0\0\5abc", b"")], leader_epoch=0))
    assert main(["log", "dump", "--print-data-log", str(path)]) == Exit.DATA_INVALID
    assert "a field of 5 bytes, 3 are left" in capsys.readouterr().err


def test_two_decoders_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = internal_segment(tmp_path / "x-0")
    options = ["--print-data-log", "--offsets-decoder", "--cluster-metadata-decoder"]
    assert main(["log", "dump", *options, str(path)]) == Exit.USAGE
    assert "choose one decoder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "key", "payload"),
    [
        (["--key-decoder", "long"], 5, "7"),
        (["--key-decoder-class", "org.apache.kafka.tools.api.LongDecoder", "--value-decoder", "hex"], 5, "37"),
        (["--key-decoder-class", "kafka.serializer.IntegerDecoder"], "not 4 bytes: 0000000000000005", "7"),
    ],
)
def test_keys_and_values_are_decoded(
    tmp_path: Path, words: list[str], key: Any, payload: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(encode_batch([Record(0, TIME_MS, (5).to_bytes(8), b"7"), Record(1, TIME_MS, None, None)]))
    assert main(["log", "dump", str(path), *words, "-o", "json"]) == Exit.DONE
    first, second = [json.loads(line) for line in capsys.readouterr().out.splitlines()[1:]]
    assert (first["key"], first["payload"]) == (key, payload) and (second["key"], second["payload"]) == (None, None)
    assert main(["log", "dump", str(path), "--key-decoder", "org.example.Mine"]) == Exit.USAGE
    assert "no decoder that is known here" in capsys.readouterr().err


@pytest.mark.parametrize(("more", "shown"), [(-1, 1), (0, 2), (1, 2)])
def test_max_bytes_takes_whole_batches(
    tmp_path: Path, more: int, shown: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """As Kafka, which slices the file: what does not end within it is neither shown nor damage."""
    batches = [encode_batch([Record(n, TIME_MS, b"k", b"%d" % n)], base_offset=n) for n in range(3)]
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"".join(batches) + b"torn")
    words = ["--max-bytes", str(len(batches[0]) + len(batches[1]) + more), "-o", "json"]
    assert main(["log", "dump", str(path), *words]) == Exit.DONE
    assert len(capsys.readouterr().out.splitlines()) == shown
