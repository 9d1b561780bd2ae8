"""Reads a topic from begin to end by Spark, again and again, until it is ended: SERVERS TOPIC CLIENT_ID.

Says `reads` once the session is ready.
"""

from __future__ import annotations

import sys


def main(servers: str, topic: str, client_id: str) -> None:
    from pyspark.sql import SparkSession

    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    options = {"bootstrap.servers": servers, "subscribe": topic, "groupIdPrefix": client_id}
    print("reads", flush=True)
    while True:
        frame = spark.read.format("quorumlog").options(**options).load()
        frame.selectExpr("sum(length(value))").collect()


if __name__ == "__main__":
    main(*sys.argv[1:])
