"""An application with its own `cli`, `storage` and `tests` works beside quorumlog, whoever was installed first.

`storage/` has no `__init__.py`: a package of that name anywhere on the path would hide it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.install.real_environment import TEST_S, BuildTools, Environment, run
from tests.install.wheel_content import Wheel

pytestmark = pytest.mark.timeout(TEST_S)

SHOP = {
    "pyproject.toml": """
        [build-system]
        requires = ["hatchling"]
        build-backend = "hatchling.build"
        [project]
        name = "shop"
        version = "1"
        [tool.hatch.build.targets.wheel]
        packages = ["cli", "storage"]
        [tool.pytest.ini_options]
        testpaths = ["tests"]
        """,
    "cli/__init__.py": "",
    "cli/main.py": 'OWNER = "shop"',
    "storage/s3.py": 'OWNER = "shop"',
    "tests/test_shop.py": """
        import cli.main, storage.s3

        def test_these_are_the_shops_own():
            assert (cli.main.OWNER, storage.s3.OWNER) == ("shop", "shop")
        """,
}
PLAIN, FROM_THE_FOLDER = "-p no:cacheprovider", "-p no:cacheprovider -o pythonpath=."


def write(folder: Path) -> Path:
    for name, text in SHOP.items():
        lines = [line.removeprefix(" " * 8) for line in text.strip("\n").splitlines()]
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("\n".join(lines).rstrip() + "\n")
    return folder


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The application's folder."""
    return write(tmp_path / "shop")


@pytest.fixture(scope="session")
def shop_wheel(work: Path, tools: BuildTools) -> Path:
    return tools.wheel(write(work / "shop"), work / "shop-wheel")


def check(environment: Environment, shop: Path, options: str = PLAIN) -> None:
    """Both run: the application's test, in both ways to start pytest, and our command."""
    for pytest_itself in ([environment.script("pytest")], [environment.python, "-m", "pytest"]):
        said = run([*pytest_itself, *options.split()], "the application's tests", folder=shop)
        assert "1 passed" in said
        assert "quorumlog" in said, "pytest has not loaded our plugin"
    version, usage = (
        run([environment.script(name), option], f"{name} {option}", folder=shop)
        for name, option in (("quorumlog", "--version"), ("ql", "--help"))
    )
    assert version.startswith("quorumlog ") and "Usage: " in usage
    assert environment.shared_paths() == []


def check_whole(environment: Environment, name: str, before: dict[str, str]) -> None:
    """before: of `Environment.files`, when the other one was not there."""
    after = environment.files(name)
    assert after == before and "gone" not in after.values()


def test_an_application_that_is_not_installed(tested: Environment, wheel: Wheel, shop: Path) -> None:
    tested.install_alone(wheel.path)
    check(tested, shop, FROM_THE_FOLDER)


def test_an_application_that_comes_later_and_goes_again(
    tested: Environment, wheel: Wheel, shop_wheel: Path, shop: Path
) -> None:
    tested.install_alone(wheel.path)
    before = tested.files("quorumlog")
    tested.install(shop_wheel)
    check_whole(tested, "quorumlog", before)
    check(tested, shop)
    tested.uninstall("shop")
    check_whole(tested, "quorumlog", before)


def test_an_application_that_was_there_first(tested: Environment, wheel: Wheel, shop_wheel: Path, shop: Path) -> None:
    tested.uninstall("quorumlog", "shop")
    tested.install(shop_wheel)
    before = tested.files("shop")
    tested.install(wheel.path)
    check_whole(tested, "shop", before)
    check(tested, shop)


def test_an_application_beside_an_editable_install(tested: Environment, shop_wheel: Path, shop: Path) -> None:
    """The checkout is on the path then, with its folders `cli` and `storage`, behind what is installed."""
    tested.uninstall("shop")
    tested.install_editable()
    check(tested, shop, FROM_THE_FOLDER)
    tested.install(shop_wheel)
    check(tested, shop)
