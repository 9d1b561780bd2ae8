"""systemd's unit and what goes with it name what there is, and give a node the time and the rights that it needs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from quorumlog_server.process import leaving, service_manager
from quorumlog_server.process.process import EXIT_DATA, EXIT_FAILED, EXIT_PRECONDITION, EXIT_USAGE
from tests.packages.package_files import PACKAGING, config, wrong_in_command

FOLDER = PACKAGING / "systemd"
HAS_SYSTEMD = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
MOST_EXPOSED = 2.0  # of 10, as `systemd-analyze security` counts; 1.5 at the time of writing


def directives() -> dict[str, list[str]]:
    found = defaultdict(list)
    for line in (FOLDER / "quorumlog.service").read_text().splitlines():
        if re.match(r"[A-Za-z]+=", line):
            name, _, value = line.partition("=")
            found[name].append(value)
    return found


def test_the_command_exists() -> None:
    (command,) = directives()["ExecStart"]
    program, *words = command.split()
    assert Path(program).name == "quorumlog"
    assert wrong_in_command(words) == []


def test_times_fit_those_of_a_node() -> None:
    """A node ends a stop without progress by itself, and asks for more time than it needs to ask again."""
    has = {name: int(values[-1]) for name, values in directives().items() if name.endswith("Sec")}
    stop_s = leaving.stop_timeout_s(config(SAMPLE, {}).lifecycle.controlled_shutdown_timeout_ms)
    assert has["TimeoutStopSec"] > stop_s
    assert has["TimeoutStartSec"] > service_manager.ALONE_S
    telling = service_manager.Telling(has["WatchdogSec"])
    assert telling.look_s <= has["WatchdogSec"] / 3
    assert directives()["Type"] == ["notify"] and directives()["NotifyAccess"] == ["main"]


SAMPLE = (Path(__file__).resolve().parents[2] / "docs" / "server.properties").read_text()


def test_only_what_another_start_does_not_change_ends_the_restarts() -> None:
    (prevented,) = directives()["RestartPreventExitStatus"]
    assert {int(code) for code in prevented.split()} == {EXIT_USAGE, EXIT_DATA}
    assert {EXIT_USAGE, EXIT_DATA}.isdisjoint({EXIT_FAILED, EXIT_PRECONDITION})


def test_the_user_and_its_directories_are_those_that_are_made() -> None:
    (user,) = directives()["User"]
    (made,) = [line.split() for line in (FOLDER / "sysusers.conf").read_text().splitlines() if line[:1] == "u"]
    assert made[1] == user and directives()["Group"] == [user]
    kept = [line.split() for line in (FOLDER / "tmpfiles.conf").read_text().splitlines() if line[:1] not in "#"]
    assert {line[1] for line in kept} == {
        f"/var/lib/{directives()['StateDirectory'][0]}",
        f"/etc/{directives()['ConfigurationDirectory'][0]}",
        directives()["ExecStart"][0].split()[-1],
    }
    assert all(int(line[2], 8) & 0o007 == 0 for line in kept)


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with a program that is there."""
    program = Path(sys.executable).with_name("quorumlog")
    if not program.exists():
        pytest.skip(f"{program} is not installed")
    text = (FOLDER / "quorumlog.service").read_text()
    path = tmp_path / "quorumlog.service"
    path.write_text(text.replace("/opt/quorumlog/bin/quorumlog", str(program)))
    return path


@HAS_SYSTEMD
def test_systemd_finds_nothing_wrong_in_it(unit: Path) -> None:
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    ours = [line for line in done.stderr.splitlines() if "quorumlog" in line]
    assert (done.returncode, ours) == (0, [])


@HAS_SYSTEMD
def test_it_exposes_little(unit: Path) -> None:
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", unit]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = re.search(r"Overall exposure level for quorumlog.service: ([\d.]+)", done.stdout)
    if said is None:
        pytest.skip("this systemd cannot look at a unit offline")
    assert float(said[1]) <= MOST_EXPOSED
