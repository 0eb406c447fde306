#!/usr/bin/python3
"""A stock Python gRPC client, with stubs made here from our .proto, against skrulld; and what it receives held
against what skrullctl prints, through protobuf's own JSON."""
import json
import subprocess
import threading
import unittest

from google.protobuf import json_format

import harness
from harness import Daemon, create, job, stream_request, stubs

RANKS = 32
STEPS = 50


def ctl(daemon, *words):
    return subprocess.run([harness.SKRULLCTL, "--server", daemon.address, *words], stdout=subprocess.PIPE, text=True,
                          check=True).stdout


class AnyLanguage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon().start()
        cls.created = create(cls.daemon, job(name="stock"))

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close_channels()
        cls.daemon.kill()

    def stream_all(self):
        """[rank][step] -> RankPlan, all ranks at once."""
        received = [[] for _ in range(RANKS)]
        errors = []

        def read(rank):
            try:
                planner = self.daemon.planner()
                for message in planner.StreamPlans(stream_request("stock", rank, count=STEPS), timeout=60):
                    if message.WhichOneof("event") == "plan":
                        received[rank].append(message.plan)
                    else:
                        ends.append((message.end.reason, message.end.next_step))
            except Exception as error:  # pylint: disable=broad-except
                errors.append(error)

        ends = []
        threads = [threading.Thread(target=read, args=(rank,)) for rank in range(RANKS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(ends, [(stubs().planner.END_REASON_DONE, STEPS)] * RANKS)
        return received

    def test_50_steps_for_32_ranks_are_what_skrullctl_prints(self):
        received = self.stream_all()
        self.assertEqual([len(plans) for plans in received], [STEPS] * RANKS)
        for step in range(STEPS):
            text = ctl(self.daemon, "plan", "get", "stock", "--step", str(step), "-o", "json")
            plan = json_format.Parse(text, stubs().plan.Plan())
            self.assertEqual(plan.uid, self.created.uid)
            self.assertEqual(len(plan.ranks), RANKS)
            for rank in range(RANKS):
                self.assertEqual(received[rank][step], plan.ranks[rank])

    def test_streamed_json_is_what_arrives(self):
        lines = ctl(self.daemon, "stream", "stock", "--rank", "7", "--from", "3", "--count", "5", "-o", "json").splitlines()
        plans = [message.plan for message in
                 self.daemon.planner().StreamPlans(stream_request("stock", 7, from_step=3, count=5), timeout=60)
                 if message.WhichOneof("event") == "plan"]
        self.assertEqual([json_format.Parse(line, stubs().plan.RankPlan()) for line in lines], plans)

    def test_json_is_canonical(self):
        """Not only does protobuf read it: protobuf's own printer says the same, value for value."""
        text = ctl(self.daemon, "plan", "get", "stock", "--step", "2", "-o", "json")
        again = json_format.MessageToJson(json_format.Parse(text, stubs().plan.Plan()))
        self.assertEqual(json.loads(text), json.loads(again))
        text = ctl(self.daemon, "job", "get", "stock", "-o", "json")
        again = json_format.MessageToJson(json_format.Parse(text, stubs().job.Job()))
        self.assertEqual(json.loads(text), json.loads(again))
        self.assertEqual(json_format.Parse(text, stubs().job.Job()), self.created)

    def test_ranks_of_a_plan(self):
        text = ctl(self.daemon, "plan", "get", "stock", "--step", "4", "--rank", "31", "--rank", "2", "-o", "json")
        plan = json_format.Parse(text, stubs().plan.Plan())
        self.assertEqual([rank.data_rank for rank in plan.ranks], [2, 31])

    def test_a_plan_too_large_for_a_message(self):
        """skrullctl asks for it in parts; the whole has the digest of the job's plan."""
        pb = stubs().job
        wide = job(name="wide", policy="uniform", steps=2, parallel=pb.Parallel(dp=1, cp=64))
        wide.batch.CopyFrom(pb.Batch(**{"global": 1024}, bucket_tokens=26624))
        create(self.daemon, wide)
        text = ctl(self.daemon, "plan", "get", "wide", "--step", "1", "-o", "json")
        plan = json_format.Parse(text, stubs().plan.Plan())
        self.assertGreater(plan.ByteSize(), 3 << 20)
        self.assertEqual([rank.data_rank for rank in plan.ranks], list(range(64)))
        self.assertEqual({rank.digest for rank in plan.ranks}, {plan.digest})
        ctl(self.daemon, "plan", "check", "wide", "--step", "1", "--data-root", harness.LENGTHS)


if __name__ == "__main__":
    unittest.main()
