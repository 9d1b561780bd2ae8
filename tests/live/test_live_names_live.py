"""A key press in a shell completes names of a running cluster."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from quorumlog.client.administration.users import SetPassword
from quorumlog.client.blocking import Cluster
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.completing.asking import ask
from quorumlog_cli.completing.kinds import Names
from quorumlog_cli.completing.live_names import BUDGET_S
from quorumlog_cli.main import main

WAIT_S = 75.0  # a machine that is busy with other tests starts a process in seconds


def test_each_sort_of_name_comes_from_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUORUMLOG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with LocalCluster(tmp_path / ".quorumlog", nodes=1) as cluster:
        with Cluster(cluster.bootstrap_servers) as client:
            client.admin.create_topic("orders", partitions=2, replication=1)
            client.admin.alter_user_scram_credentials([SetPassword("ada", "a password of ada's")])
            with client.producer(transactional_id="payer") as producer:
                producer.begin()
                producer.send("orders", b"value", partition=0)
                producer.commit()
            with client.consumer(["orders"], group="readers", start="earliest") as consumer:
                while not consumer.poll(None, 1_000):
                    pass
                consumer.commit()
        target = ["-b", cluster.bootstrap_servers]
        want = {
            Names.TOPICS: "orders",
            Names.PARTITIONS: "orders-1",
            Names.GROUPS: "readers",
            Names.BROKERS: "1",
            Names.TRANSACTIONAL_IDS: "payer",
            Names.USERS: "ada",
        }
        for kind, name in want.items():
            assert name in ask(kind, target), kind

        def offered() -> str:
            began = time.monotonic()
            main(["_names", "topics", "or", "topic", "describe", *target])
            print(f"{time.monotonic() - began:.3f} s of {BUDGET_S}")
            return capsys.readouterr().out.partition("\n")[0]

        assert wait_until(lambda: offered() == "orders", WAIT_S, "a name of the cluster")
        main(["_names", "nodes", ""])
        assert capsys.readouterr().out == "1\n"
