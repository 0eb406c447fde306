#!/usr/bin/python3
"""Training over crashes: whatever dies and whatever its ranks become, every sample once and in order.

A trainer is one worker a data rank. Where it crashes, all of it starts again from the step that the
daemon says is next, as from a checkpoint. What counts is the last run of each step: its digest must be
that of the plan that the daemon gives for the step at the end, and the samples of all steps together
those of the same job on a daemon that nobody disturbed.
"""
import os
import random
import shutil
import subprocess
import tempfile
import time
import unittest

import harness
from harness import Daemon, create, job, stubs
from test_worker import step_lines

SEQUENCES, BATCH = 330, 4
EPOCH = 83  # steps: the last one has 2 sequences
STEPS = 2 * EPOCH


def small_job(**changes):
    """Two epochs on <DP 2, CP 2>."""
    parts = stubs().job
    fields = dict(parallel=parts.Parallel(dp=2, cp=2), batch=parts.Batch(**{"global": BATCH}, bucket_tokens=26624),
                  data=[parts.Dataset(index="some.txt")], last_batch=parts.LAST_BATCH_KEEP, steps=0, epochs=2)
    fields.update(changes)
    return job(**fields)


def lengths_folder():
    folder = tempfile.mkdtemp(prefix="lengths-")
    with open(os.path.join(folder, "some.txt"), "w", encoding="utf-8") as out:
        out.writelines(f"{100 + 7919 * i % 9000}\n" for i in range(SEQUENCES))
    return folder


def samples_of(planner, steps, name="a-job"):
    """[(sample, dataset, row)] in the order of the samples, [digest] by step, [data ranks] by step."""
    samples, digests, ranks = {}, [], []
    for step in range(steps):
        plan = planner.GetPlan(stubs().planner.GetPlanRequest(job=name, step=step), timeout=30)
        digests.append(plan.digest)
        ranks.append(plan.dp * plan.cp)
        for rank in plan.ranks:
            for micro_batch in rank.micro_batches:
                for segment in micro_batch.segments:
                    samples[segment.sample] = (segment.dataset, segment.index)
    return [(sample, *samples[sample]) for sample in sorted(samples)], digests, ranks


class Trainer:
    """The workers of a-job. `digests` has the last run of each step by rank: {(rank, step): digest}."""

    def __init__(self, daemon, test):
        self.daemon = daemon
        self.test = test
        self.folder = tempfile.mkdtemp(prefix="trainer-")
        self.processes = {}
        self.n_runs = 0
        self.digests = {}
        test.addCleanup(shutil.rmtree, self.folder)
        test.addCleanup(self.kill)

    def log(self, rank):
        return os.path.join(self.folder, f"{self.n_runs}-{rank}.log")

    def start(self, ranks, from_step):
        self.n_runs += 1
        self.add(ranks, from_step)

    def add(self, ranks, from_step):
        for rank in ranks:
            with open(self.log(rank), "wb") as log, open(self.log(rank) + ".err", "wb") as err:
                self.processes[rank] = subprocess.Popen(
                    [harness.WORKER, "--job", "a-job", "--server", self.daemon.address, "--data-rank", str(rank),
                     "--from", str(from_step), "--pause-ms", "5"], stdin=subprocess.DEVNULL, stdout=log, stderr=err)

    def errors(self):
        texts = []
        for rank in self.processes:
            with open(self.log(rank) + ".err", encoding="utf-8") as err:
                texts.append(err.read())
        return "".join(texts)

    def steps(self, rank):
        return step_lines(self.log(rank))

    def wait_for(self, step, ranks=None):
        """Until each of the ranks has run `step`, or ended."""
        until = time.monotonic() + 60
        for rank in self.processes if ranks is None else ranks:
            while (self.steps(rank) or [(-1,)])[-1][0] < step and self.processes[rank].poll() is None:
                assert time.monotonic() < until, self.errors()
                time.sleep(0.01)

    def take(self):
        """Keeps what this run did: each rank one step after the other, again the same where it ran before."""
        for rank in self.processes:
            steps = self.steps(rank)
            self.test.assertEqual([line[0] for line in steps],
                                  list(range(steps[0][0], steps[0][0] + len(steps))) if steps else [])
            for step, digest, _ in steps:
                self.test.assertEqual(self.digests.setdefault((rank, step), digest), digest, (rank, step))
        self.processes = {}

    def kill(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()

    def crash(self):
        self.kill()
        self.take()

    def finish(self):
        """Waits for the end; {rank: exit status}."""
        statuses = {rank: process.wait(60) for rank, process in self.processes.items()}
        errors = self.errors()
        self.take()
        return statuses, errors


class Resume(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = lengths_folder()
        with Daemon(data_roots=[cls.data]) as daemon:
            create(daemon, small_job())
            cls.undisturbed, cls.digests, _ = samples_of(daemon.planner(), STEPS)
        assert len(cls.undisturbed) == 2 * SEQUENCES

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.data)

    def setUp(self):
        self.daemon = Daemon(data_roots=[self.data]).start()
        self.addCleanup(shutil.rmtree, self.daemon.folder, ignore_errors=True)
        self.addCleanup(self.daemon.kill)
        self.addCleanup(self.daemon.close_channels)
        create(self.daemon, small_job())
        self.trainer = Trainer(self.daemon, self)

    def restart(self):
        self.daemon.kill()
        self.daemon.start()

    def planner(self):
        self.daemon.close_channels()
        return self.daemon.planner()

    def next_step(self):
        return self.planner().ReportSteps(stubs().planner.ReportStepsRequest(job="a-job"), timeout=30,
                                          wait_for_ready=True).next_step

    def update(self, from_step=0, **fields):
        message = stubs().job.Job(name="a-job", **fields)
        return self.planner().UpdateJob(stubs().planner.UpdateJobRequest(job=message, from_step=from_step), timeout=30,
                                        wait_for_ready=True)

    def check(self, n_steps=STEPS, undisturbed=None):
        """Every step was run by every rank of it, by the plan of it; the samples are those of the undisturbed job."""
        samples, digests, ranks = samples_of(self.planner(), n_steps)
        self.assertEqual(samples, undisturbed or self.undisturbed)
        for step in range(n_steps):
            for rank in range(ranks[step]):
                self.assertEqual(self.trainer.digests.get((rank, step)), digests[step], (rank, step))
        self.assertEqual(len(self.trainer.digests), sum(ranks), "no other rank ran a step")
        self.assertEqual(self.next_step(), n_steps)
        return digests, ranks

    def run_to_the_end(self, ranks=range(4)):
        statuses, errors = self.trainer.finish()
        self.assertEqual(statuses, {rank: 0 for rank in ranks}, errors)

    def test_daemon_and_workers_die_at_random(self):
        chance = random.Random(20240607)
        print("# seed 20240607")
        self.trainer.start(range(4), 0)
        at = 0
        while at < STEPS:
            at += chance.randrange(5, 30)
            self.trainer.wait_for(min(at, STEPS - 1))
            what = chance.choice(["daemon", "workers", "both", "one"])
            if what == "daemon":
                self.restart()
                continue
            if what == "one":  # a rank dies, and the others wait for it somewhere: all start again
                self.trainer.processes[chance.randrange(4)].kill()
                time.sleep(chance.random() / 10)
            self.trainer.crash()
            if what == "both":
                self.restart()
            self.trainer.start(range(4), self.next_step())
        self.run_to_the_end()
        self.assertEqual(self.check()[0], self.digests)

    def test_twice_in_an_epoch_and_at_its_end(self):
        self.trainer.start(range(4), 0)
        for step in (20, 55, EPOCH - 1):
            self.trainer.wait_for(step)
            self.restart()
            self.trainer.crash()
            self.restart()
            self.trainer.start(range(4), self.next_step())
        self.run_to_the_end()
        self.assertEqual(self.check()[0], self.digests)

    def test_ended_exactly_with_the_epoch(self):
        """The trainer stops after the epoch's last step, and comes back another day."""
        for rank in range(4):
            done = subprocess.run([harness.WORKER, "--job", "a-job", "--server", self.daemon.address, "--data-rank",
                                   str(rank), "--count", str(EPOCH)], stdout=subprocess.PIPE, text=True, check=True)
            for line in done.stdout.splitlines():
                fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
                self.trainer.digests[(rank, int(fields["step"]))] = fields["digest"]
        self.restart()
        self.assertEqual(self.next_step(), EPOCH)
        self.trainer.start(range(4), EPOCH)
        self.run_to_the_end()
        self.assertEqual(self.check()[0], self.digests)

    def test_fewer_ranks(self):
        self.trainer.start(range(4), 0)
        self.trainer.wait_for(10)
        updated = self.update(parallel=stubs().job.Parallel(dp=1))
        x = updated.info.revisions[1].first_step  # 64, if no rank is far ahead of the others
        self.assertEqual((updated.revision, x % 64, updated.info.steps), (2, 0, STEPS))
        self.restart()  # the revision outlives it
        statuses, errors = self.trainer.finish()
        self.assertEqual(statuses, {0: 0, 1: 0, 2: 1, 3: 1}, errors)
        self.assertIn("data_rank: 2 is out of range, 0 to 1", errors)
        digests, ranks = self.check()
        self.assertEqual(ranks, [4] * x + [2] * (STEPS - x))
        self.assertEqual(digests[:x], self.digests[:x])

    def test_more_ranks_and_fewer_with_crashes(self):
        parts, planner = stubs().job, self.planner()
        steps = 6 * EPOCH
        planner.DeleteJob(stubs().planner.DeleteJobRequest(name="a-job"), timeout=30)
        create(self.daemon, small_job(epochs=6))
        create(self.daemon, small_job(name="undisturbed", epochs=6))
        undisturbed, digests_before, _ = samples_of(planner, steps, "undisturbed")
        self.trainer.start(range(4), 0)
        self.trainer.wait_for(30)
        x = self.update(parallel=parts.Parallel(dp=4)).info.revisions[1].first_step
        self.trainer.wait_for(50)
        self.trainer.crash()
        self.restart()
        self.trainer.start(range(4), self.next_step())
        self.trainer.add(range(4, 8), x)
        self.trainer.wait_for(x + 10)
        y = self.update(parallel=parts.Parallel(dp=1, cp=3)).info.revisions[2].first_step
        self.assertTrue(x < y < steps, (x, y))
        self.restart()
        statuses, errors = self.trainer.finish()
        self.assertEqual(statuses, {rank: 0 if rank < 3 else 1 for rank in range(8)}, errors)
        digests, ranks = self.check(steps, undisturbed)
        self.assertEqual(ranks, [4] * x + [8] * (y - x) + [3] * (steps - y))
        self.assertEqual(digests[:x], digests_before[:x])

    def test_another_batch_from_a_stated_step(self):
        updated = self.update(from_step=70, batch=stubs().job.Batch(**{"global": 12}))
        # 13 steps of 4 are left of the first epoch, 50 sequences: 5 of 12; then 28 of them.
        self.assertEqual(updated.info.steps, 70 + 5 + 28)
        self.trainer.start(range(4), 0)
        self.trainer.wait_for(72)
        self.restart()
        self.run_to_the_end()
        samples, _, _ = samples_of(self.planner(), updated.info.steps)
        self.assertEqual([sample[1:] for sample in samples], [sample[1:] for sample in self.undisturbed])
        self.assertEqual(self.next_step(), updated.info.steps)

    def test_a_mixture_is_resumed_too(self):
        parts = stubs().job
        planner = self.planner()
        planner.DeleteJob(stubs().planner.DeleteJobRequest(name="a-job"), timeout=30)
        create(self.daemon, small_job(steps=120, epochs=0, order=parts.ORDER_SORTED, data=[
            parts.Dataset(index="some.txt", weight=weight) for weight in (0.75, 0.25)]))
        before, digests, _ = samples_of(self.planner(), 120)
        self.trainer.start(range(4), 0)
        self.trainer.wait_for(40)
        self.restart()
        self.trainer.crash()
        self.trainer.start(range(4), self.next_step())
        self.run_to_the_end()
        after, digests_after, _ = samples_of(self.planner(), 120)
        self.assertEqual((after, digests_after), (before, digests))
        self.assertEqual(len(before), 480)
        self.assertEqual(sum(sample[1] == 0 for sample in before), 360)
        for step in range(120):
            self.assertEqual([self.trainer.digests[(rank, step)] for rank in range(4)], [digests[step]] * 4)


if __name__ == "__main__":
    unittest.main()
