"""One Spark session for all tests of this folder that need one.

A test that also uses a client asks for `spark` first: Spark forks to start Java, and gRPC's threads may kill the child
before it becomes Java.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from quorumlog.spark.session.java import NoJava, use_java
from quorumlog.testing import ports
from tests.spark.versions import RAN

# Other suites run beside this one. A cluster of theirs that is down, and started again by `quorumlog up`, holds no lock
# on its ports meanwhile, which are among the first ones.
ports.FIRST = 19_092


@pytest.fixture(scope="session")
def spark(record_testsuite_property: Any) -> Iterator[Any]:
    try:
        use_java()
    except NoJava as error:
        pytest.skip(str(error))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    record_testsuite_property(RAN, session.version)
    yield session
    session.stop()
