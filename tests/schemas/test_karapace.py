"""Our serializers and commands against Karapace, whose `_schemas` topic and group are on our own cluster.

Karapace is on no package index. QUORUMLOG_KARAPACE names a Python that can import it; without that this is skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.schemas import (
    AvroSerializer,
    IncompatibleSchema,
    JsonSerializer,
    SchemaDeserializer,
    SchemaRegistry,
)
from quorumlog.testing import LocalCluster
from tests.live.free_ports import free_port

PYTHON = os.environ.get("QUORUMLOG_KARAPACE", "")
START_S = 120.0
LOOK_S = 1.0
JSON = json.dumps({"title": "Order", "type": "object", "required": ["id"]})
pytestmark = pytest.mark.skipif(not PYTHON, reason="QUORUMLOG_KARAPACE names no Python that has Karapace")


def avro(kind: str) -> str:
    return json.dumps({"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": kind}]})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("karapace") / "cluster", nodes=1) as made:
        yield made


@pytest.fixture(scope="module")
def url(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, port = tmp_path_factory.mktemp("registry"), free_port()
    told = {
        "KARAPACE_BOOTSTRAP_URI": cluster.bootstrap_servers, "KARAPACE_HOST": "127.0.0.1", "KARAPACE_PORT": str(port),
        "KARAPACE_ADVERTISED_HOSTNAME": "127.0.0.1", "KARAPACE_REPLICATION_FACTOR": "1",
        "KARAPACE_KARAPACE_REGISTRY": "true",
    }  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [PYTHON, "-m", "karapace"], env={**os.environ, **told}, stdout=log, stderr=log, cwd=folder
        )
        try:
            _wait_for_master(process, address, folder / "log")
            yield address
        finally:
            process.kill()
            process.wait()


def _wait_for_master(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    """It takes no schema in its first seconds: until then it answers 500."""
    ends = time.monotonic() + START_S
    body = json.dumps({"schema": '"string"'}).encode()
    headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    while True:
        assert process.poll() is None and time.monotonic() < ends, log.read_text()[-3_000:]
        request = urllib.request.Request(f"{address}/subjects/first/versions", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=10):
                return
        except OSError:
            time.sleep(LOOK_S)


def test_what_is_written_by_its_ids_is_read_and_a_change_that_does_not_fit_is_refused(
    url: str, cluster: LocalCluster
) -> None:
    for write in (AvroSerializer(SchemaRegistry(url), avro("long")), JsonSerializer(SchemaRegistry(url), JSON)):
        data = write.serialize(f"orders-{write.kind}", [], {"id": 7})
        assert data is not None and data[0] == 0
        read = SchemaDeserializer(SchemaRegistry(url))
        assert read.deserialize("orders", [], data) == {"id": 7}
    with pytest.raises(IncompatibleSchema):
        AvroSerializer(SchemaRegistry(url), avro("string")).schema_id("orders-AVRO")
    with cluster.client.consumer("_schemas", stop="latest") as kept:
        subjects = {json.loads(record.key or b"{}").get("subject") for record in kept}
    assert {"first", "orders-AVRO-value", "orders-JSON-value"} <= subjects
