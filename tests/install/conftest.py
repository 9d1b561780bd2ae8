"""One wheel and one environment for all tests of installing. What took long stands in pytest's summary."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.install.real_environment import ROOT, TIMES, BuildTools, Environment, run
from tests.install.wheel_content import Wheel, module_of, normal_name

PROBE = Path(__file__).with_name("import_each.py")


@dataclass(frozen=True)
class Bare:
    """What an environment held and could import when nothing but the wheel and its requirements were in it.

    distributions: normal names, and the names that `import` knows their content by.
    failures: by module, the missing top-level name or `""`, and the message.
    """

    distributions: dict[str, set[str]]
    failures: dict[str, list[str]]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TIMES.steps:
        terminalreporter.write_line(f"installing, slowest first: {TIMES.slowest()}")


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for some 150 MB, which pytest would keep for three sessions."""
    folder = tmp_path_factory.mktemp("install")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def tools(work: Path) -> BuildTools:
    """What pyproject.toml asks for to build, and `editables`, which hatchling asks for beyond that."""
    tools = BuildTools(work / "tools")
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    tools.install([*asked, "editables"])
    return tools


@pytest.fixture(scope="session")
def wheel(work: Path, tools: BuildTools) -> Wheel:
    return Wheel(tools.wheel(ROOT, work / "wheel"))


@pytest.fixture(scope="session")
def sdist(work: Path, tools: BuildTools) -> Path:
    (work / "sdist").mkdir()
    return tools.sdist(ROOT, work / "sdist")


@pytest.fixture(scope="session")
def environment(work: Path, tools: BuildTools, wheel: Wheel) -> Environment:
    """With the wheel and its requirements without extras. Tests leave other distributions of quorumlog in it."""
    environment = Environment(work / "environment", tools)
    environment.make()
    environment.pip("install", "--no-compile", wheel.path, what="the wheel and its requirements")
    return environment


@pytest.fixture(scope="session")
def bare(work: Path, wheel: Wheel, environment: Environment) -> Bare:
    """Looked at before anything else is installed: `tested` asks for this fixture first."""
    names = work / "modules"
    names.write_text("\n".join(module_of(entry) for entry in wheel.sources if not entry.endswith("__main__.py")))
    said = run([environment.python, "-P", PROBE, names], "each module's import", folder=work)
    found = {
        normal_name(distribution.metadata["Name"]): {
            file.parts[0].removesuffix(".py") for file in distribution.files or () if file.suffix == ".py"
        }
        for distribution in environment.distributions()
    }
    return Bare(found, json.loads(said.splitlines()[-1]))


@pytest.fixture(scope="session")
def tested(bare: Bare, environment: Environment) -> Environment:
    """The environment, with pytest in it."""
    environment.pip("install", "--no-compile", "pytest", what="pytest")
    return environment
