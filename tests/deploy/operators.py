"""Imitates the controllers that run the jobs of deploy/: makes pods, writes files, sets variables
and starts commands.

The actions are those of the real controllers, except that there are no containers. The programs
come from the build, and run as root.
"""
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


def manifest(name, kind):
    """Returns the object of the given kind in a file of deploy/."""
    documents = yaml.safe_load_all((DEPLOY / name).read_text())
    return next(document for document in documents if document["kind"] == kind)


def container(template):
    return template["spec"]["containers"][0]


def words(of):
    """Returns the command of a container, without the image's entry point, which only passes signals on."""
    return of.get("command", []) + of.get("args", [])


def environment(of, secrets):
    """Returns the variables of a container. `secrets` maps the name of each existing secret to a
    dictionary of its values."""
    found = {}
    for variable in of.get("env", []):
        if "value" in variable:
            found[variable["name"]] = variable["value"]
            continue
        reference = variable["valueFrom"]["secretKeyRef"]
        value = secrets.get(reference["name"], {}).get(reference["key"])
        assert value is not None or reference["optional"], reference
        if value is not None:
            found[variable["name"]] = value
    return found


class Launched:
    """`Launched` is a job with a launcher. It holds the pods, the launcher's command, and the
    workers' command if ssh reaches the workers."""

    def __init__(self, launcher, workers, command, serve=None):
        self.launcher, self.workers, self.command, self.serve = launcher, workers, command, serve

    def start(self):
        """Starts the workers' command, if there is one, and the launcher. Returns the running launcher."""
        if self.serve:
            for worker in self.workers:
                worker.start(self.serve)
        return self.launcher.start(self.command)


def hostfile(names, slots):
    return "".join(f"{name} slots={slots}\n" for name in names)


def give_keys(all_pods, folder, kind):
    """Makes a key for ssh, and mounts it in all pods. sshd and ssh are configured as in the image."""
    if not os.access("/usr/sbin/sshd", os.X_OK) or shutil.which("ssh-keygen") is None:
        pytest.skip("there is no sshd or no ssh-keygen")
    key = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-m", "PEM", "-N", "", "-C", "", *kind, "-f", str(key)], check=True)
    public = key.with_suffix(".pub").read_text()
    for pod in all_pods:
        pod.write("/home/tutti/.ssh/id_rsa", key.read_text(), 0o600)
        pod.write("/home/tutti/.ssh/id_rsa.pub", public)
        pod.write("/home/tutti/.ssh/authorized_keys", public)
        pod.write("/etc/ssh/sshd_config", (ROOT / "docker/sshd_config").read_text())
        pod.write("/etc/ssh/ssh_config.d/tutti.conf", (ROOT / "docker/ssh_config").read_text())


ECDSA = ["-t", "ecdsa", "-b", "521"]
RSA = ["-t", "rsa", "-b", "2048"]


def mpijob_v1(cluster):
    """Imitates Kubeflow's training operator. The launcher reaches the workers by kubectl, and the
    name service does not know their names."""
    job = manifest("mpijob_v1.yaml", "MPIJob")
    name, replicas = job["metadata"]["name"], job["spec"]["mpiReplicaSpecs"]
    launcher = cluster.pod(f"{name}-launcher", None, {
        "OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_orte_set_default_slots": str(job["spec"]["slotsPerWorker"]),
        "NVIDIA_VISIBLE_DEVICES": "",
        "NVIDIA_DRIVER_CAPABILITIES": "",
    })
    workers = [cluster.pod(f"{name}-worker-{i}") for i in range(replicas["Worker"]["replicas"])]
    launcher.write("/etc/mpi/hostfile", hostfile([worker.name for worker in workers], job["spec"]["slotsPerWorker"]))
    launcher.write("/etc/mpi/kubexec.sh", """#!/bin/sh
set -x
POD_NAME=$1
shift
/opt/kube/kubectl exec ${POD_NAME} -- /bin/sh -c "$*"
""", 0o555)
    # `kubectl exec POD -- WORDS...` runs the words in the pod's container, as Kubernetes would.
    launcher.write("/opt/kube/kubectl", f"""#!/bin/sh
pod=$2
shift 3
exec {cluster.folder}/$pod "$@"
""", 0o755)
    return Launched(launcher, workers, words(container(replicas["Launcher"]["template"])))


def mpijob_v2beta1(cluster):
    """Imitates Kubeflow's MPI operator. The launcher reaches the workers by ssh."""
    job = manifest("mpijob_v2beta1.yaml", "MPIJob")
    name, replicas = job["metadata"]["name"], job["spec"]["mpiReplicaSpecs"]
    assert job["spec"]["sshAuthMountPath"] == "/home/tutti/.ssh"
    service, slots = f"{name}-worker", job["spec"]["slotsPerWorker"]
    launcher = cluster.pod(f"{name}-launcher", service, {
        "K_MPI_JOB_ROLE": "launcher",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
        "OMPI_MCA_orte_set_default_slots": str(slots),
        "NVIDIA_VISIBLE_DEVICES": "",
        "NVIDIA_DRIVER_CAPABILITIES": "",
    })
    workers = [cluster.pod(f"{name}-worker-{i}", service, {"K_MPI_JOB_ROLE": "worker"})
               for i in range(replicas["Worker"]["replicas"])]
    launcher.write("/etc/mpi/hostfile", hostfile([f"{worker.name}.{service}.default.svc" for worker in workers], slots))
    give_keys([launcher, *workers], cluster.folder, ECDSA)
    serve = words(container(replicas["Worker"]["template"])) or ["/usr/sbin/sshd", "-De"]
    return Launched(launcher, workers, words(container(replicas["Launcher"]["template"])), serve)


def trainjob(cluster):
    """Imitates Kubeflow Trainer 2. The pods are those of a JobSet that has the TrainJob's name."""
    job, runtime = (manifest("trainjob.yaml", kind) for kind in ("TrainJob", "TrainingRuntime"))
    name, trainer = job["metadata"]["name"], job["spec"]["trainer"]
    assert job["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]
    assert runtime["spec"]["mlPolicy"]["mpi"]["sshAuthMountPath"] == "/home/tutti/.ssh"
    launcher = cluster.pod(f"{name}-launcher-0-0", name, {
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_set_default_slots": str(trainer["numProcPerNode"]),
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
    })
    workers = [cluster.pod(f"{name}-node-0-{i}", name) for i in range(trainer["numNodes"])]
    launcher.write("/etc/mpi/hostfile", hostfile([f"{worker.name}.{name}" for worker in workers], trainer["numProcPerNode"]))
    give_keys([launcher, *workers], cluster.folder, ECDSA)
    templates = {part["name"]: part["template"] for part in runtime["spec"]["template"]["spec"]["replicatedJobs"]}
    return Launched(launcher, workers, words(trainer), words(container(templates["node"]["spec"]["template"])))


def volcano_job(cluster):
    """Imitates Volcano, with its plugins ssh and svc."""
    job = manifest("volcano_job.yaml", "Job")
    name, tasks = job["metadata"]["name"], {task["name"]: task for task in job["spec"]["tasks"]}
    assert job["spec"]["plugins"] == {"ssh": ["--ssh-key-file-path=/home/tutti/.ssh"], "svc": []}
    assert job["spec"]["minAvailable"] == sum(task["replicas"] for task in tasks.values())
    of_task = {task: [cluster.pod(f"{name}-{task}-{i}", name, {"VC_TASK_INDEX": str(i)}) for i in range(tasks[task]["replicas"])]
               for task in tasks}
    everyone = [pod for of_one in of_task.values() for pod in of_one]
    give_keys(everyone, cluster.folder, RSA)
    config = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
    config += "".join(f"Host {pod.name}\n  HostName {pod.name}.{name}\n" for pod in everyone)
    for pod in everyone:
        pod.write("/home/tutti/.ssh/config", config)
        for task, of_one in of_task.items():
            pod.write(f"/etc/volcano/{task}.host", "\n".join(f"{each.name}.{name}" for each in of_one))
    return Launched(of_task["launcher"][0], of_task["worker"], words(container(tasks["launcher"]["template"])),
                    words(container(tasks["worker"]["template"])))


def _indexed(cluster, spec, pod_name, subdomain, secrets):
    assert spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"]
    of = container(spec["template"])
    started = []
    for index in range(spec["completions"]):
        variables = {**environment(of, secrets), "JOB_COMPLETION_INDEX": str(index)}
        started.append((cluster.pod(f"{pod_name}-{index}", subdomain, variables), words(of)))
    return started


def indexed_job(cluster, secrets):
    """Imitates the Job controller. Returns the pods, and the command of each pod."""
    job, service = (manifest("indexed_job.yaml", kind) for kind in ("Job", "Service"))
    name = job["metadata"]["name"]
    subdomain = job["spec"]["template"]["spec"]["subdomain"]
    assert service["metadata"]["name"] == subdomain and service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"job-name": name}
    return _indexed(cluster, job["spec"], name, subdomain, secrets)


def jobset(cluster, secrets):
    """Imitates the controller of JobSets. Returns the pods, and the command of each pod."""
    job = manifest("jobset.yaml", "JobSet")
    name, replicated = job["metadata"]["name"], job["spec"]["replicatedJobs"][0]
    assert job["spec"]["network"]["enableDNSHostnames"] and replicated["replicas"] == 1
    return _indexed(cluster, replicated["template"]["spec"], f"{name}-{replicated['name']}-0", name, secrets)
