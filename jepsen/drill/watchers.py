"""The four that watch, as an operator has them: none of them knows which fault there is, or whether there is one.

`check` and `explain` are commands that are run again and again; Prometheus scrapes the nodes and judges the rules that
`quorumlog generate alerts` wrote; a browser loads the console's page of causes.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from jepsen.drill.sights import ALERT, CHECK, CONSOLE, EXPLAIN, Look, Sights, Told
from jepsen.drill.world import DrillCluster
from quorumlog.explaining.thresholds import Thresholds
from quorumlog.testing.nodes import node_environment
from quorumlog.testing.protected import Access
from quorumlog.testing.waiting import wait_until
from quorumlog_server.monitoring.rules import rules_of

PAUSE_S = 1.0
COMMAND_TIMEOUT_S = 60.0
START_TIMEOUT_S = 60.0
SCRAPE = "2s"  # rules wait up to 10 s besides what they look back; with 10 s of pauses nobody is told within 30 s
_CAUSE = re.compile(r'data-cause="([^"]*)" data-subject="([^"]*)" data-severity="([^"]*)"')
_HIDDEN = re.compile(r'type="hidden" name="(\w+)" value="(.*?)"')


class NoPrometheus(Exception):
    """The message says what to do."""


def causes_of_alerts() -> dict[str, tuple[str, ...]]:
    return {one.name: one.causes for one in rules_of(Thresholds())}


class Watchers:
    """From `start` to `stop`, each in a thread. sights: what they have seen so far."""

    def __init__(self, cluster: DrillCluster, folder: Path, only: Collection[str], now_s: Callable[[], float]) -> None:
        self.sights = Sights()
        self._cluster, self._folder, self._only, self._now_s = cluster, folder, only, now_s
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._programs: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Raises NoPrometheus, TimedOut."""
        self._folder.mkdir(parents=True, exist_ok=True)
        if ALERT in self._only:
            self._watch(ALERT, Alerts(self._cluster, self._folder, self._programs).look)
        if CONSOLE in self._only:
            self._watch(CONSOLE, Page(self._cluster, self._folder, self._programs).look)
        for name, words in ((CHECK, ("check", "--format", "json")), (EXPLAIN, ("explain", "-o", "json"))):
            if name in self._only:
                self._watch(name, lambda words=words: self._command(words))  # type: ignore[misc]

    def stop(self) -> None:
        self._stop.set()
        for one in self._threads:
            one.join(COMMAND_TIMEOUT_S)
        for program in self._programs:
            program.kill()
            program.wait()

    def _watch(self, name: str, look: Callable[[], frozenset[Told]]) -> None:
        import httpx  # of the tests' extra: jepsen's other verbs need no more than a node

        def run() -> None:
            while not self._stop.is_set():
                began_s, told, trouble = self._now_s(), frozenset[Told](), ""
                try:
                    told = look()
                except (OSError, ValueError, LookupError, subprocess.SubprocessError, httpx.HTTPError) as error:
                    trouble = f"{type(error).__name__}: {error}"
                self.sights.looks.append(
                    Look(watcher=name, began_s=began_s, ended_s=self._now_s(), told=told, trouble=trouble)
                )
                self._stop.wait(PAUSE_S)

        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _command(self, words: tuple[str, ...]) -> frozenset[Told]:
        done = subprocess.run(
            [*cli(), *words], cwd=self._cluster.nodes.layout.root.parent, capture_output=True, check=False,
            timeout=COMMAND_TIMEOUT_S, env=node_environment(),
        )  # fmt: skip
        if not done.stdout:
            raise ValueError(f"{words[0]} said nothing: {done.stderr.decode('utf-8', 'replace').strip()[-300:]}")
        return told_of(json.loads(done.stdout)["findings"])


def told_of(findings: list[Mapping[str, Any]]) -> frozenset[Told]:
    return frozenset(Told(one["cause"], one["subject"], one["severity"] == "notice") for one in findings)


def told_on(page: str) -> frozenset[Told]:
    """Of the console's page of causes."""
    return frozenset(
        Told(html.unescape(cause), html.unescape(subject), severity == "notice")
        for cause, subject, severity in _CAUSE.findall(page)
    )


def cli() -> list[str]:
    return [sys.executable, "-P", "-m", "quorumlog_cli.main"]


class Alerts:
    """A Prometheus of its own. Raises NoPrometheus, TimedOut."""

    def __init__(self, cluster: DrillCluster, folder: Path, programs: list[subprocess.Popen[bytes]]) -> None:
        binary = shutil.which("prometheus")
        if binary is None:
            raise NoPrometheus("the alerts need Prometheus: apt-get install prometheus, or --without alert")
        subprocess.run(
            [*cli(), "generate", "alerts", "--prometheus", "--to", str(folder)],
            cwd=cluster.nodes.layout.root.parent, check=True, capture_output=True, env=node_environment(),
        )  # fmt: skip
        config = folder / "prometheus.yml"
        config.write_text(config.read_text().replace('_interval: "10s"', f'_interval: "{SCRAPE}"'))
        port = free_port()
        self._url = f"http://127.0.0.1:{port}/api/v1/alerts"
        words = [binary, f"--config.file={config}", f"--web.listen-address=127.0.0.1:{port}"]
        with (folder / "prometheus.log").open("wb") as log:
            programs.append(
                subprocess.Popen([*words, f"--storage.tsdb.path={folder / 'data'}"], cwd=folder, stdout=log, stderr=log)
            )
        wait_until(self._answers, START_TIMEOUT_S, "Prometheus to answer")

    def _answers(self) -> bool:
        import httpx

        try:
            return httpx.get(self._url).status_code == 200
        except httpx.HTTPError:
            return False

    def look(self) -> frozenset[Told]:
        import httpx

        alerts = httpx.get(self._url, timeout=10).json()["data"]["alerts"]
        firing = [one["labels"] for one in alerts if one["state"] == "firing"]
        return frozenset(Told(one["alertname"], _labels(one)) for one in firing)


def _labels(labels: Mapping[str, str]) -> str:
    left_out = ("alertname", "job", "severity")
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()) if name not in left_out)


class Page:
    """A console of its own, and a browser that is logged in there. Raises TimedOut."""

    def __init__(self, cluster: DrillCluster, folder: Path, programs: list[subprocess.Popen[bytes]]) -> None:
        import httpx

        self._access = Access(cluster.nodes.layout)
        url = f"http://127.0.0.1:{free_port()}"
        with (folder / "console.log").open("wb") as log:
            programs.append(
                subprocess.Popen(
                    [*cli(), "console", "--listen", url.removeprefix("http://")],
                    cwd=cluster.nodes.layout.root.parent,
                    stdout=log,
                    stderr=log,
                    env=node_environment(),
                )
            )
        self._browser = httpx.Client(base_url=url, timeout=15, follow_redirects=False)
        wait_until(self._answers, START_TIMEOUT_S, "the console to answer")

    def _answers(self) -> bool:
        import httpx

        try:
            return self._browser.get("/login").status_code == 200
        except httpx.HTTPError:
            return False

    def look(self) -> frozenset[Told]:
        answer = self._browser.get("/causes")
        if answer.status_code == 303:
            self._log_in()
            answer = self._browser.get("/causes")
        if answer.status_code != 200:
            raise ValueError(f"the page answers {answer.status_code}")
        if "Read from" not in answer.text:
            raise ValueError("there is no judgement yet")
        return told_on(answer.text)

    def _log_in(self) -> None:
        form = dict(_HIDDEN.findall(self._browser.get("/login", params={"next": "/causes"}).text))
        fields = {name: html.unescape(value) for name, value in form.items()}
        user = {"user": self._access.layout.user, "password": self._access.password()}
        answer = self._browser.post("/login", data=fields | user)
        if answer.status_code != 303:
            raise ValueError(f"the console's login answers {answer.status_code}")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def monotonic_from_now() -> Callable[[], float]:
    began = time.monotonic()
    return lambda: time.monotonic() - began
