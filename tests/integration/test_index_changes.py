#!/usr/bin/python3
"""Indexes that change under a running job: noticed, the job's plans fail closed, the daemon lives."""
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

import grpc

import harness
from harness import Daemon, Details, create, error_of, job, stream_request, stubs

Code = grpc.StatusCode
ROWS = 100_000
STEPS = 1000


def truncate_half(path):
    os.truncate(path, os.path.getsize(path) // 2)


def truncate_all(path):
    os.truncate(path, 0)


def truncate_one_byte(path):
    os.truncate(path, os.path.getsize(path) - 1)


def grow(path):
    with open(path, "ab") as file:
        file.write(b"117\n")


def overwrite(path):
    with open(path, "r+b") as file:
        file.seek(os.path.getsize(path) // 2)
        file.write(b"\n1\n\n")


def vanish(path):
    os.unlink(path)


def replace(path):
    shutil.copy(path, path + ".new")
    os.rename(path + ".new", path)


def become_a_folder(path):
    os.unlink(path)
    os.mkdir(path)


def become_a_link_out(path):
    os.unlink(path)
    os.symlink("/etc/passwd", path)


CHANGES = (truncate_half, truncate_all, truncate_one_byte, grow, overwrite, vanish, replace, become_a_folder,
           become_a_link_out)


class Changes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="skrull-data-")
        rng = random.Random(1)
        cls.lengths = [rng.randint(1, 3000) for _ in range(ROWS)]
        cls.path("good.txt", lambda path: cls.write(path, b"".join(b"%d\n" % x for x in cls.lengths)))
        subprocess.run([harness.SKRULLCTL, "index", "convert", cls.path("good.txt"), cls.path("good.skx")], check=True,
                       capture_output=True)
        with open(cls.path("good.npy"), "wb") as file:
            head = b"{'descr': '<i4', 'fortran_order': False, 'shape': (%d,), }" % ROWS
            head += b" " * (117 - len(head)) + b"\n"
            file.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
            file.write(b"".join(x.to_bytes(4, "little") for x in cls.lengths))
        cls.daemon = Daemon("--log-level", "info", data_roots=[cls.root]).start()
        cls.planner = cls.daemon.planner()
        cls.good = cls.make("good", "good.skx")
        stream = cls.planner.StreamPlans(stream_request("good", 0))
        cls.digests = [m.plan.digest for m in stream if m.WhichOneof("event") == "plan"]
        assert len(cls.digests) == STEPS

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close_channels()
        assert cls.daemon.stop() == 0, cls.daemon.log()
        shutil.rmtree(cls.root)

    @classmethod
    def path(cls, name, write=None):
        path = os.path.join(cls.root, name)
        if write:
            write(path)
        return path

    @staticmethod
    def write(path, content):
        with open(path, "wb") as file:
            file.write(content)

    @classmethod
    def make(cls, name, index):
        return create(cls.daemon, job(name, steps=STEPS, data=[stubs().job.Dataset(index=index)]), planner=cls.planner)

    def get(self, name, step):
        return self.planner.GetPlan(stubs().planner.GetPlanRequest(job=name, step=step, data_ranks=[0]), timeout=30)

    def refused(self, name, step):
        error = error_of(self.planner.GetPlan, stubs().planner.GetPlanRequest(job=name, step=step))
        self.assertEqual((error.code(), Details(error).info.reason), (Code.FAILED_PRECONDITION, "INDEX_CHANGED"),
                         error.details())
        return error.details()

    def cleared(self, path):
        if os.path.isdir(path) and not os.path.islink(path):
            os.rmdir(path)
        elif os.path.lexists(path):
            os.unlink(path)

    def test_each_change_of_each_format(self):
        for kind in ("txt", "skx", "npy"):
            for change in CHANGES:
                with self.subTest(f"{kind}: {change.__name__}"):
                    name = f"{kind}-{change.__name__}".replace("_", "-")
                    path = self.path(f"{name}.{kind}")
                    shutil.copy(self.path("good." + kind), path)
                    self.make(name, os.path.basename(path))
                    kept = self.get(name, 5)
                    self.assertEqual(kept.digest, self.digests[5])
                    change(path)
                    for step in (700, 999, 0):
                        self.assertIn(os.path.basename(path), self.refused(name, step))
                    stream = self.planner.StreamPlans(stream_request(name, 0, from_step=500))
                    error = error_of(lambda timeout, s=stream: s)
                    self.assertEqual(error.code(), Code.FAILED_PRECONDITION)
                    # What was planned before may still be had, and reported.
                    self.assertEqual(self.get(name, 5).digest, kept.digest)
                    reports = [stubs().planner.StepReport(step=5, data_rank=0, digest=kept.digest)]
                    self.planner.ReportSteps(stubs().planner.ReportStepsRequest(job=name, reports=reports), timeout=10)
                    self.planner.DeleteJob(stubs().planner.DeleteJobRequest(name=name), timeout=10)
                    self.cleared(path)
        self.assertEqual(self.get("good", 900).digest, self.digests[900])

    def test_truncated_while_plans_stream(self):
        """No plan of lengths that are no longer there is ever sent, whenever the file was cut."""
        rng = random.Random(time.time_ns())
        n_failed = 0
        for i in range(24):
            name, cut = f"cut-{i}", rng.choice((truncate_half, truncate_all, truncate_one_byte))
            path = self.path(name + ".skx")
            shutil.copy(self.path("good.skx"), path)
            self.make(name, name + ".skx")
            timer = threading.Timer(rng.random() * 0.1, cut, [path])
            stream = self.planner.StreamPlans(stream_request(name, 0, from_step=rng.randrange(1, STEPS // 2)), timeout=60)
            timer.start()
            try:
                for message in stream:
                    if message.WhichOneof("event") == "plan":
                        self.assertEqual(message.plan.digest, self.digests[message.plan.step])
            except grpc.RpcError as error:
                self.assertEqual(error.code(), Code.FAILED_PRECONDITION, error.details())
                self.assertEqual(Details(error).info.reason, "INDEX_CHANGED")
                n_failed += 1
            timer.join()
            self.refused(name, 0)
            self.planner.DeleteJob(stubs().planner.DeleteJobRequest(name=name), timeout=10)
            os.unlink(path)
        self.assertGreater(n_failed, 2, "the cut never came in time")
        self.assertEqual(self.get("good", 901).digest, self.digests[901])

    def test_truncated_while_it_is_opened(self):
        for i in range(12):
            name = f"opening-{i}"
            path = self.path(name + ".skx")
            shutil.copy(self.path("good.skx"), path)
            timer = threading.Timer(random.random() * 0.004, truncate_half, [path])
            timer.start()
            try:
                self.make(name, name + ".skx")
            except grpc.RpcError as error:
                self.assertIn(error.code(), (Code.FAILED_PRECONDITION, Code.INVALID_ARGUMENT, Code.DATA_LOSS),
                              error.details())
                self.assertIn(Details(error).info.reason, ("INDEX_CHANGED", "INDEX_INVALID"))
            else:
                timer.join()
                self.refused(name, 7)
            timer.join()
        stats = self.planner.DescribeIndex(stubs().planner.DescribeIndexRequest(path="good.skx"), timeout=10)
        self.assertEqual((stats.count, stats.tokens), (ROWS, sum(self.lengths)))

    def test_put_back_and_restarted(self):
        """Restarted with another file: listed, without plans; with the right one again: the same plans."""
        root = tempfile.mkdtemp(prefix="skrull-data-")
        self.addCleanup(shutil.rmtree, root)
        path = os.path.join(root, "x.skx")
        shutil.copy(self.path("good.skx"), path)
        with Daemon(data_roots=[root]) as daemon:
            create(daemon, job("b", steps=STEPS, data=[stubs().job.Dataset(index="x.skx")]))
            for change in (truncate_half, truncate_all, vanish):
                change(path)
                daemon.close_channels()
                self.assertEqual(daemon.stop(), 0)
                daemon.start()
                planner = daemon.planner()
                error = error_of(planner.GetPlan, stubs().planner.GetPlanRequest(job="b", step=9))
                self.assertEqual((error.code(), Details(error).info.reason), (Code.FAILED_PRECONDITION, "JOB_BROKEN"))
                shutil.copy(self.path("good.skx"), path)
                daemon.close_channels()
                self.assertEqual(daemon.stop(), 0)
                daemon.start()
                plan = daemon.planner().GetPlan(stubs().planner.GetPlanRequest(job="b", step=9), timeout=10)
                self.assertEqual(plan.digest, self.digests[9])


if __name__ == "__main__":
    unittest.main()
