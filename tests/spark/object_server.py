"""An object store on this machine: moto's S3, which honours a conditional PUT.

It has a process of its own (`python -m tests.spark.object_server`): a library that waits for it may hold this one's
interpreter meanwhile.
"""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest

BUCKET = "lake"


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of a bucket; the environment of this process, and of those that it starts, leads there."""
    server = subprocess.Popen(
        [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert server.stdin is not None and server.stdout is not None
    try:
        address = server.stdout.readline().decode().strip()
        assert address, "the object store did not start"
        with pytest.MonkeyPatch.context() as patched:
            for name, value in {
                "AWS_ENDPOINT_URL": address, "AWS_ALLOW_HTTP": "true", "AWS_ACCESS_KEY_ID": "test",
                "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1",
            }.items():  # fmt: skip
                patched.setenv(name, value)
            urllib.request.urlopen(urllib.request.Request(f"{address}/{BUCKET}", method="PUT")).close()
            yield f"s3://{BUCKET}"
    finally:
        server.stdin.close()  # it ends with its input, so it outlives no test
        server.wait()


def main() -> None:
    """Prints the address, and serves until its input ends."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    print(f"http://{host}:{port}", flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
