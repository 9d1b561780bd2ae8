"""kcat, if the program is installed."""

from __future__ import annotations

import json
import shutil
import subprocess

import client_matrix as matrix
from client_matrix import NO_KCAT, Client, Place

TIMEOUT_S = 30.0


def kcat(place: Place, *arguments: str, stdin: str = "") -> str:
    command = [program(), "-q", "-b", place.servers, *arguments]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    ).stdout  # fmt: skip


def program() -> str:
    return shutil.which("kcat") or shutil.which("kafkacat") or ""


def version() -> str:
    said = subprocess.run([program(), "-V"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False).stdout
    words = said.split()
    return words[words.index("Version") + 1]  # the copyright line before it contains years


def metadata(place: Place) -> None:
    found = json.loads(kcat(place, "-L", "-J", "-t", place.topic))
    assert len(found["brokers"]) == 3
    assert len(found["topics"][0]["partitions"][0]["replicas"]) == 3


def produce(place: Place) -> None:
    kcat(place, "-P", "-t", place.topic, "-p", "0", stdin="one\ntwo\n")
    assert kcat(place, "-C", "-t", place.topic, "-p", "0", "-o", "beginning", "-e") == "one\ntwo\n"


def whole_record(place: Place) -> None:
    kcat(place, "-P", "-t", place.topic, "-p", "0", "-K", ":", "-H", "first=1", stdin="key:value\n")
    said = kcat(place, "-C", "-t", place.topic, "-p", "0", "-o", "beginning", "-e", "-f", "%k %s %h %o\n")
    assert said == "key value first=1 0\n"


def ends(place: Place) -> None:
    kcat(place, "-P", "-t", place.topic, "-p", "0", stdin="one\ntwo\n")
    assert "offset 2" in kcat(place, "-Q", "-t", f"{place.topic}:0:-1")


def seek(place: Place) -> None:
    kcat(place, "-P", "-t", place.topic, "-p", "0", stdin="0\n1\n2\n")
    assert kcat(place, "-C", "-t", place.topic, "-p", "0", "-o", "1", "-e") == "1\n2\n"


def group(place: Place) -> None:
    """Auto-committed offsets: the second run goes on behind the first."""
    for text in ("one\n", "two\n"):
        kcat(place, "-P", "-t", place.topic, "-p", "0", stdin=text)
        assert kcat(place, "-G", place.topic, "-X", "auto.offset.reset=earliest", "-e", place.topic) == text


KCAT = Client(
    "kcat",
    version,
    lambda: "" if program() else NO_KCAT,
    {
        matrix.METADATA: metadata,
        matrix.PRODUCE: produce,
        matrix.WHOLE_RECORD: whole_record,
        matrix.CONSUME: produce,
        matrix.SEEK: seek,
        matrix.ENDS: ends,
        matrix.GROUP: group,
    },
)
