"""Nothing that a session of Spark tells has a secret: plans, event logs, its UI, checkpoints, errors, logs at DEBUG."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.security.sasl.jaas import Module, write_jaas
from quorumlog.spark.session.java import NoJava, use_java
from tests.security.client.issuer_of_certificates import Authority
from tests.security.serving.secured_node import make_user, secured_node

CANARY, WRONG = "c4nary-Passw0rd-of-ada", "c4nary-that-1s-wrong"
SCRIPT_S = 480.0
ROWS = 20
LEAST_DEBUG = 100  # lines
LEAST_PAGES = 15


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder with all that a session has told, of reads and writes that are in the test below."""
    try:
        use_java()
    except NoJava as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("secured")
    own = Authority(folder, "own")
    more = f"ssl.keystore.location={own.issue('node', hosts=('localhost',))}\nsasl.enabled.mechanisms=SCRAM-SHA-512\n"
    (folder / "password").write_text(f"{CANARY}\n")
    with secured_node(folder, "SASL_SSL", more) as (node, address), Cluster(node.address) as plain:
        make_user(node.address, "ada", CANARY)
        for topic in ("orders", "copy"):
            plain.admin.create_topic(topic, 1, 1)
        with plain.producer() as producer:
            for number in range(ROWS):
                producer.send("orders", b"%d" % number)
        made = folder / "told"
        made.mkdir()
        (made / "options.json").write_text(json.dumps(options_of(address, folder, own)))
        run(made)
        copied = plain.consumer("copy", start="earliest", stop="latest")
        assert len(list(copied)) == 2 * ROWS, "by a batch, and by a stream"
        yield made


def options_of(address: str, folder: Path, own: Authority) -> dict[str, dict[str, str]]:
    tls = {
        "kafka.bootstrap.servers": address,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.ssl.truststore.location": str(own.path),
        "kafka.ssl.keystore.location": str(folder / "ada.keystore.pem"),
    }
    own.issue("ada")
    read = {**tls, "subscribe": "orders", "startingOffsets": "earliest"}
    write = {**tls, "topic": "copy", "delivery": "at-least-once"}
    line = write_jaas(Module.SCRAM, {"username": "ada", "password": "${env:CANARY}"})
    by_file = {"kafka.sasl.username": "ada", "kafka.sasl.password": f"file:{folder / 'password'}"}
    wrong = {"kafka.sasl.username": "ada", "kafka.sasl.password": "env:WRONG"}
    return {
        "read": {**read, "kafka.sasl.jaas.config": line},
        "write": {**write, **by_file},
        "refused read": {**read, **wrong},
        "refused file": {**read, **wrong, "kafka.sasl.password": "file:/no/such/file"},
        "refused write": {**write, **wrong},
    }


def run(folder: Path) -> None:
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.secret_script", str(folder)],
            env={
                **os.environ,
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_LOCAL_IP": "127.0.0.1",
                "CANARY": CANARY,
                "WRONG": WRONG,
            },
            cwd=Path(__file__).resolve().parents[2],
            stdout=stdout, stderr=stderr, timeout=SCRIPT_S, check=False,
        )  # fmt: skip
    assert done.returncode == 0, (folder / "stderr").read_text(errors="replace")[-3_000:]


def spellings(secret: str) -> list[bytes]:
    """As bytes may be shown: as they are, in hex, in base64 from any of three places, and as lists of numbers."""
    data = secret.encode()
    encoded = [base64.b64encode(b"\0" * before + data)[4:-4] for before in range(3)]
    numbers = [", ".join(map(str, data)).encode(), ",".join(map(str, data)).encode()]
    return [data, data.hex().encode(), data.hex().upper().encode(), secret.encode("utf-16-le"), *encoded, *numbers]


@pytest.mark.timeout(SCRIPT_S)
def test_no_secret_is_in_anything_that_spark_tells(told: Path) -> None:
    key = (told.parent / "ada.keystore.pem").read_text().splitlines()[1]
    files = [path for path in told.rglob("*") if path.is_file()]
    texts = {path: path.read_bytes() for path in files}
    assert texts[told / "stderr"].count(b"\nDEBUG ") >= LEAST_DEBUG, "Spark logs at DEBUG"
    events = b"".join(data for path, data in texts.items() if "events" in path.parts)
    assert events.count(b"SparkListenerSQLExecutionStart") >= 3 and b"BatchScan quorumlog" in events
    pages = [path for path in files if path.parent.name == "pages" and not path.suffix]
    assert len(pages) >= LEAST_PAGES, [path.read_text() for path in told.glob("pages/*.error")]
    assert any("checkpoint" in path.parts for path in files)
    found = [
        (str(path.relative_to(told)), secret[:4])
        for path, data in texts.items()
        for secret in (CANARY, WRONG, key)
        for spelling in spellings(secret)
        if spelling in data
    ]
    assert not found


def test_refusals_are_one_sentence_of_the_driver(told: Path) -> None:
    text = (told / "told").read_text()
    assert text.count("refuses the login of user 'ada' by SCRAM-SHA-512") >= 2, "of the read, and of the write"
    assert "sasl_password=file:/no/such/file: it cannot be read (No such file or directory)" in text
    events = b"".join(path.read_bytes() for path in told.glob("events/**/*") if path.is_file())
    assert b'"Reason":"ExceptionFailure"' not in events, "no task was run for it"
