#!/usr/bin/python3
"""PlanBatch: lengths that are known only now, from Python and from libskrull."""
import os
import random
import shutil
import subprocess
import tempfile
import time
import unittest

import grpc

import harness
from harness import Daemon, Details, create, error_of, job, stubs

Code = grpc.StatusCode
MANY = 2**17 if harness.IS_SANITIZED else 2**20  # planning so many takes long under a sanitizer
PROBE = os.path.join(harness.BUILD, "tests", "integration", "client_probe")


class PlanBatch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="skrull-data-")
        rng = random.Random(7)
        cls.lengths = [rng.randint(1, 5000) for _ in range(64)]
        with open(os.path.join(cls.root, "a.txt"), "w", encoding="ascii") as file:
            file.write("".join(f"{x}\n" for x in cls.lengths))
        cls.daemon = Daemon(data_roots=[cls.root]).start()
        cls.planner = cls.daemon.planner(cls.daemon.channel(**{"grpc.max_send_message_length": -1}))
        cls.pb = stubs().planner

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close_channels()
        assert cls.daemon.stop() == 0, cls.daemon.log()
        shutil.rmtree(cls.root)

    def request(self, lengths, made=None, **fields):
        made = made or job("rollouts", data=[])
        return self.pb.PlanBatchRequest(job=made, lengths=lengths, **fields)

    def plan(self, lengths, made=None, **fields):
        return self.planner.PlanBatch(self.request(lengths, made, **fields), timeout=60)

    def refused(self, request):
        error = error_of(self.planner.PlanBatch, request)
        return error.code(), Details(error).info.reason, Details(error).field

    def test_a_batch_is_the_step_of_a_job_with_these_lengths(self):
        made = create(self.daemon, job("same", order=stubs().job.ORDER_SEQUENTIAL, steps=1,
                                       data=[stubs().job.Dataset(index="a.txt")]))
        step = self.planner.GetPlan(self.pb.GetPlanRequest(job="same", step=0))
        batch = self.plan(self.lengths, made)
        self.assertEqual(batch.digest, step.digest)
        self.assertEqual(batch.estimate, step.estimate)
        self.assertEqual((batch.job, batch.uid, batch.revision, batch.step), ("same", "", 0, 0))
        self.assertEqual(self.plan(self.lengths, made), batch, "the same again")
        self.assertEqual(self.daemon.log().count("job_created job=rollouts"), 0, "no state")

    def test_samples_are_places_and_loss_tokens_count(self):
        plan = self.plan([100, 30000, 7], loss_tokens=[50, 0, 7])
        segments = [s for rank in plan.ranks for m in rank.micro_batches for s in m.segments]
        self.assertEqual({(s.sample, s.index, s.sequence_length) for s in segments},
                         {(0, 0, 100), (1, 1, 30000), (2, 2, 7)})
        self.assertEqual((plan.totals.sequences, plan.totals.tokens, plan.totals.loss_tokens), (3, 30107, 57))

    def test_over_length(self):
        over = stubs().job
        for word, samples in ((over.OVER_LENGTH_DROP, {0}), (over.OVER_LENGTH_TRUNCATE, {0, 1})):
            plan = self.plan([100, 10**6], job("r", data=[over.Dataset(over_length=word)]))
            self.assertEqual({s.sample for r in plan.ranks for m in r.micro_batches for s in m.segments}, samples)
        code, _, field = self.refused(self.request([100, 10**6]))
        self.assertEqual((code, field), (Code.INVALID_ARGUMENT, "lengths[1]"))

    def test_refusals_name_the_field(self):
        for request, field in ((self.request([]), "lengths"), (self.request([5, 0]), "lengths[1]"),
                               (self.request([5, 6], loss_tokens=[5]), "loss_tokens"),
                               (self.request([5], loss_tokens=[6]), "loss_tokens[0]"),
                               (self.request([5], job("r", data=[], effort="x")), "job.effort"),
                               (self.request([5], job("NO", data=[])), "job.name"),
                               (self.pb.PlanBatchRequest(lengths=[5]), "job"),
                               (self.request([1] * (2**20 + 1)), "lengths"),
                               (self.request([1], data_ranks=[0] * 65537), "data_ranks")):
            code, _, found = self.refused(request)
            self.assertEqual((code, found), (Code.INVALID_ARGUMENT, field))
        self.assertEqual(self.refused(self.request([5], data_ranks=[32])),
                         (Code.INVALID_ARGUMENT, "DATA_RANK_OUT_OF_RANGE", "data_ranks"))
        self.assertEqual(self.refused(self.request([5], job("r", data=[], policy="none")))[1], "POLICY_UNKNOWN")

    def test_a_large_plan_is_had_by_ranks(self):
        made = job("rollouts", data=[], policy="skrull")  # it cuts so many that their plan is large
        lengths = [i % 3000 + 1 for i in range(90000)]
        self.assertEqual(self.refused(self.request(lengths, made))[:2], (Code.RESOURCE_EXHAUSTED, "PLAN_TOO_LARGE"))
        parts = [self.plan(lengths, made, data_ranks=ranks) for ranks in ([3, 1, 3], [8, 9])]
        self.assertEqual([r.data_rank for part in parts for r in part.ranks], [1, 3, 8, 9])
        self.assertEqual(parts[0].digest, parts[1].digest)

    def test_the_largest_batch(self):
        lengths = [i % 97 + 1 for i in range(MANY)]
        plan = self.plan(lengths, loss_tokens=lengths, data_ranks=[0])
        self.assertEqual(plan.totals.sequences, MANY)

    def test_many_at_once_hold_nobody_up(self):
        request = self.request([i % 97 + 1 for i in range(MANY)], data_ranks=[0])
        calls = [self.planner.PlanBatch.future(request, timeout=120) for _ in range(60 * 2**20 // MANY)]
        slowest = 0
        for _ in range(20):
            start = time.monotonic()
            self.planner.ListJobs(self.pb.ListJobsRequest(), timeout=10)
            slowest = max(slowest, time.monotonic() - start)
        self.assertLess(slowest, 2)
        busy = []
        for call in reversed(calls):  # those that came last were refused at once
            if call.done() and call.code() is Code.RESOURCE_EXHAUSTED:
                busy.append(Details(call.exception()))
            call.cancel()
        self.assertGreater(len(busy), 0, "32 MiB of requests are the limit")
        self.assertEqual({(d.info.reason, d.retry.retry_delay.seconds) for d in busy}, {("BUSY", 1)})
        self.assertEqual(self.plan([5]).totals.sequences, 1)

    def test_libskrull(self):
        made = create(self.daemon, job("probe", data=[stubs().job.Dataset(index="a.txt")], steps=1, policy="skrull"))
        done = subprocess.run([PROBE, "plan-batch", "probe"], env=dict(os.environ, SKRULL_SERVER=self.daemon.address),
                              capture_output=True, text=True, timeout=120, check=True)
        for line, n in zip(done.stdout.splitlines(), (5, 30000)):
            lengths, loss = [i % 3000 + 1 for i in range(n)], [i % 3000 for i in range(n)]
            want = self.plan(lengths, made, loss_tokens=loss, data_ranks=[0])
            self.assertEqual(line, f"{want.digest} 32 {sum(loss)}")
        self.assertRegex(done.stdout.splitlines()[2], "lengths: the batch is empty")


if __name__ == "__main__":
    unittest.main()
