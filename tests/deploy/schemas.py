"""Provides the published schemas of Kubernetes and its extensions for the objects in deploy/, as
jsonschema validators.

The schemas of Kubernetes itself come from the package kubernetes-validate. MPIJob v1 comes from
kubeflow-training. JobSet and TrainJob come from kubeflow-trainer-api. No package has the schemas of
MPIJob v2beta1 and of Volcano, so the folder `schemas` has files with their fields. All schemas
refuse unknown fields.
"""
import importlib.resources
import json
import re
from pathlib import Path

import kubeflow.training.models
import kubeflow_trainer_api.models
import kubernetes_validate
import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

HERE = Path(__file__).resolve().parent
KUBERNETES = (importlib.resources.files("kubernetes_validate") / "kubernetes-json-schema" /
              f"v{kubernetes_validate.latest_version()}-local-strict")


def _of_kubernetes(name):
    return json.loads((KUBERNETES / name).read_text())


DEFINITIONS = _of_kubernetes("_definitions.json")
REGISTRY = Registry().with_resource(DEFINITIONS["$id"], Resource.from_contents(DEFINITIONS))


def _reference(name):
    """Returns a reference to a type of Kubernetes. Some packages leave out the dots of the type's
    name. Other packages leave out the text before V1."""
    wanted = name.lower()
    for full in DEFINITIONS["$defs"]:
        short = full.replace(".", "").lower()
        if short == wanted or short in (f"iok8sapicore{wanted}", f"iok8sapimachinerypkgapismeta{wanted}"):
            return {"$ref": f"{DEFINITIONS['$id']}#/$defs/{full}"}
    raise KeyError(name)


def _of_training_operator(type_name):
    """Returns the schema of a type in the notation of the package kubeflow-training, which lists each class's fields."""
    simple = {"str": "string", "int": "integer", "bool": "boolean", "datetime": "string", "Quantity": ["string", "number"]}
    if type_name in simple:
        return {"type": simple[type_name]}
    if values := re.fullmatch(r"dict\(str, (.+)\)", type_name):
        return {"type": "object", "additionalProperties": _of_training_operator(values[1])}
    if items := re.fullmatch(r"list\[(.+)\]", type_name):
        return {"type": "array", "items": _of_training_operator(items[1])}
    if type_name.startswith("V1"):
        return _reference(type_name)
    model = getattr(kubeflow.training.models, type_name)
    return {"type": "object", "additionalProperties": False,
            "properties": {model.attribute_map[field]: _of_training_operator(of) for field, of in model.openapi_types.items()}}


def _of_trainer(model):
    """Returns the schema of a class of the package kubeflow-trainer-api, with two corrections. The
    package describes some numbers, such as ports, as objects. So Kubernetes' own schemas replace the
    package's definitions of Kubernetes' types. All other definitions are made to refuse unknown fields."""
    schema = getattr(kubeflow_trainer_api.models, model).model_json_schema(by_alias=True)
    for name, definition in schema["$defs"].items():
        if name.startswith("IoK8s"):
            schema["$defs"][name] = _reference(name)
        else:
            definition["additionalProperties"] = False
    return {**schema, "additionalProperties": False}


def _listed(name):
    return yaml.safe_load((HERE / "schemas" / name).read_text())


SCHEMAS = {
    ("v1", "Service"): lambda: _of_kubernetes("service-v1.json"),
    ("batch/v1", "Job"): lambda: _of_kubernetes("job-batch-v1.json"),
    ("kubeflow.org/v1", "MPIJob"): lambda: _of_training_operator("KubeflowOrgV1MPIJob"),
    ("kubeflow.org/v2beta1", "MPIJob"): lambda: _listed("mpijob_v2beta1.yaml"),
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): lambda: _of_trainer("JobsetV1alpha2JobSet"),
    ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"): lambda: _of_trainer("TrainerV1alpha1TrainingRuntime"),
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): lambda: _of_trainer("TrainerV1alpha1TrainJob"),
    ("batch.volcano.sh/v1alpha1", "Job"): lambda: _listed("volcano_job.yaml"),
}


def validator(api_version, kind):
    return Draft202012Validator(SCHEMAS[api_version, kind](), registry=REGISTRY)
