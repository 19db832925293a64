"""Makes pods on this machine, for tests. Each pod is a network namespace with its own name, address
and files, as in Kubernetes.

All processes in the pods end with the cluster, or with the test. Pods need root, and a kernel that
allows the namespaces.
"""
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
NETWORK = "10.244.0."
NAME_SERVER = NETWORK + "1"
DOMAIN = "default.svc.cluster.local"
DEADLINE_SECONDS = 300
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# All pods share one PID namespace. This program is its first process, and collects orphans that have ended.
FIRST_PROCESS = """
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
while True:
    signal.pause()
"""

# This script gives a pod its own folders in place of this machine's folders. Its arguments are FOLDER NAME
# PROGRAMS. It prints the id of the process that keeps the pod alive. The programs are in /usr/local/bin, as
# in the image.
MAKE_POD = r"""
set -e
mount -t tmpfs tmpfs "$1"
for folder in etc home opt usr/local/bin; do
  mkdir -p "$1/$folder/upper" "$1/$folder/work"
  mount -t overlay overlay -o "lowerdir=/$folder,upperdir=$1/$folder/upper,workdir=$1/$folder/work" "/$folder"
done
mount -t tmpfs tmpfs /run
mount -t tmpfs -o size=64m tmpfs /dev/shm
mkdir -p /home/tutti /run/sshd
rm -f /etc/hosts /etc/resolv.conf
sed -i 's,^root:.*,root:x:0:0:tutti:/home/tutti:/bin/sh,' /etc/passwd
ln -sf "$3"/* /usr/local/bin
hostname "$2"
ip link set lo up
echo $$
exec sleep infinity
"""


class Unavailable(Exception):
    """This machine cannot make pods. The text says why."""


def eventually(condition, what):
    """Waits until `condition()` is true. Returns its value."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        if value := condition():
            return value
        assert time.monotonic() < deadline, f"{what} has not happened within {DEADLINE_SECONDS} s"
        time.sleep(0.05)


class Running:
    """Runs a command in a pod. Files hold its output."""

    def __init__(self, command, path):
        self.files = [Path(f"{path}.out"), Path(f"{path}.err")]
        with open(self.files[0], "w") as out, open(self.files[1], "w") as err:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    @property
    def out(self):
        return self.files[0].read_text(errors="replace")

    @property
    def err(self):
        return self.files[1].read_text(errors="replace")

    def wait(self):
        """Returns the exit status, or 128 + n if signal n has ended the command."""
        status = self.process.wait(DEADLINE_SECONDS)
        return status if status >= 0 else 128 - status

    def wait_for_error(self, text):
        """Waits until the command has written `text` to stderr."""
        eventually(lambda: text in self.err or self.process.poll() is not None, f"the line {text!r}")
        assert text in self.err, self.out + self.err


class Pod:
    """A pod has one container. Its processes get `environment`, PATH, HOME and HOSTNAME."""

    def __init__(self, cluster, name, number, subdomain, environment):
        self.cluster, self.name, self.address = cluster, name, f"{NETWORK}{number}"
        self.host_name = f"{name}.{subdomain}.{DOMAIN}" if subdomain else name
        self._count = 0
        self._enter = cluster.folder / name
        layers = cluster.folder / f"{name}.layers"
        layers.mkdir()
        made = cluster.start(["unshare", "--net", "--uts", "--mount", "sh", "-c", MAKE_POD, "pod", str(layers), name,
                              str(cluster.programs)])
        self._pid = made.stdout.readline().strip()
        if not self._pid:
            raise Unavailable(f"no pods: {made.stderr.read().strip()}")
        self._connect(number)
        self._write_script(environment)
        self.write("/etc/hosts", f"127.0.0.1 localhost\n{self.address} {self.host_name} {name}\n")
        self.write("/etc/resolv.conf", f"search {DOMAIN} svc.cluster.local cluster.local\n"
                                       f"nameserver {NAME_SERVER}\noptions ndots:5\n")
        self.network = os.stat(f"/proc/{self._outer_pid(made.pid)}/ns/net").st_ino

    def _outer_pid(self, nsenter):
        return Path(f"/proc/{nsenter}/task/{nsenter}/children").read_text().split()[0]

    def _connect(self, number):
        port = f"pod{number}"
        self.cluster.call("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", self._pid)
        self.cluster.call("ip", "link", "set", port, "master", "switch", "up")
        inside = ["nsenter", "-t", self._pid, "-n", "ip"]
        self.cluster.call(*inside, "addr", "add", f"{self.address}/24", "dev", "eth0")
        self.cluster.call(*inside, "link", "set", "eth0", "up")
        # A container starts only after its pod has got a network.
        eventually(lambda: "state forwarding" in self.cluster.call("ip", "-d", "link", "show", port), "a network")

    def _write_script(self, environment):
        """Writes the script that runs a command in the container."""
        variables = {"PATH": PATH, "HOME": "/home/tutti", "HOSTNAME": self.name, **environment}
        settings = shlex.join(f"{name}={value}" for name, value in variables.items())
        self._enter.write_text(f"""#!/bin/sh
exec nsenter -t {self._pid} --net --uts --mount -- sh -c 'cd /home/tutti && exec env -i "$@"' - {settings} "$@"
""")
        self._enter.chmod(0o755)

    def command(self, words):
        return self.cluster.command([str(self._enter), *words])

    def write(self, path, text, mode=0o644):
        """Writes a file in the pod."""
        script = 'mkdir -p "$(dirname "$1")" && cat >"$1" && chmod "$2" "$1"'
        subprocess.run(self.command(["sh", "-c", script, "write", path, f"{mode:o}"]), input=text, text=True, check=True)

    def start(self, words):
        self._count += 1
        return Running(self.command(words), self.cluster.folder / f"{self.name}.{self._count}")

    def processes(self):
        """Maps each process of the container to its command line. The keys are the ids outside of the
        pod."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if os.stat(entry / "ns/net").st_ino == self.network:
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                pass  # the process has just ended
        return {pid: line for pid, line in found.items() if line and line != "sleep infinity "}

    def kill(self, text):
        """Waits for a process whose command line contains `text`, and kills it."""
        pids = eventually(lambda: sorted(pid for pid, line in self.processes().items() if text in line), f"{text} in {self.name}")
        os.kill(pids[0], signal.SIGKILL)


class Cluster:
    """A network of pods with a name server, which knows only published pods. Use it in a `with`
    statement.

    The pods have the programs of the folder `programs`. `folder` is an empty folder, which they share.
    """

    def __init__(self, programs, folder):
        self.programs, self.folder = programs, Path(folder)
        self._pods = 0
        self._started = []
        if os.geteuid() != 0:
            raise Unavailable("no pods: they need root")
        self._holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
             sys.executable, "-c", FIRST_PROCESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self._holder.stdout.readline() != "ready\n":
            raise Unavailable(f"no pods: {self._holder.stderr.read().strip()}")
        self._pid = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children").read_text().split()[0]
        self.call("ip", "link", "set", "lo", "up")
        self.call("ip", "link", "add", "switch", "type", "bridge")
        self.call("ip", "addr", "add", f"{NAME_SERVER}/24", "dev", "switch")
        self.call("ip", "link", "set", "switch", "up")
        self._names = self.folder / "names"
        self._names.touch()
        server = self.start([sys.executable, str(HERE / "name_server.py"), NAME_SERVER, str(self._names)])
        assert server.stdout.readline() == "ready\n", server.stderr.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._holder.kill() # the kernel ends all processes when the first process ends
        for process in [self._holder, *self._started]:
            process.wait()

    def command(self, words):
        return ["nsenter", "-t", self._pid, "--net", "--mount", "--pid", "--", *words]

    def call(self, *words):
        """Runs a command outside of the pods, and returns its output."""
        done = subprocess.run(self.command(words), capture_output=True, text=True)
        if done.returncode != 0:
            raise Unavailable(f"no pods: {shlex.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def start(self, words):
        process = subprocess.Popen(self.command(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._started.append(process)
        return process

    def pod(self, name, subdomain=None, environment=None):
        self._pods += 1
        return Pod(self, name, self._pods + 1, subdomain, environment or {})

    def publish(self, pods):
        """Makes the names of the pods known to the name server."""
        with open(self._names, "a") as names:
            names.writelines(f"{pod.host_name} {pod.address}\n" for pod in pods)


@pytest.fixture
def cluster(tmp_path):
    """Provides a cluster whose pods have tutti and the examples. Skips the test if no cluster can
    be made."""
    if "LAUNCHER" not in os.environ:
        pytest.skip("LAUNCHER does not say where the command tutti is")
    try:
        with Cluster(Path(os.environ["LAUNCHER"]).parent, tmp_path) as made:
            yield made
    except Unavailable as reason:
        pytest.skip(str(reason))
