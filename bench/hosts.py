"""Makes hosts for measurements across hosts: network namespaces on this machine, joined by a bridge.

Each host has its own address and host name. (Each command runs in a new UTS namespace, in which
that name is set.) Some libraries compare host names or network namespaces to decide which ranks
share memory. So these libraries use the bridge between two hosts.
"""
import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ON_HOST = Path(__file__).resolve().parent / "on_host.sh"
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
AUTOGROUP_LOCK = Path("/run/tutti-bench-autogroup")
END_S = 60  # seconds in which the processes of a host must end after SIGKILL


class HostsError(Exception):
    pass


def _ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HostsError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def _identity(path):
    """Returns the identity of the namespace behind a file, or None if there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class AutogroupOff:
    """From `start` to `end`, Linux does not schedule each session as a unit. Several benches may need this at once:
    the last one restores the earlier setting.

    Each bench has a shared lock on a file, which holds the earlier setting. The kernel releases the lock of a bench
    that is killed. If that was the last one, the next bench restores the setting. Another lock, on a second file, is
    only held for a moment. It makes one bench at a time count the others."""

    def __init__(self, setting=AUTOGROUP, lock=AUTOGROUP_LOCK):
        self.setting = setting
        self.lock = lock
        self.users = None

    def start(self):
        if not self.setting.exists():
            return
        try:
            with self._alone(), contextlib.ExitStack() as opened:
                users = opened.enter_context(open(self.lock, "a+", encoding="ascii"))
                before = self.setting.read_text().strip()
                self.setting.write_text("0")
                users.seek(0)
                if not users.read():
                    self._note(users, before)
                fcntl.flock(users, fcntl.LOCK_SH)
                self.users = users
                opened.pop_all()
        except OSError as error:
            print(f"bench: cannot set {self.setting} to 0: {error}", file=sys.stderr)

    def end(self):
        if self.users is None:
            return
        try:
            with self._alone(), self.users:
                fcntl.flock(self.users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.users.seek(0)
                if before := self.users.read():
                    self.setting.write_text(before)
                self._note(self.users, "")
        except BlockingIOError:
            pass  # another bench still needs the setting
        except OSError as error:
            print(f"bench: cannot restore {self.setting}: {error}", file=sys.stderr)
        self.users = None

    @staticmethod
    def _note(users, before):
        users.truncate(0)
        users.write(before)
        users.flush()

    @contextlib.contextmanager
    def _alone(self):
        with open(f"{self.lock}.mutex", "w", encoding="ascii") as mutex:
            fcntl.flock(mutex, fcntl.LOCK_EX)
            yield


class NetworkHosts:
    """Makes network namespaces that act as hosts, which only root can do. The bridge is in another
    namespace. Use this class in a `with` statement, which removes the namespaces at the end.

    While the hosts exist, Linux does not schedule each session as a unit (`sched_autogroup_enabled`).
    Each launcher makes a session for each host. If sessions were units, a rank that yields the
    processor would give way to ranks of its own host only. But these hosts share cores, unlike real
    ones."""

    def __init__(self, count):
        self.count = count
        self.prefix = f"tutti-bench-{os.getpid()}"
        self.autogroup_off = AutogroupOff()

    def __enter__(self):
        # A bench that is ended by a signal must remove its hosts, too.
        self.earlier_handler = signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        try:
            self.autogroup_off.start()
            self._make()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_):
        self._end()
        signal.signal(signal.SIGTERM, self.earlier_handler)

    def _end(self):
        try:
            self._remove()
        finally:
            self.autogroup_off.end()

    def address(self, host):
        return f"10.204.0.{host + 1}"

    def on(self, host, command):
        """Returns the command that runs `command` on a host."""
        return [str(ON_HOST), "--words", self.prefix, self.address(host), *command]

    def agent(self):
        """Returns a command that takes a host's address and words, as ssh does. It runs the words
        in a shell on that host."""
        return f"{ON_HOST} --shell {self.prefix}"

    def hosts_with_slots(self, hosts, slots):
        """Returns the list of the first `hosts` hosts in the form that mpirun and `tutti run` know: a:2,b:2."""
        return ",".join(f"{self.address(host)}:{slots}" for host in range(hosts))

    def kill_all(self):
        """Ends all processes on the hosts. This takes several rounds, since a process may start
        another one in the meantime."""
        end = time.monotonic() + END_S
        while time.monotonic() < end:
            pids = self._pids()
            if not pids:
                return
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)

    def _name(self, host):
        return f"{self.prefix}-{host + 1}"

    def _hub(self):
        return f"{self.prefix}-hub"

    def _make(self):
        hub = self._hub()
        for name in (hub, *map(self._name, range(self.count))):
            _ip("netns", "add", name)
        _ip("-n", hub, "link", "add", "switch", "type", "bridge")
        _ip("-n", hub, "link", "set", "switch", "up")
        for host in range(self.count):
            name = self._name(host)
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", hub, "link", "add", f"port{host}", "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("-n", hub, "link", "set", f"port{host}", "master", "switch", "up")
            _ip("-n", name, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")

    def _remove(self):
        self.kill_all()
        for name in (*map(self._name, range(self.count)), self._hub()):
            if Path("/run/netns", name).exists():
                _ip("netns", "del", name)

    def _pids(self):
        ours = {_identity(f"/run/netns/{self._name(host)}") for host in range(self.count)} - {None}
        return [int(entry.name) for entry in Path("/proc").iterdir()
                if entry.name.isdigit() and _identity(entry / "ns/net") in ours]

    def sent_bytes(self, host):
        """Returns how many bytes a host has sent to other hosts so far."""
        table = subprocess.run(["ip", "netns", "exec", self._name(host), "cat", "/proc/net/dev"], capture_output=True,
                               text=True, check=True).stdout
        card = next(line.split(":", 1)[1].split() for line in table.splitlines() if line.strip().startswith("eth0:"))
        return int(card[8])
