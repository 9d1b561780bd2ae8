"""Apache Kafka's own jars, downloaded by Maven, and its command-line tools.

Nothing of Kafka is part of this repository. With Java 17 or newer and `mvn`, the artifacts of VERSION are copied once
into a folder (default: out/kafka), and a tool is started by its main class. Otherwise Unavailable says what is missing.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

VERSION = "4.3.1"
OLDER = "3.9.1"  # the last line of releases before 4.0: of brokers that people still run
SLF4J_VERSION = "1.7.36"  # the API version that Kafka is built against
OLDEST_JAVA = 17
FOLDER = Path(__file__).resolve().parents[2] / "out" / "kafka"
FETCH_TIMEOUT_S = 600.0
TOOL_TIMEOUT_S = 60.0
QUIET = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",)
# What lives for a second is not worth the second compiler: a third less of processor time.
SHORT_LIVED = (*QUIET, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

TOPICS = "org.apache.kafka.tools.TopicCommand"
PRODUCER_PERF = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_PERF = "org.apache.kafka.tools.ConsumerPerformance"
VERIFIABLE_PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
CONFIGS = "kafka.admin.ConfigCommand"
METADATA_QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
BROKER_API_VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
CLUSTER = "org.apache.kafka.tools.ClusterTool"
ACLS = "org.apache.kafka.tools.AclCommand"
DELEGATION_TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
LEADER_ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
STORAGE = "kafka.tools.StorageTool"
SERVER = "kafka.Kafka"
MEASURING = (PRODUCER_PERF, CONSUMER_PERF)


class Unavailable(Exception):
    """Kafka cannot run on this machine. The message says what is missing."""


class ToolFailed(Exception):
    """A tool ended with an error. output: all its output."""

    def __init__(self, main_class: str, code: int, output: str) -> None:
        super().__init__(f"{main_class} ended with {code}: {output[-2_000:]}")
        self.code, self.output = code, output


@dataclass(frozen=True, slots=True)
class Kafka:
    """The folder of Kafka's jars, and the java that runs them.

    Beside the folder lies an archive of classes, loaded and verified, which the first tool that runs leaves there: with
    it a tool takes half the processor time. Java ignores an archive of another release, or of other jars.
    """

    java: str
    jars: Path

    @property
    def classes(self) -> Path:
        return self.jars.with_name(f"{self.jars.name}.jsa")

    def command(self, main_class: str, arguments: Sequence[str] = (), options: Sequence[str] = QUIET) -> list[str]:
        """options: for the virtual machine."""
        if options == SHORT_LIVED and self.classes.exists():
            options = (*options, f"-XX:SharedArchiveFile={self.classes}")
        return [self.java, *options, "-cp", f"{self.jars}{os.sep}*", main_class, *arguments]

    def run(self, main_class: str, *arguments: str, stdin: str = "", timeout_s: float = TOOL_TIMEOUT_S) -> str:
        """The tool's output, stdout and stderr together. Raises ToolFailed, subprocess.TimeoutExpired."""
        options: Sequence[str] = QUIET if main_class in MEASURING else SHORT_LIVED
        made = self.classes.with_suffix(f".{os.getpid()}")
        if options == SHORT_LIVED and not self.classes.exists():
            options = (*options, "-Xlog:disable", f"-XX:ArchiveClassesAtExit={made}")
        done = subprocess.run(
            self.command(main_class, arguments, options),
            input=stdin,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
        )
        if made.exists():
            made.rename(self.classes)
        if done.returncode != 0:
            raise ToolFailed(main_class, done.returncode, done.stdout)
        return done.stdout


def missing() -> str:
    """Why Kafka cannot run here; "" if it can. Only looks for programs; downloads nothing."""
    java = _java()
    if java is None:
        return "no java"
    release = java_release(java)
    if release < OLDEST_JAVA:
        return f"java is {release}, older than {OLDEST_JAVA}"
    return "" if shutil.which("mvn") else "no mvn"


def get_kafka(folder: Path = FOLDER, version: str = VERSION) -> Kafka:
    """Kafka of this version in `folder`, downloaded if it is not there yet. Raises Unavailable."""
    if lacking := missing():
        raise Unavailable(lacking)
    java = _java()
    assert java is not None
    jars = folder / f"jars-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder / "lock"):
        if not jars.is_dir():
            wanted = [
                ("org.apache.kafka", "kafka_2.13", version),
                ("org.apache.kafka", "kafka-tools", version),
                ("org.slf4j", "slf4j-simple", SLF4J_VERSION),
            ]
            fetch_jars(folder, jars, maven_project("kafka-peer", wanted), f"Kafka {version}")
    return Kafka(java, jars)


def java_release(java: str) -> int:
    """17 for "17.0.15"; 0 if unknown."""
    said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


def properties_text(values: Mapping[str, object]) -> str:
    return "".join(f"{key}={value}\n" for key, value in values.items())


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")


def maven_project(name: str, wanted: Sequence[tuple[str, str, str]]) -> str:
    """Maven's project of this name. wanted: group, artifact and version of each jar that it needs."""
    rows = "\n".join(
        f"    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        "</dependency>"
        for group, artifact, version in wanted
    )
    return f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>quorumlog</groupId><artifactId>{name}</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
{rows}
  </dependencies>
</project>
"""


def fetch_jars(folder: Path, jars: Path, pom: str, what: str) -> None:
    """Copy the dependencies of `pom` to `jars`, which must not exist. what: for messages. Raises Unavailable.

    Copies into a folder with another name first, so that an interrupted copy is not taken for a complete one.
    """
    unfinished = folder / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    file = folder / "pom.xml"
    file.write_text(pom)
    command = ["mvn", "-q", "-B", "-f", str(file), "dependency:copy-dependencies", f"-DoutputDirectory={unfinished}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"mvn did not finish within {FETCH_TIMEOUT_S:g} s") from None
    if done.returncode != 0 or not unfinished.is_dir():
        raise Unavailable(f"mvn could not fetch {what}: {(done.stdout + done.stderr)[-1_000:].strip()}")
    unfinished.rename(jars)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Only one process at a time."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
