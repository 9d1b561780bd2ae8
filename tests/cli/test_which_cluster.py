"""The one rule for which cluster a command means, as tables: of clients, of local nodes, of commands that do harm."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from quorumlog.testing.layout import Layout, NodeFiles, node_folder
from quorumlog.testing.nodes import LocalNodes, NodeState
from quorumlog.testing.ports import NodePorts
from quorumlog.testing.processes import ProcessId, is_flocked, read_pid_file, write_pid_file
from quorumlog_cli.connecting.connect import connected, find_target
from quorumlog_cli.connecting.find import choose_root
from quorumlog_cli.local.here import FOLDER, read_here
from quorumlog_cli.local.profile_of import forget_local, free_name, select_local
from quorumlog_cli.profiles.profile import Asked, Here, Profiles, Target, names_another, resolve
from quorumlog_cli.profiles.profile_file import read_user, user_file, write_text
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_storage.edge.disk import RealDisk

HERE = Here(root=Path("/a/.quorumlog"), cluster_id="A", bootstrap_servers="a:1")
BELOW = replace(HERE, is_below=True)
USER = Profiles(
    "home",
    {"home": {"bootstrap_servers": "h:1", "data_dir": "/h", "cluster_id": "H"}, "far": {"bootstrap_servers": "f:1"}},
)
PROJECT = Profiles("proj", {"proj": {"bootstrap_servers": "p:1"}})
NONE = Profiles()

SERVERS = [
    ("a directory before the profile that was chosen", Asked(), {}, NONE, HERE, "a:1", "A"),
    ("below it, too", Asked(), {}, NONE, BELOW, "a:1", "A"),
    ("a directory before the project's file", Asked(), {}, PROJECT, HERE, "a:1", "A"),
    ("elsewhere the profile that was chosen", Asked(), {}, NONE, None, "h:1", "H"),
    ("elsewhere the project's file", Asked(), {}, PROJECT, None, "p:1", ""),
    ("--profile", Asked(profile="far"), {}, NONE, HERE, "f:1", ""),
    ("a variable that names a profile", Asked(), {"QUORUMLOG_PROFILE": "home"}, NONE, HERE, "h:1", "H"),
    ("a variable that names servers", Asked(), {"QUORUMLOG_BOOTSTRAP_SERVERS": "e:1"}, NONE, HERE, "e:1", ""),
    ("a flag", Asked(bootstrap_servers="b:1"), {}, NONE, HERE, "b:1", ""),
    ("a flag with an id", Asked(bootstrap_servers="b:1", options=["cluster.id=B"]), {}, NONE, HERE, "b:1", "B"),
    ("-X", Asked(options=["bootstrap.servers=x:1"]), {}, NONE, HERE, "x:1", ""),
    ("-X of something else", Asked(options=["client.id=me"]), {}, NONE, HERE, "a:1", "A"),
    ("a variable of something else", Asked(), {"QUORUMLOG_CLIENT_ID": "me"}, NONE, HERE, "a:1", "A"),
    ("an empty variable", Asked(), {"QUORUMLOG_PROFILE": ""}, NONE, HERE, "a:1", "A"),
]


@pytest.mark.parametrize(
    ("asked", "environment", "project", "here", "servers", "cluster_id"),
    [c[1:] for c in SERVERS],
    ids=[c[0] for c in SERVERS],
)
def test_which_cluster_a_client_means(
    asked: Asked, environment: dict[str, str], project: Profiles, here: Here | None, servers: str, cluster_id: str
) -> None:
    target = resolve(asked, environment, project, USER, here)
    assert (target.bootstrap_servers, target.cluster_id) == (servers, cluster_id)
    assert target.data_dir == {"a:1": HERE.root, "h:1": Path("/h")}.get(servers)


def test_a_directory_does_not_need_the_profile_that_was_chosen() -> None:
    assert resolve(Asked(), {}, NONE, Profiles("gone", {}), HERE).bootstrap_servers == "a:1"


NAMES = [
    (Asked(), {}, ""),
    (Asked(profile="p"), {}, "--profile"),
    (Asked(profile="p"), {"QUORUMLOG_BOOTSTRAP_SERVERS": "e:1"}, "QUORUMLOG_BOOTSTRAP_SERVERS"),
    (Asked(), {"QUORUMLOG_PROFILE": "p"}, "QUORUMLOG_PROFILE"),
    (Asked(options=["bootstrap-servers=x:1"]), {"QUORUMLOG_PROFILE": "p"}, "-X bootstrap.servers"),
    (Asked(bootstrap_servers="b:1"), {"QUORUMLOG_PROFILE": "p"}, "--bootstrap-servers"),
]


@pytest.mark.parametrize(("asked", "environment", "want"), NAMES)
def test_what_names_another_cluster(asked: Asked, environment: dict[str, str], want: str) -> None:
    assert names_another(asked, environment) == want


# --- commands that act on nodes and folders ---


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """here and home: folders with a cluster; empty: one without."""
    for name in ("here", "home"):
        layout_in(tmp_path / name / FOLDER).write_marker()
    (tmp_path / "empty").mkdir()
    return {name: tmp_path / name for name in ("here", "home", "empty")}


def layout_in(root: Path, cluster_id: str = "C") -> Layout:
    root.mkdir(parents=True, exist_ok=True)
    return Layout(root, cluster_id, (NodeFiles(1, node_folder(root, 1), NodePorts.row(20_000)),))


LOCAL = [
    # typed where, what is above, variable, what others mean, a look, harm
    ("in its directory", "here", "here", "", "here", "here", "here"),
    ("below it", "empty", "here", "", "here", "here", 6),
    ("elsewhere", "empty", None, "", "home", "home", 6),
    ("nowhere", "empty", None, "", None, 7, 7),
    ("a variable names another local one", "here", None, "QUORUMLOG_PROFILE", "home", "home", 6),
    ("a variable names this one", "here", None, "QUORUMLOG_PROFILE", "here", "here", "here"),
    ("a variable names a remote one", "here", None, "QUORUMLOG_BOOTSTRAP_SERVERS", None, 7, 7),
    ("a profile of a folder that is gone", "empty", None, "", "empty", 7, 7),
]


@pytest.mark.parametrize(
    ("typed_in", "above", "variable", "means", "look", "harm"), [c[1:] for c in LOCAL], ids=[c[0] for c in LOCAL]
)
def test_which_folder_a_command_acts_on(
    places: dict[str, Path],
    typed_in: str,
    above: str | None,
    variable: str,
    means: str | None,
    look: str | int,
    harm: str | int,
) -> None:
    cwd = places[typed_in]
    here = above and Here(
        root=places[above] / FOLDER, cluster_id="C", bootstrap_servers="h:1", is_below=above != typed_in
    )
    target = Target(bootstrap_servers="h:1", origin="x", data_dir=places[means] / FOLDER if means else None)
    for harms, want in (("", look), ("purge", harm)):
        if isinstance(want, str):
            assert choose_root(cwd, variable, here or None, target, harms) == places[want] / FOLDER
            continue
        with pytest.raises(CliError) as refused:
            choose_root(cwd, variable, here or None, target, harms)
        assert refused.value.code == want
        if want == Exit.PRECONDITION:
            assert refused.value.hint == f"quorumlog purge --data {target.data_dir} means it"


def test_a_directory_is_found_from_below(places: dict[str, Path]) -> None:
    below = places["here"] / "x" / "y"
    below.mkdir(parents=True)
    assert read_here(places["empty"]) is None
    for start, is_below in ((places["here"], False), (below, True)):
        found = read_here(start)
        assert found is not None and (found.root, found.is_below) == (places["here"] / FOLDER, is_below)


# --- a local cluster as it is now ---


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of the profiles; commands are typed in an empty directory."""
    monkeypatch.setenv("QUORUMLOG_HOME", str(tmp_path / "profiles"))
    for name in ("QUORUMLOG_PROFILE", "QUORUMLOG_BOOTSTRAP_SERVERS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    return tmp_path


def test_a_stopped_cluster_is_not_looked_for_at_its_ports(home: Path) -> None:
    layout = layout_in(home / "cwd" / FOLDER)
    layout.write_marker()
    target = find_target(None, None, None)
    assert target.is_stopped and target.cluster_id == "C"
    with pytest.raises(CliError, match="no node runs of cluster C in") as refused, connected(target):
        pass
    assert refused.value.code is Exit.UNREACHABLE


def test_a_profile_whose_folder_holds_another_cluster_is_refused_with_both_ids(home: Path) -> None:
    layout = layout_in(home / "a", "FIRST")
    layout.write_marker()
    select_local(layout)
    layout_in(home / "a", "SECOND").write_marker()
    with pytest.raises(CliError, match=r"cluster FIRST, but .*/a holds cluster SECOND"):
        find_target(None, None, None)


def test_the_process_of_a_copied_folder_is_not_its_own(tmp_path: Path) -> None:
    node = layout_in(tmp_path / "a").nodes[0]
    node.folder.mkdir()
    own = ProcessId(os.getpid(), started(os.getpid()))
    write_pid_file(node.pid_file, own)
    assert LocalNodes.open(_marked(tmp_path / "a")).state(1) is NodeState.RUNNING
    copy = layout_in(tmp_path / "b").nodes[0]
    copy.folder.mkdir()
    copy.pid_file.write_bytes(node.pid_file.read_bytes())
    assert read_pid_file(copy.pid_file) is None
    assert LocalNodes.open(_marked(tmp_path / "b")).state(1) is NodeState.STOPPED
    (tmp_path / "a").rename(tmp_path / "moved")
    assert LocalNodes.open(tmp_path / "moved").state(1) is NodeState.RUNNING


def _marked(root: Path) -> Path:
    layout_in(root).write_marker()
    return root


def started(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def test_a_node_that_was_started_by_hand_serves(tmp_path: Path) -> None:
    nodes = LocalNodes.open(_marked(tmp_path))
    data = nodes.layout.nodes[0].data
    data.mkdir(parents=True)
    lock = RealDisk().lock(str(data / ".lock"))
    assert is_flocked(data / ".lock") and nodes.serving() == [1]
    lock.release()
    assert not is_flocked(data / ".lock") and nodes.serving() == []


# --- the profile that `up` makes ---


def test_up_takes_no_name_of_another() -> None:
    there = {Path("/a/.quorumlog"), Path("/b/.quorumlog")}
    user = Profiles("", {"local": {"bootstrap_servers": "a:1", "data_dir": "/a/.quorumlog"}})
    assert free_name(Profiles(), Path("/a/.quorumlog"), there.__contains__) == "local"
    assert free_name(user, Path("/a/.quorumlog"), there.__contains__) == "local"
    assert free_name(user, Path("/b/.quorumlog"), there.__contains__) == "local-b"
    assert free_name(user, Path("/b/.quorumlog"), set[Path]().__contains__) == "local", "the cluster in /a is gone"
    assert free_name(user, Path("/x/my shop!/.quorumlog"), there.__contains__) == "local-my-shop"
    by_hand = Profiles("", {"local": {"bootstrap_servers": "k:1"}, "local-b": {"bootstrap_servers": "k:2"}})
    assert free_name(by_hand, Path("/b/.quorumlog"), set[Path]().__contains__) == "local-b-2"


def test_up_keeps_what_was_chosen_and_what_was_added(home: Path) -> None:
    write_text(user_file(os.environ), 'current = "prod"\n[profiles.prod]\nbootstrap_servers = "k:1"\n')
    layout = layout_in(home / "a" / FOLDER)
    layout.write_marker()
    assert "elsewhere commands still use 'prod'" in select_local(layout)
    text = user_file(os.environ).read_text().replace("[profiles.local]", '[profiles.local]\nclient_id = "me"')
    write_text(user_file(os.environ), text)
    select_local(layout)
    user = read_user()
    assert user.current == "prod"
    assert user.by_name["local"] == {
        "client_id": "me",
        "bootstrap_servers": ["127.0.0.1:20000"],
        "data_dir": str(layout.root),
        "cluster_id": "C",
    }
    forget_local(layout)
    assert set(read_user().by_name) == {"prod"} and read_user().current == "prod"


def test_what_works_without_a_profile_where_none_can_be_written(home: Path) -> None:
    (home / "profiles").write_text("a file, where a folder must be")
    layout = layout_in(home / "cwd" / FOLDER)
    layout.write_marker()
    assert "cannot be written" in select_local(layout)
    assert find_target(None, None, None).data_dir == layout.root
    assert forget_local(layout) == "", "it has none"


@pytest.mark.parametrize("file", [b"current =", b'current = "l\xe4t"'], ids=["cut short", "in Latin 1"])
def test_what_works_without_a_profile_where_none_can_be_read(home: Path, file: bytes) -> None:
    user_file(os.environ).parent.mkdir()
    user_file(os.environ).write_bytes(file)
    layout = layout_in(home / "cwd" / FOLDER)
    layout.write_marker()
    assert "not valid TOML" in select_local(layout)
    assert find_target(None, None, None).data_dir == layout.root
    assert "not valid TOML" in forget_local(layout)


def test_a_cluster_in_a_directory_whose_name_is_not_utf_8_works_without_a_profile(home: Path) -> None:
    layout = layout_in(home / "cwd" / os.fsdecode(b"l\xe4t") / FOLDER)
    layout.write_marker()
    assert r"cannot hold '\udce4'" in select_local(layout)
    assert not user_file(os.environ).exists()
