#!/usr/bin/python3
"""Workers that plan by themselves while the daemon is away: the same steps, the same digests, and back."""
import glob
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import harness
import test_worker
from harness import Daemon, create, job, stubs
from test_worker import RANKS, STEPS, Workers, step_lines

LOCAL = ("--fallback", "local", "--fallback-after-ms", "300", "--pause-ms", "10")
ROOT = ("--data-root", harness.LENGTHS)


def wait_for_words(workers, words, n_times):
    """Until each worker has said them so often."""
    until = time.monotonic() + 30
    while min(workers.errors([rank]).count(words) for rank in range(RANKS)) < n_times:
        assert time.monotonic() < until, workers.errors()
        time.sleep(0.02)


class Fallback(test_worker.WithJob):
    def folder(self):
        folder = tempfile.mkdtemp(prefix="roots-")
        self.addCleanup(shutil.rmtree, folder)
        return folder

    def test_the_daemon_never_comes_back(self):
        workers = self.workers(*LOCAL, *ROOT, "--give-up-ms", "2000")
        workers.wait_for(20)
        self.daemon.kill()
        self.assertEqual(workers.statuses(), [0] * RANKS, workers.errors())
        for rank in range(RANKS):
            self.assertIn("no daemon, planning locally at step", workers.errors([rank]))
            self.assertRegex(workers.errors([rank]), "all steps are done; not all reports: ")
        self.daemon.start() # only to say what the job is
        self.check_logs(workers)

    def test_a_daemon_that_hangs_is_none(self):
        """Its connections stand, and nothing comes."""
        workers = self.workers(*LOCAL, *ROOT, "--silence-ms", "1000", "--window", "4")
        workers.wait_for(20)
        self.daemon.process.send_signal(signal.SIGSTOP)
        wait_for_words(workers, "nothing came for 1000 ms", 1)
        wait_for_words(workers, "no daemon, planning locally at step", 1)
        self.daemon.process.send_signal(signal.SIGCONT)
        self.assertEqual(workers.statuses(), [0] * RANKS, workers.errors())
        self.check_logs(workers)

    def test_who_cannot_plan_waits(self):
        """Rank 1 has no index, rank 2 another one of the same name."""
        empty, other = self.folder(), self.folder()
        with open(os.path.join(harness.LENGTHS, "chatqa2.txt"), encoding="ascii") as index:
            lines = index.read().splitlines()
        lines[1000] = str(int(lines[1000]) + 1)
        with open(os.path.join(other, "chatqa2.txt"), "w", encoding="ascii") as index:
            index.write("\n".join(lines) + "\n")
        workers = self.workers(*LOCAL, of={0: ROOT, 1: ["--data-root", empty], 2: ["--data-root", other], 3: ROOT})
        workers.wait_for(20)
        self.daemon.kill()
        self.assertEqual([workers.processes[rank].wait(60) for rank in (0, 3)], [0, 0], workers.errors())
        waiting = [len(step_lines(workers.log(rank))) for rank in (1, 2)]
        self.assertLess(max(waiting), STEPS)
        self.assertRegex(workers.errors([1]), "no daemon, and no local planning at step \\d+: .*chatqa2.txt")
        self.assertRegex(workers.errors([2]), "no local planning at step .*chatqa2.txt has .* tokens, the job was "
                                              "created with")
        self.daemon.start()
        self.assertEqual(workers.statuses(), [0] * RANKS, workers.errors())
        self.check_logs(workers)

    def test_who_cannot_plan_gives_up_in_time(self):
        workers = self.workers(*LOCAL, "--data-root", self.folder(), "--give-up-ms", "1500")
        workers.wait_for(20)
        self.daemon.kill()
        self.assertEqual(workers.statuses(), [4] * RANKS, workers.errors())
        self.assertEqual(workers.errors().count("no connection for 1500 ms"), RANKS)

    def test_a_daemon_that_was_never_there(self):
        self.daemon.kill()
        workers = self.workers(*LOCAL, *ROOT, "--give-up-ms", "1500")
        self.assertEqual(workers.statuses(), [4] * RANKS, workers.errors())
        self.assertIn("was not read from the daemon", workers.errors())

    def test_the_probe_sees_the_same_plans(self):
        probe = os.path.join(harness.BUILD, "tests", "integration", "client_probe")
        process = subprocess.Popen([probe, "fallback", "a-job", harness.LENGTHS], stdin=subprocess.PIPE,
                                   env=dict(os.environ, SKRULL_SERVER=self.daemon.address), stdout=subprocess.PIPE,
                                   text=True)
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), "next: ok\n")
        self.daemon.kill()
        said, _ = process.communicate("\n", timeout=60)
        self.assertIn("planning locally at step 1", said)
        self.assertEqual(said.splitlines()[-1], "same=19")


class LongJob(unittest.TestCase):
    """A daemon with a-job of STEPS steps, and what it says of them."""
    steps = 200

    def setUp(self):
        self.daemon = Daemon().start()
        self.addCleanup(shutil.rmtree, self.daemon.folder, ignore_errors=True)
        self.addCleanup(self.daemon.kill)
        create(self.daemon, job(steps=self.steps))

    def workers(self, *options):
        workers = Workers(self.daemon.address, *LOCAL, *ROOT, *options)
        self.addCleanup(workers.close)
        return workers

    def check_logs(self, workers):
        """Each worker has each step once, in order, as the daemon has it; returns the daemon's plans."""
        planner, ask = self.daemon.planner(), stubs().planner.GetPlanRequest
        plans = [planner.GetPlan(ask(job="a-job", step=step, data_ranks=range(RANKS))) for step in range(self.steps)]
        for rank in range(RANKS):
            self.assertEqual(step_lines(workers.log(rank)), [(plan.step, plan.digest, plan.ranks[rank].rank_digest)
                                                             for plan in plans])
        return plans


class Returning(LongJob):
    def next_step(self, plans):
        """The smallest step that not every rank has reported; ranks without a worker are reported here."""
        message, planner = stubs().planner, self.daemon.planner()
        reports = [message.StepReport(step=plan.step, digest=plan.digest) for plan in plans]
        for rank in range(RANKS, 32):
            for report in reports:
                report.data_rank = rank
            reply = planner.ReportSteps(message.ReportStepsRequest(job="a-job", reports=reports))
        return reply.next_step

    def test_back_to_the_daemon(self):
        workers = self.workers("--window", "4", "--give-up-ms", "1500", "--pause-ms", "60")
        workers.wait_for(10)
        self.daemon.close_channels()
        for n_times in (1, 2):
            self.daemon.kill()
            wait_for_words(workers, "no daemon, planning locally", n_times)
            # Longer than --give-up-ms, which the daemon's next absence must not begin with.
            workers.wait_for(max(len(step_lines(workers.log(rank))) for rank in range(RANKS)) + 30)
            self.daemon.start()
            wait_for_words(workers, "the daemon is back and plans from step", n_times)
        self.assertEqual(workers.statuses(), [0] * RANKS, workers.errors())
        for rank in range(RANKS):
            said = workers.errors([rank])
            self.assertEqual(said.count("no daemon, planning locally"), 2, said)
            self.assertEqual(said.count("the daemon is back and plans from step"), 2, said)
            self.assertNotIn("not all reports", said)
        plans = self.check_logs(workers)
        self.assertEqual(self.next_step(plans), self.steps) # what was reported meanwhile has arrived
        self.daemon.close_channels()


class Revised(LongJob):
    """Revisions of a job, and workers that lose their daemon before or after these begin."""
    steps = 160

    def update(self, from_step):
        message = stubs().job.Job(name="a-job", batch=stubs().job.Batch(bucket_tokens=30000))
        request = stubs().planner.UpdateJobRequest(job=message, from_step=from_step)
        request.update_mask.paths.append("batch.bucket_tokens")
        self.assertEqual(self.daemon.planner().UpdateJob(request).revision, 2)
        self.daemon.close_channels()

    def test_a_revision_that_was_read_holds_here_too(self):
        workers = self.workers()
        workers.wait_for(10)
        self.update(128) # read again at step 64
        workers.wait_for(80)
        self.daemon.kill()
        self.assertEqual(workers.statuses(), [0] * RANKS, workers.errors())
        self.assertIn("planning locally", workers.errors([0]))
        self.daemon.start()
        self.assertEqual([plan.revision for plan in self.check_logs(workers)], [1] * 128 + [2] * 32)
        self.daemon.close_channels()

    def test_a_revision_that_nobody_heard_of_is_noticed(self):
        workers = self.workers("--window", "1")
        workers.wait_for(10)
        self.update(64)
        self.daemon.kill()
        wait_for_words(workers, "planning locally", 1)
        workers.wait_for(80)
        self.daemon.start()
        self.assertEqual(workers.statuses(), [1] * RANKS, workers.errors())
        for rank in range(RANKS):
            self.assertRegex(workers.errors([rank]), "did not run the plan|resume_digest")


def blocks(pid, number):
    """The threads of a process that block a signal, as /proc names them."""
    threads = []
    for thread in glob.glob(f"/proc/{pid}/task/*/status"):
        with open(thread, encoding="utf-8") as status:
            mask = re.search(r"^SigBlk:\s*(\w+)$", status.read(), re.M).group(1)
        if int(mask, 16) >> (number - 1) & 1:
            threads.append(thread)
    return threads


class Truncated(unittest.TestCase):
    def test_no_worker_dies_of_a_truncated_index(self):
        folder = tempfile.mkdtemp(prefix="index-")
        self.addCleanup(shutil.rmtree, folder)
        index = os.path.join(folder, "a.skx")
        subprocess.run([harness.SKRULLCTL, "index", "convert", os.path.join(harness.LENGTHS, "chatqa2.txt"), index],
                       check=True, stdout=subprocess.DEVNULL)
        with Daemon(data_roots=[folder]) as daemon:
            message = job(steps=1000)
            message.data[0].index = "a.skx"
            create(daemon, message)
            workers = Workers(daemon.address, *LOCAL, "--data-root", folder, "--give-up-ms", "2500")
            self.addCleanup(workers.close)
            workers.wait_for(5)
            daemon.close_channels()
            daemon.kill()
            wait_for_words(workers, "planning locally", 1)
            if os.environ.get("SKRULL_SANITIZE") != "thread": # which has a thread of its own that blocks all
                for process in workers.processes: # a fault that is blocked ends the process, past its handler
                    self.assertEqual(blocks(process.pid, signal.SIGBUS), [])
            os.truncate(index, 4096)
            self.assertEqual(workers.statuses(), [4] * RANKS, workers.errors())
            for rank in range(RANKS):
                self.assertIn("a.skx was written to", workers.errors([rank]))


if __name__ == "__main__":
    unittest.main()
