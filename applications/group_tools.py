"""kafka-consumer-groups and `quorumlog group`, one script through both: the same tables, and files that either reads.

There are groups that have read all, a part, or nothing of a topic, and two with members, one of each protocol.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from applications.application import Application, Stage
from applications.member_programs import CONFLUENT
from applications.running import Failed, Process
from bench.peers.kafka_tools import CONSUMER_GROUPS, Kafka, get_kafka

TIMEOUT_S = 120.0
TOPIC, PARTITIONS, RECORDS = "orders", 3, 60
READ, PART, CLASSIC, CONSUMER = "has-read", "has-read-a-part", "reads-classic", "reads-consumer"
SETTINGS = {
    CLASSIC: '"group.instance.id": "first"',
    CONSUMER: '"group.protocol": "consumer"',
}
ALL = (READ, PART, CLASSIC, CONSUMER)
DESCRIPTIONS = (  # groups, options; Kafka's tool has a table of members for each group
    *((ALL, options) for options in ((), ("--verbose",), ("--state",), ("--state", "--verbose"))),
    *(((name,), ("--members", *more)) for name in (CLASSIC, CONSUMER) for more in ((), ("--verbose",))),
)
GOALS = (
    ("--to-earliest",),
    ("--to-latest",),
    ("--to-current",),
    ("--to-offset", "7"),
    ("--to-offset", "100000"),
    ("--shift-by", "-3"),
    ("--to-datetime", "2020-01-01T00:00:00.000"),
    ("--to-datetime", "2100-01-01T00:00:00.000"),
    ("--by-duration", "P1D"),
)
SCOPES = (
    ("--group", PART, "--topic", f"{TOPIC}:0,2"),
    ("--group", PART, "--all-topics"),
    ("--group", READ, "--group", PART, "--topic", TOPIC),
    ("--all-groups", "--all-topics"),
)
Table = list[list[str]]


class Tools:
    """Both, on one cluster. Kafka's has an option where ours has a verb."""

    def __init__(self, kafka: Kafka, servers: str) -> None:
        self._kafka, self._servers = kafka, servers

    def theirs(self, verb: str, *options: str) -> str:
        words = ("--bootstrap-server", self._servers, f"--{verb}", *options)
        return self._kafka.run(CONSUMER_GROUPS, *words, timeout_s=TIMEOUT_S)

    def ours(self, verb: str, *options: str, codes: tuple[int, ...] = (0,)) -> str:
        """What it prints. Raises Failed for another exit code than those."""
        command = [sys.executable, "-m", "quorumlog_cli.main", "group", verb, *options, "-b", self._servers]
        tree = Path(__file__).resolve().parents[1]
        done = subprocess.run(command, cwd=tree, text=True, capture_output=True, timeout=TIMEOUT_S, check=False)
        if done.returncode not in codes:
            raise Failed(f"{' '.join(command[3:])} ended with {done.returncode}: {done.stderr}")
        return done.stdout


def rows(said: str) -> Table:
    """Headings and rows, in order, without what is said besides."""
    found = [line.split() for line in said.splitlines()]
    names = {*ALL}
    heading = [next((row for row in found if row[:1] == ["GROUP"]), [])]
    return heading + sorted(row for row in found if row[:1] and row[0] in names)


def must_agree(what: str, theirs: object, ours: object) -> None:
    """Raises Failed that shows both."""
    if theirs != ours:
        raise Failed(f"{what}:\nkafka-consumer-groups: {theirs}\nquorumlog group:       {ours}")


def prepare(cache: Path) -> Kafka:
    """Raises Unavailable."""
    return get_kafka(cache / "kafka")


def run(stage: Stage) -> None:
    tools = Tools(prepare(stage.cache), stage.cluster.bootstrap_servers)
    stage.cluster.create(TOPIC, partitions=PARTITIONS)
    stage.cluster.send(TOPIC, [f"parcel {number}" for number in range(RECORDS)])
    tools.ours("reset-offsets", "--group", READ, "--topic", TOPIC, "--to-latest", "--execute")
    tools.ours("reset-offsets", "--group", PART, "--topic", TOPIC, "--to-offset", "5", "--execute")
    with ExitStack() as members:
        for name in SETTINGS:
            members.enter_context(_member(stage, name))
        for names, options in DESCRIPTIONS:
            theirs = rows(tools.theirs("describe", *_groups(names), *options))
            must_agree(f"describe {names} {options}", theirs, rows(tools.ours("describe", *names, *options)))
        _agree_on_resets(tools)
    _agree_on_files(tools, stage.folder)


def _agree_on_resets(tools: Tools) -> None:
    """Every goal with one scope, every scope with one goal; nothing is executed. Groups with members are left out."""
    for scope, goal in [(SCOPES[0], goal) for goal in GOALS] + [(scope, GOALS[0]) for scope in SCOPES[1:]]:
        options, codes = (*scope, *goal), (0, 9) if "--all-groups" in scope else (0,)
        theirs = rows(tools.theirs("reset-offsets", *options, "--dry-run"))
        must_agree(f"reset-offsets {options}", theirs, rows(tools.ours("reset-offsets", *options, codes=codes)))


def _agree_on_files(tools: Tools, folder: Path) -> None:
    """What one exports the other reads, of one group and of several; and both see what either has changed."""
    for number, groups in enumerate([(PART,), (READ, PART)]):
        scope = _groups(groups)
        options = (*scope, "--topic", TOPIC, "--to-offset", str(3 + number))
        theirs = [line.replace('"', "") for line in tools.theirs("reset-offsets", *options, "--export").splitlines()]
        ours = tools.ours("reset-offsets", *options, "--export").splitlines()
        must_agree(f"--export of {groups}", sorted(line for line in theirs if line.count(",") >= 2), sorted(ours))
        file = folder / f"offsets-{number}.csv"
        file.write_text("".join(f"{line}\n" for line in ours))
        tools.theirs("reset-offsets", *scope, "--from-file", str(file), "--execute")
        told = rows(tools.ours("describe", *groups))
        must_agree(
            "what kafka-consumer-groups has set",
            rows(tools.theirs("describe", *scope)),
            told,
        )
        set_ = {int(row[3]) == min(3 + number, int(row[4])) for row in told[1:]}
        must_agree("the offsets of the file", {True}, set_)
        tools.ours("reset-offsets", *scope, "--from-file", str(file), "--execute")
    tools.theirs("delete-offsets", "--group", READ, "--topic", TOPIC)
    tools.theirs("delete", "--group", PART)
    left = [row[0] for row in rows(tools.ours("list"))[1:]]
    must_agree("list", sorted(tools.theirs("list").split()), sorted(left))


def _groups(names: Sequence[str]) -> list[str]:
    return [word for name in names for word in ("--group", name)]


@contextmanager
def _member(stage: Stage, group: str) -> Iterator[None]:
    """A member that has read all of the topic, and has committed it as far as one is told."""
    program = stage.folder / f"{group}.py"
    words = {"servers": stage.cluster.bootstrap_servers, "topic": TOPIC, "group": group}
    program.write_text(CONFLUENT.format(**words, more=SETTINGS[group]))
    with Process([sys.executable, str(program)], log=stage.folder / f"{group}.log", cwd=stage.folder) as process:
        process.until(lambda: stage.cluster.progress(group) == (RECORDS, 0), "it has read all", TIMEOUT_S)
        yield
        process.stop()


GROUP_TOOLS = Application(
    "group-tools", "kafka-consumer-groups and quorumlog group, one script through both", prepare, run
)
