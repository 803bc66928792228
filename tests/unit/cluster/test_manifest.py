"""The Kubernetes manifest of the guide: its parts belong together, and its commands are those that Dask knows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "cluster.md"


@pytest.fixture(scope="module")
def parts() -> dict[tuple[str, str], dict[str, Any]]:
    (text,) = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    return {(part["kind"], part["metadata"]["name"]): part for part in yaml.safe_load_all(text)}


def test_selectors_find_their_pods(parts: dict[tuple[str, str], dict[str, Any]]) -> None:
    labels = {}
    for (kind, name), part in parts.items():
        if kind == "Deployment":
            labels[name] = part["spec"]["template"]["metadata"]["labels"]
            assert part["spec"]["selector"]["matchLabels"] == labels[name]
    assert set(labels) == {"gradrank-scheduler", "gradrank-worker"}
    service = parts["Service", "gradrank-scheduler"]["spec"]
    assert service["selector"] == labels["gradrank-scheduler"]
    policy = parts["NetworkPolicy", "gradrank"]["spec"]
    chosen = policy["podSelector"]["matchExpressions"]
    assert chosen == [{"key": "app", "operator": "In", "values": [own["app"] for own in labels.values()]}]
    assert policy["ingress"] == [{"from": [{"podSelector": policy["podSelector"]}]}]


def test_commands_are_known_to_dask_and_meet_at_the_service(parts: dict[tuple[str, str], dict[str, Any]]) -> None:
    pytest.importorskip("distributed")
    from distributed.cli import dask_scheduler, dask_worker

    commands = {}
    for name, known in (("scheduler", dask_scheduler.main), ("worker", dask_worker.main)):
        (container,) = parts["Deployment", f"gradrank-{name}"]["spec"]["template"]["spec"]["containers"]
        assert container["command"][:2] == ["dask", name]
        # Raises if there is an option that Dask does not have, or a value that it does not take.
        commands[name] = known.make_context(name, container["command"][2:]).params
    (port,) = parts["Service", "gradrank-scheduler"]["spec"]["ports"]
    assert int(commands["scheduler"]["port"]) == port["port"]
    assert commands["worker"]["scheduler"] == f"tcp://gradrank-scheduler:{port['port']}"
