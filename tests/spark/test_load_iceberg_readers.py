"""What others read of a table of Apache Iceberg that loads have made: DuckDB, and Spark with Iceberg's own package.

DuckDB's extension is of one version of DuckDB, and Iceberg's package of Spark of some versions of Spark: both are
fetched once, into `out/iceberg`. `./dev spark-versions` runs the second test with the versions that it has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from bench.peers.kafka_tools import Unavailable, alone, fetch_jars, missing
from quorumlog.spark.load.folder import BY_DAY, ICEBERG
from quorumlog.spark.load.job import Request
from quorumlog.spark.session.java import NoJava, use_java
from quorumlog.testing import LocalCluster
from tests.spark.table_kinds import KINDS, TableKind
from tests.spark.test_load_tables import COUNT, cluster, load, wanted

__all__ = ["cluster", "wanted"]
FOLDER = Path(__file__).resolve().parents[2] / "out" / "iceberg"
DUCKDB, EXTENSION = "1.4.4", "1.4.4.20260205"  # the newest that the index has an extension for
FETCH_S = 300
ICEBERG_VERSION = "1.11.0"
PACKAGES = {"4.0": "iceberg-spark-runtime-4.0_2.13", "4.1": "iceberg-spark-runtime-4.1_2.13"}  # of that version
POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>quorumlog</groupId><artifactId>iceberg-jars</artifactId><version>1</version>
<dependencies><dependency>
  <groupId>org.apache.iceberg</groupId><artifactId>{package}</artifactId><version>{version}</version>
</dependency></dependencies></project>
"""
BY_DUCKDB = """
import json, sys
import duckdb
extensions, place = sys.argv[1:]
connection = duckdb.connect(config={"allow_unsigned_extensions": "false"})
for name in ("avro", "iceberg"):
    connection.execute(f"LOAD '{extensions}/{name}.duckdb_extension'")
table = f"iceberg_scan('{place}', version => '?', allow_moved_paths => false)"
connection.execute("SET unsafe_enable_version_guessing = true")
rows = connection.execute(f'SELECT "partition", "offset", topic, count(*) FROM {table} GROUP BY ALL').fetchall()
values = connection.execute(f'SELECT sum(octet_length("value")) FROM {table}').fetchone()
print(json.dumps({"rows": rows, "bytes": int(values[0])}))
"""
BY_SPARK = """
import json, sys
from pyspark.sql import SparkSession
jars, place = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.jars", jars)
spark = builder.getOrCreate()
table = spark.read.format("iceberg").load(place)
rows = [[*row] for row in table.groupBy("partition", "offset", "topic").count().collect()]
values = table.selectExpr("sum(octet_length(value))").first()[0]
print("FOUND " + json.dumps({"rows": rows, "bytes": values}))
"""


@pytest.fixture
def kind() -> TableKind:
    return next(one for one in KINDS if one.name == ICEBERG)


@pytest.fixture(params=["", BY_DAY], ids=["by topic", "by day"])
def loaded(request: pytest.FixtureRequest, wanted: Request, tmp_path: Path) -> Iterator[Path]:
    """A table of two loads, of which the second has loaded some offsets again."""
    made = replace(wanted, partition_by=request.param)
    load(replace(made, until="30"), tmp_path)
    load(made, tmp_path)
    load(replace(made, start="10", until="20"), tmp_path)
    yield tmp_path


def check(found: dict[str, Any], kind: TableKind, place: Path) -> None:
    by_offset = {(partition, offset): count for partition, offset, topic, count in found["rows"] if topic == "orders"}
    assert by_offset == kind.rows(str(place)) and len(found["rows"]) == COUNT + 20
    assert found["bytes"] > 0


@pytest.fixture(scope="module")
def duckdb_packages() -> Path:
    place = FOLDER / f"duckdb-{DUCKDB}"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with alone(FOLDER / "lock"):
        if not place.is_dir():
            packages = [f"duckdb=={DUCKDB}", *(f"duckdb-ext-{name}=={EXTENSION}" for name in ("avro", "iceberg"))]
            unfinished = FOLDER / "unfinished"
            install = ["install", "--quiet", "--no-deps", "--target", str(unfinished), *packages]
            command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *install]
            done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_S, check=False)
            if done.returncode:
                pytest.skip(f"pip could not fetch DuckDB's extension for Iceberg: {done.stderr[-300:].strip()}")
            unfinished.rename(place)
    return place


def test_duckdb_reads_the_table(loaded: Path, kind: TableKind, duckdb_packages: Path) -> None:
    (iceberg,) = duckdb_packages.glob("duckdb_ext/extensions/*/*/iceberg.duckdb_extension")
    done = subprocess.run(
        [sys.executable, "-c", BY_DUCKDB, str(iceberg.parent), str(loaded)],
        env={**os.environ, "PYTHONPATH": str(duckdb_packages)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    check(json.loads(done.stdout), kind, loaded)


@pytest.fixture(scope="module")
def jar() -> str:
    import pyspark

    version = Version(pyspark.__version__)
    package = PACKAGES.get(f"{version.major}.{version.minor}")
    if package is None:
        pytest.skip(f"pyspark {version}: Iceberg {ICEBERG_VERSION} has packages for {' and '.join(PACKAGES)}")
    if lacking := missing():
        pytest.skip(lacking)
    jars = FOLDER / f"{package}-{ICEBERG_VERSION}"
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        use_java()
        with alone(FOLDER / "lock"):
            if not jars.is_dir():
                pom = POM.format(package=package, version=ICEBERG_VERSION)
                fetch_jars(FOLDER, jars, pom, f"Iceberg {ICEBERG_VERSION}")
    except (NoJava, Unavailable) as error:
        pytest.skip(str(error))
    return ",".join(str(one) for one in sorted(jars.glob("*.jar")))


@pytest.mark.timeout(300)
def test_spark_reads_the_table(cluster: LocalCluster, loaded: Path, kind: TableKind, jar: str) -> None:
    """In a process of its own: the session of the other tests has no such package."""
    done = subprocess.run(
        [sys.executable, "-c", BY_SPARK, jar, str(loaded)], capture_output=True, text=True, check=False
    )  # fmt: skip
    told = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert done.returncode == 0 and told, done.stderr[-2_000:]
    check(json.loads(told[0].removeprefix("FOUND ")), kind, loaded)
