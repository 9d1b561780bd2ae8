"""The Helm chart: what Helm made of it the last time, which every machine can read, and Helm itself where it is.

`chart.rendered.yaml` is written by

    python -m tests.packages.test_chart
"""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from quorumlog_server.config.keys import all_keys
from tests.packages.package_files import CHART, PACKAGING, config, digest_of_chart, wrong_in_command

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is part of the test extra")

RENDERED = Path(__file__).with_name("chart.rendered.yaml")
DIGEST = "# of the chart with the digest "
GIVEN = {"clusterId": "oRrbj8Eh3V6xk8i9Y-8OTw", "existingSecret": "logs-secret", "brokers": 2}
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
TEMPLATES = {path.name: path.read_text() for path in sorted((CHART / "templates").iterdir())}
HAS_HELM = pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
RUNS_AS = 10001


def objects(kind: str) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(RENDERED.read_text()) if one["kind"] == kind]


SETS = {one["metadata"]["name"]: one for one in objects("StatefulSet")}
NODE_SETS = pytest.mark.parametrize("name", ["logs-quorumlog", "logs-quorumlog-broker"])


def pod(name: str) -> dict[str, Any]:
    found: dict[str, Any] = SETS[name]["spec"]["template"]["spec"]
    return found


def containers(name: str) -> Iterator[dict[str, Any]]:
    yield from (*pod(name)["initContainers"], *pod(name)["containers"])


def helm(*words: str, **values: Any) -> subprocess.CompletedProcess[str]:
    given = [f"--set-json={key}={json.dumps(value)}" for key, value in {**GIVEN, **values}.items()]
    command = ["helm", *words, str(CHART), *given]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def render() -> str:
    done = helm("template", "logs", "--namespace=prod", "--kube-version=1.30")
    assert done.returncode == 0, done.stderr
    return f"{DIGEST}{digest_of_chart()}\n{done.stdout}"


def test_what_was_rendered_is_of_this_chart() -> None:
    assert RENDERED.read_text().partition("\n")[0] == f"{DIGEST}{digest_of_chart()}", "helm has to render it again"


@HAS_HELM
def test_helm_renders_the_same() -> None:
    assert render() == RENDERED.read_text()


@HAS_HELM
def test_helm_finds_nothing_wrong() -> None:
    done = helm("lint", "--strict")
    assert done.returncode == 0, done.stdout


@HAS_HELM
@pytest.mark.parametrize("wrong", [{"clusterId": ""}, {"existingSecret": ""}, {"controllers": 2}, {"replicas": 3}])
def test_helm_refuses_wrong_values(wrong: dict[str, Any]) -> None:
    done = helm("template", "logs", **wrong)
    assert done.returncode != 0 and next(iter(wrong)) in done.stderr


@pytest.mark.parametrize(
    ("change", "is_right"),
    [
        ({}, True),
        ({"clusterId": ""}, False),
        ({"existingSecret": ""}, False),
        ({"controllers": 2}, False),  # a quorum of two stops with either of them
        ({"brokers": -1}, False),
        ({"replicas": 3}, False),
        ({"settings": {"log.retention.hours": 24, "compression.type": "zstd"}}, True),
        ({"settings": {"node.id": 1}}, False),
        ({"settings": {"controller.quorum.voters": "1@a:9093"}}, False),
        ({"settings": {"a": ["b"]}}, False),
        ({"persistence": {"size": "50"}}, False),
        ({"image": {"repository": "q", "digest": "sha256:12"}}, False),
    ],
)
def test_the_schema_knows_right_from_wrong(change: dict[str, Any], is_right: bool) -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    values = {**copy.deepcopy(VALUES), **GIVEN, **change}
    assert jsonschema.Draft7Validator(SCHEMA).is_valid(values) == is_right


def test_what_templates_ask_for_is_there() -> None:
    """Values, and templates by their names. A value that is misspelt is empty, and nobody says so."""
    text = "\n".join(TEMPLATES.values())
    for path in re.findall(r"(?:\.Values|\$values)\.([\w.]+)", text):
        one: Any = VALUES
        for part in path.split("."):
            assert part in one, path
            one = one[part]
    assert set(VALUES) <= set(SCHEMA["properties"])
    defined = re.findall(r"define \"([\w.]+)\"", text)
    assert len(defined) == len(set(defined)) and set(re.findall(r"include \"([\w.]+)\"", text)) == set(defined)
    for name, template in TEMPLATES.items():
        opened = re.findall(r"\{\{-? *(?:if|range|with|define)\b", template)
        assert len(opened) == len(re.findall(r"\{\{-? *end\b", template)), name


@NODE_SETS
def test_a_pod_starts_with_its_settings(name: str) -> None:
    """As Kubernetes puts names in: the first pod of each set."""
    (settings,) = objects("ConfigMap")
    start = SETS[name]["spec"].get("ordinals", {}).get("start", 0)
    for container in containers(name):
        told = {one["name"]: one.get("value", "") for one in container["env"]}
        told |= {"POD_NAME": f"{name}-{start}", "POD_NAMESPACE": "prod", "QUORUMLOG_NODE_ID": str(start)}
        told = {key: value.replace("$(POD_NAME)", told["POD_NAME"]) for key, value in told.items()}
        ours = {f"QUORUMLOG_{key.replace('.', '_').upper()}" for key in all_keys()}
        assert set(told) - {"POD_NAME", "POD_NAMESPACE"} <= ours
        node = config(settings["data"]["server.properties"], told)
        assert node.node_id == start and node.process.metrics_port == 9096
        assert ("controller" in told["QUORUMLOG_PROCESS_ROLES"]) == (name == "logs-quorumlog")
        assert wrong_in_command(container["args"]) == []


def test_voters_are_pods_of_the_first_set() -> None:
    (settings,) = objects("ConfigMap")
    (voters,) = re.findall(r"^controller.quorum.voters=(.*)$", settings["data"]["server.properties"], re.M)
    first = SETS["logs-quorumlog"]["spec"]
    domain = f"{first['serviceName']}.prod.svc.cluster.local"
    names = [f"{number}@logs-quorumlog-{number}.{domain}:9093" for number in range(first["replicas"])]
    assert voters.split(",") == names


@NODE_SETS
def test_pods_find_each_other_before_they_are_ready(name: str) -> None:
    spec = SETS[name]["spec"]
    (headless,) = [one for one in objects("Service") if one["metadata"]["name"] == spec["serviceName"]]
    assert headless["spec"]["clusterIP"] == "None" and headless["spec"]["publishNotReadyAddresses"] is True
    assert spec["podManagementPolicy"] == "Parallel"
    labels = spec["template"]["metadata"]["labels"]
    (budget,) = objects("PodDisruptionBudget")
    assert budget["spec"]["maxUnavailable"] == 1
    for selector in (headless["spec"]["selector"], budget["spec"]["selector"]["matchLabels"]):
        assert selector.items() <= labels.items()
    assert spec["selector"]["matchLabels"].items() <= labels.items()


@NODE_SETS
def test_a_pod_may_do_little(name: str) -> None:
    assert pod(name)["securityContext"]["runAsUser"] == RUNS_AS and pod(name)["securityContext"]["runAsNonRoot"]
    assert pod(name)["automountServiceAccountToken"] is False
    mounted = {mount["name"] for one in containers(name) for mount in one["volumeMounts"]}
    claimed = {one["metadata"]["name"] for one in SETS[name]["spec"]["volumeClaimTemplates"]}
    assert mounted == claimed | {one["name"] for one in pod(name)["volumes"]}
    for container in containers(name):
        limits = container["securityContext"]
        assert limits["readOnlyRootFilesystem"] and not limits["allowPrivilegeEscalation"]
        assert limits["capabilities"] == {"drop": ["ALL"]}


@NODE_SETS
def test_ports_probes_and_the_stop(name: str) -> None:
    (settings,) = objects("ConfigMap")
    (node,) = pod(name)["containers"]
    ports = {one["name"]: one["containerPort"] for one in node["ports"]}
    listeners = re.findall(r"(\w+)://0\.0\.0\.0:(\d+)", settings["data"]["server.properties"])
    assert ports == {**{listener.lower(): int(port) for listener, port in listeners}, "http": 9096}
    for service in objects("Service"):
        assert all(ports[one["targetPort"]] == one["port"] for one in service["spec"]["ports"])
    probes = {kind: node[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert {one["port"] for one in probes.values()} == {"http"}
    # A node that recovers, or has no quorum, is alive: to restart it would help nothing.
    paths = {kind: one["path"] for kind, one in probes.items()}
    assert paths == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
    python, script, wait_s, *options = node["lifecycle"]["preStop"]["exec"]["command"]
    assert python == "python" and (PACKAGING / "image" / Path(script).name).is_file()
    assert str(Path(script).parent) in (PACKAGING / "image" / "Dockerfile").read_text()
    assert wrong_in_command(["partition", "list", "-o", "json", *options]) == []
    assert not any("$(" in option for option in options)  # Kubernetes puts names into commands of containers only
    assert pod(name)["terminationGracePeriodSeconds"] >= int(wait_s) + 60


if __name__ == "__main__":
    RENDERED.write_text(render())
