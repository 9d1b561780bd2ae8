"""Records of the internal topics: Kafka's dump tool and `log dump` say the same of each, and Kafka's bytes are ours."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from quorumlog.records import Record, decode_batch, encode_batch, headers
from quorumlog.records.coordinator import GROUP_TYPES, TRANSACTION_TYPES, decode, encode_key
from quorumlog.records.coordinator.decode import number_of
from quorumlog_cli.main import main
from tests.formats.kafka_directory import unpack_kafka
from tests.formats.kafka_dump import dump, kafka
from tests.records.coordinator_samples import GROUP_SAMPLES, JOINT_SAMPLES, TRANSACTION_SAMPLES

SEGMENT = f"{0:020d}.log"
AT = 1_700_000_000_000
SHOWN = re.compile(r"^\| offset: (\d+) .*? key: (\{.*\}) payload: (.*)$")
GOLDEN_TRANSACTIONS = 36  # records in the partition of the golden directory


def shown(said: str) -> list[tuple[int, Any, Any]]:
    """(offset, key, payload) of each record in the words of either tool."""
    found = [match for line in said.splitlines() if (match := SHOWN.match(line)) is not None]
    return [(int(one[1]), json.loads(one[2]), one[3] if one[3] == "<DELETE>" else json.loads(one[3])) for one in found]


def ours(path: Path, capsys: pytest.CaptureFixture[str]) -> list[tuple[int, Any, Any]]:
    assert main(["log", "dump", "--print-data-log", str(path)]) == 0
    return shown(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("topic", "option", "types", "samples"),
    [
        ("__consumer_offsets", "--offsets-decoder", GROUP_TYPES, GROUP_SAMPLES),
        ("__transaction_state", "--transaction-log-decoder", TRANSACTION_TYPES, TRANSACTION_SAMPLES),
    ],
)
def test_kafkas_tool_reads_what_we_write(
    topic: str, option: str, types: Any, samples: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = kafka()
    folder = tmp_path / f"{topic}-0"
    folder.mkdir()
    keys = [encode_key(key) for key, _, _ in samples]
    values = [
        types[int.from_bytes(key[:2])].value.encode(said, v) for key, (_, v, said) in zip(keys, samples, strict=True)
    ]
    rows = [*zip(keys, values, strict=True), *((key, None) for key in keys)]
    data = encode_batch([Record(n, AT, key, value) for n, (key, value) in enumerate(rows)], leader_epoch=0)
    (folder / SEGMENT).write_bytes(data)
    theirs = shown(dump(tool, [folder / SEGMENT], "--print-data-log", option))
    assert len(theirs) == len(rows)
    assert ours(folder / SEGMENT, capsys) == theirs


def test_kafkas_tool_passes_over_joint_transactions(tmp_path: Path) -> None:
    """A child is a transaction like others, and a decision is of an unknown type; what follows is shown, too."""
    tool = kafka()
    folder = tmp_path / "__transaction_state-0"
    folder.mkdir()
    rows = [
        (encode_key(key), TRANSACTION_TYPES[number_of(key)].value.encode(said, version))
        for key, version, said in [*JOINT_SAMPLES, TRANSACTION_SAMPLES[0]]
    ]
    data = encode_batch([Record(n, AT, key, value) for n, (key, value) in enumerate(rows)], leader_epoch=0)
    (folder / SEGMENT).write_bytes(data)
    said = dump(tool, [folder / SEGMENT], "--print-data-log", "--transaction-log-decoder")
    theirs = shown(said)
    assert [at for at, _, _ in theirs] == [0, 4]
    assert [key["data"]["transactionalId"] for _, key, _ in theirs] == ["joint:spark/q:3:k", "x"]
    assert theirs[0][2]["data"]["producerEpoch"] == 2
    assert said.lower().count("unknown record type 10000") == 2, said
    assert said.lower().count("unknown record type 10001") == 1, said


def test_kafkas_transactions_are_shown_as_kafka_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tool = kafka()
    path = unpack_kafka(tmp_path) / "__transaction_state-0" / SEGMENT
    theirs = shown(dump(tool, [path], "--print-data-log", "--transaction-log-decoder"))
    assert len(theirs) >= GOLDEN_TRANSACTIONS
    assert ours(path, capsys) == theirs


def test_kafkas_transactions_are_our_bytes(tmp_path: Path) -> None:
    data = (unpack_kafka(tmp_path) / "__transaction_state-0" / SEGMENT).read_bytes()
    count = 0
    for header in headers(data):
        for record in [] if header.is_control else decode_batch(data, header):
            found = decode(TRANSACTION_TYPES, record.key, record.value)
            assert encode_key(found.key) == record.key
            assert found.version is not None
            assert TRANSACTION_TYPES[0].value.encode(found.value, found.version) == record.value
            count += 1
    assert count >= GOLDEN_TRANSACTIONS
