"""Spark and its Kafka connector for a comparison: pyspark from PyPI, the connector from Maven, each in its own folder.

Both sides run in the same environment. Ours is a copy of the tree's packages, put on the path, so that its compiled
files and Numba's cache are those of an installation and never those of the tree.
"""

from __future__ import annotations

import compileall
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from bench.peers.kafka_tools import Unavailable, alone, fetch_jars, missing
from bench.peers.python_environment import is_complete, make_environment

NEWEST = "4.2.0"  # of pyspark and of the connector: the newest for which there are both
OLDEST = "4.0.0"  # that the connector of ours works with
TREE = Path(__file__).resolve().parents[2]
FOLDER = TREE / "out" / "spark"

# Spark brings the excluded ones.
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>quorumlog</groupId>
  <artifactId>spark-peer</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.spark</groupId><artifactId>spark-sql-kafka-0-10_2.13</artifactId><version>%s</version>
      <exclusions>
        <exclusion><groupId>org.apache.hadoop</groupId><artifactId>*</artifactId></exclusion>
        <exclusion><groupId>org.scala-lang</groupId><artifactId>*</artifactId></exclusion>
        <exclusion><groupId>org.scala-lang.modules</groupId><artifactId>*</artifactId></exclusion>
        <exclusion><groupId>org.slf4j</groupId><artifactId>*</artifactId></exclusion>
        <exclusion><groupId>org.lz4</groupId><artifactId>*</artifactId></exclusion>
        <exclusion><groupId>org.xerial.snappy</groupId><artifactId>*</artifactId></exclusion>
      </exclusions>
    </dependency>
  </dependencies>
</project>
"""

# The kernels of decoder and encoder for the types that reads and writes use, as after some of an earlier process.
FILL_CACHE = """
import numpy, pyarrow
from quorumlog.records import NO_PRODUCER, NO_SEQUENCE
from quorumlog.records.columnar import decode_columns, lay_out
from quorumlog.records.columnar.form import decoder, encoder
decoder.compiled = encoder.compiled = True
values = pyarrow.array([b"v"] * 10, pyarrow.binary())
for batch in lay_out(pyarrow.nulls(10, pyarrow.binary()), values, numpy.zeros(10, numpy.int64)):
    sealed = bytes(batch.seal(NO_PRODUCER, -1, NO_SEQUENCE, leader_epoch=0))
    assert decode_columns(sealed, from_offset=0, to_offset=10).num_rows == 10
"""


@dataclass(frozen=True, slots=True)
class SparkTools:
    """version: of pyspark and of the connector. python: with this pyspark. jars: the connector's folder."""

    version: str
    python: Path
    jars: Path

    def environment(self, installed: Path | None, *, is_quick: bool = False) -> dict[str, str]:
        """For a process that starts Spark. installed: our packages (`install`), or None for Spark's source alone.
        is_quick: as `quorumlog.spark.quick_start` leaves it."""
        others = ("PYTHON", "PYSPARK", "SPARK", "NUMBA")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        early = [str(installed / "quorumlog" / "spark" / "early")] if installed and is_quick else []
        own = {"PYTHONPATH": os.pathsep.join([*early, str(installed)])} if installed else {}
        python = str(self.python)
        return kept | own | {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"}

    def install(self, folder: Path, *, fill_cache: bool) -> Path:
        """Copy our packages to `folder`, compiled to bytecode as pip does. fill_cache: compile the kernels too."""
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(TREE / "quorumlog", folder / "quorumlog", ignore=ignored)
        for name in ("server", "cli"):
            shutil.copytree(TREE / name / f"quorumlog_{name}", folder / f"quorumlog_{name}", ignore=ignored)
        shutil.copy(TREE / "pyspark_quorumlog.py", folder)
        compileall.compile_dir(folder, quiet=1)
        if fill_cache:
            subprocess.run([self.python, "-c", FILL_CACHE], env=self.environment(folder), cwd=folder, check=True)
        return folder


def get_spark(version: str = NEWEST, folder: Path = FOLDER) -> SparkTools:
    """Spark and the connector in `folder`, downloaded if they are not there yet. Raises Unavailable."""
    get_connector(version, folder)
    wanted = _wanted(version)
    jars, environment = _places(version, folder, wanted)
    with alone(folder / "lock"):
        if not is_complete(environment):
            make_environment(environment, wanted, f"pyspark {version}")
    return SparkTools(version, environment / "bin" / "python", jars)


def get_connector(version: str = NEWEST, folder: Path = FOLDER) -> Path:
    """The folder of the connector's jars, downloaded if it is not there yet. Raises Unavailable."""
    if lacking := missing():
        raise Unavailable(lacking)
    jars = _jars(version, folder)
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder / "lock"):
        if not jars.is_dir():
            fetch_jars(folder, jars, POM % version, f"the connector of Spark {version}")
    return jars


def is_downloaded(version: str = NEWEST, folder: Path = FOLDER) -> bool:
    """Whether `get_spark` would download nothing."""
    jars, environment = _places(version, folder, _wanted(version))
    return jars.is_dir() and is_complete(environment)


def _wanted(version: str) -> list[str]:
    return requirements((TREE / "pyproject.toml").read_text(), version)


def _places(version: str, folder: Path, wanted: list[str]) -> tuple[Path, Path]:
    """The connector's folder, and that of an environment for this Python with these requirements."""
    name = hashlib.sha256(repr((sys.version, wanted)).encode()).hexdigest()[:12]
    return _jars(version, folder), folder / f"env-{name}"


def _jars(version: str, folder: Path) -> Path:
    return folder / f"connector-{version}"


def requirements(pyproject: str, version: str) -> list[str]:
    """What the environment holds: pyspark, and what our package needs with the extra `arrow`."""
    project = tomllib.loads(pyproject)["project"]
    return [f"pyspark=={version}", "pandas", *project["dependencies"], *project["optional-dependencies"]["arrow"]]
