"""An image without a registry: a root of Debian's packages, what requirements.lock has, and the wheel. One node runs in
it with a read-only root as user 10001, in namespaces of its own.

QUORUMLOG_DEBIAN_ROOT names such a root that is there already; its /opt/quorumlog is made anew.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quorumlog.testing.ports import PortPicker
from tests.packages.package_files import PACKAGING, ROOT

MADE_S = 1_200
MOUNTS = (
    'mount --bind "$0" "$0" && mount -t proc proc "$0/proc" && mount -o remount,ro,bind "$0"'
    ' && mount -t tmpfs -o uid=10001,gid=10001,mode=0750 tmpfs "$0/data"'
    ' && exec chroot --userspec=10001:10001 --groups= "$0" sh /opt/quorumlog/run.sh'
)
RUN = """
cd /data
export HOME=/data PYTHONPATH=/opt/quorumlog/site PATH=/opt/quorumlog/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1
id -u
touch /etc/written 2>/dev/null || echo "read-only"
quorumlog storage format -c /opt/quorumlog/server.properties -t "$(quorumlog storage random-uuid)" >&2
quorumlog server start -c /opt/quorumlog/server.properties > out &
node=$!
for _ in $(seq 120); do grep -q READY out && break; sleep 0.5; done
python3 /opt/quorumlog/wait_in_sync.py 30 -b 127.0.0.1:CLIENT_PORT && echo "in sync"
kill "$node"
wait "$node" && echo "stopped"
"""
COMMAND = "#!/usr/bin/python3\nimport sys\nfrom quorumlog_cli.main import main\nsys.exit(main())\n"


def do(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=MADE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def debian(tmp_path: Path) -> Path:
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("a namespace for mounts needs root and a kernel that gives one")
    if given := os.environ.get("QUORUMLOG_DEBIAN_ROOT"):
        return Path(given)
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is not installed")
    if sys.version_info[:2] != (3, 11):
        pytest.skip("Debian 12 has Python 3.11, and wheels are chosen by the Python that runs this")
    root = tmp_path / "root"
    do("debootstrap", "--variant=minbase", "--include=python3", "bookworm", root)
    return root


@pytest.mark.timeout(MADE_S)
def test_a_node_runs_in_a_read_only_root_as_its_user(
    debian: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    ours = debian / "opt" / "quorumlog"
    shutil.rmtree(ours, ignore_errors=True)
    pip = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check")
    install = (*pip, "install", "--no-compile", "--no-deps", "--target", ours / "site")
    do(*install, "--require-hashes", "-r", PACKAGING / "requirements.lock")
    do(*pip, "wheel", "--no-deps", "-w", tmp_path / "dist", ROOT)
    do(*install, "--no-index", *(tmp_path / "dist").glob("*.whl"))
    picker = PortPicker()
    request.addfinalizer(picker.close)
    ports = picker.pick(1)[0].all
    (ours / "server.properties").write_text(
        f"node.id=1\ncontroller.quorum.voters=1@127.0.0.1:{ports[1]}\nlog.dirs=/data/log\n"
        f"listeners=CLIENT://127.0.0.1:{ports[0]},INTERNAL://127.0.0.1:{ports[1]},REPLICATION://127.0.0.1:{ports[2]}\n"
    )
    (ours / "run.sh").write_text(RUN.replace("CLIENT_PORT", str(ports[0])))
    shutil.copy(PACKAGING / "image" / "wait_in_sync.py", ours)
    (ours / "bin").mkdir()
    (ours / "bin" / "quorumlog").write_text(COMMAND)
    for path in (ours, *ours.rglob("*")):
        path.chmod(0o755)
    (debian / "data").mkdir(exist_ok=True)
    said = do("unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", MOUNTS, debian)
    assert said.splitlines() == ["10001", "read-only", "in sync", "stopped"]
