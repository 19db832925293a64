"""Tests how benches that run at the same time share a setting of the kernel (hosts.py). Files play the kernel's."""
import multiprocessing
import os
import signal
import tempfile
import unittest
from pathlib import Path

from hosts import AutogroupOff


def hold(setting, lock, pipe):
    user = AutogroupOff(setting, lock)
    user.start()
    pipe.send("started")
    signal.pause()


class AutogroupTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.setting = Path(folder.name) / "sched_autogroup_enabled"
        self.setting.write_text("1\n")
        self.lock = Path(folder.name) / "lock"

    def user(self):
        return AutogroupOff(self.setting, self.lock)

    def value(self):
        return self.setting.read_text().strip()

    def test_one_bench_restores_the_setting(self):
        for before in ("1", "0"):
            self.setting.write_text(before)
            user = self.user()
            user.start()
            self.assertEqual(self.value(), "0")
            user.end()
            self.assertEqual(self.value(), before)

    def test_the_last_of_several_benches_restores_the_setting(self):
        for last in range(3):
            users = [self.user() for _ in range(3)]
            for user in users:
                user.start()
            for user in users[:last] + users[last + 1:]:
                user.end()
                self.assertEqual(self.value(), "0")
            users[last].end()
            self.assertEqual(self.value(), "1")

    def test_a_killed_bench_is_not_waited_for(self):
        pipe, theirs = multiprocessing.Pipe()
        killed = multiprocessing.Process(target=hold, args=(self.setting, self.lock, theirs))
        killed.start()
        pipe.recv()
        user = self.user()
        user.start()
        os.kill(killed.pid, signal.SIGKILL)
        killed.join()
        user.end()
        self.assertEqual(self.value(), "1")

    def test_the_next_bench_restores_what_a_killed_one_has_left(self):
        pipe, theirs = multiprocessing.Pipe()
        killed = multiprocessing.Process(target=hold, args=(self.setting, self.lock, theirs))
        killed.start()
        pipe.recv()
        os.kill(killed.pid, signal.SIGKILL)
        killed.join()
        self.assertEqual(self.value(), "0")
        user = self.user()
        user.start()
        user.end()
        self.assertEqual(self.value(), "1")

    def test_a_kernel_without_the_setting_is_left_alone(self):
        self.setting.unlink()
        user = self.user()
        user.start()
        user.end()
        self.assertFalse(self.setting.exists())


if __name__ == "__main__":
    unittest.main()
