"""Kafka Streams: Kafka's own WordCountDemo with exactly_once_v2, killed in between.

Started as its quick start says, from Kafka's jar of examples, with a file of properties. Its counts go through a
repartition topic and a changelog, and its offsets into its transactions.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from applications.application import Application, Stage
from applications.environments import get_jars
from applications.running import Process
from bench.peers.kafka_tools import SHORT_LIVED, properties_text

WORD_COUNT = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"
LINES = ("all streams lead to kafka", "hello kafka streams", "join kafka summit")
TIMEOUT_S = 120.0
ARTIFACTS = ("kafka-streams-examples",)

prepare = partial(get_jars, name="streams", artifacts=ARTIFACTS)


def run(stage: Stage) -> None:
    """The counts are those of the lines, each of which is counted once although the application is killed."""
    kafka, properties = prepare(stage.cache), stage.folder / "streams.properties"
    properties.write_text(
        properties_text(
            {
                "bootstrap.servers": stage.cluster.bootstrap_servers,
                "processing.guarantee": "exactly_once_v2",
                "state.dir": stage.folder / "state",
            }
        )
    )
    stage.cluster.create("streams-plaintext-input")
    stage.cluster.create("streams-wordcount-output", config={"cleanup.policy": "compact"})
    for round_ in (1, 2):
        command = kafka.command(WORD_COUNT, [str(properties)], SHORT_LIVED)
        with Process(command, log=stage.folder / f"streams-{round_}.log", cwd=stage.folder) as process:
            stage.cluster.send("streams-plaintext-input", LINES)
            process.until(partial(_is_counted, stage, round_), f"the counts of round {round_}", TIMEOUT_S)
    told = [int.from_bytes(value or b"", "big") for key, value in _output(stage) if key == b"kafka"]
    assert told == sorted(set(told)), f"counts of one word that were told twice or went back: {told}"


def _is_counted(stage: Stage, rounds: int) -> bool:
    return _counts(stage) == {word: number * rounds for word, number in Counter(" ".join(LINES).split()).items()}


def _output(stage: Stage) -> list[tuple[bytes | None, bytes | None]]:
    return stage.cluster.read("streams-wordcount-output")


def _counts(stage: Stage) -> dict[str, int]:
    """The newest count of each word."""
    return {(key or b"").decode(): int.from_bytes(value or b"", "big") for key, value in _output(stage)}


STREAMS = Application("streams", "WordCountDemo with exactly_once_v2, killed in between", prepare, run)
