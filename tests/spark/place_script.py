"""Run by test_spark_places.py in a process of its own: reads a topic with Spark, writes it, and prints what it has
found."""

from __future__ import annotations

import json
import sys


def main(servers: str, topic: str, archive: str, name: str) -> None:
    """Prints one line of JSON: the rows, and where workers have the package from. archive: as for `--py-files`. name:
    of what is written."""
    from once_places import write_twice
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()

    def place(_: int) -> str:
        import quorumlog

        return str(quorumlog.__file__)

    if archive:
        spark.sparkContext.addPyFile(archive)
        from quorumlog.spark import DefaultSource

        spark.dataSource.register(DefaultSource)
    frame = spark.read.format("quorumlog").option("bootstrap.servers", servers).option("subscribe", topic).load()
    rows = sorted((row.partition, row.offset) for row in frame.select("partition", "offset").collect())
    write_twice(spark, servers, topic, name)
    places = sorted(set(spark.sparkContext.parallelize([1, 2], 2).map(place).collect()))
    print(json.dumps({"rows": rows, "places": places}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4])
