"""A virtual environment as a user makes one, the distributions that go into it, and what pip noted about their files.

Nothing of the environment that runs the tests is visible in it. One pip serves all (`pip --python`), because an
environment without pip is made in a tenth of the time; it is the newest, which needs a third of the time of older ones.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND_S = 200.0  # for one command
TEST_S = 300  # for one test, of which the first makes the environment
HIDDEN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTHONSTARTUP")
QUIET = ("--disable-pip-version-check", "--no-input", "-q")


class CommandFailed(Exception):
    """A command did not end with 0. The message has its output."""


@dataclass(slots=True)
class Times:
    """What was waited for, in seconds."""

    steps: list[tuple[float, str]] = field(default_factory=list)

    def add(self, began: float, what: str) -> None:
        """began: of `time.monotonic`."""
        self.steps.append((time.monotonic() - began, what))

    def slowest(self, count: int = 6) -> str:
        return ", ".join(f"{took:.1f} s {what}" for took, what in sorted(self.steps, reverse=True)[:count])


TIMES = Times()


def run(command: Sequence[object], what: str, *, folder: Path, more: Mapping[str, str] | None = None) -> str:
    """Output and errors of a command that sees nothing of our environment. Raises CommandFailed.

    more: variables of its environment.
    """
    environment = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    began = time.monotonic()
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**environment, **(more or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )
    TIMES.add(began, what)
    if done.returncode != 0:
        raise CommandFailed(f"{what} ended with {done.returncode}: {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


@dataclass(frozen=True)
class BuildTools:
    """A folder with pip and what a build needs. It is on the path of builds only; each takes a second and not six."""

    folder: Path

    def install(self, requirements: Iterable[str]) -> None:
        """Raises CommandFailed, also where no registry answers."""
        words = ("install", "--no-compile", "--target", self.folder, "pip", *requirements)
        run([sys.executable, "-m", "pip", *QUIET, *words], "what builds need", folder=self.folder.parent)

    @property
    def pip(self) -> tuple[object, ...]:
        """The beginning of a command."""
        return sys.executable, self.folder / "pip", *QUIET

    @property
    def visible(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.folder)}

    def wheel(self, source: Path, into: Path) -> Path:
        """Build the wheel of a source folder or of an sdist. Raises CommandFailed."""
        words = ("wheel", "--no-deps", "--no-build-isolation", "-w", into, source)
        run([*self.pip, *words], f"the wheel of {source.name}", folder=into.parent, more=self.visible)
        (wheel,) = into.glob("*.whl")
        return wheel

    def sdist(self, source: Path, into: Path) -> Path:
        """Raises CommandFailed."""
        program = "import sys; from hatchling.build import build_sdist; build_sdist(sys.argv[1])"
        run([sys.executable, "-P", "-c", program, into], "the sdist", folder=source, more=self.visible)
        (sdist,) = into.glob("*.tar.gz")
        return sdist


@dataclass(frozen=True)
class Environment:
    """A virtual environment. tools: for editable installs."""

    folder: Path
    tools: BuildTools

    def make(self) -> None:
        """Raises CommandFailed."""
        command = (sys.executable, "-m", "venv", "--without-pip", "--clear", self.folder)
        run(command, "an empty environment", folder=self.folder.parent)

    def script(self, name: str) -> Path:
        return self.folder / "bin" / name

    @property
    def python(self) -> Path:
        return self.script("python")

    @cached_property
    def site(self) -> Path:
        """Where pip puts packages."""
        program = "import sysconfig; print(sysconfig.get_path('purelib'))"
        return Path(run([self.python, "-c", program], "the environment's folder", folder=self.folder).strip())

    def pip(self, *words: object, what: str) -> None:
        """Raises CommandFailed."""
        command = (*self.tools.pip, "--python", self.python, *words)
        run(command, what, folder=self.folder, more=self.tools.visible if "-e" in words else {})

    def install(self, *words: object) -> None:
        """A wheel, or `-e` and a folder; needs no registry. Raises CommandFailed."""
        options = ("--no-deps", "--no-index", "--no-compile", "--no-build-isolation")
        self.pip("install", *options, *words, what=f"install {Path(str(words[-1])).name}")

    def is_editable(self) -> bool:
        """True if our checkout is installed, and not a wheel."""
        return any(ROOT.samefile(folder) for folder in self.search_path() if folder.is_dir())

    def install_editable(self) -> None:
        """Our checkout, unless it is installed already. Raises CommandFailed."""
        if not self.is_editable():
            self.install("-e", ROOT)

    def install_alone(self, wheel: Path) -> None:
        """Our wheel, unless it is installed already, without the application of a test. Raises CommandFailed."""
        self.uninstall("shop")
        if self.is_editable() or not self.has("quorumlog"):
            self.install(wheel)

    def uninstall(self, *names: str) -> None:
        """Those of them that are there. Raises CommandFailed."""
        if there := [name for name in names if self.has(name)]:
            self.pip("uninstall", "-y", *there, what=f"uninstall {' '.join(there)}")

    def distributions(self) -> list[Distribution]:
        return list(distributions(path=[str(self.site)]))

    def distribution(self, name: str) -> Distribution:
        (found,) = distributions(name=name, path=[str(self.site)])
        return found

    def has(self, name: str) -> bool:
        return any(True for _ in distributions(name=name, path=[str(self.site)]))

    def files(self, name: str) -> dict[str, str]:
        """The files in the RECORD of a distribution and the hashes of what is on disk; `gone` for a file that is not
        there."""
        paths = [Path(str(file.locate())) for file in self.distribution(name).files or ()]
        return {
            os.path.normpath(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "gone"
            for path in paths
        }

    def shared_paths(self) -> list[str]:
        """Paths that stand in more than one RECORD: who was installed last has overwritten the other's file."""
        paths = [
            os.path.normpath(str(file.locate()))
            for distribution in self.distributions()
            for file in distribution.files or ()
        ]
        return sorted(path for path, count in Counter(paths).items() if count > 1)

    def search_path(self) -> list[Path]:
        """Where this environment's Python looks for packages of others."""
        program = "import sys; print(*sys.path, sep='\\n')"
        said = run([self.python, "-P", "-c", program], "the search path", folder=self.folder)
        return [Path(line) for line in said.splitlines() if line]
