"""The command that restarts a node elsewhere: what is put into it, and how its end is told."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from rolling_clusters import node

from quorumlog.rolling.shell_command import BadCommand, ShellRestarter, check_template, filled_in
from quorumlog.testing.waiting import wait_until


@pytest.mark.parametrize(
    ("template", "want"),
    [
        ("ssh {host} systemctl restart quorumlog", "ssh h2 systemctl restart quorumlog"),
        ("restart-node '{id}' {port} {id}", "restart-node '2' 9092 2"),
        ("echo {id} | awk '{print $1}' ${HOME}", "echo 2 | awk '{print $1}' ${HOME}"),
    ],
)
def test_places_are_filled_in_and_other_braces_stay(template: str, want: str) -> None:
    assert filled_in(template, node(2)) == want


@pytest.mark.parametrize(
    "host",
    ["", "a b", "$(reboot)", "`reboot`", "a;reboot", "-oProxyCommand=reboot", "a'b", 'a"b', "a\nb", "a&", "{id}", "ä"],
)
@pytest.mark.parametrize("template", ["ssh {host} x", "ssh '{host}' x", 'ssh "{host}" x'])
def test_a_host_name_that_means_something_to_a_shell_is_refused(template: str, host: str) -> None:
    with pytest.raises(BadCommand, match="node 2 has the host"):
        filled_in(template, node(2, host=host))
    assert filled_in("restart {id}", node(2, host=host)) == "restart 2", "it is not in this command"


@pytest.mark.parametrize("host", ["10.0.0.1", "node-2.example.com", "fe80::1%eth0", "node_2"])
def test_usual_names_are_taken(host: str) -> None:
    assert filled_in("{host}", node(2, host=host)) == host


def test_a_command_that_is_the_same_for_all_nodes_is_refused() -> None:
    with pytest.raises(BadCommand, match="say which one"):
        check_template("systemctl restart quorumlog")


def ended(template: str, limit_s: float = 20.0) -> str:
    restarter = ShellRestarter(template, limit_s)
    restarter.begin(node(2))
    return wait_until(lambda: (found,) if (found := restarter.ended()) is not None else None, 30, "its end")[0]


@pytest.mark.parametrize(
    ("template", "want"),
    [
        ("echo {id}", ""),
        ("echo {id} >&2; exit 3", "the command failed with exit code 3: 2"),
        ("kill -9 $$ # {id}", "the command failed with signal SIGKILL"),
        ("/no/such/thing {id} 2> /dev/null", "the command failed with exit code 127"),
        ("read line; test -z $line && exit 4 # {id}", "the command failed with exit code 4"),
    ],
    ids=["done", "exit code", "signal", "no such command", "no terminal to read from"],
)
def test_its_end(template: str, want: str) -> None:
    assert ended(template) == want


def test_what_does_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    found = ended(f"echo {{id}}; sleep 60 & echo $! > {tmp_path}/child; wait", 0.5)
    assert found == "the command did not end within 0.5 s and was ended: 2"
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not Path(f"/proc/{child}").exists() or _is_zombie(child), 10, "the child to end")


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_what_goes_on_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    """A script may start the node itself."""
    began = time.monotonic()
    assert ended(f"setsid sleep 30 > /dev/null 2>&1 & echo $! > {tmp_path}/child # {{id}}") == ""
    assert time.monotonic() - began < 20
    os.kill(int((tmp_path / "child").read_text()), 9)
