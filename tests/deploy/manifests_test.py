"""Tests each file of deploy/ against the published schema of each object in it."""
import copy
from pathlib import Path

import pytest
import schemas
import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
OBJECTS = [pytest.param(document, id=f"{path.name}:{document['kind']}")
           for path in sorted(DEPLOY.glob("*.yaml")) for document in yaml.safe_load_all(path.read_text())]

# The schemas allow any keys in these objects. The keys are labels, names of plugins, and kinds of
# replicas (which only the schema of MPIJob v1 leaves open).
FREE = {"labels", "selector", "plugins", "mpiReplicaSpecs"}


def fields(value, path=()):
    """Yields the path of each field that the schema names."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not (path and path[-1] in FREE):
                yield (*path, key)
            yield from fields(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from fields(inner, (*path, index))


def changed(document, path, change):
    """Returns a copy of the document after `change(object, key)` at the path."""
    made = copy.deepcopy(document)
    inner = made
    for step in path[:-1]:
        inner = inner[step]
    change(inner, path[-1])
    return made


def misspell(inner, key):
    inner[key[:-1] + ("x" if key[-1] != "x" else "y")] = inner.pop(key)


def replace_by_another_type(inner, key):
    inner[key] = [inner[key]] if not isinstance(inner[key], list) else {"items": inner[key]}


def validator(document):
    return schemas.validator(document["apiVersion"], document["kind"])


@pytest.mark.parametrize("document", OBJECTS)
def test_every_manifest_is_valid(document):
    errors = [f"{error.json_path}: {error.message}" for error in validator(document).iter_errors(document)]
    assert not errors


@pytest.mark.parametrize("change", [misspell, replace_by_another_type])
@pytest.mark.parametrize("document", OBJECTS)
def test_a_mistake_in_any_field_is_noticed(document, change):
    checks = validator(document)
    paths = list(fields(document))
    assert len(paths) > 5
    unnoticed = [path for path in paths if checks.is_valid(changed(document, path, change))]
    assert not unnoticed


def test_every_manifest_has_the_images_of_this_project():
    for path in DEPLOY.glob("*.yaml"):
        images = {line.split("image:")[1].strip() for line in path.read_text().splitlines() if "image:" in line}
        assert images and images <= {"tutti:latest", "tutti:sshd"}, path.name
