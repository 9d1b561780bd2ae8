"""An object store on this machine, in the tests' process: moto's S3, which honours a conditional PUT."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest

BUCKET = "lake"


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of a bucket; the environment of this process, and of those that it starts, leads there."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    with pytest.MonkeyPatch.context() as patched:
        for name, value in {
            "AWS_ENDPOINT_URL": address, "AWS_ALLOW_HTTP": "true", "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1",
        }.items():  # fmt: skip
            patched.setenv(name, value)
        urllib.request.urlopen(urllib.request.Request(f"{address}/{BUCKET}", method="PUT")).close()
        yield f"s3://{BUCKET}"
    server.stop()
