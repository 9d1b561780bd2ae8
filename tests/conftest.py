"""What all tests share: which part of them runs, and Hypothesis without deadlines, repeatable where CI is set.

Every simulated process ends with its test, or with the module whose fixture started it: none of its coroutines is left
to the garbage collector, which would close it during another test.

No test reads or changes the profiles of the person who runs it: QUORUMLOG_HOME is a folder of the run's own.
"""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from jepsen.sim.time import killed_coroutines
from tests import documents, parts, syntax_trees
from tests.parts import PART, PROCESSOR, TOLD

WORKER = "PYTEST_XDIST_WORKER"
EXAMPLES = 100  # of a property that names no number; Hypothesis' own default

settings.register_profile(
    "quorumlog",
    deadline=None,  # a busy machine is no finding
    print_blob=True,
    derandomize="CI" in os.environ,
    max_examples=parts.few(EXAMPLES),
)
settings.load_profile("quorumlog")
syntax_trees.install()
os.environ["QUORUMLOG_HOME"] = tempfile.mkdtemp(prefix="quorumlog-home-")
atexit.register(shutil.rmtree, os.environ["QUORUMLOG_HOME"], ignore_errors=True)


def tell_processor(path: Path) -> None:
    spent = os.times()
    path.write_text(f"{spent.user + spent.system + spent.children_user + spent.children_system:.0f}")


if TOLD in os.environ and WORKER not in os.environ:
    atexit.register(tell_processor, Path(os.environ[TOLD] + PROCESSOR))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "counts: runs a tenth of its rounds in the quick part, a fifth in the rest")
    gc.disable()  # a collection of tests makes no garbage, and a fifth of its time would go into looking for some


def pytest_collection_finish() -> None:
    for name in (PART, TOLD):
        os.environ.pop(name, None)  # a pytest that a test starts runs all that it is given
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _simulated_processes_end_with_their_test() -> Iterator[None]:
    older = killed_coroutines.living()  # of a module's fixtures
    yield
    killed_coroutines.kill_all(but=older)


@pytest.fixture(autouse=True)
def _documents_are_as_declared() -> Iterator[None]:
    with documents.watched():
        yield


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """What a module leaves is looked at once: tests that collect garbage took seconds each at the end of a long run."""
    if nextitem is None or nextitem.path != item.path:
        killed_coroutines.kill_all()
        gc.collect()  # tells which coroutines and tasks the module itself dropped
        killed_coroutines.empty()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("lf", False):
        return  # what failed runs again, whatever part it is of
    taken = list(parts.chosen(items, parts.CHOSEN))
    left_out = [item for item, is_taken in zip(items, taken, strict=True) if not is_taken]
    items[:] = [item for item, is_taken in zip(items, taken, strict=True) if is_taken]
    config.hook.pytest_deselected(items=left_out)
    told = os.environ.get(TOLD)
    if told and os.environ.get(WORKER, "gw0") == "gw0":
        Path(told).write_text(str(len(left_out)))
