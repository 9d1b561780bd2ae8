"""Run by test_spark_secrets.py by itself: protected reads and writes in a session that tells all it can."""

from __future__ import annotations

import json
import logging
import sys
import urllib.request
from pathlib import Path
from typing import Any

QUERY_S = 120.0
PAGES = ("environment", "jobs", "stages", "SQL", "StreamingQuery", "executors", "storage")
REST = (
    "sql?details=true&planDescription=true&length=1000",
    "jobs",
    "stages?details=true",
    "environment",
    "allexecutors",
)


def main(folder: Path) -> None:
    """Reads `options.json` there, by what is done. All that the session tells is in the folder afterwards."""
    given: dict[str, dict[str, str]] = json.loads((folder / "options.json").read_text())
    spark = session(folder)
    logging.getLogger().setLevel(logging.DEBUG)
    frame = spark.read.format("quorumlog").options(**given["read"]).load()
    told = [explained(frame), str([bytes(row.value) for row in frame.collect()])]
    written = frame.select("value")
    writer = written.write.format("quorumlog").options(**given["write"]).mode("append")
    writer.save()
    stream = spark.readStream.format("quorumlog").options(**given["read"]).load()
    sink = stream.select("value").writeStream.format("quorumlog").options(**given["write"])
    query = sink.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(QUERY_S), "a run of AvailableNow ends"
    told += [str(query.lastProgress), query.explain(True) or ""]
    for options in (given["refused read"], given["refused file"]):
        try:
            spark.read.format("quorumlog").options(**options).load().count()
        except Exception as error:
            told.append(f"{type(error)} {error} {error!r}")
    try:
        written.write.format("quorumlog").options(**given["refused write"]).mode("append").save()
    except Exception as error:
        told.append(f"refused write: {error}")
    (folder / "told").write_text("\n".join(told))
    save_pages(spark, folder)
    spark.stop()


def session(folder: Path) -> Any:
    from pyspark.sql import SparkSession

    for name in ("events", "pages"):
        (folder / name).mkdir()
    (folder / "log4j2.properties").write_text(
        "rootLogger.level=info\nrootLogger.appenderRef.stderr.ref=console\nappender.console.type=Console\n"
        "appender.console.name=console\nappender.console.target=SYSTEM_ERR\nappender.console.layout.type=PatternLayout\n"
        "appender.console.layout.pattern=%p %c %m%n%ex\n"
        "logger.spark.name=org.apache.spark\nlogger.spark.level=debug\n"
    )
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "true").config("spark.ui.port", "0")
    builder = builder.config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", str(folder / "events"))
    builder = builder.config("spark.eventLog.compress", "false").config("spark.local.dir", str(folder / "local"))
    log = f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"
    builder = builder.config("spark.driver.extraJavaOptions", log)
    return builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()


def explained(frame: Any) -> str:
    java = frame._jdf.queryExecution()
    return f"{java.toString()} {java.debug().toString()} {java.logical().toString()} {java.executedPlan().treeString()}"


def save_pages(spark: Any, folder: Path) -> None:
    base, app = spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId
    wanted = [f"{base}/{page}/" for page in PAGES] + [f"{base}/api/v1/applications/{app}/{page}" for page in REST]
    wanted += [f"{base}/SQL/execution/?id={number}" for number in range(8)]
    wanted += [f"{base}/jobs/job/?id={number}" for number in range(4)]
    for number, url in enumerate(wanted):
        try:
            with urllib.request.urlopen(url, timeout=10) as page:
                (folder / "pages" / str(number)).write_bytes(page.read())
        except OSError as error:
            (folder / "pages" / f"{number}.error").write_text(f"{url} {error}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
