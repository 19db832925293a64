"""Runs an sshd on each of the hosts that bench/hosts.py makes."""
import subprocess
import tempfile
from pathlib import Path

from hosts import HostsError

PORT = 2222
SERVER = "/usr/sbin/sshd"
# The home folder is empty, so that no login script of the user runs on the hosts.
CONFIG = """AuthorizedKeysFile {folder}/user_key.pub
HostKey {folder}/host_key
MaxStartups 200
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PidFile none
Port {port}
SetEnv HOME={folder}/home
StrictModes no
UseDNS no
UsePAM no
"""


class SshServers:
    """Runs the servers while its `with` statement runs. `options` returns the options that make
    `tutti run` use these servers."""

    def __init__(self, network):
        self.network = network
        self.servers = []

    def __enter__(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = Path(self.scratch.name)
        try:
            self._write_files()
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.kill()
            server.wait()
            server.stderr.close()
        self.scratch.cleanup()

    def options(self):
        return ["--ssh-port", str(PORT), "--ssh-args", f"-F {self.folder}/ssh_config"]

    def _write_files(self):
        (self.folder / "home").mkdir()
        for name in ("user_key", "host_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)], check=True)
        (self.folder / "known_hosts").write_text("* " + (self.folder / "host_key.pub").read_text())
        (self.folder / "ssh_config").write_text(f"IdentitiesOnly yes\nIdentityFile {self.folder}/user_key\n"
                                                f"UserKnownHostsFile {self.folder}/known_hosts\n")
        (self.folder / "sshd_config").write_text(CONFIG.format(folder=self.folder, port=PORT))

    def _start(self):
        # The mount is in the command's own namespace, and ends with the command.
        command = f"mount -t tmpfs none /run && mkdir /run/sshd && exec {SERVER} -D -e -f {self.folder}/sshd_config"
        for host in range(self.network.count):
            self.servers.append(subprocess.Popen(self.network.on(host, ["sh", "-c", command]), text=True,
                                                 stdin=subprocess.DEVNULL, stderr=subprocess.PIPE))
        for server in self.servers:
            words = ""
            for line in server.stderr:
                words += line
                if "Server listening" in line:
                    break
            else:
                raise HostsError(f"sshd did not start: {words}")
