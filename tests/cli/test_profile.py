"""Which cluster a command uses: the order of precedence as a table, and files that keep their comments."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quorumlog.security.secret import HIDDEN
from quorumlog_cli.main import main
from quorumlog_cli.profiles.client_security import hidden, refuse_secrets
from quorumlog_cli.profiles.profile import Asked, Here, Profiles, parse_options, parse_profiles, resolve
from quorumlog_cli.profiles.profile_file import (
    read_project,
    user_file,
    with_current,
    with_profile,
    without_profile,
    write_text,
)
from quorumlog_cli.terminal.errors import CliError, Exit

USER = Profiles(
    "home", {"home": {"bootstrap_servers": ["h:1", "h:2"], "client_id": "me"}, "other": {"bootstrap_servers": "o:1"}}
)
PROJECT = Profiles("proj", {"proj": {"bootstrap_servers": "p:1"}})
NONE = Profiles()

CASES = [
    ("the default", Asked(), {}, NONE, NONE, "localhost:9092"),
    ("the person's profile", Asked(), {}, NONE, USER, "h:1,h:2"),
    ("the project's before the person's", Asked(), {}, PROJECT, USER, "p:1"),
    ("a named one before the project's", Asked(profile="other"), {}, PROJECT, USER, "o:1"),
    ("named by the environment", Asked(), {"QUORUMLOG_PROFILE": "other"}, PROJECT, USER, "o:1"),
    ("the environment", Asked(profile="other"), {"QUORUMLOG_BOOTSTRAP_SERVERS": "e:1"}, NONE, USER, "e:1"),
    ("-X", Asked(options=["bootstrap.servers=x:1"]), {"QUORUMLOG_BOOTSTRAP_SERVERS": "e:1"}, NONE, USER, "x:1"),
    ("a flag before all", Asked(bootstrap_servers="f:1", options=["bootstrap.servers=x:1"]), {}, PROJECT, USER, "f:1"),
]


@pytest.mark.parametrize(
    ("asked", "environment", "project", "user", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_precedence(asked: Asked, environment: dict[str, str], project: Profiles, user: Profiles, want: str) -> None:
    assert resolve(asked, environment, project, user).bootstrap_servers == want


def test_options_of_a_profile_are_not_those_of_another() -> None:
    assert resolve(Asked(), {}, NONE, USER).options == {"client_id": "me"}
    assert resolve(Asked(profile="other"), {}, NONE, USER).options == {}


def test_servers_from_a_flag_are_not_the_profiles_local_cluster() -> None:
    user = Profiles("local", {"local": {"bootstrap_servers": "h:1", "data_dir": "/data"}})
    assert resolve(Asked(), {}, NONE, user).data_dir == Path("/data")
    assert resolve(Asked(bootstrap_servers="f:1"), {}, NONE, user).data_dir is None


def test_the_origin_is_reported() -> None:
    assert resolve(Asked(), {}, NONE, USER).origin == "profile 'home'"
    assert resolve(Asked(bootstrap_servers="f:1"), {}, NONE, USER).origin == "--bootstrap-servers"


def test_an_unknown_profile_error_lists_the_known_ones() -> None:
    with pytest.raises(CliError, match="home, other, proj") as caught:
        resolve(Asked(profile="x"), {}, PROJECT, USER)
    assert caught.value.code is Exit.NOT_FOUND


def test_options_take_kafkas_names() -> None:
    assert parse_options(["request.timeout.ms=5", "client_id=a=b"]) == {"request_timeout_ms": "5", "client_id": "a=b"}


@pytest.mark.parametrize("text", ["profiles = 3", "[profiles]\nlocal = 1", "current ="])
def test_an_invalid_file_is_refused(text: str) -> None:
    with pytest.raises(CliError):
        parse_profiles("config.toml", text)


COMMENTED = """# mine
current = "prod"  # careful

[profiles.prod]
bootstrap_servers = ["k1:9092"]

# an old one
[profiles.local]
bootstrap_servers = ["old:1"]

[profiles.test]
bootstrap_servers = "t:1"
"""


def test_an_edited_file_keeps_its_comments_and_other_profiles() -> None:
    text = with_current(with_profile(COMMENTED, "local", {"bootstrap_servers": ["n:1"], "data_dir": 'a "b"'}), "local")
    profiles = parse_profiles("x", text)
    assert profiles.current == "local"
    assert dict(profiles.by_name["local"]) == {"bootstrap_servers": ["n:1"], "data_dir": 'a "b"'}
    assert sorted(profiles.by_name) == ["local", "prod", "test"]
    assert "# mine" in text and "# an old one" in text


def test_a_profile_created_twice_exists_once() -> None:
    once = with_profile("", "a", {"bootstrap_servers": "x:1"})
    assert with_profile(once, "a", {"bootstrap_servers": "x:1"}) == once
    assert parse_profiles("x", without_profile(once, "a")).by_name == {}


def test_files_of_a_profile_that_is_created_are_found_from_any_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUORUMLOG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    said = [
        "ssl.ca.location=certs/ca.pem",
        "ssl.key.password=env:KEY",
        "sasl.password=file:ada.password",
        "client.id=a/b",
    ]
    given = [word for text in ["security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", *said] for word in ("-X", text)]
    assert main(["profile", "create", "a", "-b", "127.0.0.1:1", *given, "-X", "cluster.id=c"]) == 0
    made = parse_profiles("x", (tmp_path / "config.toml").read_text()).by_name["a"]
    assert made["ssl_truststore_location"] == f"{tmp_path}/certs/ca.pem"
    assert made["sasl_password"] == f"file:{tmp_path}/ada.password"
    assert (made["ssl_key_password"], made["client_id"]) == ("env:KEY", "a/b")


def test_write_refuses_a_text_that_cannot_be_read_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "config.toml"
    write_text(path, COMMENTED)
    with pytest.raises(CliError):
        write_text(path, "current =")
    assert path.read_text() == COMMENTED


def test_user_file_follows_the_environment() -> None:
    assert user_file({"QUORUMLOG_HOME": "/q"}) == Path("/q/config.toml")
    assert user_file({"XDG_CONFIG_HOME": "/x"}) == Path("/x/quorumlog/config.toml")


def test_a_projects_file_is_looked_for_up_to_the_repository(tmp_path: Path) -> None:
    (tmp_path / ".quorumlog.toml").write_text('current = "a"\n[profiles.a]\nbootstrap_servers = "a:1"\n')
    inside = tmp_path / "repository" / "folder"
    inside.mkdir(parents=True)
    assert read_project(inside).current == "a"
    (tmp_path / "repository" / ".git").mkdir()
    assert read_project(inside).current == ""


def test_tests_have_profiles_of_their_own() -> None:
    """Those of the person who runs them are neither read nor changed."""
    assert Path.home() not in user_file(os.environ).parents


# --- the login that `up --tls` writes ---

LOGIN = {
    "security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "admin",
    "sasl_password": "file:/c/.quorumlog/admin.password", "ssl_truststore_location": "/c/.quorumlog/tls/ca.pem",
}  # fmt: skip
PLACE = {"bootstrap_servers": "c:1", "data_dir": "/c/.quorumlog", "cluster_id": "id"}
JAAS = "sasl.jaas.config=of another user"
LOGINS = [
    ("of the local cluster", Asked(), {**LOGIN, "cluster_id": "id"}),
    ("not for other servers", Asked(bootstrap_servers="f:1"), {}),
    ("another user", Asked(options=["sasl.username=bob"]), {**LOGIN, "cluster_id": "id", "sasl_username": "bob"}),
    (
        "a user by a JAAS line",
        Asked(options=[JAAS]),
        {"cluster_id": "id", **{key: LOGIN[key] for key in ("security_protocol", "sasl_mechanism")},
         "ssl_truststore_location": LOGIN["ssl_truststore_location"], "sasl_jaas_config": "of another user"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "want"), [case[1:] for case in LOGINS], ids=[case[0] for case in LOGINS])
def test_whose_login_a_command_uses(asked: Asked, want: dict[str, str]) -> None:
    profiles = Profiles("local", {"local": {**PLACE, **LOGIN}})
    assert resolve(asked, {}, NONE, profiles).options == want
    here = Here(root=Path(PLACE["data_dir"]), cluster_id="id", bootstrap_servers="c:1", security=LOGIN)
    if not asked.bootstrap_servers:
        assert resolve(asked, {}, NONE, NONE, here).options == want


def test_a_login_of_the_users_own_is_for_other_servers_too() -> None:
    own = {**PLACE, **LOGIN, "sasl_password": "env:MINE"}
    found = resolve(Asked(bootstrap_servers="f:1"), {}, NONE, Profiles("local", {"local": own})).options
    assert found == {**LOGIN, "sasl_password": "env:MINE"}


def test_a_registrys_options_go_with_a_profile_and_its_secrets_do_not_show() -> None:
    named = {"schema_registry_url": "http://r:8081", "basic_auth_user_info": "env:USER_INFO"}
    assert hidden(named) == named
    refuse_secrets(named)
    for in_clear in ({"basic_auth_user_info": "ada:x"}, {"schema_registry_url": "http://ada:x@r"}):
        assert list(hidden(in_clear).values()) == [HIDDEN]
        with pytest.raises(CliError, match="keeps no secret in clear"):
            refuse_secrets(in_clear)
