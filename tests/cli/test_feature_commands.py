"""`quorumlog feature version-mapping` and `dependencies`: this software's own tables, in the words of Kafka's tool.

tests/clients/test_feature_command.py compares the words with that tool itself.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import Exit
from quorumlog_quorum.metadata.features import (
    KRAFT_VERSIONS,
    LATEST_LEVEL,
    METADATA_VERSION,
    SUPPORTED,
    first_levels,
    needs,
)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["feature", *words, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("level", range(1, LATEST_LEVEL + 1))
def test_a_mapping_is_what_a_new_cluster_of_that_level_begins_with(
    level: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = said(capsys, "version-mapping", "--release-version", str(level))
    levels = {one["name"]: one["level"] for one in found["features"]}
    assert levels.pop("kraft.version") == KRAFT_VERSIONS.max_level
    assert levels == {**dict.fromkeys((one.name for one in SUPPORTED), 0), **first_levels(SUPPORTED, level)}
    assert all(levels[METADATA_VERSION] >= needs(n, v).get(METADATA_VERSION, 0) for n, v in levels.items())


def test_the_mapping_of_the_highest_level_is_shown_first_without_a_level(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["feature", "version-mapping"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"metadata.version={LATEST_LEVEL}", "kraft.version=1"]
    assert "joint.version=2" in lines


def test_dependencies_are_told_for_each_level(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["dependencies", "--feature", "joint.version=2", "group.version=0", "--feature", "kraft.version=1"]
    assert main(["feature", *words]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "joint.version=2 requires:",
        "    metadata.version=3",
        "    transaction.version=2",
        "kraft.version=1 has no dependencies.",
        "group.version=0 has no dependencies.",
    ]
    (group,) = said(capsys, "dependencies", "group.version=1")["features"]
    assert group == {"name": "group.version", "level": 1, "requires": [{"name": "metadata.version", "level": 3}]}


REFUSED = [
    ("no level", ["dependencies", "--feature", "a"], "Can't parse feature=level string a: equals sign not found."),
    ("no number", ["dependencies", "a=b"], "Can't parse feature=level string a=b: unable to parse b as a short."),
    ("no feature", ["dependencies", "foo=1"], "Unknown feature: foo"),
    ("too high", ["dependencies", "joint.version=9"], "No feature:joint.version with feature level 9"),
    ("below", ["dependencies", "metadata.version=0"], "Unknown metadata.version 0"),
    ("nothing", ["dependencies"], "name a level, e.g. --feature joint.version=2"),
    ("a release", ["version-mapping", "--release-version", "99"], "Unknown metadata.version '99'. Supported"),
]


@pytest.mark.parametrize(("words", "want"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED])
def test_what_this_software_does_not_know_is_refused(
    words: list[str], want: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["feature", *words]) == Exit.USAGE
    captured = capsys.readouterr()
    assert want in captured.err and captured.out == ""
