"""./dev bench nats without its servers: rows, lost records, the servers' files, a machine without Go."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench.nats import command
from bench.nats.command import BESIDE, FAILOVER, P50, PAIRS, Found, rows
from bench.peers.kafka_tools import Unavailable
from bench.peers.nats import Nats, get_nats


def found(value: float) -> Found:
    made = Found()
    for figure in BESIDE:
        for one in (value, 2 * value, 4 * value):
            made.add(figure, one)
    return made


def test_rows_are_pairs_of_what_promises_the_same() -> None:
    made = rows({name: found(10) for name in PAIRS}, {name: found(30) for name in PAIRS})
    assert len(made) == 2 * len(BESIDE) * len(PAIRS)
    for theirs, ours in zip(made[::2], made[1::2], strict=True):
        assert theirs.name == f"NATS: {ours.name}" and not theirs.shares and theirs.unit == ours.unit
        assert list(ours.shares) == [0.75, 3.0, 12.0]
    units = {row.name: row.unit for row in made}
    assert units[f"{P50} (disk)"] == "ms" and units[f"{FAILOVER} (page cache)"] == "s"


def test_a_record_that_is_gone_is_an_error() -> None:
    command._expect_all("ours", 7, 7)
    with pytest.raises(AssertionError, match="ours: 6 records are left of 7"):
        command._expect_all("ours", 7, 6)


def test_each_server_knows_the_others_and_when_to_sync(tmp_path: Path) -> None:
    Nats(tmp_path / "program", tmp_path / "servers", [(1, 11), (2, 12), (3, 13)], "always")
    for number in range(3):
        text = (tmp_path / "servers" / f"n{number}.conf").read_text()
        assert f"server_name: n{number}\nlisten: 127.0.0.1:{number + 1}\n" in text and "sync_interval: always" in text
        assert "routes: [nats://127.0.0.1:11, nats://127.0.0.1:12, nats://127.0.0.1:13]" in text


def test_without_go_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(Unavailable, match="no go"):
        get_nats(tmp_path)
    assert command.main(["--quick", "--folder", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "not measured beside NATS: no go\n"
