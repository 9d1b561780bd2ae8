"""What a new cluster's metadata begins with: in its file, and in the log of the first activation."""

from __future__ import annotations

import pytest
from test_format import format_, make_config

from jepsen.sim.machine.disk import SimDisk
from quorumlog.messages.metadata_records import MetadataRecord, UserScramCredentialRecord
from quorumlog.security.sasl.scram_format import read_scram_argument
from quorumlog.security.sasl.scram_keys import credential_of, salted_password
from quorumlog.security.sasl.scram_mechanism import ScramMechanism
from quorumlog.security.secret import Secret
from quorumlog_quorum.metadata.features import LATEST_LEVEL
from quorumlog_quorum.metadata.frame import decode_record
from quorumlog_server.directories.directories import DirectoryProblem, open_directories
from quorumlog_server.directories.first_metadata import (
    BOOTSTRAP_NAME,
    BadFirstMetadata,
    read_first_metadata,
    write_first_metadata,
)
from quorumlog_server.directories.first_voters import FormatRefused
from quorumlog_storage.files.atomic import write_atomically
from tests.rules import rule


@rule("kraft 12.11")
@pytest.mark.parametrize("level", range(1, LATEST_LEVEL + 1))
def test_a_level_is_kept_for_the_first_activation(level: int) -> None:
    disk, config = SimDisk(), make_config()
    format_(disk, config, first_level=level)
    assert open_directories(disk, config).first.level == level


def test_without_one_there_is_no_file() -> None:
    disk, config = SimDisk(), make_config()
    format_(disk, config)
    assert open_directories(disk, config).first.level is None and not disk.exists(f"/data/a/{BOOTSTRAP_NAME}")


@pytest.mark.parametrize("level", [0, LATEST_LEVEL + 1])
def test_a_level_that_this_software_lacks_is_refused(level: int) -> None:
    disk = SimDisk()
    with pytest.raises(FormatRefused, match=f"metadata.version {level}: this software supports metadata.version from"):
        format_(disk, make_config(), first_level=level)
    assert disk.list("/") == []


def test_a_damaged_file_stops_the_start() -> None:
    disk, config = SimDisk(), make_config()
    format_(disk, config, first_level=2)
    path = f"/data/a/{BOOTSTRAP_NAME}"
    whole = disk.read_bytes(path)
    for content in (whole[:-1], whole[:70] + b"x" + whole[71:], b""):
        write_atomically(disk, path, content)
        with pytest.raises(BadFirstMetadata):
            read_first_metadata(disk, "/data/a")
        with pytest.raises(DirectoryProblem, match=BOOTSTRAP_NAME):
            open_directories(disk, config)
    write_first_metadata(disk, "/data/a", 1)
    assert open_directories(disk, config).first.level == 1


ADA = (read_scram_argument("SCRAM-SHA-512=[name=ada,password=@x,iterations=8192]"), Secret("correct horse"))
BOB = (read_scram_argument(f"SCRAM-SHA-256=[name=bob,salt=c2FsdA==,saltedpassword={'A' * 43}=]"), None)


def first_of(disk: SimDisk) -> list[MetadataRecord]:
    return [decode_record(value) for value in open_directories(disk, make_config()).first.records]


def test_first_users_are_kept_with_the_level() -> None:
    """The password is nowhere, and nobody but its owner can read the file from the time it has something in it."""
    disk, protected = SimDisk(), dict[str, int]()
    format_(
        disk,
        make_config(),
        first_users=[ADA, BOB],
        protect=lambda path: protected.update({path: len(disk.read_bytes(path))}),
    )
    assert read_first_metadata(disk, "/data/a").level == LATEST_LEVEL
    assert protected[f"/data/a/{BOOTSTRAP_NAME}.tmp"] == 0
    ada, bob = first_of(disk)
    assert isinstance(ada, UserScramCredentialRecord) and isinstance(bob, UserScramCredentialRecord)
    assert (ada.name, ada.mechanism, ada.iterations, bob.name, bob.mechanism) == ("ada", 2, 8192, "bob", 1)
    salted = salted_password("correct horse", ada.salt, 8192, "sha512")
    assert credential_of(ScramMechanism.SHA_512.title, salted, ada.salt, 8192).stored_key == ada.stored_key
    assert ada.salt != bob.salt
    assert b"horse" not in disk.read_bytes(f"/data/a/{BOOTSTRAP_NAME}")


def test_every_voter_begins_with_the_same_records_and_every_cluster_with_others() -> None:
    made = []
    for secret in ("one secret of a cluster", "one secret of a cluster", "another secret, longer"):
        disk = SimDisk()
        format_(disk, make_config(), first_users=[ADA], secret=secret)
        made.append(first_of(disk))
    assert made[0] == made[1] != made[2]


def test_users_that_there_cannot_be_are_refused() -> None:
    for level, users, why in ((4, [ADA], "needs 5"), (None, [ADA, ADA], "twice")):
        disk = SimDisk()
        with pytest.raises(FormatRefused, match=why):
            format_(disk, make_config(), first_level=level, first_users=users)
        assert disk.list("/") == []
