#!/usr/bin/python3
"""skrull-worker over crashes, drains and changes of the daemon: no step lost or repeated, the same digests."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import harness
from harness import Daemon, create, job

STEPS = 100
RANKS = 4


def step_lines(path):
    """The steps of a worker's log: [(step, digest, rank digest)]."""
    with open(path, encoding="utf-8") as log:
        return [(int(found.group(1)), found.group(2), found.group(3))
                for found in re.finditer(r"^step=(\d+) .* digest=(\w+) rank_digest=(\w+) .*\n", log.read(), re.M)]


class Workers:
    """RANKS workers of a-job, each with its log. Options are given to all; those `of` a rank to it alone."""

    def __init__(self, address, *options, of=None):
        self.folder = tempfile.mkdtemp(prefix="workers-")
        self.processes = []
        for rank in range(RANKS):
            with open(self.log(rank), "wb") as log, open(self.log(rank) + ".err", "wb") as err:
                self.processes.append(subprocess.Popen(
                    [harness.WORKER, "--job", "a-job", "--server", address, "--data-rank", str(rank), *options,
                     *(of or {}).get(rank, [])],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=err))

    def log(self, rank):
        return os.path.join(self.folder, f"rank-{rank}.log")

    def wait_for(self, n_steps, ranks=range(RANKS)):
        """Until the slowest has `n_steps`."""
        until = time.monotonic() + 30
        while min(len(step_lines(self.log(rank))) for rank in ranks) < n_steps:
            assert time.monotonic() < until, self.errors()
            time.sleep(0.02)

    def errors(self, ranks=range(RANKS)):
        texts = []
        for rank in ranks:
            with open(self.log(rank) + ".err", encoding="utf-8") as err:
                texts.append(err.read())
        return "".join(texts)

    def statuses(self, timeout=60):
        return [process.wait(timeout) for process in self.processes]

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder)


class WithJob(unittest.TestCase):
    """A daemon with a-job, and what every worker's log must hold."""
    digests = None

    def setUp(self):
        self.daemon = Daemon().start()
        self.addCleanup(shutil.rmtree, self.daemon.folder, ignore_errors=True)
        self.addCleanup(self.daemon.kill)
        self.uid = create(self.daemon, job(steps=STEPS)).uid
        self.daemon.close_channels()

    def workers(self, *options, of=None):
        workers = Workers(self.daemon.address, *options, of=of)
        self.addCleanup(workers.close)
        return workers

    def whole_digests(self):
        """What skrullctl plans in its own process, without any daemon: digest and rank digests of each step. The same
        for every a-job."""
        if WithJob.digests:
            return WithJob.digests
        path = os.path.join(self.daemon.folder, "job.json")
        with open(path, "w", encoding="utf-8") as out:
            subprocess.run([harness.SKRULLCTL, "--server", self.daemon.address, "job", "get", "a-job", "-o", "json"],
                           stdout=out, check=True)
        digests = []
        for step in range(STEPS):
            text = subprocess.run([harness.SKRULLCTL, "plan", "make", "-f", path, "--step", str(step), "--data-root",
                                   harness.LENGTHS, "-o", "json"], stdout=subprocess.PIPE, text=True, check=True).stdout
            ranks = re.findall(r'"rankDigest": "(\w+)"', text)
            digests.append((re.search(r'^  "digest": "(\w+)"', text, re.M).group(1), ranks))
        WithJob.digests = digests
        return digests

    def check_logs(self, workers):
        """Every worker has every step exactly once, in order, with the digests of the pure function."""
        digests = self.whole_digests()
        for rank in range(RANKS):
            expected = [(step, digests[step][0], digests[step][1][rank]) for step in range(STEPS)]
            self.assertEqual(step_lines(workers.log(rank)), expected)


class Resume(WithJob):
    def test_over_kill_9(self):
        workers = self.workers("--pause-ms", "10")
        for n_steps in (10, 35, 60):
            workers.wait_for(n_steps)
            self.daemon.kill()
            time.sleep(0.2)
            self.daemon.start()
        self.assertEqual(workers.statuses(), [0] * RANKS, workers.errors())
        self.assertIn("lost before step", workers.errors())
        self.check_logs(workers)

    def test_over_a_drain(self):
        workers = self.workers("--pause-ms", "10")
        workers.wait_for(20)
        self.assertEqual(self.daemon.stop(), 0)
        self.daemon.start()
        self.assertEqual(workers.statuses(), [0] * RANKS, workers.errors())
        self.check_logs(workers)
        for rank in range(RANKS):
            self.assertRegex(workers.errors([rank]), r"lost before step \d+, again in \d+ ms: the daemon is stopping")

    def test_over_a_stopped_daemon(self):
        workers = self.workers("--pause-ms", "5")
        workers.wait_for(20)
        self.daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        self.daemon.process.send_signal(signal.SIGCONT)
        self.assertEqual(workers.statuses(), [0] * RANKS, workers.errors())
        self.assertEqual([len(step_lines(workers.log(rank))) for rank in range(RANKS)], [STEPS] * RANKS)

    def test_another_job_of_the_same_name_feeds_nobody(self):
        workers = self.workers("--pause-ms", "10")
        workers.wait_for(20)
        self.daemon.kill()
        for name in os.listdir(self.daemon.folder):
            if name.startswith("state.db"):
                os.unlink(os.path.join(self.daemon.folder, name))
        self.daemon.start()
        self.assertNotEqual(create(self.daemon, job(steps=STEPS, seed=7)).uid, self.uid)
        statuses = workers.statuses()
        # Between the restart and the creation there is no job at all, which is as final.
        self.assertTrue(all(status in (1, 3) for status in statuses), statuses)
        self.assertRegex(workers.errors(), "uid|no job is named a-job")
        for rank in range(RANKS):
            steps = [line[0] for line in step_lines(workers.log(rank))]
            self.assertEqual(steps, list(range(len(steps))))
            self.assertLess(len(steps), STEPS)


class CommandLine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon().start()
        create(cls.daemon, job(steps=20))

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close_channels()
        cls.daemon.kill()

    def run_worker(self, *options, **env):
        clean = {name: value for name, value in os.environ.items()
                 if name not in ("SKRULL_DATA_RANK", "OMPI_COMM_WORLD_RANK", "RANK", "SLURM_PROCID")}
        return subprocess.run([harness.WORKER, "--server", self.daemon.address, *options], env=dict(clean, **env),
                              capture_output=True, text=True, timeout=60, check=False)

    def test_rank_from_the_launcher_in_order(self):
        order = ["SKRULL_DATA_RANK", "OMPI_COMM_WORLD_RANK", "RANK", "SLURM_PROCID"]
        for first in range(len(order)):
            env = {name: str(first + 1 if place == first else 30) for place, name in enumerate(order) if place >= first}
            done = self.run_worker("--job", "a-job", "--count", "1", **env)
            self.assertIn(f"data_rank={first + 1} ", done.stdout, done.stderr)
        done = self.run_worker("--job", "a-job", "--count", "1", "--data-rank", "9", SKRULL_DATA_RANK="1")
        self.assertIn("data_rank=9 ", done.stdout)

    def test_from_and_count(self):
        done = self.run_worker("--job=a-job", "--data-rank=0", "--from=15", "--count=3")
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()], ["step=15", "step=16", "step=17"])
        self.assertEqual(done.returncode, 0)
        done = self.run_worker("--job", "a-job", "--data-rank", "0", "--from", "20")
        self.assertEqual((done.stdout, done.returncode), ("", 0))

    def test_cpu_refuses_what_it_cannot_honour(self):
        job_pb2 = harness.stubs().job
        for i, (changes, message) in enumerate((
                ({"parallel": job_pb2.Parallel(dp=1, cp=2, tp=2)}, "parallel.tp"),
                ({"training": job_pb2.Training(lora_rank=8)}, "lora_rank"),
                ({"training": job_pb2.Training(recompute=job_pb2.RECOMPUTE_FULL)}, "recompute: full"),
                ({"loss": job_pb2.LOSS_NONE}, "loss: none"))):
            harness.create(self.daemon, harness.job(f"refused-{i}", **changes))
            done = self.run_worker("--job", f"refused-{i}", "--backend", "cpu", "--comm", "threads")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertIn(message, done.stderr)

    def test_exit_statuses(self):
        for options, status, message in (
                (["--job", "a-job", "--data-rank", "0", "--from", "21"], 3, "21 is past the end"),
                (["--job", "no-such", "--data-rank", "0"], 3, "no job is named no-such"),
                (["--job", "a-job", "--data-rank", "32"], 1, "32"),
                (["--job", "a-job"], 2, "--data-rank"),
                (["--data-rank", "0"], 2, "--job"),
                (["--job", "a-job", "--data-rank", "x"], 2, "not a data rank"),
                (["--job", "a-job", "--data-rank", "0", "--window", "4097"], 2, "0 to 4096"),
                (["--job", "a-job", "--data-rank", "0", "--nothing"], 2, "no such option"),
                (["--job", "a-job", "--data-rank", "0", "--fallback", "remote"], 2, "none and local"),
                (["--job", "a-job", "--data-rank", "0", "--fallback", "local"], 2, "needs --data-root"),
                (["--job", "a-job", "--data-rank", "0", "--data-root", "/"], 2, "nothing to do without --fallback local"),
                (["--job", "a-job", "--data-rank", "0", "--fallback", "local", "--data-root", "here"], 1,
                 "fallback_roots: here is not an absolute path"),
                (["--job", "a-job", "--data-rank", "0", "--server", "nowhere"], 2, "no port"),
                (["--job", "a-job", "--data-rank", "0", "--backend", "cpu", "--comm", "none"], 1, "32 data ranks, which must"),
                (["--job", "a-job", "--data-rank", "0", "--model", "tiny"], 2, "nothing to do with backend none"),
                (["--job", "a-job", "--data-rank", "0", "--backend", "cpu", "--exchange", "x"], 2, "gather and ring"),
                (["--job", "a-job", "--data-rank", "0", "--backend", "cpu", "--unscheduled=1"], 2, "takes no value"),
                (["--job", "a-job", "--data-rank", "0", "--backend", "cpu", "--comm", "none", "--model", "/no-such"], 1,
                 "--model: /no-such"),
                (["--job", "a-job", "--data-rank", "0", "--backend", "cpu", "--comm", "none", "--tokens", "a",
                  "--tokens", "b"], 1, "2 given; the job has 1"),
                (["--job", "a-job", "--data-rank", "0", "--backend", "cuda", "--comm", "threads"], 2, "mpi or tcp"),
                (["--job", "a-job", "--data-rank", "0", "--backend", "cpu", "--comm", "tcp"], 2, "with --backend cuda"),
                (["--job", "a-job", "--data-rank", "0", "--backend", "gpu"], 2, "none, cpu and cuda")):
            done = self.run_worker(*options)
            self.assertEqual(done.returncode, status, (options, done.stderr))
            self.assertTrue(done.stderr.startswith("skrull-worker: "), done.stderr)
            self.assertIn(message, done.stderr)
        if not os.path.exists("/dev/nvidiactl"):
            done = self.run_worker("--job", "a-job", "--data-rank", "0", "--backend", "cuda")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, r"\Askrull-worker: (no GPU here|built without CUDA)[^\n]*\n\Z")
        done = self.run_worker("--job", "a-job", "--data-rank", "0", "--server", "127.0.0.1:1", "--give-up-ms", "300")
        self.assertEqual(done.returncode, 4)


if __name__ == "__main__":
    unittest.main()
