"""`quorumlog feature version-mapping|dependencies` beside Kafka's own tool: the same lines but for names and levels."""

from __future__ import annotations

import re

import pytest

from bench.peers.kafka_tools import FEATURES, Kafka, ToolFailed, Unavailable, get_kafka
from quorumlog_cli.main import main

NOWHERE = ("--bootstrap-server", "127.0.0.1:1")  # neither tool asks a cluster for this
PAIRS = [
    ("without a need", ["kraft.version=1"], ["kraft.version=1"]),
    ("off", ["transaction.version=0"], ["transaction.version=0"]),
    ("needs one", ["eligible.leader.replicas.version=1"], ["group.version=1"]),
    ("two", ["kraft.version=1", "transaction.version=0"], ["kraft.version=1", "transaction.version=0"]),
    ("unknown", ["foo=1"], ["foo=1"]),
    ("unknown level", ["transaction.version=9"], ["transaction.version=9"]),
    ("unknown release", ["metadata.version=99"], ["metadata.version=99"]),
    ("no level", ["transaction.version"], ["transaction.version"]),
    ("no number", ["transaction.version=x"], ["transaction.version=x"]),
]


@pytest.fixture(scope="module")
def kafka() -> Kafka:
    try:
        return get_kafka()
    except Unavailable as error:
        pytest.skip(str(error))


def of_kafka(kafka: Kafka, *words: str) -> tuple[bool, str]:
    """Whether it went well, and the lines without Kafka's names of releases."""
    try:
        went_well, said = True, kafka.run(FEATURES, *NOWHERE, *words)
    except ToolFailed as failed:
        went_well, said = False, failed.output
    return went_well, re.sub(r" \(\d\.\d+(-IV\d+)?\)", "", said).strip()


def ours(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[bool, str]:
    code = main(["feature", *words])
    captured = capsys.readouterr()
    lines = [line.removeprefix("error  ") for line in captured.err.splitlines() if not line.startswith("hint")]
    return code == 0, "\n".join([*captured.out.splitlines(), *lines])


def anonymous(line: str) -> str:
    """With what differs by design left out: names of features and their levels."""
    return re.sub(r"[a-z.]+\.version=\d+", "NAME=LEVEL", line)


@pytest.mark.parametrize(("theirs", "own"), [one[1:] for one in PAIRS], ids=[one[0] for one in PAIRS])
def test_dependencies_are_said_in_the_same_words(
    theirs: list[str], own: list[str], kafka: Kafka, capsys: pytest.CaptureFixture[str]
) -> None:
    def flags(features: list[str]) -> list[str]:
        return [word for one in features for word in ("--feature", one)]

    there, said = of_kafka(kafka, "feature-dependencies", *flags(theirs))
    here, lines = ours(capsys, "dependencies", *flags(own))
    assert (here, anonymous(lines)) == (there, anonymous(said))


def test_a_mapping_has_the_same_form(kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    there, said = of_kafka(kafka, "version-mapping")
    here, lines = ours(capsys, "version-mapping")
    assert there and here
    assert {anonymous(line) for line in said.splitlines()} == {anonymous(line) for line in lines.splitlines()}
    assert [one.split("=")[0] for one in lines.splitlines()][:2] == [one.split("=")[0] for one in said.splitlines()][:2]
    there, said = of_kafka(kafka, "version-mapping", "--release-version", "99")
    here, lines = ours(capsys, "version-mapping", "--release-version", "99")
    assert not there and not here
    assert lines.split(" are: ")[0] == said.split(" are: ")[0]
