"""docs/guides: every Python block as it stands, over real processes, and what the page says that it prints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from quorumlog.testing import LocalCluster
from tests.live.page_code import DOCS, Code, block, blocks, run, run_python, section

APPLICATIONS = (DOCS / "guides" / "applications.md").read_text()
APART = ("In transactions", "In your tests", "With TLS and a login")  # sections that have a test of their own


def programs(page: str) -> list[tuple[str, str]]:
    """Each block of Python, with the block of text behind it: what it prints."""
    found = blocks(page)
    return [
        (one.text, two.text)
        for one, two in zip(found, [*found[1:], Code("", "")], strict=True)
        if (one.language, two.language) == ("python", "text")
    ]


@pytest.mark.timeout(480)
def test_applications(tmp_path: Path) -> None:
    page = APPLICATIONS
    for heading in APART:
        page = page.replace(section(page, heading), "")
    found = programs(page)
    assert len(found) == sum(one.language == "python" for one in blocks(page)) > 4
    with LocalCluster(tmp_path / "cluster") as cluster:
        for code, prints in found:
            assert run_python(code, cluster.bootstrap_servers, tmp_path) == prints, code


@pytest.mark.timeout(240)
def test_transactions(tmp_path: Path) -> None:
    code = block(APPLICATIONS, "In transactions", "python")
    with LocalCluster(tmp_path / "cluster") as cluster, cluster.client.producer() as producer:
        for name in ("orders", "invoices"):
            cluster.client.admin.create_topic(name, 3)
        orders = [f"order {number}".encode() for number in range(50)]
        for order in orders:
            producer.send("orders", order)
        producer.flush()
        for _ in range(2):  # the second process begins behind the offsets of the first one
            run_python(code, cluster.bootstrap_servers, tmp_path)
        billed: list[bytes | None] = []
        with cluster.client.consumer("invoices", isolation_level="read_committed") as invoices:
            while len(billed) < len(orders):
                billed += [record.value for record in invoices.poll(timeout_ms=5_000)]
            billed += [record.value for record in invoices.poll(timeout_ms=500)]
        assert sorted(value or b"" for value in billed) == sorted(orders)


@pytest.mark.timeout(240)
def test_a_test(tmp_path: Path) -> None:
    (tmp_path / "test_application.py").write_text(block(APPLICATIONS, "In your tests", "python"))
    done = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_application.py"], tmp_path)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_login(tmp_path: Path) -> None:
    ((code, prints),) = programs(section(APPLICATIONS, "With TLS and a login"))
    with LocalCluster(tmp_path / "cluster", nodes=1, tls=True) as cluster:
        options = cluster.client_options()
        (tmp_path / "admin.password").write_text(f"{options['sasl_password']}\n")
        (tmp_path / "ca.pem").write_bytes(Path(options["ssl_truststore_location"]).read_bytes())
        assert run_python(code, cluster.bootstrap_servers, tmp_path) == prints
