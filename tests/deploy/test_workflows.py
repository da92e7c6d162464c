"""The workflows call targets that the Makefile has, and releases have one version in all files."""

import re
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
[PHONY] = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
TARGETS = frozenset(PHONY.split())


def values(key: str, tree: Any) -> list[str]:
    """Return what `key` has anywhere in a document."""
    if isinstance(tree, list):
        return [found for item in tree for found in values(key, item)]
    if not isinstance(tree, dict):
        return []
    return [found for name, item in tree.items() for found in ([item] if name == key else values(key, item))]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_targets_that_there_are(workflow: Path) -> None:
    """Each `make` of a step, and each `target` of a matrix that a step gives to `make`, is a target."""
    document = yaml.safe_load(workflow.read_text("utf-8"))
    called = {target for run in values("run", document) for target in re.findall(r"\bmake ([a-z-]+)", run)}
    if any('make "$TARGET"' in run for run in values("run", document)):
        called |= {machine["target"] for machine in document["jobs"]["test"]["strategy"]["matrix"]["machine"]}
    assert called
    assert called <= TARGETS


def test_help_names_every_target() -> None:
    """`make help` has a line for each target but itself."""
    assert set(re.findall(r'@echo "make ([a-z-]+) ', MAKEFILE)) == TARGETS - {"help"}


def test_all_files_have_the_version() -> None:
    """Package, crate, citation and chart are of one release."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    crate = tomllib.loads((ROOT / "dedup_service/native/Cargo.toml").read_text("utf-8"))["package"]["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"]
    chart = yaml.safe_load((ROOT / "deploy/helm/twinsieve/Chart.yaml").read_text("utf-8"))["version"]
    assert {crate, citation, chart} == {version}


def test_dependabot_looks_where_there_is_something() -> None:
    """Each folder exists."""
    document = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text("utf-8"))
    folders = [*values("directory", document), *chain.from_iterable(values("directories", document))]
    assert [folder for folder in folders if not (ROOT / folder.lstrip("/")).is_dir()] == []
