"""A cluster's folder that was moved or copied: its nodes write into it, and two copies never run at once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from quorumlog.testing.layout import Layout, NodeFiles, node_folder, read_layout
from quorumlog.testing.node_config import properties_of
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import NodePorts
from quorumlog_cli.local.place import settle
from quorumlog_cli.local.profile_of import select_local
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_server.config.config import load, read_config
from quorumlog_server.config.properties import ConfigError
from quorumlog_storage.edge.disk import RealDisk

CASES = [
    ("as in Kafka", "log.dirs=a,/b\n", ("a", "/b")),
    ("said so", "log.dirs=a,/b\npaths.relative.to=process\n", ("a", "/b")),
    ("from the file", "log.dirs=a,/b,../c\npaths.relative.to=file\n", ("/x/a", "/b", "/x/../c")),
    ("the metadata log", "log.dirs=/b\nmetadata.log.dir=m\npaths.relative.to=file\n", ("/b", "/x/m")),
    ("the older name", "log.dir=a\npaths.relative.to=file\n", ("/x/a",)),
]
REST = "node.id=1\ncontroller.quorum.voters=1@127.0.0.1:9093\n"


@pytest.mark.parametrize(("lines", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_where_relative_paths_begin(lines: str, want: tuple[str, ...]) -> None:
    assert load("/x/server.properties", REST + lines, {}).directories == want


def test_a_file_beside_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = load("n1/server.toml", 'node.id = 1\npaths.relative.to = "file"\n[log]\ndirs = ["a", "b"]\n' + VOTERS, {})
    assert config.log_dirs == (f"{tmp_path}/n1/a", f"{tmp_path}/n1/b")


VOTERS = '[controller.quorum]\nvoters = ["1@127.0.0.1:9093"]\n'


def test_cordoned_directories_are_named_likewise() -> None:
    lines = "paths.relative.to=file\nlog.dirs=a,b\ncordoned.log.dirs="
    assert load("/x/f", f"{REST}{lines}b\n", {}).cordoned_log_dirs == ("/x/b",)
    assert load("/x/f", f"{REST}{lines}*\n", {}).cordoned_log_dirs == ("/x/a", "/x/b")


def test_paths_of_the_environment_begin_at_the_working_directory() -> None:
    environment = {"QUORUMLOG_LOG_DIRS": "there"}
    assert load("/x/f", f"{REST}paths.relative.to=file\nlog.dirs=a\n", environment).log_dirs == ("there",)


@pytest.mark.parametrize(
    ("path", "lines", "environment"),
    [
        ("/x/f", "paths.relative.to=home\n", {}),
        ("/x,y/f", "paths.relative.to=file\n", {}),
        ("/x/f", "", {"QUORUMLOG_PATHS_RELATIVE_TO": "file"}),
    ],
)
def test_a_base_that_would_be_guessed_is_refused(path: str, lines: str, environment: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"paths\.relative\.to"):
        load(path, f"{REST}log.dirs=a\n{lines}", environment)


def test_the_command_line_cannot_say_where_paths_begin(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(f"{REST}log.dirs=a\n")
    with pytest.raises(ConfigError, match="in a file only"):
        read_config(str(tmp_path / "f"), ["paths.relative.to=file"], {})


# --- the folder of `up` ---


@pytest.fixture
def original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """A cluster of one node, formatted as far as the commands look at it, with a profile."""
    monkeypatch.setenv("QUORUMLOG_HOME", str(tmp_path / "home"))
    root = tmp_path / "M" / ".quorumlog"
    node = NodeFiles(1, node_folder(root, 1), NodePorts.row(20_000))
    node.data.mkdir(parents=True)
    (node.data / ".lock").touch()
    (node.data / "meta.properties").touch()
    node.config.write_text(properties_of(node, [node], {}))
    layout = Layout(root, "C", (node,))
    layout.write_marker()
    select_local(layout)
    return read_layout(root)


def other(layout: Layout, name: str) -> Path:
    return layout.root.parent.parent / name / ".quorumlog"


def test_a_cluster_at_home_has_nothing_to_tell(original: Layout) -> None:
    assert settle(LocalNodes.open(original.root)) == ""


def test_a_moved_cluster_is_at_home_where_it_is(original: Layout) -> None:
    moved = other(original, "M2")
    original.root.parent.rename(moved.parent)
    assert settle(LocalNodes.open(moved)) == f"moved from {original.root}"
    assert settle(LocalNodes.open(moved)) == ""
    assert read_layout(moved).home == moved
    assert read_config(str(moved / "n1/server.properties"), (), {}).log_dirs == (str(moved / "n1/data"),)


def test_a_copy_is_told_from_its_original(original: Layout) -> None:
    copy = other(original, "M3")
    shutil.copytree(original.root.parent, copy.parent)
    assert settle(LocalNodes.open(copy)) == f"a copy of {original.root}, with the same id: never start both"
    select_local(read_layout(copy))
    for running, starting in ((original.root, copy), (copy, original.root)):
        lock = RealDisk().lock(str(running / "n1/data/.lock"))
        with pytest.raises(CliError, match=f"{starting} and {running} are copies of one another.*cluster C") as refused:
            settle(LocalNodes.open(starting))
        assert refused.value.code is Exit.PRECONDITION and f"--data {running}" in refused.value.hint
        lock.release()
    shutil.rmtree(original.root)
    assert settle(LocalNodes.open(copy)) == f"moved from {original.root}"


def test_another_path_to_the_same_folder_is_no_copy(original: Layout) -> None:
    link = original.root.parent.parent / "link"
    os.symlink(original.root.parent, link)
    lock = RealDisk().lock(str(original.nodes[0].data / ".lock"))
    assert settle(LocalNodes.open(link / ".quorumlog")) == ""
    lock.release()


def test_a_new_cluster_in_the_old_place_is_no_original(original: Layout) -> None:
    moved = other(original, "M2")
    original.root.parent.rename(moved.parent)
    original.root.mkdir(parents=True)
    Layout(original.root, "NEW", original.nodes).write_marker()
    assert settle(LocalNodes.open(moved)) == f"moved from {original.root}"


def test_a_file_with_the_paths_of_another_place_is_refused(original: Layout) -> None:
    """As `up` wrote them before: the node would write there, or find nothing and be formatted anew."""
    node = original.nodes[0]
    node.config.write_text(properties_of(node, [node], {"log.dirs": str(node.data)}))
    assert settle(LocalNodes.open(original.root)) == ""
    moved = other(original, "M2")
    original.root.parent.rename(moved.parent)
    with pytest.raises(CliError, match="was moved or copied") as refused:
        settle(LocalNodes.open(moved))
    assert refused.value.code is Exit.PRECONDITION and "paths.relative.to=file" in refused.value.hint
