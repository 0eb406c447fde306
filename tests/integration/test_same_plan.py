#!/usr/bin/python3
"""The same job and step have the same plan, to the byte, whoever makes it: skrullctl in its own process, the
daemon asked for a whole plan or for ranks, the daemon's streams through libskrull, the daemon after a restart,
libskrull alone when the daemon has gone.
Random jobs; SKRULL_SEED gives others, SKRULL_ROUNDS more."""
import json
import os
import random
import shutil
import subprocess
import tempfile
import unittest

from google.protobuf import json_format

import harness
from harness import Daemon, stubs

SEED = int(os.environ.get("SKRULL_SEED", "20250519"))
ROUNDS = int(os.environ.get("SKRULL_ROUNDS", "12"))


def divisors(number):
    return [d for d in range(1, number + 1) if number % d == 0]


def random_batch(rng):
    batch = {"global": rng.choice((1, 7, 16, 33)), "bucketTokens": rng.randrange(1500, 20000), "align": rng.choice((1, 8, 100)),
             "shard": rng.choice(("SHARD_ZIGZAG", "SHARD_CONTIGUOUS")), "mix": rng.choice(("MIX_ANY", "MIX_UNIFORM")),
             "microBatchOrder": "MICRO_BATCH_ORDER_" + rng.choice(("AS_PLANNED", "LARGEST_FIRST", "HEAVY_MIDDLE"))}
    if rng.random() < 0.5:
        batch.update(equalMicroBatches="EQUAL_MICRO_BATCHES_TRUE", microBatchMultiple=rng.randrange(1, 5),
                     microBatchMin=rng.randrange(1, 5))
    return batch


def random_job(rng, name, files):
    """A job file's content, as the RPC's JSON."""
    ranks = rng.randrange(1, 33)
    cp = rng.choice(divisors(ranks))
    data = rng.sample(files, rng.randrange(1, len(files) + 1))
    job = {"name": name, "model": {"preset": rng.choice(("qwen2.5-0.5b", "qwen2.5-7b"))},
           "parallel": {"dp": ranks // cp, "cp": cp, "cpMode": rng.choice(("CP_MODE_FIXED", "CP_MODE_ELASTIC"))},
           "batch": random_batch(rng), "seed": rng.randrange(1 << 62), "steps": 30,
           "data": [{"index": file, "overLength": rng.choice(("OVER_LENGTH_DROP", "OVER_LENGTH_TRUNCATE"))} for file in data],
           "order": rng.choice(("ORDER_SHUFFLE", "ORDER_SEQUENTIAL", "ORDER_SORTED")),
           "loss": rng.choice(("LOSS_TOKEN_MEAN", "LOSS_SEQUENCE_MEAN", "LOSS_NONE")),
           "policy": rng.choice(("skrull", "round_robin", "uniform", "joint"))}
    if rng.random() < 0.3:
        for dataset in job["data"]:
            dataset["weight"] = rng.choice((0.5, 1, 3))
    else:
        job["lastBatch"] = rng.choice(("LAST_BATCH_DROP", "LAST_BATCH_KEEP", "LAST_BATCH_WRAP"))
    return job


def content(plan):
    """A Plan's or RankPlan's bytes without what only a daemon knows."""
    bare = type(plan)()
    bare.CopyFrom(plan)
    for message in [bare] + list(getattr(bare, "ranks", [])):
        message.ClearField("uid")
        message.ClearField("revision")
    return bare.SerializeToString(deterministic=True)


class SamePlan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="skrull-same-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        rng = random.Random(SEED)
        cls.files = ["a.txt", "b.txt", "c.skx"]
        for file in cls.files:
            with open(os.path.join(cls.folder, file.replace("skx", "txt")), "w", encoding="utf-8") as index:
                index.writelines(f"{int(2 ** rng.uniform(0, 15))}\n" for _ in range(rng.randrange(40, 400)))
        subprocess.run([harness.SKRULLCTL, "index", "convert", os.path.join(cls.folder, "c.txt"),
                        os.path.join(cls.folder, "c.skx")], check=True, stdout=subprocess.DEVNULL)
        cls.daemon = Daemon(data_roots=(cls.folder,)).start()
        cls.addClassCleanup(cls.daemon.kill)

    def ctl(self, *words):
        done = subprocess.run([harness.SKRULLCTL, "--server", self.daemon.address, *words], capture_output=True,
                              timeout=60, check=False, encoding="utf-8")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def expect_same(self, job, step):
        """Every way to the plan of one step; returns its digest."""
        name, planner = job["name"], self.daemon.planner()
        path = os.path.join(self.folder, name + ".json")
        made = json_format.Parse(self.ctl("plan", "make", "-f", path, "--step", str(step), "-o", "json"), stubs().plan.Plan())
        request = stubs().planner.GetPlanRequest
        whole = planner.GetPlan(request(job=name, step=step), timeout=30)
        self.assertEqual(content(whole), content(made))
        got = json_format.Parse(self.ctl("plan", "get", name, "--step", str(step), "-o", "json"), stubs().plan.Plan())
        self.assertEqual(content(got), content(made))
        for rank in sorted({0, len(made.ranks) // 2, len(made.ranks) - 1}):
            part = planner.GetPlan(request(job=name, step=step, data_ranks=[rank]), timeout=30)
            self.assertEqual([content(r) for r in part.ranks], [content(made.ranks[rank])])
            line = self.ctl("stream", name, "--rank", str(rank), "--from", str(step), "--count", "1", "-o", "json")
            streamed = json_format.Parse(line, stubs().plan.RankPlan())
            self.assertEqual(content(streamed), content(made.ranks[rank]))
        return made.digest

    def has_probed_rank(self, name):
        """The probe is data rank 3 and takes 20 steps."""
        job = self.daemon.planner().GetJob(stubs().planner.GetJobRequest(name=name), timeout=30)
        return job.parallel.dp * job.parallel.cp > 3 and job.info.steps >= 20

    def expect_same_without_a_daemon(self, name):
        """20 plans of the daemon, then 19 of libskrull's own: client_probe compares them."""
        probe = os.path.join(harness.BUILD, "tests", "integration", "client_probe")
        process = subprocess.Popen([probe, "fallback", name, self.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env=dict(os.environ, SKRULL_SERVER=self.daemon.address), text=True)
        self.assertEqual(process.stdout.readline(), "next: ok\n")
        self.daemon.close_channels()
        self.daemon.kill()
        said, _ = process.communicate("\n", timeout=60)
        self.daemon.start()
        self.assertIn("planning locally at step 1", said)
        self.assertEqual(said.splitlines()[-1], "same=19")

    def test_every_way_to_a_plan_gives_the_same_bytes(self):
        print(f"SKRULL_SEED={SEED}, {ROUNDS} jobs", flush=True)
        rng = random.Random(SEED + 1)
        digests = {}
        for i in range(ROUNDS):
            job = random_job(rng, f"same-{i}", self.files)
            with self.subTest(job=json.dumps(job)):
                path = os.path.join(self.folder, job["name"] + ".json")
                with open(path, "w", encoding="utf-8") as out:
                    json.dump(job, out)
                self.ctl("job", "create", "-f", path)
                steps = int(json.loads(self.ctl("job", "get", job["name"], "-o", "json"))["info"]["steps"])
                for step in sorted({rng.randrange(steps), steps - 1}):
                    digests[job["name"], step] = self.expect_same(job, step)
        self.daemon.close_channels()
        self.daemon.kill()
        self.daemon.start()
        for (name, step), digest in digests.items():
            plan = self.daemon.planner().GetPlan(stubs().planner.GetPlanRequest(job=name, step=step), timeout=30)
            self.assertEqual(plan.digest, digest, f"{name} step {step} after a restart")
        self.assertGreater(len(digests), ROUNDS)
        large = [name for name in sorted({name for name, _ in digests}) if self.has_probed_rank(name)]
        for name in large[:3]:
            with self.subTest(fallback=name):
                self.expect_same_without_a_daemon(name)


if __name__ == "__main__":
    unittest.main()
