#!/usr/bin/python3
"""skrulld from outside: jobs, streams, reports, health, crashes, drains, options."""
import concurrent.futures
import os
import queue
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest

import grpc

import harness
from harness import Daemon, Details, create, error_of, job, stream_request, stubs

Code = grpc.StatusCode


def plans_of(stream):
    """The plans of a stream and its end message."""
    plans, end = [], None
    for message in stream:
        assert end is None, "a message after the end"
        if message.WhichOneof("event") == "plan":
            plans.append(message.plan)
        elif message.WhichOneof("event") == "end":
            end = message.end
    return plans, end


IDLE_CLIENT = """
import sys, grpc
channel = grpc.insecure_channel(sys.argv[1])
channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=20)
print("idle", flush=True)
sys.stdin.read()
"""


class Collected:
    """A stream read by a thread: messages arrive in a queue, then None; error holds how it ended."""

    def __init__(self, call):
        self.call = call
        self.messages = queue.Queue()
        self.error = None
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for message in self.call:
                self.messages.put(message)
        except grpc.RpcError as error:
            self.error = error
        self.messages.put(None)

    def next(self, timeout=20):
        return self.messages.get(timeout=timeout)

    def nothing_for(self, seconds):
        try:
            self.messages.get(timeout=seconds)
        except queue.Empty:
            return True
        return False


def report(planner, plans, uid=""):
    reports = [stubs().planner.StepReport(step=p.step, data_rank=p.data_rank, digest=p.digest, elapsed_ns=1)
               for p in plans]
    request = stubs().planner.ReportStepsRequest(job=plans[0].job, uid=uid, reports=reports)
    return planner.ReportSteps(request, timeout=30).next_step


def get_plan(planner, name, step, ranks=()):
    return planner.GetPlan(stubs().planner.GetPlanRequest(job=name, step=step, data_ranks=ranks), timeout=30)


class Jobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon().start()
        cls.planner = cls.daemon.planner()
        cls.pb = stubs().planner

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close_channels()
        assert cls.daemon.stop() == 0, cls.daemon.log()

    def test_create_get_delete(self):
        made = create(self.daemon, job("cgd", policy=""))
        self.assertRegex(made.uid, "^[0-9a-f]{32}$")
        self.assertEqual(made.revision, 1)
        self.assertEqual(made.info.steps, 100)
        self.assertEqual(made.policy, "joint")
        self.assertEqual(self.planner.GetJob(self.pb.GetJobRequest(name="cgd")), made)
        self.assertEqual(self.planner.DeleteJob(self.pb.DeleteJobRequest(name="cgd")), self.pb.DeleteJobResponse())
        self.assertEqual(error_of(self.planner.GetJob, self.pb.GetJobRequest(name="cgd")).code(), Code.NOT_FOUND)
        self.assertEqual(error_of(self.planner.DeleteJob, self.pb.DeleteJobRequest(name="cgd")).code(), Code.NOT_FOUND)

    def test_what_get_printed_can_be_created_again(self):
        made = create(self.daemon, job("again"))
        self.planner.DeleteJob(self.pb.DeleteJobRequest(name="again"))
        again = create(self.daemon, made)
        self.assertNotEqual(again.uid, made.uid)
        self.assertEqual(again.info, made.info)

    def test_a_repeated_request_is_harmless(self):
        first = create(self.daemon, job("rep"), request_id="r-1")
        self.assertEqual(create(self.daemon, job("rep"), request_id="r-1"), first)
        request = self.pb.CreateJobRequest(job=job("rep"), request_id="r-2")
        self.assertEqual(error_of(self.planner.CreateJob, request).code(), Code.ALREADY_EXISTS)

    def test_of_creations_at_once_one_wins(self):
        def attempt(i):
            try:
                return create(self.daemon, job("race", seed=i), planner=self.planner).uid
            except grpc.RpcError as error:
                return error.code()
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            results = list(pool.map(attempt, range(16)))
        self.assertEqual(results.count(Code.ALREADY_EXISTS), 15, results)

    def test_of_the_same_request_at_once_all_get_the_job(self):
        def attempt(_):
            return create(self.daemon, job("race-same"), "same-id", self.planner).uid
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(len(set(pool.map(attempt, range(8)))), 1)

    def test_a_refused_job_names_the_field_and_leaves_the_name_free(self):
        bad = job("refused")
        bad.batch.bucket_tokens = 0
        error = error_of(self.planner.CreateJob, self.pb.CreateJobRequest(job=bad))
        self.assertEqual(error.code(), Code.INVALID_ARGUMENT)
        self.assertIn("bucket_tokens", error.details())
        error = error_of(self.planner.CreateJob, self.pb.CreateJobRequest(
            job=job("refused", data=[stubs().job.Dataset(index="none.txt")])))
        self.assertEqual(error.code(), Code.NOT_FOUND)
        self.assertIn("none.txt", error.details())
        create(self.daemon, job("refused"))

    def test_no_path_outside_the_data_roots(self):
        error = error_of(self.planner.CreateJob, self.pb.CreateJobRequest(
            job=job("outside", data=[stubs().job.Dataset(index="/etc/passwd")])))
        self.assertEqual(error.code(), Code.PERMISSION_DENIED)
        error = error_of(self.planner.DescribeIndex, self.pb.DescribeIndexRequest(path="/etc/passwd"))
        self.assertEqual(error.code(), Code.PERMISSION_DENIED)

    def test_list_in_pages(self):
        for name in ("page-c", "page-a", "page-b"):
            create(self.daemon, job(name), planner=self.planner)
        names, token = [], ""
        while True:
            page = self.planner.ListJobs(self.pb.ListJobsRequest(page_size=2, page_token=token))
            self.assertLessEqual(len(page.jobs), 2)
            names += [j.name for j in page.jobs]
            token = page.next_page_token
            if not token:
                break
        self.assertEqual(names, sorted(names))
        self.assertEqual([n for n in names if n.startswith("page-")], ["page-a", "page-b", "page-c"])

    def test_describe_index(self):
        stats = self.planner.DescribeIndex(self.pb.DescribeIndexRequest(path="chatqa2.txt"), timeout=30)
        with open(os.path.join(harness.LENGTHS, "chatqa2.txt"), encoding="ascii") as file:
            lengths = sorted(int(line) for line in file if line.strip())
        self.assertEqual((stats.format, stats.count, stats.tokens), ("text", len(lengths), sum(lengths)))
        self.assertEqual((stats.min, stats.max), (lengths[0], lengths[-1]))
        self.assertEqual(stats.p50, lengths[(len(lengths) + 1) // 2 - 1])
        self.assertEqual(sum(b.count for b in stats.histogram), len(lengths))
        for b in stats.histogram:
            self.assertEqual(b.count, sum(1 for x in lengths if b.upper // 2 <= x < b.upper))

    def test_get_plan(self):
        create(self.daemon, job("gp"), planner=self.planner)
        plan = get_plan(self.planner, "gp", 7)
        self.assertEqual([r.data_rank for r in plan.ranks], list(range(32)))
        self.assertEqual(plan.step, 7)
        some = get_plan(self.planner, "gp", 7, [9, 3, 9])
        self.assertEqual([r.data_rank for r in some.ranks], [3, 9])
        self.assertEqual(some.digest, plan.digest)
        self.assertEqual(some.ranks[1], plan.ranks[9])
        for ranks, step, code in (((32,), 7, Code.INVALID_ARGUMENT), ((), 100, Code.OUT_OF_RANGE)):
            self.assertEqual(error_of(self.planner.GetPlan, self.pb.GetPlanRequest(
                job="gp", step=step, data_ranks=ranks)).code(), code)

    def test_a_plan_too_large_for_a_message_is_had_by_ranks(self):
        big = job("big", steps=2)
        setattr(big.batch, "global", 50000)
        create(self.daemon, big, planner=self.planner)
        error = error_of(self.planner.GetPlan, self.pb.GetPlanRequest(job="big", step=1))
        self.assertEqual(error.code(), Code.RESOURCE_EXHAUSTED)
        self.assertIn("data_ranks", error.details())
        self.assertEqual(len(get_plan(self.planner, "big", 1, [0, 31]).ranks), 2)

    def test_unknown_and_unbuilt_methods(self):
        channel = self.daemon.channel()
        error = error_of(channel.unary_unary("/skrull.v1.PlannerService/Nonsense"), b"")
        self.assertEqual(error.code(), Code.UNIMPLEMENTED)
        self.assertIn("Nonsense", error.details())
        for call, request in ((self.planner.ComparePolicies, self.pb.ComparePoliciesRequest()),
                              (self.planner.WatchJob, self.pb.WatchJobRequest())):
            error = error_of(call, request)
            self.assertEqual(error.code(), Code.UNIMPLEMENTED)
            self.assertIn("is not built yet", error.details())

    def test_hostile_requests(self):
        channel = self.daemon.channel()
        path = "/skrull.v1.PlannerService/"
        for method in ("CreateJob", "GetJob", "GetPlan", "ReportSteps", "ListJobs", "DescribeIndex",
                       "UpdateJob"):
            for body in (b"\xff\xff\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x80"):
                error = error_of(channel.unary_unary(path + method), body)
                self.assertEqual(error.code(), Code.INVALID_ARGUMENT, (method, body))
            error = error_of(channel.unary_unary(path + method), b"\x0a" * (2 << 20))
            self.assertEqual(error.code(), Code.RESOURCE_EXHAUSTED)
        nested = b""
        for _ in range(200):
            nested = b"\x0a" + bytes([len(nested) % 128 | 128, len(nested) // 128]) + nested
        error = error_of(channel.unary_unary(path + "CreateJob"), nested)
        self.assertEqual(error.code(), Code.INVALID_ARGUMENT)
        many = self.pb.ReportStepsRequest(job="x", reports=[self.pb.StepReport()] * 500000).SerializeToString()
        self.assertIn(error_of(channel.unary_unary(path + "ReportSteps"), many).code(),
                      (Code.INVALID_ARGUMENT, Code.RESOURCE_EXHAUSTED))
        self.assertEqual(self.planner.ListJobs(self.pb.ListJobsRequest(page_size=1)).jobs[0].revision, 1)


class Streams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon().start()
        cls.planner = cls.daemon.planner()
        cls.pb = stubs().planner
        cls.made = create(cls.daemon, job("s"))

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close_channels()
        assert cls.daemon.stop() == 0, cls.daemon.log()

    def stream(self, rank=0, name="s", **fields):
        return self.planner.StreamPlans(stream_request(name, rank, **fields))

    def refused(self, rank=0, name="s", **fields):
        return error_of(self.planner.StreamPlans, stream_request(name, rank, **fields))

    def test_32_ranks_at_once_get_one_plan_a_step(self):
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            results = list(pool.map(lambda rank: plans_of(self.stream(rank, uid=self.made.uid)), range(32)))
        whole = {}
        for rank, (plans, end) in enumerate(results):
            self.assertEqual([p.step for p in plans], list(range(100)))
            self.assertEqual({p.data_rank for p in plans}, {rank})
            self.assertEqual((end.reason, end.next_step), (self.pb.END_REASON_DONE, 100))
            for p in plans:
                self.assertEqual(whole.setdefault(p.step, p.digest), p.digest)
        plan = get_plan(self.planner, "s", 42)
        self.assertEqual([r for r in plan.ranks], [plans[42] for plans, _ in results])

    def test_edges_of_the_steps(self):
        plans, end = plans_of(self.stream(from_step=98))
        self.assertEqual([p.step for p in plans], [98, 99])
        plans, end = plans_of(self.stream(from_step=3, count=4))
        self.assertEqual([p.step for p in plans], [3, 4, 5, 6])
        self.assertEqual((end.reason, end.next_step), (self.pb.END_REASON_DONE, 7))
        plans, end = plans_of(self.stream(from_step=100))
        self.assertEqual((plans, end.reason), ([], self.pb.END_REASON_DONE))
        self.assertEqual(self.refused(from_step=101).code(), Code.OUT_OF_RANGE)
        self.assertEqual(self.refused(from_step=2**64 - 1).code(), Code.OUT_OF_RANGE)
        plans, _ = plans_of(self.stream(from_step=99, count=2**64 - 1))
        self.assertEqual(len(plans), 1)

    def test_refusals(self):
        self.assertEqual(self.refused(rank=32).code(), Code.INVALID_ARGUMENT)
        self.assertEqual(self.refused(name="none").code(), Code.NOT_FOUND)
        self.assertEqual(self.refused(uid="0" * 32).code(), Code.FAILED_PRECONDITION)

    def test_resume_digest(self):
        before = get_plan(self.planner, "s", 49).digest
        plans, _ = plans_of(self.stream(from_step=50, count=1, resume_digest=before))
        self.assertEqual(plans[0].step, 50)
        wrong = get_plan(self.planner, "s", 48).digest
        self.assertEqual(self.refused(from_step=50, resume_digest=wrong).code(), Code.FAILED_PRECONDITION)
        self.assertEqual(self.refused(from_step=50, resume_digest="xyz").code(), Code.INVALID_ARGUMENT)

    def test_window(self):
        stream = Collected(self.stream(rank=5, window=3, from_step=10))
        got = [stream.next().plan for _ in range(3)]
        self.assertEqual([p.step for p in got], [10, 11, 12])
        self.assertTrue(stream.nothing_for(0.3))
        other = get_plan(self.planner, "s", 10, [6]).ranks[0]
        report(self.planner, [other])
        self.assertTrue(stream.nothing_for(0.2), "another rank's report opens nothing")
        report(self.planner, got[:2])
        self.assertEqual([stream.next().plan.step for _ in range(2)], [13, 14])
        self.assertTrue(stream.nothing_for(0.3))
        stream.call.cancel()

    def test_reports(self):
        create(self.daemon, job("rp", parallel=stubs().job.Parallel(dp=1, cp=2), steps=5))
        plans = [get_plan(self.planner, "rp", step) for step in range(5)]
        self.assertEqual(report(self.planner, [plans[0].ranks[0]]), 0)
        self.assertEqual(report(self.planner, [plans[1].ranks[1]]), 0)
        self.assertEqual(report(self.planner, [plans[0].ranks[1]]), 1)
        self.assertEqual(report(self.planner, [plans[0].ranks[1]]), 1, "repeated")
        self.assertEqual(report(self.planner, [plans[1].ranks[0], plans[2].ranks[0], plans[2].ranks[1]]), 3)
        bad = self.pb.StepReport(step=3, data_rank=1, digest=plans[2].digest)
        error = error_of(self.planner.ReportSteps, self.pb.ReportStepsRequest(job="rp", reports=[bad]))
        self.assertEqual(error.code(), Code.FAILED_PRECONDITION)
        self.assertIn("step 3", error.details())
        self.assertIn("rank 1", error.details())
        for bad, code in ((self.pb.StepReport(step=5, digest=plans[0].digest), Code.OUT_OF_RANGE),
                          (self.pb.StepReport(data_rank=2, digest=plans[0].digest), Code.INVALID_ARGUMENT),
                          (self.pb.StepReport(digest="no"), Code.INVALID_ARGUMENT)):
            request = self.pb.ReportStepsRequest(job="rp", reports=[bad])
            self.assertEqual(error_of(self.planner.ReportSteps, request).code(), code)
        self.assertEqual(report(self.planner, [r for p in plans for r in p.ranks]), 5)

    def test_cancelled_streams_leave_nothing(self):
        calls = [self.stream(rank) for rank in range(32)]
        for call in calls:
            next(call)
            call.cancel()
        blocked = [self.stream(rank, window=1) for rank in range(8)]
        for call in blocked:
            next(call)
            call.cancel()
        until = time.monotonic() + 10
        while time.monotonic() < until:
            log = self.daemon.log()
            if log.count("stream_opened") == log.count("stream_ended"):
                break
            time.sleep(0.05)
        log = self.daemon.log()
        self.assertEqual(log.count("stream_opened"), log.count("stream_ended"))
        self.assertIn('why="client gone"', log)

    def test_deleting_a_job_ends_its_streams(self):
        create(self.daemon, job("del"))
        streams = [Collected(self.stream(rank, name="del", window=2)) for rank in range(4)]
        for stream in streams:
            stream.next()
        self.planner.DeleteJob(self.pb.DeleteJobRequest(name="del"), timeout=30)
        for stream in streams:
            while stream.next() is not None:
                pass
            self.assertEqual(stream.error.code(), Code.NOT_FOUND)
            self.assertIn("deleted", stream.error.details())

    def test_deleting_a_job_with_a_message_in_flight(self):
        big = job("del-2")
        setattr(big.batch, "global", 1000)
        create(self.daemon, big)
        channel = self.daemon.channel(**{"grpc.http2.bdp_probe": 0, "grpc.http2.lookahead_bytes": 1024})
        call = self.daemon.planner(channel).StreamPlans(stream_request("del-2", 0))
        time.sleep(0.5)  # until flow control stops it
        self.planner.DeleteJob(self.pb.DeleteJobRequest(name="del-2"), timeout=30)
        with self.assertRaises(grpc.RpcError) as caught:
            plans = list(call)
            self.fail(f"{len(plans)} plans and a good end")
        self.assertEqual(caught.exception.code(), Code.NOT_FOUND)

    def test_a_client_that_does_not_read_starves_nobody(self):
        idle = [self.planner_alone().StreamPlans(stream_request("s", rank)) for rank in range(8)]
        start = time.monotonic()
        plans, _ = plans_of(self.stream(20))
        self.assertEqual(len(plans), 100)
        self.planner.ListJobs(self.pb.ListJobsRequest(), timeout=5)
        self.assertLess(time.monotonic() - start, 20)
        for call in idle:
            call.cancel()

    def planner_alone(self):
        return self.daemon.planner(self.daemon.channel())


class Heartbeats(unittest.TestCase):
    def kind(self, message):
        return message.WhichOneof("event")

    def test_a_stream_that_waits_hears_that_the_daemon_lives(self):
        with Daemon("--heartbeat", "1") as daemon:
            create(daemon, job("hb"))
            planner = daemon.planner()
            streams = [Collected(planner.StreamPlans(stream_request("hb", rank, window=1))) for rank in range(32)]
            plans = [stream.next().plan for stream in streams]
            for _ in range(2):
                start = time.monotonic()
                self.assertEqual({self.kind(stream.next()) for stream in streams}, {"heartbeat"})
                self.assertGreater(time.monotonic() - start, 0.7)
            report(planner, plans)
            self.assertEqual({stream.next().plan.step for stream in streams}, {1})
            self.assertEqual(self.kind(streams[5].next()), "heartbeat")
            daemon.process.terminate()
            for stream in streams:
                kinds = []
                while (message := stream.next()) is not None:
                    kinds.append(self.kind(message))
                self.assertEqual(kinds[-1], "end")
                self.assertIsNone(stream.error)
            self.assertEqual(daemon.process.wait(20), 0)
            daemon.process = None

    def test_a_stream_that_flows_has_none(self):
        with Daemon("--heartbeat", "1") as daemon:
            create(daemon, job("hb"))
            planner = daemon.planner()
            seen, start = [], time.monotonic()
            for message in planner.StreamPlans(stream_request("hb", 0, window=1)):
                seen.append(self.kind(message))
                if len(seen) % 25 == 0:
                    time.sleep(0.6)
                if message.WhichOneof("event") == "plan":
                    report(planner, [message.plan])
            self.assertGreater(time.monotonic() - start, 2)
            self.assertEqual(seen, ["plan"] * 100 + ["end"])


class Crashes(unittest.TestCase):
    def test_after_kill_9_the_plans_are_the_same(self):
        with Daemon() as daemon:
            made = create(daemon, job("k"), request_id="id-k")
            planner = daemon.planner()
            before = [plans_of(planner.StreamPlans(stream_request("k", rank, count=20)))[0] for rank in (0, 31)]
            self.assertEqual(report(planner, [get_plan(planner, "k", 0).ranks[r] for r in range(32)]), 1)
            half = Collected(planner.StreamPlans(stream_request("k", 7, window=2)))
            half.next()
            daemon.close_channels()
            daemon.kill()

            daemon.start()
            planner = daemon.planner()
            self.assertEqual(planner.GetJob(stubs().planner.GetJobRequest(name="k")), made)
            self.assertEqual(create(daemon, job("k"), request_id="id-k"), made)
            after = [plans_of(planner.StreamPlans(stream_request(
                "k", rank, count=20, uid=made.uid)))[0] for rank in (0, 31)]
            self.assertEqual(after, before)
            resumed, _ = plans_of(planner.StreamPlans(stream_request(
                "k", 0, from_step=20, count=1, uid=made.uid, resume_digest=before[0][-1].digest)))
            self.assertEqual(resumed[0].step, 20)
            self.assertEqual(report(planner, [before[0][1]], uid=made.uid), 1)

    def test_given_out_is_durable_before_a_plan_leaves(self):
        with Daemon() as daemon:
            create(daemon, job("g"))
            planner = daemon.planner()
            stream = planner.StreamPlans(stream_request("g", 0, from_step=70, window=1))
            self.assertEqual(next(stream).plan.step, 70)
            daemon.kill()
            daemon.close_channels()
            state = sqlite3.connect(daemon.state[len("sqlite:"):])
            self.assertEqual(state.execute("SELECT given_out_below FROM jobs").fetchone(), (100,))
            state.close()

    def test_looking_gives_nothing_out(self):
        """A step that was only asked for by GetPlan can be revised, one that was reported cannot."""
        with Daemon() as daemon:
            made = create(daemon, job("l"))
            planner, pb = daemon.planner(), stubs().planner

            def look(step):
                return planner.GetPlan(pb.GetPlanRequest(job="l", step=step, data_ranks=[0]))

            def update(from_step, policy):
                return pb.UpdateJobRequest(job=stubs().job.Job(name="l", policy=policy), from_step=from_step)

            before = [look(step) for step in range(30)]
            self.assertEqual(planner.UpdateJob(update(10, "uniform")).revision, 2)
            after = [look(step) for step in range(30)]
            self.assertEqual([plan.digest for plan in after[:10]], [plan.digest for plan in before[:10]])
            self.assertTrue(all(a.digest != b.digest for a, b in zip(after[10:], before[10:])))
            # Who trained by the old plan hears of it.
            reports = [pb.StepReport(step=20, data_rank=0, digest=before[20].digest, elapsed_ns=1)]
            error = error_of(planner.ReportSteps, pb.ReportStepsRequest(job="l", uid=made.uid, reports=reports))
            self.assertEqual(Details(error).info.reason, "DIGEST_MISMATCH")
            reports[0].digest = after[20].digest
            planner.ReportSteps(pb.ReportStepsRequest(job="l", uid=made.uid, reports=reports))
            error = error_of(planner.UpdateJob, update(20, "skrull"))
            self.assertEqual(error.code(), Code.FAILED_PRECONDITION)
            self.assertEqual(Details(error).info.reason, "STEP_GIVEN_OUT")
            self.assertEqual(Details(error).info.metadata["limit"], "21")
            self.assertEqual(planner.UpdateJob(update(0, "skrull")).info.revisions[-1].first_step, 21)

    def test_a_deleted_job_stays_deleted(self):
        with Daemon() as daemon:
            create(daemon, job("d"))
            daemon.planner().DeleteJob(stubs().planner.DeleteJobRequest(name="d"))
            daemon.close_channels()
            daemon.kill()
            daemon.start()
            self.assertEqual(len(daemon.planner().ListJobs(stubs().planner.ListJobsRequest()).jobs), 0)

    def test_another_index_is_refused(self):
        root = tempfile.mkdtemp(prefix="skrull-data-")
        self.addCleanup(shutil.rmtree, root)
        shutil.copy(os.path.join(harness.LENGTHS, "wikipedia.txt"), os.path.join(root, "x.txt"))
        with Daemon(data_roots=[root]) as daemon:
            made = create(daemon, job("i", data=[stubs().job.Dataset(
                index="x.txt", over_length=stubs().job.OVER_LENGTH_DROP)]))
            planner = daemon.planner()
            stream = Collected(planner.StreamPlans(stream_request("i", 0, window=1)))
            plan = stream.next().plan
            with open(os.path.join(root, "x.txt"), "a", encoding="ascii") as file:
                file.write("17\n")
            error = error_of(planner.GetPlan, stubs().planner.GetPlanRequest(job="i", step=90))
            self.assertEqual(error.code(), Code.FAILED_PRECONDITION)
            self.assertIn("x.txt", error.details())
            self.assertEqual(report(planner, [plan]), 0)
            daemon.close_channels()
            daemon.kill()

            daemon.start()
            planner = daemon.planner()
            self.assertEqual(planner.GetJob(stubs().planner.GetJobRequest(name="i")), made, "still listed")
            error = error_of(planner.StreamPlans, stream_request("i", 0))
            self.assertEqual(error.code(), Code.FAILED_PRECONDITION)
            self.assertIn("x.txt", error.details())
            planner.DeleteJob(stubs().planner.DeleteJobRequest(name="i"))
            self.assertEqual(daemon.stop(), 0)


class Drain(unittest.TestCase):
    def test_streams_end_with_their_end_message(self):
        daemon = Daemon().start()
        create(daemon, job("d"))
        planner = daemon.planner()
        streams = [Collected(planner.StreamPlans(stream_request("d", rank, window=2))) for rank in range(8)]
        watch = Collected(daemon.health().Watch(stubs().health.HealthCheckRequest()))
        self.assertEqual(watch.next().status, stubs().health.HealthCheckResponse.SERVING)
        for stream in streams:
            self.assertEqual([stream.next().plan.step for _ in range(2)], [0, 1])
        start = time.monotonic()
        self.assertEqual(daemon.stop(), 0)
        self.assertLess(time.monotonic() - start, 10)
        for stream in streams:
            end = stream.next().end
            self.assertEqual((end.reason, end.next_step), (stubs().planner.END_REASON_DRAINING, 2))
            self.assertIsNone(stream.next())
            self.assertIsNone(stream.error)
        self.assertEqual(watch.next().status, stubs().health.HealthCheckResponse.NOT_SERVING)
        self.assertFalse(os.path.exists(daemon.address[len("unix:"):]))
        self.assertFalse(os.path.exists(daemon.address[len("unix:"):] + ".lock"))

    def test_what_does_not_end_is_cut(self):
        daemon = Daemon("--drain-timeout", "0").start()
        big = job("d", policy="uniform")
        setattr(big.batch, "global", 4096)
        create(daemon, big)
        # Never read; the window stays closed, so a message stays in flight.
        channel = daemon.channel(**{"grpc.http2.bdp_probe": 0, "grpc.http2.lookahead_bytes": 1024})
        stuck = daemon.planner(channel).StreamPlans(stream_request("d", 0))
        time.sleep(1)
        start = time.monotonic()
        self.assertEqual(daemon.stop(), 1, daemon.log())
        self.assertLess(time.monotonic() - start, 8)
        self.assertIn("drain_timeout", daemon.log())
        del stuck

    def test_idle_connections_do_not_hold_it_up(self):
        # A client of gRPC that calls nothing reads nothing, not even a goodbye; one that is stopped no more so.
        for timeout, is_stopped in (("30", False), ("30", True), ("1", True), ("0", True)):
            with self.subTest(timeout=timeout, is_stopped=is_stopped), Daemon("--drain-timeout", timeout) as daemon:
                client = subprocess.Popen(["/usr/bin/python3", "-c", IDLE_CLIENT, daemon.address],
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                self.addCleanup(client.communicate)
                self.addCleanup(client.kill)
                self.assertEqual(client.stdout.readline(), "idle\n")
                if is_stopped:
                    client.send_signal(signal.SIGSTOP)
                if timeout == "0":
                    time.sleep(0.5)  # for the daemon to be done with the call that was answered
                start = time.monotonic()
                self.assertEqual(daemon.stop(), 0, daemon.log())
                self.assertLess(time.monotonic() - start, 3)
                self.assertIn("draining", daemon.log())
                self.assertNotIn("drain_timeout", daemon.log())

    def test_a_second_signal_stops_at_once(self):
        daemon = Daemon("--drain-timeout", "60").start()
        big = job("d", policy="uniform")
        setattr(big.batch, "global", 4096)
        create(daemon, big)
        # Once the first plan is made, the stream is stuck within the second, also where planning is slow.
        daemon.planner().GetPlan(stubs().planner.GetPlanRequest(job="d", step=0, data_ranks=[0]), timeout=60)
        channel = daemon.channel(**{"grpc.http2.bdp_probe": 0, "grpc.http2.lookahead_bytes": 1024})
        stuck = daemon.planner(channel).StreamPlans(stream_request("d", 0))
        time.sleep(1)
        daemon.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertIsNone(daemon.process.poll())
        self.assertEqual(daemon.stop(timeout=5), 1)
        del stuck


class Health(unittest.TestCase):
    def test_check_and_watch(self):
        pb = stubs().health
        with Daemon() as daemon:
            health = daemon.health()
            for service in ("", "skrull.v1.PlannerService"):
                reply = health.Check(pb.HealthCheckRequest(service=service), timeout=10)
                self.assertEqual(reply.status, pb.HealthCheckResponse.SERVING)
            self.assertEqual(error_of(health.Check, pb.HealthCheckRequest(service="x")).code(), Code.NOT_FOUND)
            unknown = Collected(health.Watch(pb.HealthCheckRequest(service="x")))
            self.assertEqual(unknown.next().status, pb.HealthCheckResponse.SERVICE_UNKNOWN)
            self.assertTrue(unknown.nothing_for(0.2), "stays open")
            unknown.call.cancel()
            daemon.close_channels()
            self.assertEqual(daemon.stop(), 0)


class Addresses(unittest.TestCase):
    def fails(self, daemon, *words):
        with self.assertRaises(AssertionError) as caught:
            daemon.start()
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_one_daemon_a_socket_port_and_state(self):
        with Daemon() as first:
            self.fails(Daemon(listen=first.address), "another daemon")
            second = Daemon()
            second.state = first.state
            self.fails(second, "start_failed")
            self.assertEqual(len(first.planner().ListJobs(stubs().planner.ListJobsRequest()).jobs), 0)
        with Daemon(listen="127.0.0.1:0") as first:
            self.assertRegex(first.address, r"^127\.0\.0\.1:[1-9]\d*$")
            self.fails(Daemon(listen=first.address), "cannot listen")
            create(first, job("tcp"))
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([harness.SKRULLD, "--listen", first.address, "--state", f"sqlite:{folder}/db"],
                                      capture_output=True, text=True, timeout=20, check=False)
            self.assertEqual(done.returncode, 1)
            # Why it failed, once; what never served has nothing to drain.
            self.assertRegex(done.stderr, r"^\S+ \S+ start_failed .*cannot listen[^\n]*\n$")

    def test_folders_are_made_for_the_default_state_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            missing = os.path.join(folder, "not", "there")
            done = subprocess.run([harness.SKRULLD, "--listen", "127.0.0.1:0", "--state", f"sqlite:{missing}/db"],
                                  capture_output=True, text=True, timeout=20, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"the folder {missing} does not exist", done.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_a_socket_that_a_crash_left_is_taken_over(self):
        with Daemon() as daemon:
            daemon.kill()
            path = daemon.address[len("unix:"):]
            self.assertTrue(os.path.exists(path))
            daemon.start()
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            create(daemon, job("a"))
            with open(path + "-file", "w", encoding="ascii"):
                pass
            self.fails(Daemon(listen="unix:" + path + "-file"), "not a socket")
            self.assertTrue(os.path.exists(path + "-file"))

    def test_default_addresses(self):
        folder = tempfile.mkdtemp(prefix="skrull-home-")
        self.addCleanup(shutil.rmtree, folder)
        env = {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}
        env |= {"XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": os.path.join(folder, "state"), "PATH": "/usr/bin"}
        process = subprocess.Popen([harness.SKRULLD], env=env, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        for line in process.stderr:
            if "listening" in line:
                break
        self.assertIn("address=unix:" + os.path.join(folder, "skrull", "skrulld.sock"), line)
        self.assertEqual(os.stat(os.path.join(folder, "skrull")).st_mode & 0o777, 0o700)
        process.terminate()
        process.stderr.close()
        self.assertEqual(process.wait(20), 0)
        self.assertTrue(os.path.exists(os.path.join(folder, "state", "skrull", "skrull.db")))


class Options(unittest.TestCase):
    def run_with(self, *argv):
        return subprocess.run([harness.SKRULLD, *argv], capture_output=True, text=True, timeout=30, check=False)

    def test_wrong_usage_is_2_and_says_what(self):
        for argv, words in ((["--nonsense"], ["--nonsense", "--help"]),
                            (["--listen"], ["--listen", "missing"]),
                            (["--listen", "nowhere"], ["nowhere", "HOST:PORT"]),
                            (["--listen", "0.0.0.0:7443"], ["0.0.0.0:7443", "--insecure"]),
                            (["--http", "127.0.0.1:80"], ["--http", "127.0.0.1:80 is not built yet"]),
                            (["--state", "etcd://h:1/p"], ["--state", "is not built yet"]),
                            (["--tls-cert", "c"], ["--tls-cert: c is not built yet"]),
                            (["--token-file", "t"], ["--token-file: t is not built yet"]),
                            (["--drain-timeout", "x"], ["--drain-timeout", "x"]),
                            (["--log-level", "loud"], ["--log-level", "loud", "debug"])):
            done = self.run_with(*argv)
            self.assertEqual(done.returncode, 2, argv)
            for word in words:
                self.assertIn(word, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_help_and_version(self):
        done = self.run_with("--help")
        self.assertEqual(done.returncode, 0)
        for option in ("--config", "--listen", "--state", "--data-root", "--drain-timeout", "--plan-threads"):
            self.assertIn(option, done.stdout)
        self.assertRegex(self.run_with("--version").stdout, r"^skrulld \d+\.\d+\.\d+\n$")

    def test_config_file_and_reload(self):
        folder = tempfile.mkdtemp(prefix="skrull-config-")
        self.addCleanup(shutil.rmtree, folder)
        config = os.path.join(folder, "skrulld.yaml")
        def write(level):
            with open(config, "w", encoding="utf-8") as file:
                file.write(f"listen: [unix:{folder}/c.sock]\nstate: sqlite:{folder}/db\n"
                           f"log_level: {level}\nlog-format: json\n")
        write("info")
        process = subprocess.Popen([harness.SKRULLD, "--config", config], stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        line = process.stderr.readline()
        self.assertIn('"event":"listening"', line)
        self.assertIn(f'"address":"unix:{folder}/c.sock"', line)
        write("debug")
        process.send_signal(signal.SIGHUP)
        line = process.stderr.readline()
        self.assertIn('"event":"reloaded","log_level":"debug"', line)
        process.terminate()
        process.stderr.close()
        self.assertEqual(process.wait(20), 0)
        with open(config, "a", encoding="utf-8") as file:
            file.write("colour: red\n")
        done = self.run_with("--config", config)
        self.assertEqual(done.returncode, 2)
        self.assertIn("line 5", done.stderr)
        self.assertIn("colour", done.stderr)

    def test_no_beat_of_the_watchdog_where_the_loop_hangs(self):
        """It hangs where it says a line, since nobody reads what it says."""
        folder = tempfile.mkdtemp(prefix="skrull-notify-")
        self.addCleanup(shutil.rmtree, folder)
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(os.path.join(folder, "n"))
        manager.settimeout(20)
        ours, theirs = os.pipe()
        self.addCleanup(os.close, ours)
        argv = ["info" if word == "debug" else word for word in Daemon(folder=folder).argv()]  # no line but those below
        process = subprocess.Popen(argv, stderr=theirs, env=dict(os.environ, NOTIFY_SOCKET=os.path.join(folder, "n"),
                                                                 WATCHDOG_USEC="200000"))
        self.addCleanup(process.kill)
        os.close(theirs)
        while not manager.recv(100).startswith(b"READY=1"):
            pass
        while manager.recv(100) != b"WATCHDOG=1":
            pass
        # A descriptor of its own, or theirs would not wait either.
        filler = os.open(f"/proc/self/fd/{ours}", os.O_WRONLY | os.O_NONBLOCK)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(filler, b"." * 4096)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(filler, b".")
        process.send_signal(signal.SIGHUP)
        while not manager.recv(100).startswith(b"RELOADING=1"):
            pass
        manager.settimeout(1)  # ten beats
        with self.assertRaises(socket.timeout):
            manager.recv(100)
        manager.settimeout(20)
        os.read(ours, 1 << 20)
        self.assertEqual(manager.recv(100), b"READY=1")
        self.assertEqual(manager.recv(100), b"WATCHDOG=1")
        os.close(filler)
        process.terminate()
        self.assertEqual(process.wait(20), 0)

    def test_notify(self):
        folder = tempfile.mkdtemp(prefix="skrull-notify-")
        self.addCleanup(shutil.rmtree, folder)
        for name in (os.path.join(folder, "n"), "@skrull-test-" + str(os.getpid())):
            manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.addCleanup(manager.close)
            manager.bind("\0" + name[1:] if name[0] == "@" else name)
            manager.settimeout(20)
            beats = 0

            def news():
                """The next state but the watchdog's, which comes whenever its time is up."""
                nonlocal beats
                while True:
                    state = manager.recv(100)
                    if state != b"WATCHDOG=1":
                        return state
                    beats += 1

            with Daemon(env={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "200000"}) as daemon:
                self.assertEqual(news(), b"READY=1\nSTATUS=serving")
                while beats < 2:
                    self.assertEqual(manager.recv(100), b"WATCHDOG=1")
                    beats += 1
                daemon.process.send_signal(signal.SIGHUP)
                reloading = news()
                self.assertRegex(reloading, rb"^RELOADING=1\nMONOTONIC_USEC=\d+$")
                self.assertLess(abs(int(reloading.split(b"=")[-1]) - time.monotonic() * 1e6), 20e6)
                self.assertEqual(news(), b"READY=1")
                daemon.process.terminate()
                self.assertEqual(news(), b"STOPPING=1")
                daemon.stop()


if __name__ == "__main__":
    unittest.main()
