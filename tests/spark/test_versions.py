"""`./dev spark-versions` counts a version only if it ran, and if all of its tests passed."""

from __future__ import annotations

import pytest

from tests.spark.versions import LEAST, RAN, ROOT, Failed, allowed, passed, requirement

PYPROJECT = '[project.optional-dependencies]\nspark = ["quorumlog[arrow]", "pyspark>=4.1"]\n'


def report(version: str | None, *, good: int = LEAST, bad: str = "", skipped: int = 0) -> str:
    """A report as pytest writes it. version: None: no session ran."""
    told = f'<properties><property name="{RAN}" value="{version}"/></properties>' if version else ""
    cases = '<testcase name="good"/>' * good + '<testcase name="skipped"><skipped/></testcase>' * skipped
    return f'<testsuites><testsuite name="pytest">{told}{cases}{bad}</testsuite></testsuites>'


def test_all_versions_that_are_allowed_are_tried_oldest_first() -> None:
    offered = ["4.10.0", "4.2.0", "4.1.0", "4.0.5", "3.5.9", "4.3.0.dev1"]
    assert allowed(requirement(PYPROJECT), offered) == ["4.1.0", "4.2.0", "4.10.0"]


def test_no_version_is_no_success() -> None:
    with pytest.raises(SystemExit, match=r"offers no version of pyspark>=4\.1"):
        allowed(requirement(PYPROJECT), ["4.0.5"])


def test_the_requirement_is_read_from_the_project() -> None:
    assert str(requirement((ROOT / "pyproject.toml").read_text()).specifier)


def test_tests_that_passed_are_counted() -> None:
    assert passed(report("4.1.0", good=LEAST + 5, skipped=2), "4.1.0") == LEAST + 5


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("", "no report"),
        (report("4.3.0"), r"was of \['4.3.0'\]"),
        (report(None), "was of no version"),
        (report("4.1.0", good=LEAST - 1, skipped=5), f"{LEAST - 1} tests passed, and not {LEAST}"),
        (report("4.1.0", bad='<testcase name="a"><failure/></testcase>'), "1 tests failed: a"),
        (report("4.1.0", bad='<testcase name="b"><error/></testcase>'), "1 tests failed: b"),
    ],
)
def test_a_version_fails_with_a_reason(told: str, why: str) -> None:
    with pytest.raises(Failed, match=why):
        passed(told, "4.1.0")
