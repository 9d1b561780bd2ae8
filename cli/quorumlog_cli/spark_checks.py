"""What `quorumlog spark doctor` looks at: what Spark needs on this machine, and whether it reads from a cluster.

Spark's workers run the Python of PYSPARK_PYTHON, or `python3` of their PATH, whatever Python the script runs in. So
both are looked at: their versions must agree to the minor one (Spark checks it, too, in the middle of a job), and
quorumlog must be installed for both.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from quorumlog.client.blocking import Cluster

ROWS = 1_000  # of the round trip
WORKER_LIMIT_S = 30.0  # for the workers' Python to say what it is
TOPIC_PREFIX = "quorumlog-spark-doctor-"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
PANDAS_UNTRIED = 3  # the first major version that pyspark itself warns of
PACKAGES = ("pyspark", "pyarrow", "pandas", "numpy")
COMPILED = "compiled code"

_ASK = (  # Spark looks for modules of this name by itself
    "import importlib.util, json, platform;"
    "print(json.dumps([platform.python_version(), importlib.util.find_spec('pyspark_quorumlog') is not None]))"
)
_ASK_PLACE = "from quorumlog.records.columnar.compiled import kept_in; print(kept_in())"


class State(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """found: what there is. advice: what to do; empty if there is nothing to do."""

    check: str
    state: State
    found: str
    advice: str = ""


def of_this_machine(environment: Mapping[str, str]) -> Iterator[Finding]:
    """What needs no session: both Pythons, Java, and the packages."""
    yield python_of_workers(environment)
    yield java()
    for name in PACKAGES:
        yield package(name)
    yield compiled_code(environment)


def python_of_workers(environment: Mapping[str, str]) -> Finding:
    own, program = platform.python_version(), environment.get("PYSPARK_PYTHON", "python3")
    advice = f"export PYSPARK_PYTHON={sys.executable}, or pip install 'quorumlog[spark]' for {program}"
    try:
        done = subprocess.run(
            [program, "-c", _ASK], capture_output=True, text=True, timeout=WORKER_LIMIT_S, check=True, env=environment
        )
        theirs, installed = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return Finding("python", State.FAILED, f"{own}; of workers: {program} does not run ({error})", advice)
    found = f"{own}; of workers: {theirs} ({program})"
    if own.split(".")[:2] != theirs.split(".")[:2]:
        return Finding("python", State.FAILED, f"{found}: their minor versions differ", advice)
    if not installed:
        return Finding("python", State.FAILED, f"{found}, without quorumlog", advice)
    return Finding("python", State.OK, found)


def compiled_code(environment: Mapping[str, str]) -> Finding:
    """Where the workers keep what Numba compiles. Without a place they read as well, and compile again and again."""
    program = environment.get("PYSPARK_PYTHON", "python3")
    advice = "set NUMBA_CACHE_DIR, for Spark's workers, to a folder that they can write"
    try:
        done = subprocess.run(
            [program, "-c", _ASK_PLACE], capture_output=True, text=True, timeout=WORKER_LIMIT_S, check=True,
            env=environment,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return Finding(COMPILED, State.WARNING, f"{program} does not say where it is kept ({error})", advice)
    place = done.stdout.strip()
    if not place:
        return Finding(COMPILED, State.WARNING, "kept nowhere: each worker that has much to read compiles it", advice)
    return Finding(COMPILED, State.OK, f"kept in {place}")


def java() -> Finding:
    from quorumlog.spark.session.java import NoJava, use_java

    try:
        found = use_java()
    except NoJava as error:
        return Finding("java", State.FAILED, "none that Spark can use", str(error))
    return Finding("java", State.OK, f"{found.version}, by {found.origin}: {found.home}")


def package(name: str) -> Finding:
    """One that the extra `spark` brings, or that pyspark uses. pandas may be absent: batches and streams need none."""
    try:
        found = version(name)
    except PackageNotFoundError:
        if name in ("pandas", "numpy"):
            return Finding(name, State.OK, "not installed, and not needed to read")
        return Finding(name, State.FAILED, "not installed", "pip install 'quorumlog[spark]'")
    if name == "pandas" and int(found.partition(".")[0]) >= PANDAS_UNTRIED:
        advice = f"pip install 'pandas<{PANDAS_UNTRIED}' if toPandas or pandas functions fail"
        return Finding(name, State.WARNING, f"{found}, which pyspark does not fully support yet", advice)
    asked = _asked_of(name)
    if asked and not asked(found):
        return Finding(name, State.FAILED, f"{found}, older than quorumlog needs", "pip install -U 'quorumlog[spark]'")
    return Finding(name, State.OK, found)


def _asked_of(name: str) -> Callable[[str], bool] | None:
    """Whether a version is at least what quorumlog's own requirement says; None if that says nothing."""
    for asked in requires("quorumlog") or ():
        least = re.match(rf"{name}\s*>=\s*([\d.]+)", asked)
        if least:
            return lambda found: _numbers(found) >= _numbers(least[1])
    return None


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def of_session(spark: Any) -> Iterator[Finding]:
    """What only a session can say: that it starts, that it finds the format, and whether filters are pushed down."""
    yield Finding("session", State.OK, f"Spark {spark.version}, {spark.sparkContext.master}")
    try:
        reader = spark.read.format("quorumlog").option("bootstrap.servers", "localhost:9092")
        columns = reader.option("subscribe", "any").load().columns
    except Exception as error:
        advice = (
            "pip install 'quorumlog[spark]' for the Python of the workers, see above; then start a new session: "
            "a session looks once for what is installed"
        )
        yield Finding("format", State.FAILED, _first_line(error), advice)
    else:
        yield Finding("format", State.OK, f"found by its name, with {len(columns)} columns")
    if spark.conf.get(PUSHDOWN, "false") == "true":
        yield Finding("pushdown", State.OK, "on")
    else:
        yield Finding("pushdown", State.OK, f'off; pushdown=true needs spark.conf.set("{PUSHDOWN}", "true")')


def round_trip(spark: Any, cluster: Cluster, options: Mapping[str, str]) -> Finding:
    """Writes rows into a topic of its own, has Spark read them, and deletes the topic. options: of the format."""
    topic = f"{TOPIC_PREFIX}{uuid4().hex[:12]}"
    cluster.admin.create_topic(topic, partitions=2)
    try:
        with cluster.producer() as producer:
            for number in range(ROWS):
                producer.send(topic, b"%d" % number, partition=number % 2)
            producer.flush()
        frame = spark.read.format("quorumlog").options(**options).option("subscribe", topic).load()
        values = sorted(int(row.value) for row in frame.select("value").collect())
    except Exception as error:
        advice = "workers must reach the addresses that the brokers announce: quorumlog broker list shows them"
        return Finding("round trip", State.FAILED, _first_line(error), advice)
    finally:
        cluster.admin.delete_topic(topic)
    if values != list(range(ROWS)):
        return Finding("round trip", State.FAILED, f"{len(values)} rows came back of {ROWS}", "report this as a defect")
    servers = options["kafka.bootstrap.servers"]
    return Finding("round trip", State.OK, f"{ROWS:,} rows written to {servers} and read by Spark")


def _first_line(error: Exception) -> str:
    """Of the last exception that a worker tells, which is the cause; else of the error itself."""
    told = [line for line in str(error).splitlines() if re.match(r"[\w.]+(Error|Exception|Failed|\w*): ", line)]
    return (told or str(error).splitlines() or [repr(error)])[-1].strip()
