"""`quorumlog spark mirror` between two clusters with TLS and logins, each with a user of its own, by two profiles."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.spark.session.java import NoJava, use_java
from tests.security.client.issuer_of_certificates import Authority
from tests.security.serving.secured_node import make_user, secured_node

ROWS = 30
RUN_S = 900.0
CANARY = "c4nary-s3cret-of-"


def profile(name: str, address: str, folder: Path, ca: Path) -> str:
    return (
        f'[profiles.{name}]\nbootstrap_servers = ["{address}"]\nsecurity_protocol = "SASL_SSL"\n'
        f'[profiles.{name}.sasl]\nmechanism = "SCRAM-SHA-512"\nusername = "{name}"\n'
        f'password = "file:{folder / name}.password"\n[profiles.{name}.tls]\nca = "{ca}"\n'
    )


@pytest.mark.timeout(RUN_S)
def test_records_are_mirrored(tmp_path: Path) -> None:
    try:
        use_java()
    except NoJava as error:
        pytest.skip(str(error))
    own = Authority(tmp_path, "own")
    config, plain = "", list[str]()
    with ExitStack() as stack:
        for name in ("east", "west"):
            folder = tmp_path / name
            folder.mkdir()
            more = (
                f"ssl.keystore.location={own.issue(name, hosts=('localhost',))}\n"
                "sasl.enabled.mechanisms=SCRAM-SHA-512\ntransaction.state.log.replication.factor=1\n"
            )
            node, address = stack.enter_context(secured_node(folder, "SASL_SSL", more, grpc=True, cluster_id=name))
            make_user(node.address, name, CANARY + name)
            (tmp_path / f"{name}.password").write_text(CANARY + name)
            config += profile(name, address, tmp_path, own.path)
            plain.append(node.address)
        (tmp_path / "config.toml").write_text(config)
        with Cluster(plain[0]) as source:
            source.admin.create_topic("orders", 1, 1)
            with source.producer() as producer:
                for number in range(ROWS):
                    producer.send("orders", b"%d" % number)
        assert CANARY not in mirror(tmp_path)
        with Cluster(plain[1]) as target:
            reader = target.consumer("east.orders", start="earliest", stop="latest", isolation_level="read_committed")
            assert [one.value for one in reader] == [b"%d" % number for number in range(ROWS)]


def mirror(folder: Path) -> str:
    command = [sys.executable, "-m", "quorumlog_cli.main", "spark", "mirror", "--from", "east", "--to", "west"]
    done = subprocess.run(
        [*command, "--topics", "orders", "--checkpoint", str(folder / "checkpoint"), "--once"],
        env={**os.environ, "QUORUMLOG_HOME": str(folder), "PYSPARK_PYTHON": sys.executable},
        capture_output=True, text=True, timeout=RUN_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout + done.stderr
