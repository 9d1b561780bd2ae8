"""What the wheel's modules import: nothing that an installation does not bring, and all that it brings."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.install.real_environment import ROOT, TEST_S, Environment, run
from tests.install.wheel_content import Wheel, foreign_imports, imports_of, module_of, requirement_of

if TYPE_CHECKING:
    from tests.install.conftest import Bare

pytestmark = pytest.mark.timeout(TEST_S)

# Modules that need an extra, by the beginning of their names. Without it they may fail with Python's own message.
BEHIND = {
    "pyspark_quorumlog": "spark",
    "quorumlog.client.batches.arrow_split": "arrow",
    "quorumlog.records.columnar": "arrow",
    "quorumlog.spark.read.columns": "arrow",
    "quorumlog.spark.read.filters": "spark",
    "quorumlog.spark.stream.group_listener": "spark",
    "quorumlog.spark.load.iceberg_folder": "lake",
    "quorumlog.spark.load": "arrow",
    "quorumlog.spark.format.pushing": "spark",
    "quorumlog.spark.read.schema": "spark",
    "quorumlog.spark.format.source": "spark",
    "quorumlog.spark.format.stream_source": "spark",
    "quorumlog.spark.read.tables": "spark",
    "quorumlog.schemas": "schema",
    "quorumlog.spark.write": "spark",
    "quorumlog_cli.demo": "demo",
    "quorumlog_console.app": "ui",
    "quorumlog_console.connections": "ui",
    "quorumlog_console.console": "ui",
    "quorumlog_console.guard": "ui",
    "quorumlog_console.layout": "ui",
    "quorumlog_console.messages": "ui",
    "quorumlog_console.page": "ui",
    "quorumlog_console.pages": "ui",
    "quorumlog_console.serving": "ui",
    "quorumlog_console.trouble": "ui",
    "quorumlog_cli.top.screen": "ui",
    "quorumlog_storage.cleaning.compiled_keys": "arrow",
    "quorumlog_storage.cleaning.key_kernels": "arrow",
}
BY_PYTEST = "quorumlog/testing/plugin.py"  # loaded by pytest, so pytest is there
EXTRAS = (
    "arrow",
    "spark",
    "lake",
    "java",
    "demo",
    "oauth",
    "keyring",
    "ui",
    "otel",
    "schema",
)  # what a user may ask for; the others are for development
OTHER_NAMES = {"opentelemetry-api": "opentelemetry", "grpcio-tools": "grpc_tools"}
NEVER = ("applications", "bench", "differential", "jepsen", "tests")


def import_names(requirements: set[str]) -> set[str]:
    """Those of an extra's requirements, which are not installed here: each has the name of its distribution, but for
    `OTHER_NAMES`."""
    return {OTHER_NAMES.get(name, name.replace("-", "_")) for name in requirements}


def own_names(wheel: Wheel) -> set[str]:
    return {module_of(entry).partition(".")[0] for entry in wheel.sources}


def extra_of(module: str) -> str:
    """The extra that a module is behind; `""` for none."""
    return next((BEHIND[name] for name in BEHIND if module == name or module.startswith(f"{name}.")), "")


def test_every_module_is_imported_without_extras(wheel: Wheel, bare: Bare) -> None:
    """A module behind an extra may fail for the want of one of its requirements, or with a message that names it."""
    requirements = wheel.requirements()
    wrong = []
    for module, (missing, message) in bare.failures.items():
        extra = extra_of(module)
        excused = missing in import_names(requirements.get(extra, set())) or f"quorumlog[{extra}]" in message
        if module != module_of(BY_PYTEST) and not (extra and excused):
            wrong.append(f"{module}: {message}")
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_list_of_modules_behind_an_extra_is_not_too_long(bare: Bare) -> None:
    needless = [name for name in BEHIND if not any(one == name or one.startswith(f"{name}.") for one in bare.failures)]
    assert not needless


def test_the_environment_of_that_test_held_no_extra(wheel: Wheel, bare: Bare) -> None:
    requirements = wheel.requirements()
    assert requirements[""] <= bare.distributions.keys()
    extras = set().union(*(requirements[extra] for extra in requirements if extra)) - requirements[""]
    assert extras and extras.isdisjoint(bare.distributions)


def test_what_runs_as_a_program_runs(environment: Environment) -> None:
    command = [environment.python, "-P", "-m", "quorumlog_server", "--help"]
    assert "server.properties" in run(command, "the help of a node", folder=environment.folder)


def test_every_import_is_of_something_that_is_installed_with_it(wheel: Wheel, bare: Bare) -> None:
    requirements = wheel.requirements()
    known = own_names(wheel).union(*(bare.distributions[name] for name in requirements[""]))
    known = known.union(*(import_names(requirements[extra]) for extra in EXTRAS))
    found = foreign_imports(wheel.imports, known)
    assert [line for line in found if not line.startswith(f"{BY_PYTEST}:")] == []
    assert known.isdisjoint(NEVER)


def test_every_requirement_is_imported(wheel: Wheel, bare: Bare) -> None:
    """One that nothing imports costs every user its size."""
    imported = set().union(*wheel.imports.values())
    requirements = wheel.requirements()
    idle = [name for name in sorted(requirements[""]) if imported.isdisjoint(bare.distributions[name])]
    idle += [name for extra in EXTRAS for name in requirements[extra] if imported.isdisjoint(import_names({name}))]
    assert not idle


def test_the_requirements_are_those_of_pyproject(wheel: Wheel) -> None:
    """`Requires-Dist` is read with all its extras: the counts are those of the file, which another parser reads."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = wheel.requirements()
    assert found[""] == {requirement_of(line)[0] for line in project["dependencies"]}
    assert found.keys() - {""} == project["optional-dependencies"].keys()
    assert {"pyarrow", "pyspark", "matplotlib"} <= found["demo"]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("import os\nfrom quorumlog.ids import NodeId\nimport grpc.aio", []),
        ("from . import x", []),
        ("def f():\n    from jepsen.sim import world", ["a.py:2: jepsen"]),
        ("import os, tests.x\nif TYPE_CHECKING:\n    import bench", ["a.py:3: bench", "a.py:1: tests"]),
        ("importlib.import_module('pydantic.main')\nfind_spec('yaml')", ["a.py:1: pydantic", "a.py:2: yaml"]),
        ("import_module(f'kio.schema.{name}')", ["a.py:1: kio"]),
        ("import_module(name)\nfind_spec('.x', 'y')\nimport_module(f'{name}.x')", []),
    ],
)
def test_what_counts_as_foreign_import(text: str, want: list[str]) -> None:
    assert foreign_imports({"a.py": imports_of(text)}, ["quorumlog", "grpc"]) == want
