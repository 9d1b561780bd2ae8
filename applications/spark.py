"""Spark's own Kafka source and sink (its connector, not ours): a stream from a topic to a topic, in two runs.

Spark keeps the offsets in its checkpoint and assigns partitions; the connector asks the cluster with Kafka's admin
client. The second run begins where the first one ended.
"""

from __future__ import annotations

from pathlib import Path

from applications.application import Application, Stage
from applications.running import Process
from bench.spark.tools import SparkTools, get_spark

TIMEOUT_S = 240.0
LINES = 300

JOB = """\
import sys
from pathlib import Path
from pyspark.sql import SparkSession

servers, jars, checkpoint = sys.argv[1:]
found = ",".join(str(jar) for jar in sorted(Path(jars).glob("*.jar")))
spark = SparkSession.builder.master("local[2]").config("spark.jars", found)
spark = spark.config("spark.ui.enabled", "false").getOrCreate()
lines = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", "plain")
lines = lines.option("startingOffsets", "earliest").load()
upper = lines.selectExpr("key", "upper(CAST(value AS STRING)) AS value").writeStream.format("kafka")
upper = upper.option("kafka.bootstrap.servers", servers).option("topic", "capitals")
upper.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
batch = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", "capitals").load()
print("rows:", batch.count())
"""


def prepare(cache: Path) -> SparkTools:
    return get_spark(folder=cache / "spark")


def run(stage: Stage) -> None:
    """Each line is there in capitals, once: nothing fails in between."""
    tools = prepare(stage.cache)
    job = stage.folder / "job.py"
    job.write_text(JOB)
    stage.cluster.create("plain", "capitals", partitions=2)
    for round_ in (0, 1):
        stage.cluster.send("plain", [f"line {round_} {number}" for number in range(LINES)])
        command = [str(tools.python), str(job), stage.cluster.bootstrap_servers, str(tools.jars)]
        command.append(str(stage.folder / "checkpoint"))
        log = stage.folder / f"job-{round_}.log"
        with Process(command, log=log, cwd=stage.folder, env=tools.environment(None)) as process:
            process.wait(TIMEOUT_S)
        found = sorted(value or b"" for _, value in stage.cluster.read("capitals"))
        assert found == sorted(f"LINE {one} {number}".encode() for one in range(round_ + 1) for number in range(LINES))
        assert f"rows: {len(found)}" in log.read_text(), "Spark reads other rows than librdkafka"


SPARK = Application("spark", "Spark's Kafka connector, source and sink, in two runs", prepare, run)
