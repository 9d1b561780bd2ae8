"""Which links a cut means, what a node's file says of them, and what `quorumlog net` takes and shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.explaining.facts import BrokerFact, Facts
from quorumlog.rpc.transport import Address
from quorumlog.testing.cuts import NoCuts, check_can_be_cut, cut_links, described, links_between, write_cut_links
from quorumlog.testing.layout import Layout, NodeFiles, node_folder
from quorumlog.testing.node_config import properties_of
from quorumlog.testing.ports import NodePorts
from quorumlog_cli.commands.explaining import check, explain, reading
from quorumlog_cli.commands.nodes.net import parse_groups
from quorumlog_cli.main import main
from quorumlog_cli.profiles.profile import Target
from quorumlog_server.config.config import read_config
from quorumlog_server.edge.cut_links import CutLinks, read_cut_links

CUTS = [
    ("two", [1, 2], {(1, 2), (2, 1)}),
    ("one from all", [1], {(1, 2), (2, 1), (1, 3), (3, 1)}),
    ("sides", [[1], [2, 3]], {(1, 2), (2, 1), (1, 3), (3, 1)}),
    ("a node between", [1, 3], {(1, 3), (3, 1)}),
    ("three", [1, 2, 3], {(a, b) for a in (1, 2, 3) for b in (1, 2, 3) if a != b}),
]


@pytest.mark.parametrize(("groups", "want"), [cut[1:] for cut in CUTS], ids=[cut[0] for cut in CUTS])
def test_a_cut_is_of_both_directions(groups: list[int | list[int]], want: set[tuple[int, int]]) -> None:
    assert links_between(groups, [1, 2, 3]) == want


@given(st.permutations(range(1, 7)), st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_whoever_is_on_another_side_is_cut_off(order: list[int], sides: list[int]) -> None:
    """side 0: in no group."""
    groups = [[node for node, side in zip(order, sides, strict=True) if side == one] for one in (1, 2, 3)]
    groups = [group for group in groups if group]
    if len(groups) < 2:
        return
    side = dict(zip(order, sides, strict=True))
    links = links_between(groups, range(1, 7))
    for a in order:
        for b in order:
            assert ((a, b) in links) == (a != b and 0 not in (side[a], side[b]) and side[a] != side[b])


@pytest.mark.parametrize(
    ("groups", "why"),
    [([4], "no node 4; the nodes are 1, 2, 3"), ([1, [1, 2]], "two groups"), ([], "both sides"), ([[1, 2, 3]], "both")],
)
def test_a_cut_that_makes_no_sense_is_refused(groups: list[int | list[int]], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        links_between(groups, [1, 2, 3])


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    nodes = tuple(
        NodeFiles(n, node_folder(tmp_path, n), NodePorts(*range(10_000 + n * 10, 10_005 + n * 10))) for n in (1, 2, 3)
    )
    for node in nodes:
        node.folder.mkdir()
        node.config.write_text(properties_of(node, nodes, {}))
    return Layout(tmp_path, "4xQ3", nodes)


def test_files_say_what_is_cut_and_nodes_understand_them(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    links = links_between([1, [2, 3]], [1, 2, 3])
    write_cut_links(layout, links)
    assert cut_links(layout) == links
    ports = layout.node(1).ports
    for node_id in (2, 3):
        config = read_config(str(layout.node(node_id).config), [], {})  # from any directory
        assert config.process.cut_links == str(layout.node(node_id).cut_links)
        file = CutLinks(config.process.cut_links, lambda name, error: pytest.fail(f"{name}: {error}"))
        file.look_now()
        assert file.addresses == {Address("127.0.0.1", ports.internal), Address("127.0.0.1", ports.replication)}
        layout.node(node_id).cut_links.write_text("nonsense\n")
        file.look_now()  # what was cut stays cut
        assert len(file.addresses) == 2
    write_cut_links(layout, ())
    file.look_now()
    assert cut_links(layout) == set() == file.addresses and not layout.node(1).cut_links.exists()


def test_a_cluster_of_older_software_is_told_what_to_add(layout: Layout) -> None:
    check_can_be_cut(layout.nodes)
    config = layout.node(2).config
    config.write_text("".join(f"{line}\n" for line in config.read_text().splitlines() if "cut.links" not in line))
    with pytest.raises(NoCuts, match=r"node 2 .* add debug\.cut\.links\.file=cut\.links to .*/n2/server\.properties"):
        check_can_be_cut(layout.nodes)


@pytest.mark.parametrize(
    "content", [b"h\n", b":1", b"h:0", b"h:65536", b"h:x", b"\xff", b"h:\xc2\xb2", b"h:1\n" * 99_999]
)
def test_a_file_that_is_not_understood_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError):
        read_cut_links(content)


def test_addresses_of_a_file() -> None:
    assert read_cut_links(b"127.0.0.1:9093\n\n [::1]:9094 \n") == {Address("127.0.0.1", 9093), Address("::1", 9094)}


@pytest.mark.parametrize("words", [["1", "2,3"], ["1|2,3"], ["1 | 2, 3"]])
def test_groups_of_a_command(words: list[str]) -> None:
    assert parse_groups(words) == [[1], [2, 3]]


@pytest.mark.parametrize("words", [["a"], ["1|"], ["1,,2"], ["-1"], ["²"]])
def test_what_is_no_group(words: list[str]) -> None:
    with pytest.raises(ValueError, match="is no group of nodes"):
        parse_groups(words)


def test_a_pair_is_shown_once_and_one_way_as_such() -> None:
    assert described({(2, 1), (1, 2), (3, 1)}) == ["1 | 2", "3 -> 1 (one way)"]


def test_what_is_wrong_is_told_with_the_links_that_are_cut(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No node tells of them, so that `explain` and `check` would only say: restart the node."""
    layout.write_marker()
    facts = Facts(at_ms=1, brokers=(BrokerFact(node_id=2, fenced=True),))
    monkeypatch.setattr(
        reading, "find_target", lambda *_: Target(bootstrap_servers="", origin="here", data_dir=layout.root)
    )
    monkeypatch.setattr(explain, "read", lambda *_args, **_how: facts)
    monkeypatch.setattr(check, "read", lambda *_args, **_how: facts)
    assert main(["explain"]) == 5 and "net cut" not in capsys.readouterr().err
    write_cut_links(layout, links_between([2], {1, 2, 3}))
    for command in ("explain", "check"):
        assert main([command]) != 0
        assert "cut by net cut: 1 | 2, 2 | 3; do first: quorumlog net heal" in capsys.readouterr().err
