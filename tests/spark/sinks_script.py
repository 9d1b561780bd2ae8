"""Run by test_spark_sinks_agree.py with Spark's Kafka connector on the classpath: the same rows into two topics.

python sinks_script.py '{"servers": ..., "theirs": TOPIC, "ours": TOPIC, "classpath": ...}'
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

ROWS = 3_000
PAIRS = ("cast(cast(id as string) as binary)", "cast(null as binary)")
HEADERS = "array({})".format(", ".join(f"named_struct('key', 'a', 'value', {value})" for value in PAIRS))
COLUMNS = (
    # empty, and of each length up to 40 bytes, so that every end of the hash is there
    "case when id % 11 = 0 then '' else rpad(cast(id as string), cast(1 + id % 40 as int), 'k') end as key",
    "case when id % 7 = 0 then null when id % 7 = 1 then '' else cast(id as string) end as value",
    f"case when id % 3 = 0 then {HEADERS} end as headers",
    "case when id % 5 = 0 then cast(id % 4 as int) end as partition",
)


def main(job: Mapping[str, str]) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.extraClassPath", job["classpath"]).getOrCreate()
    rows = spark.range(ROWS).selectExpr(*COLUMNS)
    for kind, topic, more in (("kafka", "theirs", {}), ("quorumlog", "ours", {"delivery": "at-least-once"})):
        options = {"kafka.bootstrap.servers": job["servers"], "topic": job[topic], **more}
        rows.write.format(kind).options(**options).mode("append").save()
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
