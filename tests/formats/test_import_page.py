"""The commands of docs/operations.md about import and export, run as they stand there."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.ids import format_uuid
from quorumlog.testing.ports import PortPicker
from quorumlog.testing.waiting import wait_until
from tests.formats.consumed import offsets_of, read_all
from tests.formats.kafka_directory import READ_UNCOMMITTED, must_be_what_kafka_read, unpack_kafka
from tests.formats.test_import import partitions_of, run
from tests.live.operations_world import IDS, Operator
from tests.rules import rule

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text()
COMMAND_S = 120.0
CHECKED_S = 60.0
CHECK_OFTEN = {"log.retention.check.interval.ms": "200"}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of three nodes whose files were written by hand."""
    picker = PortPicker()
    operator = Operator.with_three_nodes(tmp_path_factory.mktemp("page"), picker, CHECK_OFTEN)
    try:
        for node in IDS:
            operator.wait(lambda node=node: operator.is_ready(node), f"node {node} is ready")
        yield operator.values["SERVERS"]
    finally:
        operator.close()
        picker.close()


def commands(section: str) -> list[str]:
    """Of one section, in order."""
    _, _, rest = PAGE.partition(f"\n## {section}\n")
    text = rest.partition("\n## ")[0]
    return [line.strip()[2:] for line in text.splitlines() if line.strip().startswith("$ ")]


def carry_out(command: str, words: dict[str, str]) -> None:
    for word, meaning in words.items():
        command = command.replace(word, meaning)
    program, *arguments = shlex.split(command)
    start = [sys.executable, "-m", "quorumlog_cli.main"] if program == "quorumlog" else [program]
    done = subprocess.run([*start, *arguments], capture_output=True, text=True, timeout=COMMAND_S, check=False)
    assert done.returncode == 0, (command, done.stdout, done.stderr)


@rule("storage 12.5")
def test_every_command_of_both_sections(servers: str, tmp_path: Path) -> None:
    words = {
        "KAFKA": str(unpack_kafka(tmp_path)), "SERVERS": servers,
        "DIR": str(tmp_path / "out"), "BACKUP": str(tmp_path / "backup"),
        "--topic-id ID": f"--topic-id {format_uuid(bytes(range(16)))}",
    }  # fmt: skip
    in_page = commands("Import from Kafka")
    (the_import,) = [command for command in in_page if "KAFKA" in command and " import " in command]
    for command in in_page:
        if "--activate" in command:  # nothing expires before the export below
            carry_out("quorumlog config set orders retention.ms=-1 -b SERVERS", words)
        carry_out(command, words)
        if "topic delete" in command:
            carry_out(the_import, words)
    rows = read_all(servers, "orders", 0, READ_UNCOMMITTED)
    must_be_what_kafka_read(f"plain-0/{READ_UNCOMMITTED}", rows)
    for command in commands("Export to Kafka"):
        carry_out(command, words)
    assert (tmp_path / "node1" / "plain-0" / "partition.metadata").read_text().endswith(format_uuid(bytes(range(16))))


def test_retention_waits_for_the_activation(servers: str, tmp_path: Path) -> None:
    """The records are years old, and the retention of both topics is the default: a week."""
    source = unpack_kafka(tmp_path)
    for topic, options in (("paused", ()), ("active", ("--activate",))):
        copied = [shutil.copytree(one, tmp_path / topic / one.name) for one in partitions_of(source, "rolled")]
        shutil.copy(source / "replication-offset-checkpoint", tmp_path / topic)
        run("log", "import", *copied, "--topic", topic, *options, servers=servers)

    def is_empty(topic: str) -> bool:
        """By its offsets: a reader would be overtaken by the retention."""
        begin, end = offsets_of(servers, topic, 0)
        return begin == end > 0

    wait_until(lambda: is_empty("active"), CHECKED_S, "the retention of the active topic")
    assert len(read_all(servers, "paused", 0, READ_UNCOMMITTED)) == 6_000
    run("log", "import", "--activate", "--topic", "paused", servers=servers)
    wait_until(lambda: is_empty("paused"), CHECKED_S, "the retention of the topic that was activated")
