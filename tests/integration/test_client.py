#!/usr/bin/python3
"""libskrull from a C program (client_probe.c): closing, giving up, reports, threads, refusals."""
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import harness
from harness import Daemon, create, job

PROBE = os.path.join(harness.BUILD, "tests", "integration", "client_probe")


def probe(mode, server, name="a-job", timeout=60):
    """The lines that the probe printed."""
    done = subprocess.run([PROBE, mode, name], env=dict(os.environ, SKRULL_SERVER=server), timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()


def figure(lines, name):
    return int(next(re.search(name + r"=(\d+)", line).group(1) for line in lines if name + "=" in line))


class WithDaemon(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon().start()
        create(cls.daemon)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close_channels()
        cls.daemon.kill()

    def test_close_does_not_wait_for_plans(self):
        lines = probe("close", self.daemon.address)
        self.assertEqual(lines[:2], ["next: ok", "next: ok"])
        self.assertLess(figure(lines, "closed_ms"), 1000)

    def test_close_in_any_state(self):
        self.assertLess(figure(probe("close-early", self.daemon.address), "closed_ms"), 5000)

    def test_a_wrong_report_is_final(self):
        create(self.daemon, job(name="wrong-report"))
        lines = probe("wrong-report", self.daemon.address, "wrong-report")
        self.assertEqual(lines[:2], ["next: ok", "report: ok"])
        for line, call in zip(lines[2:], ("flush", "report", "next")):
            self.assertRegex(line, call + ": failed precondition: .*digest")
        self.assertEqual(len(lines), 5)

    def test_threads_share_a_client(self):
        create(self.daemon, job(name="threads"))
        self.assertEqual(probe("threads", self.daemon.address, "threads"),
                         [f"rank={rank} plans=100" for rank in range(8)])

    def test_another_history_is_refused(self):
        for line, word in zip(probe("resume", self.daemon.address), ("digest", "uid")):
            self.assertRegex(line, "next: failed precondition: .*" + word)

    def test_options_are_checked(self):
        lines = probe("options", self.daemon.address)
        for line, word in zip(lines, ("job", "window: 4097", "give_up_ms", "fallback_roots: none", "fallback: 7",
                                     "fallback_roots: a-job", "give_up_ms: 5000 ms are over before", "silence_ms",
                                     "uid", "resume_digest")):
            self.assertRegex(line, "open: invalid argument: " + word)
        self.assertEqual(len(lines), 10)


class Away(unittest.TestCase):
    def test_gives_up_after_its_time(self):
        lines = probe("give-up", "127.0.0.1:1")
        self.assertEqual(len(lines), 3)
        for line in lines[:2]:
            self.assertRegex(line, "next: unavailable: skrulld at 127.0.0.1:1 is not available: .*700 ms")
        self.assertIn(figure(lines, "gave_up_ms"), range(600, 5000))

    def test_heartbeats_are_life_and_silence_is_not(self):
        """A client that waits behind its window for longer than it bears silence; then with a daemon that hangs."""
        daemon = Daemon("--heartbeat", "1").start()
        self.addCleanup(shutil.rmtree, daemon.folder, ignore_errors=True)
        self.addCleanup(daemon.kill)
        create(daemon)
        process = subprocess.Popen([PROBE, "silence", "a-job"], env=dict(os.environ, SKRULL_SERVER=daemon.address),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "first\n")
        time.sleep(4)
        self.assertEqual(daemon.log().count("stream_opened"), 1, "heartbeats came")
        daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(4)
        daemon.process.send_signal(signal.SIGCONT)
        rest = process.communicate("\n", timeout=30)[0].splitlines()
        self.assertRegex(rest[0], "event: .*lost before step 1, .*nothing came for 2500 ms")
        self.assertEqual(rest[-2:], ["report: ok", "step=1"])

    def test_close_while_nobody_is_there(self):
        self.assertLess(figure(probe("close-early", "127.0.0.1:1"), "closed_ms"), 5000)

    def test_reports_wait_for_the_daemon(self):
        daemon = Daemon().start()
        self.addCleanup(shutil.rmtree, daemon.folder, ignore_errors=True)
        create(daemon, job(steps=3))
        process = subprocess.Popen([PROBE, "flush", "a-job"], env=dict(os.environ, SKRULL_SERVER=daemon.address),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), "next: ok\n")
        daemon.close_channels()
        daemon.kill()
        process.stdin.write("\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "report: ok\n")
        self.assertRegex(process.stdout.readline(), "flush: deadline exceeded: 1 reports were not delivered")
        daemon.start()
        process.stdin.write("\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "flush: ok\n")
        self.assertEqual(process.wait(20), 0)
        daemon.kill()


class Stress(unittest.TestCase):
    def test_threads_share_a_client_while_the_daemon_comes_and_goes(self):
        daemon = Daemon().start()
        self.addCleanup(shutil.rmtree, daemon.folder, ignore_errors=True)
        self.addCleanup(daemon.kill)
        create(daemon)
        daemon.close_channels()
        stress = os.path.join(harness.BUILD, "tests", "integration", "client_stress")
        process = subprocess.Popen([stress, "a-job", harness.LENGTHS, "5"], stdout=subprocess.PIPE, text=True,
                                   env=dict(os.environ, SKRULL_SERVER=daemon.address))
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), "begun\n")
        for _ in range(2):
            time.sleep(1)
            daemon.kill()
            time.sleep(0.7)
            daemon.start()
        said = process.stdout.read()
        self.assertEqual(process.wait(60), 0)
        figures = dict(figure.split("=") for figure in said.splitlines()[-1].split())
        self.assertEqual(figures.pop("faults"), "0", said)
        for name, least in (("plans", 10), ("local", 1), ("calls", 10)):
            self.assertGreaterEqual(int(figures[name]), least, name)


if __name__ == "__main__":
    unittest.main()
