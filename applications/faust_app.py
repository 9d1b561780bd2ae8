"""Faust (faust-streaming): a table that counts words, whose changelog is read again after a kill -9.

Started as its guide says, `faust -A APP worker`. It consumes in a group (aiokafka, classic protocol), makes its own
topics (a compacted changelog among them), and repartitions through a topic of its own.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

from applications.application import Application, Stage
from applications.environments import get_python
from applications.running import Failed, Process

REQUIREMENTS = ("faust-streaming",)
TIMEOUT_S = 90.0
GROUP = "words-app"
READY = "[^Worker]: Ready"  # of its log
WORDS = ("red", "green", "red", "blue", "red", "green")

APP = """\
import faust

app = faust.App("words-app", broker="kafka://{servers}", store="memory://",
                topic_partitions=2, topic_replication_factor=1,
                broker_session_timeout=10, broker_heartbeat_interval=2)  # of a killed worker
words = app.topic("words", key_type=str, value_type=str, value_serializer="raw")
counted = app.topic("counted", key_type=str, value_type=int, value_serializer="json")
counts = app.Table("counts", default=int)


@app.agent(words)
async def count(stream):
    async for word in stream.group_by(lambda word: word, name="word"):
        counts[word] += 1
        await counted.send(key=word, value=counts[word])
"""

prepare = partial(get_python, name="faust", requirements=REQUIREMENTS)


def run(stage: Stage) -> None:
    """Every word is counted, and the count goes on where it was when the worker was killed.

    Words are sent when the worker is ready: Faust lets its streams go on before it seeks the committed offsets, and
    what it reads in between it now and then counts twice or not at all (single records of a batch that came whole).
    """
    python = prepare(stage.cache)
    (stage.folder / "words_app.py").write_text(APP.format(servers=stage.cluster.bootstrap_servers.split(",")[0]))
    stage.cluster.create("words", "counted", partitions=2)
    for round_ in (1, 2):
        with _worker(python, stage.folder, round_) as worker:
            worker.until(lambda: READY in worker.log.read_text(), "it is ready", TIMEOUT_S)
            stage.cluster.send("words", WORDS)
            worker.until(partial(_is_counted, stage, round_), f"the words are counted {round_} times", TIMEOUT_S)
            worker.until(partial(_is_committed, stage, round_), "its offsets are committed", TIMEOUT_S)


def _worker(python: Path, folder: Path, round_: int) -> Process:
    command = [str(python.parent / "faust"), "-A", "words_app", "worker", "-l", "info", "--without-web"]
    return Process(command, log=folder / f"worker-{round_}.log", cwd=folder)


def _is_counted(stage: Stage, rounds: int) -> bool:
    """Raises Failed where a count was told that does not follow the one before it: then the table was lost."""
    told = _told(stage)
    for word, counts in told.items():
        if counts != list(range(1, len(counts) + 1)):
            raise Failed(f"the counts of {word} do not follow one another: {counts}")
    return all(len(told.get(word, ())) >= number * rounds for word, number in Counter(WORDS).items())


def _is_committed(stage: Stage, rounds: int) -> bool:
    """Both topics are committed to their ends: what is not would be counted again, since nothing is transactional."""
    read, left = stage.cluster.progress(GROUP)
    return left == 0 and read >= 2 * rounds * len(WORDS)


def _told(stage: Stage) -> dict[str, list[int]]:
    """The counts of each word, in the order in which they were told."""
    found: dict[str, list[int]] = {}
    for key, value in stage.cluster.read("counted"):
        found.setdefault((key or b"").decode().strip('"'), []).append(int(value or b"0"))
    return found


FAUST = Application("faust", "counts words in a table; its worker is killed and goes on", prepare, run)
