"""Import names are the same in a checkout, in an editable install and in the wheel."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from jepsen.tree import HOMES
from tests.install.real_environment import ROOT, TEST_S, Environment, run
from tests.install.wheel_content import Wheel

pytestmark = pytest.mark.timeout(TEST_S)

PACKAGE_FOLDERS = (
    "quorumlog", "storage/quorumlog_storage", "quorum/quorumlog_quorum", "broker/quorumlog_broker",
    "server/quorumlog_server", "cli/quorumlog_cli", "console/quorumlog_console",
)  # fmt: skip
COPIED = "pyspark_quorumlog.py"  # hatchling copies a single file, and its checkout is on the path, too


@pytest.fixture
def editable(environment: Environment) -> Environment:
    """With an editable install of quorumlog."""
    environment.install_editable()
    return environment


def homes_of(entry: str, folders: list[Path]) -> list[Path]:
    """The folders in which Python finds a module of the wheel."""
    return [folder for folder in folders if (folder / entry).is_file()]


def test_the_wheel_holds_what_the_checkout_holds(wheel: Wheel) -> None:
    paths = [path for folder in PACKAGE_FOLDERS for path in (ROOT / folder).rglob("*.py")]
    in_checkout = {path.relative_to(next(ROOT / home for home in _homes_first(path))).as_posix() for path in paths}
    assert in_checkout | {COPIED} == set(wheel.sources)
    assert {"quorumlog_storage/log/log.py", "quorumlog_cli/main.py"} <= in_checkout


def _homes_first(path: Path) -> list[str]:
    """Those of HOMES that a path is in, the longest first."""
    return sorted((home for home in HOMES if path.is_relative_to(ROOT / home)), key=len, reverse=True)


def test_each_module_has_one_home_in_the_checkout(wheel: Wheel) -> None:
    """That is what `python -m jepsen`, pytest and mypy search, so all of them see the names of the wheel."""
    wrong = [entry for entry in wheel.sources if len(homes_of(entry, [ROOT / home for home in HOMES])) != 1]
    assert not wrong
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert set(tool["pytest"]["ini_options"]["pythonpath"]) == set(HOMES)
    assert set(HOMES) - {"."} <= set(tool["mypy"]["mypy_path"])
    assert {folder.rpartition("/")[2] for folder in PACKAGE_FOLDERS} <= set(tool["importlinter"]["root_packages"])


def test_each_module_has_one_home_in_an_editable_install(wheel: Wheel, editable: Environment) -> None:
    folders = editable.search_path()
    wrong = [entry for entry in wheel.sources if len(homes_of(entry, folders)) != 1]
    assert wrong == [COPIED]
    program = "import quorumlog_storage.log.log as log, quorumlog_cli.main as main; print(log.__file__, main.__file__)"
    said = run([editable.python, "-P", "-c", program], "two modules of the checkout", folder=editable.folder)
    assert said.split() == [f"{ROOT}/storage/quorumlog_storage/log/log.py", f"{ROOT}/cli/quorumlog_cli/main.py"]


def test_jepsen_runs_from_the_checkout(editable: Environment) -> None:
    """It is in no wheel. It needs no more than a node needs, so an editable install is enough."""
    command = [editable.python, "-m", "jepsen", "sim", "--seed", "1", "--seconds", "1"]
    assert "seed 1: VALID" in run(command, "one second of the simulation", folder=ROOT)
