"""How Kafka's tools are started, with a `java` of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.peers.kafka_tools import CONSUMER_PERF, SHORT_LIVED, TOPICS, Kafka, ToolFailed

# Says what it was given; writes an archive where it is asked to; fails if the tool's argument is `fail`.
JAVA = """\
#!/bin/sh
for word; do
    case $word in -XX:ArchiveClassesAtExit=*) echo classes >"${word#*=}" ;; esac
done
echo "$@"
case " $* " in *" fail "*) exit 1 ;; esac
"""


@pytest.fixture
def kafka(tmp_path: Path) -> Kafka:
    java = tmp_path / "java"
    java.write_text(JAVA)
    java.chmod(0o755)
    (tmp_path / "jars").mkdir()
    return Kafka(str(java), tmp_path / "jars")


def test_the_first_tool_leaves_the_classes_for_all_others(kafka: Kafka) -> None:
    assert "-XX:SharedArchiveFile" not in kafka.run(TOPICS, "--list")
    assert kafka.classes.read_text() == "classes\n"
    shared = f"-XX:SharedArchiveFile={kafka.classes}"
    assert shared in kafka.run(TOPICS, "--list") and "AtExit" not in kafka.run(TOPICS, "--list")
    assert shared in kafka.command(TOPICS, options=SHORT_LIVED) and shared not in kafka.command(TOPICS)
    assert {path.name for path in kafka.jars.parent.iterdir()} == {"java", "jars", kafka.classes.name}


def test_a_tool_that_failed_leaves_them_too(kafka: Kafka) -> None:
    with pytest.raises(ToolFailed):
        kafka.run(TOPICS, "fail")
    assert kafka.classes.exists()


def test_what_is_measured_has_no_part_in_it(kafka: Kafka) -> None:
    assert "Archive" not in kafka.run(CONSUMER_PERF)
    assert not kafka.classes.exists()
