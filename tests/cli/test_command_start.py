"""The command line's entry: quick help, errors in the requested format, exit codes."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quorumlog.client.errors import ConfigError, DeliveryTimeout, RequestFailed, Unavailable
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records import CorruptRecords
from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown
from quorumlog.testing.layout import LayoutError, NotThere
from quorumlog.testing.waiting import TimedOut
from quorumlog_broker.cleaning.runner import CleanerDied
from quorumlog_cli.main import VERBS, main
from quorumlog_cli.terminal.errors import _BY_CLASS, CliError, Exit, exit_code, report
from quorumlog_quorum.raft.events import NotLeader
from quorumlog_storage.foreign.source import BadSource

HEAVY = (
    "grpc",
    "google.protobuf",
    "numpy",
    "pyarrow",
    "pydantic",
    "immutables",
    "prometheus_client",
    "quorumlog.client",
)


@pytest.fixture(autouse=True)
def _own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps out the configuration of the person who runs the tests."""
    monkeypatch.setenv("QUORUMLOG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def test_help_loads_nothing_heavy() -> None:
    """The time is printed but not checked, because a busy machine is not an error."""
    program = (
        "import sys\nfrom quorumlog_cli.main import main\ncode = main(['--help'])\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)\nsys.exit(code)"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    print(f"--help took {time.monotonic() - began:.2f} s")
    assert done.returncode == 0
    assert done.stderr.strip() == "[]"
    assert all(verb.name in done.stdout for verb in VERBS if not verb.hidden)
    assert "3 cannot reach" in " ".join(done.stdout.replace("│", " ").split())


OF_A_NODE = (
    "grpc",
    "google.protobuf",
    "kio",
    "asyncio",
    "quorumlog_broker",
    "quorumlog_quorum",
    "quorumlog_server.process.process",
    "quorumlog.client",
)


@pytest.mark.parametrize(
    "arguments",
    [
        ["storage", "random-uuid"],
        ["storage", "format", "-c", "server.properties"],
        ["server", "config", "lint", "-c", "server.properties"],
    ],
    ids=lambda arguments: " ".join(arguments[:3]),
)
def test_commands_on_files_load_no_part_of_a_node(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:9093\n"
        "listeners=CLIENT://127.0.0.1:9092,INTERNAL://127.0.0.1:9093\nlog.dirs=data\n"
    )
    program = (
        f"import sys\nfrom quorumlog_cli.main import main\ncode = main({arguments!r})\n"
        f"print([name for name in {OF_A_NODE} if name in sys.modules], file=sys.stderr)\nsys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (0, ["[]"]), done.stderr


def test_no_command_loads_a_test_library() -> None:
    """Otherwise kio would load hypothesis once a client talks to a node: 0.15 s per command on one machine."""
    program = (
        "import sys\nsys.argv = ['quorumlog', '--version']\nfrom quorumlog_cli.main import main\nassert main() == 0\n"
        "from quorumlog.wire.protocol.apis import load_newest\nload_newest()\nprint(sys.modules['hypothesis'])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "None"


def test_up_loads_no_client() -> None:
    """It starts processes and asks for their state; importing a client would add half a second."""
    program = (
        f"import sys, quorumlog_cli.commands.nodes.up\nprint([name for name in {OF_A_NODE} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_has_help(verb: object, capsys: pytest.CaptureFixture[str]) -> None:
    name, home = verb.name, verb.home  # type: ignore[attr-defined]
    assert hasattr(importlib.import_module(home), "app")
    assert main([name, "--help"]) == Exit.DONE
    assert f"Usage: quorumlog {name}" in capsys.readouterr().out


def in_ascii(*arguments: bytes) -> subprocess.CompletedProcess[str]:
    """quorumlog where stdout takes ASCII alone, as with an old locale."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    return subprocess.run(
        [sys.executable, "-m", "quorumlog_cli.main", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_name_that_the_locale_lacks_is_shown_by_its_escape() -> None:
    assert main(["profile", "create", "p", "-b", "h:1", "-X", "client_id=ä☃"]) == 0
    done = in_ascii(b"profile", b"show", b"p")
    assert (done.returncode, done.stderr) == (0, "") and r"\xe4\u2603" in done.stdout


def test_an_argument_that_is_not_utf_8_is_bad_usage() -> None:
    done = in_ascii(b"produce", b"orders", b"-b", b"127.0.0.1:1", b"-k", b"\xff")
    assert (done.returncode, done.stderr) == (Exit.USAGE, "error  '\\udcff' is not UTF-8\n")


class Odd(Exception):
    pass


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


EXITS = [
    ("own", CliError(Exit.PARTIAL, "x"), Exit.PARTIAL),
    ("unknown topic", RequestFailed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t"), Exit.NOT_FOUND),
    ("exists", RequestFailed(ErrorCode.TOPIC_ALREADY_EXISTS, "t"), Exit.PRECONDITION),
    ("not authorised", RequestFailed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ""), Exit.NOT_AUTHORISED),
    ("a topic denied", RequestFailed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, ""), Exit.NOT_AUTHORISED),
    ("a group denied", RequestFailed(ErrorCode.GROUP_AUTHORIZATION_FAILED, ""), Exit.NOT_AUTHORISED),
    ("an id denied", RequestFailed(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ""), Exit.NOT_AUTHORISED),
    ("over a limit", RequestFailed(ErrorCode.POLICY_VIOLATION, ""), Exit.PRECONDITION),
    ("no such replica", RequestFailed(ErrorCode.REPLICA_NOT_AVAILABLE, ""), Exit.NOT_FOUND),
    ("too few replicas", RequestFailed(ErrorCode.NOT_ENOUGH_REPLICAS, ""), Exit.UNHEALTHY),
    ("an api error", ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, ""), Exit.USAGE),
    ("an unlisted code", RequestFailed(ErrorCode.UNKNOWN_SERVER_ERROR, ""), Exit.FAILED),
    ("unavailable", Unavailable("x"), Exit.UNREACHABLE),
    ("reached, but silent", caused(Unavailable("x"), OutcomeUnknown("y")), Exit.TIMED_OUT),
    ("not delivered", NotDelivered("x"), Exit.UNREACHABLE),
    ("unknown outcome", OutcomeUnknown("x"), Exit.TIMED_OUT),
    ("delivery time-out", DeliveryTimeout("x", outcome_unknown=True), Exit.TIMED_OUT),
    ("bad option", ConfigError("x"), Exit.USAGE),
    ("corrupt", CorruptRecords(0, "x"), Exit.DATA_INVALID),
    ("no such node", NotThere("x"), Exit.NOT_FOUND),
    ("half-made root", LayoutError("x"), Exit.PRECONDITION),
    ("waited", TimedOut("x"), Exit.TIMED_OUT),
    ("interrupted", KeyboardInterrupt(), Exit.INTERRUPTED),
    ("no file", FileNotFoundError(2, "no"), Exit.NOT_FOUND),
    ("odd", Odd("x"), Exit.FAILED),
]


@pytest.mark.parametrize(("error", "want"), [c[1:] for c in EXITS], ids=[c[0] for c in EXITS])
def test_exit_code(error: BaseException, want: Exit) -> None:
    assert exit_code(error) is want


@pytest.mark.parametrize("name", sorted(_BY_CLASS))
def test_a_class_with_an_exit_code_has_that_name(name: str) -> None:
    """A class that was moved or renamed would get the code of an unexpected error."""
    home, _, own = name.rpartition(".")
    kind = getattr(importlib.import_module(home), own)
    assert f"{kind.__module__}.{kind.__qualname__}" == name


@pytest.mark.parametrize(
    ("error", "is_traced"),
    [(BadSource("x"), False), (NotLeader(1, None, 2), False), (CleanerDied(1), False), (Odd("x"), True)],
    ids=lambda value: type(value).__name__,
)
def test_only_an_unexpected_error_shows_its_stack(
    error: Exception, is_traced: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    report(error)
    said = capsys.readouterr().err
    assert str(error).split()[0] in said and (f".{type(error).__qualname__}: " in said) is is_traced


def test_a_mistyped_verb_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topi"]) == Exit.USAGE
    assert "No such command 'topi'. Did you mean 'topic', 'top'? See: quorumlog --help" in capsys.readouterr().err
    assert main(["topic", "list", "more"]) == Exit.USAGE
    assert "(more). See: quorumlog topic list --help" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "next_step"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "quorumlog topic list"),
        (ErrorCode.GROUP_ID_NOT_FOUND, "quorumlog group list"),
        (ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "quorumlog transaction list"),
    ],
)
def test_what_is_not_there_is_told_with_where_to_look(
    code: ErrorCode, next_step: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(RequestFailed(code, "x")) == Exit.NOT_FOUND
    assert f"hint   {next_step} shows what there is" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        (["topic", "list", "-b", "127.0.0.1:1"], Exit.UNREACHABLE),
        (["topic", "create"], Exit.USAGE),
        (["topic", "list", "--profile", "nowhere"], Exit.NOT_FOUND),
        (["topic", "list", "-X", "acks"], Exit.USAGE),
        (["status"], Exit.NOT_FOUND),
        (["log", "dump", "nothing.log"], Exit.NOT_FOUND),
        (["storage", "format", "-c", "nothing.properties"], Exit.USAGE),
        (["consume", "t", "-O", "sideways"], Exit.USAGE),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_error_is_one_json_object_on_stderr(
    arguments: list[str], want: Exit, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "-o", "json"]) == want
    captured = capsys.readouterr()
    error = json.loads(captured.err)["error"]
    assert captured.out == ""
    assert (error["exit_code"], error["kind"]) == (want, want.name.lower())
    assert error["message"]


def test_an_error_for_people_names_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic", "list", "-b", "127.0.0.1:1"]) == Exit.UNREACHABLE
    assert "quorumlog up" in capsys.readouterr().err


def test_a_closed_pipe_is_not_an_error() -> None:
    command = f"{sys.executable} -m quorumlog_cli.main storage random-uuid | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.strip(), done.stderr) == ("0", "")
