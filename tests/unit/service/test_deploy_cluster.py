"""The cluster of deploy/: its files parse, fit one another, and name settings, flags, paths and metrics that exist."""

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from lakelet.cli import commands
from lakelet.service.access.rate_limits import RateLimits
from lakelet.service.request_metrics import RequestMetrics
from lakelet.service.rest.metrics import metrics_text
from lakelet.service.settings import ServiceSettings, load_settings
from tests.tidy.sources import REPOSITORY
from tests.unit.service.peers.nodes import cluster
from tests.unit.service.served_lake import ServedLake

DEPLOY = REPOSITORY / "deploy"
KUBERNETES = [
    one for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())
]
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
NODES = {name: one for name, one in COMPOSE["services"].items() if name.startswith("node")}
TEXTS = {path: path.read_text() for path in sorted(DEPLOY.rglob("*")) if path.is_file()}


def of_kind(kind: str, name: str) -> Any:
    (found,) = [one for one in KUBERNETES if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


def pod() -> Any:
    return of_kind("StatefulSet", "lakelet")["spec"]["template"]["spec"]


def metric_names(text: str) -> set[str]:
    return set(re.findall(r"\blakelet_[a-z_]+", text))


def test_every_file_parses() -> None:
    for path, text in TEXTS.items():
        if path.suffix == ".yaml":
            assert all(isinstance(one, dict) for one in yaml.safe_load_all(text)), path
        if path.suffix == ".json":
            assert json.loads(text)["panels"]


def test_variables_and_flags_exist() -> None:
    variables = {f"LAKELET_{one.name.upper()}" for one in fields(ServiceSettings)} | {"LAKELET_CONFIG"}
    for path, text in TEXTS.items():
        assert set(re.findall(r"LAKELET_\w+", text)) <= variables, path
        for command, flags in re.findall(r"lakelet (keys|serve)((?:(?!lakelet )[^\n\\])*)", text):
            given = set(re.findall(r"(?<= )--[a-z][a-z-]+", flags))
            assert given <= set(commands()[command]), (path, command)


def test_the_nodes_of_compose_have_settings_volumes_and_names_of_their_own() -> None:
    assert len(NODES) == 3
    for name, node in NODES.items():
        found = load_settings({}, {"LAKELET_WAL_FOLDER": "/data/wal", "LAKELET_HOST": "0.0.0.0", **node["environment"]})
        assert found.node_address == f"{name}:50051"
        assert found.redis == "redis://redis:6379"
        assert int(node["stop_grace_period"].removesuffix("s")) > found.drain_seconds
        prepared = COMPOSE["services"]["prepare"]["command"][0]
        for path in (found.keys_file, found.peer_secret_file):
            assert Path(str(path)).name in prepared
    for index in (0, 1):
        assert len({node["ports"][index] for node in NODES.values()}) == 3
    own = {volume for node in NODES.values() for volume in node["volumes"] if volume.endswith(":/data")}
    assert len(own) == 3
    for service in COMPOSE["services"].values():
        for wanted in service.get("depends_on", {}):
            assert wanted in COMPOSE["services"]
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert (DEPLOY / source).is_file() if source.startswith(".") else source in COMPOSE["volumes"], volume


def test_the_nodes_of_kubernetes_find_one_another() -> None:
    (container,) = pod()["containers"]
    settings = of_kind("ConfigMap", "lakelet")["data"]
    own = {one["name"]: one.get("value", "") for one in container["env"]}
    found = load_settings({}, {**settings, **own})
    nodes = of_kind("StatefulSet", "lakelet")["spec"]
    assert of_kind("Service", nodes["serviceName"])["spec"]["publishNotReadyAddresses"] is True
    assert str(found.node_address).endswith(f".{nodes['serviceName']}:{found.grpc_port}")
    assert of_kind("Service", str(found.redis).removeprefix("redis://").split(":")[0])
    mounted = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert str(found.wal_folder).startswith(f"{mounted['data']}/")
    assert nodes["volumeClaimTemplates"][0]["metadata"]["name"] == "data"
    (secret,) = [one["secret"] for one in pod()["volumes"]]
    files = {f"{mounted['secrets']}/{item['path']}" for item in secret["items"]}
    assert files == {found.keys_file, found.peer_secret_file}
    sleep = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod()["terminationGracePeriodSeconds"] > found.drain_seconds + sleep
    labels = nodes["template"]["metadata"]["labels"]
    for service in ("lakelet", "lakelet-nodes"):
        assert of_kind("Service", service)["spec"]["selector"].items() <= labels.items()


def _paths() -> Iterator[str]:
    (container,) = pod()["containers"]
    yield from (container[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe"))
    (job,) = yaml.safe_load((DEPLOY / "monitoring" / "prometheus.yaml").read_text())["scrape_configs"]
    yield job["metrics_path"]
    for target in job["static_configs"][0]["targets"]:
        assert target.split(":")[0] in NODES
    yield from (re.findall(r"127\.0\.0\.1:8080(/[\w/]+)", str(node["healthcheck"]))[0] for node in NODES.values())


def test_paths_are_served(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        assert {served.request("GET", path).status_code for path in _paths()} == {200}


def test_metrics_are_exported(tmp_path: Path) -> None:
    async def exported() -> str:
        async with cluster(tmp_path, ("one",)) as (_, (one,)):
            await one.create("users")
            await one.write("users", "a", n=1)
            requests = RequestMetrics()
            requests.count("rest", "/v1/data", "POST", 200, 0.01)
            return await metrics_text(one.service, requests, RateLimits())

    known = metric_names(asyncio.run(exported()))
    for name in ("grafana-dashboard.json", "alerts.yaml"):
        used = metric_names((DEPLOY / "monitoring" / name).read_text())
        assert used
        assert used <= known, name
