"""`./dev spark-versions`: tests/spark with each version of pyspark that the requirement allows and the index offers.

A version lies in a folder of its own, in front of the packages of the environment, so that all else stays equal. It
counts if the Spark session of the tests says that it is this version, if no test of it failed, and if none was skipped
for another reason than those of NEEDS and LACKS.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "out" / "spark-versions"
RAN = "pyspark"  # the property of a JUnit report that test_spark_cluster.py gives the version of its session
LEAST = 60  # tests that must pass with a version
NEEDS_FILTERS, NEEDS_LIMITS = "filters need Spark 4.1", "limits need Spark 4.2"
NEEDS = {NEEDS_FILTERS: "4.1", NEEDS_LIMITS: "4.2"}  # why a test is skipped below a version; from that on it runs
NO_OTHER_USER = "no other user here can run a Python like this one"
# How other reasons begin: what a machine does not have.
LACKS = ("no java", "java is ", "no mvn", "mvn ", "pip ", "pyspark ", NO_OTHER_USER)
TEST_LIMIT_S = 300  # for each test: a version runs for the first time here, and compiles itself

_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")


class Failed(Exception):
    """A version did not do what it must. The text says what and why."""


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 1 if a version failed. All of them are tried."""
    parser = argparse.ArgumentParser(prog="dev spark-versions", description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="default: all that the requirement allows")
    parser.add_argument("--list", action="store_true", help="say which these are; runs nothing")
    options = parser.parse_args(argv)
    versions = options.versions or allowed(requirement((ROOT / "pyproject.toml").read_text()), offered())
    if options.list:
        print(*versions, sep="\n")
        return 0
    failed = 0
    for number, version in enumerate(versions, start=1):
        started = time.monotonic()
        print(f"pyspark {version} ({number} of {len(versions)})", flush=True)
        try:
            outcome = f"{tried(version, FOLDER)} tests passed"
        except Failed as error:
            failed += 1
            outcome = f"FAILED: {error}"
        print(f"pyspark {version}: {outcome}, {time.monotonic() - started:.0f} s", flush=True)
    print(f"{len(versions) - failed} of {len(versions)} versions of pyspark work")
    return 1 if failed else 0


def requirement(pyproject: str) -> Requirement:
    """What the extra `spark` says about pyspark."""
    asked = map(Requirement, tomllib.loads(pyproject)["project"]["optional-dependencies"]["spark"])
    return next(one for one in asked if one.name == "pyspark")


def allowed(asked: Requirement, versions: Iterable[str]) -> list[str]:
    """Oldest first. Raises SystemExit if there is none."""
    found = sorted(set(asked.specifier.filter(versions)), key=Version)
    if not found:
        raise SystemExit(f"the package index offers no version of {asked}")
    return found


def offered() -> list[str]:
    """The versions that the package index has. Raises SystemExit if it does not answer."""
    done = subprocess.run([*_PIP, "index", "versions", "pyspark"], capture_output=True, text=True, check=False)
    listed = re.search(r"^Available versions: (.+)$", done.stdout, re.MULTILINE)
    if listed is None:
        raise SystemExit(f"the package index does not say which versions of pyspark it has:\n{done.stderr}")
    return listed[1].split(", ")


def tried(version: str, folder: Path) -> int:
    """Runs the tests with this version, and removes it. Returns how many tests passed. Raises Failed."""
    place, report = folder / version, folder / f"{version}.xml"
    shutil.rmtree(place, ignore_errors=True)
    report.unlink(missing_ok=True)
    try:
        install = [*_PIP, "install", "--quiet", "--target", str(place), f"pyspark=={version}"]
        if subprocess.run(install, check=False).returncode:
            raise Failed("it could not be installed, see above")
        tests = ("pytest", "tests/spark", "-q", "-p", "no:cacheprovider", f"--timeout={TEST_LIMIT_S}")
        found = {**os.environ, "PYTHONPATH": str(place)}
        subprocess.run([sys.executable, "-m", *tests, f"--junit-xml={report}"], cwd=ROOT, env=found, check=False)
        return passed(report.read_text() if report.exists() else "", version)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def passed(report: str, version: str) -> int:
    """The number of tests that passed, from a JUnit report. Raises Failed if that is not enough."""
    if not report:
        raise Failed("pytest wrote no report, see above")
    suite = ElementTree.fromstring(report)
    ran = {one.get("value") for one in suite.iter("property") if one.get("name") == RAN}
    if ran != {version}:
        raise Failed(f"the session of the tests was of {sorted(map(str, ran)) or 'no version'}")
    cases = list(suite.iter("testcase"))
    bad = [str(case.get("name")) for case in cases if {"failure", "error"} & {part.tag for part in case}]
    if bad:
        raise Failed(f"{len(bad)} tests failed: {', '.join(bad)}")
    skips = [(case.get("name"), str(part.get("message"))) for case in cases for part in case if part.tag == "skipped"]
    unlisted = [f"{name} ({reason})" for name, reason in skips if not may_skip(reason, version)]
    if unlisted:
        raise Failed(f"{len(unlisted)} tests were skipped for a reason that is not listed: {', '.join(unlisted)}")
    good = sum(not len(case) for case in cases)
    if good < LEAST:
        raise Failed(f"{good} tests passed, and not {LEAST}")
    return good


def may_skip(reason: str, version: str) -> bool:
    """Whether a test may be left out with this version of pyspark."""
    since = NEEDS.get(reason)
    return reason.startswith(LACKS) if since is None else Version(version) < Version(since)


if __name__ == "__main__":
    sys.exit(main())
