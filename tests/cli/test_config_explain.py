"""`server config explain` says of each key what loading a file with it says."""

from __future__ import annotations

import json

import pytest

from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import Exit
from quorumlog_server.config.foreign_keys import foreign
from quorumlog_server.config.keys import COARSER, all_keys


def explained(key: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, str]]:
    code = main(["server", "config", "explain", key, "-o", "json"])
    said = capsys.readouterr().out
    return code, json.loads(said)


def test_only_keys_without_effect_are_said_to_have_none(capsys: pytest.CaptureFixture[str]) -> None:
    for key in (*all_keys(), "ssl.provider", "zookeeper.connect"):
        code, said = explained(key, capsys)
        of_kafka = None if key in all_keys() else foreign(key)  # a prefix without effect may hold keys of ours
        assert code == Exit.DONE and said["meaning"].endswith("."), key
        assert (of_kafka is None) or (said["effect"] == of_kafka.effect and of_kafka.reason in said["meaning"]), key


UNITS = {
    "log.retention.hours": "retention.ms, in hours. log.retention.minutes and log.retention.ms win over it",
    "log.retention.minutes": "retention.ms, in minutes. log.retention.ms wins over it",
    "log.roll.hours": "segment.ms, in hours. log.roll.ms wins over it",
    "log.roll.jitter.hours": "segment.jitter.ms, in hours. log.roll.jitter.ms wins over it",
}


def test_keys_of_coarser_units_name_the_finer_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(UNITS) == set(COARSER)
    for key, want in UNITS.items():
        assert want in explained(key, capsys)[1]["meaning"]
