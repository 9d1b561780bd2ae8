"""Every command that prints a document prints one, on a real cluster, and each is as the command declares it.

Commands that start Spark, or mend what only a crash breaks, are in ELSEWHERE: there, too, each document of a command is
checked (tests/documents.py).
"""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.testing import LocalCluster
from quorumlog.testing.protected import AUTHORIZER
from quorumlog_cli.documents.table import DOCUMENTS, FAILURE
from quorumlog_cli.main import main
from tests.documents import command_of, watched

# What is typed in a folder, line by line; {name} stands for what a line before it has made.
LINES = """
up -d
status
net cut 1 2,3
net status
net heal
profile list
profile show
profile create other -b 127.0.0.1:1
profile use other
profile delete other
profile use local
topic create orders --partitions 2 -r 3
topic create -f topics.toml
topic list
topic describe orders
topic describe orders prices
topic alter orders -c retention.ms=86400000
produce orders
bench produce -t orders -n 20 --save one.json
bench produce -t orders -n 20 --save two.json
bench consume -t orders -n 10 --save three.json
bench e2e -t orders -n 10 --save four.json
bench compare one.json two.json
topic offsets orders --count --at 0
topic truncate orders --before 1 -p 0
config get orders --all
config set orders min.insync.replicas=2
config unset orders min.insync.replicas
group list
group describe readers
group describe readers --members
group describe readers --state
group lag readers --eta
group reset-offsets --group readers --topic orders --to-earliest --execute
group delete-offsets readers --topic orders
group delete readers
transaction list
transaction describe payer
transaction describe-producers --topic orders --partition 0
transaction find-hanging --topic orders
transaction abort --transactional-id payer
spark pin list
spark sink list
spark sink list --open
spark shell
top --once
quorum status
quorum verify
quorum replication
quorum history --from {meta}
quorum wait-healthy
quorum transfer-leadership --to {follower}
broker list
broker describe 1
feature describe
feature upgrade metadata.version={level} --dry-run
feature downgrade metadata.version={level} --dry-run
feature version-mapping
feature dependencies --feature metadata.version=2
partition list
partition status
partition move orders-0 --to 2,1,3 --wait
partition elect-leader --all
partition elect-leader --all --dry-run
partition plan balance --out plan.json
partition plan add-broker 3
partition plan move orders --to 1,2,3 --out plan.json
partition apply plan.json --wait
log-dirs list
acl create topic:orders --allow User:alice --operation read
acl list
acl test User:alice read topic:orders
acl export acls.json
acl apply acls.json --dry-run
acl delete topic:orders --allow User:alice --yes
user create ada -m SCRAM-SHA-256 --password env:ADA
user list
user passwd ada --password env:ADA
user delete ada --yes
quota set --user ada producer_byte_rate=1048576
quota list
quota top
quota delete --user ada --all
metadata dump --from {meta}
metadata dump --image --from {meta}
explain
check
diagnose --to bundle.tar.zst
generate grafana
generate grafana --to made
generate alerts
backup create kept
backup show kept
backup verify kept
log explain-compaction orders-0
log export --topic orders -p 0 --out exported
log dump {segment} --print-data-log
log verify {segment}
log segments {folder}
log hexdump {segment}
log grep --value v {segment}
log grep --value v --count {segment}
log import exported/orders-0 --topic again -r 3
log import --activate --topic again
topic delete again
storage random-uuid
storage format -c server.properties --standalone --secret-file secret
storage info -c server.properties
server config lint -c server.properties
server config show -c server.properties
server config explain log.retention.hours
tls init certs --node 1=127.0.0.1 --client ada
tls show certs
tls verify certs
tls renew certs
tls revoke certs ada
completion bash
schema
schema topic list
docs
docs operations
docs --find quorum
version
logs
kill 3
restart 3
pause 3
resume 3
roll --dry-run
roll --nodes 3 --yes --allow-unavailable
down
log verify .quorumlog/n1
metadata snapshot list {meta}
metadata snapshot verify {meta}
purge --yes
"""

_SPARK = "it needs Spark: tests/spark"
_REPAIR = "it repairs what only a crash breaks"
ELSEWHERE = {  # commands without a line above, and why
    "console": "it serves until it is stopped: tests/console",
    "consume": "its lines are records, which the test reads from its output",
    "spark doctor": _SPARK,
    "spark load": _SPARK,
    "spark mirror": _SPARK,
    "spark pin delete": _SPARK,
    "spark sink abort": _SPARK,
    "spark sink forget": _SPARK,
    "log index": "a small log has no index: tests/cli/test_offline_files.py",
    "broker unregister": "it needs a broker that is gone: tests/cli/test_broker_commands.py",
    "broker drain": "there is no fourth broker: tests/live/test_moves_live.py",
    "partition drain": "likewise",
    "partition plan drain": "likewise",
    "quorum add-controller": "it needs a node that is no voter: tests/live/test_replace_controller_live.py",
    "quorum remove-controller": "likewise",
    "partition cancel": "nothing moves for long enough here: tests/live/test_moves_live.py",
    "log-dirs move": "it needs two log directories: tests/live/test_moves_live.py",
    "log-dirs cancel": "likewise",
    "log-dirs online": "it needs a directory that has failed: tests/live/test_removed_directory_live.py",
    "restore local": "it writes and syncs each partition anew: tests/live/test_backup_drill.py",
    "restore node": "likewise",
    "restore release": "nothing is held here: tests/live/test_backup_drill.py",
    "storage recover": _REPAIR,
    "storage adopt": _REPAIR,
    "storage renew-quorum-state": _REPAIR,
    "storage accept-metadata-loss": _REPAIR,
    "storage refetch-metadata": _REPAIR,
    "server start": "its lines are a node's log: tests/server/test_log_lines.py",
    "tls import": "it needs a keystore of Java's: tests/cli/test_tls_commands.py",
}

RULES = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """A folder with a running cluster and the files that the lines name."""
    monkeypatch.setenv("QUORUMLOG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ADA", "a-password")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics.toml").write_text('[[topics]]\ntopic = "prices"\n')
    (tmp_path / "secret").write_text("x" * 64)
    (tmp_path / "server.properties").write_text(
        "process.roles=broker,controller\nnode.id=1\nlog.dirs=own/data\nmetadata.log.dir=own/meta\n"
        "listeners=CLIENT://127.0.0.1:9092,INTERNAL://127.0.0.1:9093\n"
        "controller.quorum.bootstrap.servers=127.0.0.1:9093\n"
    )
    with LocalCluster(tmp_path / ".quorumlog", config=RULES, keep_data=True) as cluster:
        yield cluster


def use(cluster: LocalCluster) -> None:
    """Leave a group with commits, a transaction that has ended, and records behind."""
    with Cluster(cluster.bootstrap_servers) as client:
        with client.producer(transactional_id="payer") as producer:
            producer.begin()
            producer.send("orders", b"value", partition=0)
            producer.commit()
        with client.consumer(["orders"], group="readers", start="earliest") as consumer:
            while not consumer.poll(None, 1_000):
                pass
            consumer.commit()


def names(cluster: LocalCluster, folder: Path) -> dict[str, str]:
    """What lines stand for, as far as it is there."""
    logs = next(folder.glob(".quorumlog/*1/**/__cluster_metadata-0"))
    found = {"meta": str(logs.parent)}
    if cluster.nodes.serving():
        leader = cluster.client.admin.describe_quorum().leader_id
        (level,) = [one for one in cluster.client.admin.describe_features().features if one.name == "metadata.version"]
        found |= {"follower": str(leader % 3 + 1), "level": str(level.finalized_level)}
    if segments := sorted(folder.glob(".quorumlog/*1/**/orders-0/*.log")):
        found |= {"segment": str(segments[0]), "folder": str(segments[0].parent)}
    return found


@pytest.mark.timeout(400)
def test_every_document_is_as_its_command_declares_it(
    place: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed: list[str] = []
    silent: list[str] = []
    with watched(printed.append):
        for line in LINES.strip().splitlines():
            known = names(place, tmp_path) if "{" in line else {}
            words = shlex.split(line.format(**known))
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"value\n" * 5), isatty=lambda: False))
            if line == "topic offsets orders --count --at 0":
                use(place)
            before = len(printed)
            code = main([*words, "-o", "json"])
            said = capsys.readouterr()
            if command_of(words) not in printed[before:]:
                silent.append(f"{line}: code {code}: {said.out[-300:]} {said.err[-500:]}")
    assert not silent, "\n".join(silent)
    assert {*printed, *ELSEWHERE, FAILURE} == set(DOCUMENTS)


def test_every_line_is_of_another_command() -> None:
    typed = {command_of(line.split()) for line in LINES.strip().splitlines()}
    assert not typed & set(ELSEWHERE)
    assert typed | set(ELSEWHERE) | {FAILURE} == set(DOCUMENTS)
