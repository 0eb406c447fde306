#!/usr/bin/python3
"""What gRPC and its neighbours are known to do to a daemon, each avoided and each with a test.

Elsewhere: two daemons on one socket, port or state (test_daemon, Addresses); errors that outgrow the
trailers (test_errors; unit: rpc/test_status, proto/test_codec_status); messages that take more memory
than they have bytes (test_hostile).
"""
import concurrent.futures
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import grpc

import harness
from harness import Daemon, bounded_mib, create, error_of, job, resident_mib, stream_request, stubs

Code = grpc.StatusCode
NEVER_READ = {"grpc.http2.bdp_probe": 0, "grpc.http2.lookahead_bytes": 1024}


def wait_for(condition, seconds, what):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")


def list_jobs(daemon, timeout=5):
    return daemon.planner().ListJobs(stubs().planner.ListJobsRequest(), timeout=timeout).jobs


def large_job(name, sequences, **changes):
    """One whose messages are large: all sequences of a batch on few ranks."""
    made = job(name, parallel=stubs().job.Parallel(dp=1, cp=2), **changes)
    setattr(made.batch, "global", sequences)
    return made


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon().start()
        cls.planner = cls.daemon.planner()
        cls.pb = stubs().planner
        create(cls.daemon, job("c"))

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close_channels()
        assert cls.daemon.stop() == 0, cls.daemon.log()

    def test_an_unknown_method_is_answered(self):
        channel = self.daemon.channel()
        for path in ("/skrull.v1.PlannerService/None", "/none.Service/GetJob", "/x", "/skrull.v1.PlannerService/"):
            start = time.monotonic()
            self.assertEqual(error_of(channel.unary_unary(path), b"").code(), Code.UNIMPLEMENTED, path)
            self.assertEqual(error_of(channel.stream_stream(path), iter([b""] * 3)).code(), Code.UNIMPLEMENTED, path)
            self.assertLess(time.monotonic() - start, 5)

    def test_an_unbuilt_method_is_answered(self):
        for call, request in ((self.planner.ComparePolicies, self.pb.ComparePoliciesRequest()),
                              (self.planner.WatchJob, self.pb.WatchJobRequest())):
            self.assertEqual(error_of(call, request).code(), Code.UNIMPLEMENTED)

    def test_more_calls_at_once_than_requests_are_armed(self):
        for calls in ([self.planner.GetJob.future(self.pb.GetJobRequest(name="c"), timeout=30) for _ in range(500)],
                      [self.daemon.channel().unary_unary("/no.Such/Method").future(b"", timeout=30)
                       for _ in range(100)]):
            codes = {call.code() for call in calls}
            self.assertEqual(len(codes), 1, codes)
            self.assertIn(codes.pop(), (Code.OK, Code.UNIMPLEMENTED))

    def test_a_stream_of_requests_to_a_unary_method(self):
        call = self.daemon.channel().stream_stream("/skrull.v1.PlannerService/GetJob")
        request = self.pb.GetJobRequest(name="c").SerializeToString()
        replies = list(call(iter([request] * 100), timeout=30))
        self.assertEqual(len(replies), 1)

    def test_a_call_without_a_request(self):
        channel = self.daemon.channel()
        for method in ("GetJob", "StreamPlans", "CreateJob"):
            call = channel.stream_unary("/skrull.v1.PlannerService/" + method)
            self.assertEqual(error_of(call, iter([])).code(), Code.INVALID_ARGUMENT)

    def test_1000_streams_on_one_connection(self):
        channel = self.daemon.channel()
        planner = self.daemon.planner(channel)
        streams = [planner.StreamPlans(stream_request("c", i % 32, window=1)) for i in range(1000)]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            plans = list(pool.map(next, streams))
        self.assertEqual({p.plan.step for p in plans}, {0})
        self.assertEqual(len({p.plan.digest for p in plans}), 1)
        for stream in streams:
            stream.cancel()

    def test_a_storm_of_cancelled_streams(self):
        before = resident_mib(self.daemon.process)
        planner = self.daemon.planner(self.daemon.channel())
        for _ in range(20):
            calls = [planner.StreamPlans(stream_request("c", rank % 32)) for rank in range(200)]
            for call in calls:
                call.cancel()
        self.assertIn("c", [j.name for j in list_jobs(self.daemon)])
        def all_ended():
            log = self.daemon.log()
            return log.count("stream_opened") == log.count("stream_ended")
        wait_for(all_ended, 20, "streams end")
        self.assertLess(resident_mib(self.daemon.process) - before, bounded_mib(64))

    def test_a_message_larger_than_the_window(self):
        create(self.daemon, large_job("large", 10000, steps=3))
        planner = self.daemon.planner(self.daemon.channel(**NEVER_READ))
        messages = list(planner.StreamPlans(stream_request("large", 0), timeout=60))
        self.assertEqual([m.plan.step for m in messages[:-1]], [0, 1, 2])
        self.assertGreater(messages[0].ByteSize(), 128 << 10)
        whole = self.daemon.planner().GetPlan(self.pb.GetPlanRequest(job="large", step=2, data_ranks=[0]))
        self.assertEqual(messages[2].plan, whole.ranks[0])

    def test_the_environment_does_not_lead_clients_astray(self):
        with Daemon(listen="127.0.0.1:0") as daemon:
            nowhere = "http://127.0.0.1:9"
            env = dict(os.environ, http_proxy=nowhere, https_proxy=nowhere, grpc_proxy=nowhere, HTTP_PROXY=nowhere,
                       no_proxy="", GRPC_DNS_RESOLVER="native", GRPC_DEFAULT_SSL_ROOTS_FILE_PATH="/dev/null",
                       GRPC_ABORT_ON_LEAKS="0", GRPC_ENABLE_FORK_SUPPORT="1", SKRULL_SERVER=daemon.address)
            for argv in ([harness.SKRULLCTL, "health"], [harness.SKRULLCTL, "job", "list"]):
                done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=30, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), argv)


class NeverRead(unittest.TestCase):
    def test_memory_stays_bounded_and_the_others_go_on(self):
        with Daemon() as daemon:
            create(daemon, large_job("n", 2000, steps=2000, policy="uniform"))
            planner = daemon.planner()
            next(planner.StreamPlans(stream_request("n", 1, count=1)))
            before = resident_mib(daemon.process)
            stuck = [daemon.planner(daemon.channel(**NEVER_READ)).StreamPlans(stream_request("n", i % 2))
                     for i in range(100)]
            steps = [m.plan.step for m in planner.StreamPlans(stream_request("n", 0, count=300), timeout=60)]
            self.assertEqual(steps[:300], list(range(300)))
            # What is kept of plans is bounded, and so is a message in flight a stream.
            self.assertLess(resident_mib(daemon.process) - before, bounded_mib(200))
            for call in stuck:
                call.cancel()
            daemon.close_channels()
            self.assertEqual(daemon.stop(), 0)

    def test_a_drain_is_not_held_up(self):
        with Daemon() as daemon:
            create(daemon, large_job("n", 10000, policy="uniform"))
            stuck = daemon.planner(daemon.channel(**NEVER_READ)).StreamPlans(stream_request("n", 0))
            other = daemon.planner().StreamPlans(stream_request("n", 1, window=1))
            next(other)
            time.sleep(0.5)  # until flow control holds the first one's message
            start = time.monotonic()
            self.assertEqual(daemon.stop(), 0, daemon.log())
            self.assertLess(time.monotonic() - start, 8)
            self.assertIn("stream_cut", daemon.log())
            self.assertEqual(next(other).end.reason, stubs().planner.END_REASON_DRAINING)
            with self.assertRaises(grpc.RpcError) as caught:
                list(stuck)
            self.assertEqual(caught.exception.code(), Code.UNAVAILABLE)


class ManyJobs(unittest.TestCase):
    def test_the_plans_that_are_kept_take_a_bounded_memory(self):
        with Daemon() as daemon:
            planner = daemon.planner()
            jobs, steps = [f"m-{i}" for i in range(10)], 15 if harness.IS_SANITIZED else 60
            for name in jobs:
                create(daemon, large_job(name, 8000, steps=steps, policy="uniform"), planner=planner)
            before = resident_mib(daemon.process)
            for name in jobs:
                plans = sum(1 for m in planner.StreamPlans(stream_request(name, 0), timeout=120)
                            if m.WhichOneof("event") == "plan")
                self.assertEqual(plans, steps)
            # Each job alone keeps up to 64 MiB, all together 256 MiB.
            self.assertLess(resident_mib(daemon.process) - before, bounded_mib(450))
            daemon.close_channels()
            self.assertEqual(daemon.stop(), 0)


STOPPED_CLIENT = """
import sys
sys.path.insert(0, sys.argv[1])
import harness
daemon = harness.Daemon(listen=sys.argv[2])
streams = [daemon.planner(daemon.channel()).StreamPlans(harness.stream_request("s", r, window=1)) for r in range(4)]
for stream in streams:
    next(stream)
print("ready", flush=True)
for stream in streams:
    next(stream)
"""


class Slow(unittest.TestCase):
    """What is about waiting: all of it waits at once, on one daemon."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(listen="127.0.0.1:0").start()
        create(cls.daemon, job("s"))
        host, _, port = cls.daemon.address.rpartition(":")
        cls.place = (host, int(port))
        cls.pool = concurrent.futures.ThreadPoolExecutor(16)
        cls.found = {name: cls.pool.submit(getattr(cls, name)) for name in (
            "stopped_peer", "pinging_client", "dribbled_handshake", "silent", "half_preface", "http_1", "tls_hello",
            "random_bytes", "zeros")}

    @classmethod
    def tearDownClass(cls):
        cls.pool.shutdown()
        cls.daemon.close_channels()
        assert cls.daemon.stop() == 0, cls.daemon.log()

    @classmethod
    def stopped_peer(cls):
        """Seconds until the streams of a stopped process ended."""
        script = subprocess.Popen([sys.executable, "-c", STOPPED_CLIENT, os.path.dirname(harness.__file__),
                                   cls.daemon.address], stdout=subprocess.PIPE)
        try:
            assert script.stdout.readline() == b"ready\n"
            ended = cls.daemon.log().count("stream_ended")
            script.send_signal(signal.SIGSTOP)
            start = time.monotonic()
            wait_for(lambda: cls.daemon.log().count("stream_ended") >= ended + 4, 30, "streams of a stopped peer end")
            return time.monotonic() - start
        finally:
            script.kill()
            script.wait()
            script.stdout.close()

    @classmethod
    def pinging_client(cls):
        """A client that pings every 6 s for some time, without a call; then its call, by the same connection."""
        channel = cls.daemon.channel(**{
            "grpc.keepalive_time_ms": 6000, "grpc.keepalive_timeout_ms": 2000,
            "grpc.keepalive_permit_without_calls": 1, "grpc.http2.max_pings_without_data": 0})
        stream = cls.daemon.planner(channel).StreamPlans(stream_request("s", 31, window=1))
        next(stream)
        time.sleep(26)
        alive = stream.is_active()
        stream.cancel()
        return alive

    @classmethod
    def until_closed(cls, first, dribble=b""):
        """Seconds until the daemon closed a connection that said `first`, then a byte of `dribble` a second."""
        with socket.create_connection(cls.place) as peer:
            start = time.monotonic()
            peer.sendall(first)
            peer.settimeout(1)
            while time.monotonic() - start < 25:
                try:
                    if peer.recv(4096) == b"":
                        return time.monotonic() - start
                except socket.timeout:
                    pass
                except OSError:
                    return time.monotonic() - start
                try:
                    peer.sendall(dribble[:1])
                    dribble = dribble[1:]
                except OSError:
                    return time.monotonic() - start
        return 1000

    PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

    @classmethod
    def dribbled_handshake(cls):
        return cls.until_closed(b"", cls.PREFACE + b"\0" * 100)

    @classmethod
    def silent(cls):
        return cls.until_closed(b"")

    @classmethod
    def half_preface(cls):
        return cls.until_closed(cls.PREFACE[:12])

    @classmethod
    def http_1(cls):
        return cls.until_closed(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")

    @classmethod
    def tls_hello(cls):
        return cls.until_closed(bytes.fromhex("1603010200010001fc0303") + bytes(range(256)) * 2)

    @classmethod
    def random_bytes(cls):
        return max(cls.until_closed(os.urandom(1000)) for _ in range(3))

    @classmethod
    def zeros(cls):
        return cls.until_closed(cls.PREFACE + b"\0" * 10000)

    def test_a_stopped_peer_is_noticed_within_15_s(self):
        self.assertLess(self.found["stopped_peer"].result(), 15)

    def test_pings_of_clients_are_not_too_many(self):
        self.assertTrue(self.found["pinging_client"].result())

    def test_a_slow_handshake_is_dropped(self):
        for name in ("dribbled_handshake", "silent", "half_preface"):
            self.assertLess(self.found[name].result(), 13, name)

    def test_garbage_on_the_port_is_dropped(self):
        for name in ("http_1", "tls_hello", "random_bytes", "zeros"):
            self.assertLess(self.found[name].result(), 13, name)

    def test_others_are_served_meanwhile(self):
        for _ in range(20):
            start = time.monotonic()
            self.assertEqual(list_jobs(self.daemon)[0].name, "s")
            self.assertLess(time.monotonic() - start, 2)
            time.sleep(0.1)


class Descriptors(unittest.TestCase):
    def test_used_up_and_freed(self):
        limit = 64
        with Daemon(listen="127.0.0.1:0", preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
                    ) as daemon:
            made = create(daemon, job("f"))
            stream = daemon.planner().StreamPlans(stream_request("f", 3, window=2))
            first = [next(stream).plan for _ in range(2)]
            pid, address = daemon.process.pid, daemon.address
            host, _, port = address.rpartition(":")
            peers = [socket.create_connection((host, int(port)), timeout=5) for _ in range(limit + 16)]
            wait_for(lambda: "descriptors_used_up" in daemon.log(), 15, "it says so")
            # A stream that is open goes on.
            reports = [stubs().planner.StepReport(step=p.step, data_rank=3, digest=p.digest) for p in first]
            for peer in peers:
                peer.close()
            start = time.monotonic()
            def served():
                try:
                    return list_jobs(daemon, timeout=1)
                except grpc.RpcError:
                    daemon.close_channels()
                    time.sleep(0.2)
                    return False
            wait_for(served, 40, "a new client is served again")
            self.assertLess(time.monotonic() - start, 40)
            self.assertEqual(daemon.process.pid, pid)
            self.assertIsNone(daemon.process.poll())
            self.assertIn("restarting", daemon.log())
            planner = daemon.planner()
            self.assertEqual(planner.GetJob(stubs().planner.GetJobRequest(name="f")), made)
            planner.ReportSteps(stubs().planner.ReportStepsRequest(job="f", reports=reports), timeout=10)
            resumed = next(planner.StreamPlans(stream_request(
                "f", 3, from_step=2, uid=made.uid, resume_digest=first[1].digest)))
            self.assertEqual(resumed.plan.step, 2)
            daemon.close_channels()
            self.assertEqual(daemon.stop(), 0)


class MidCall(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="skrull-data-")
        with open(os.path.join(cls.root, "long.txt"), "wb") as file:
            file.write(b"117\n" * 20_000_000)
        cls.daemon = Daemon(data_roots=[cls.root]).start()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close_channels()
        assert cls.daemon.stop() == 0, cls.daemon.log()
        shutil.rmtree(cls.root)

    def request(self, name):
        return stubs().planner.CreateJobRequest(
            job=job(name, data=[stubs().job.Dataset(index="long.txt")]), request_id="id-" + name)

    def created_once(self, name):
        again = self.daemon.planner().CreateJob(self.request(name), timeout=60)
        self.assertEqual([j.uid for j in list_jobs(self.daemon) if j.name == name], [again.uid])
        self.assertEqual(self.daemon.log().count(f"job_created job={name} "), 1)

    def test_a_client_that_goes_while_its_job_is_created(self):
        call = self.daemon.planner().CreateJob.future(self.request("gone"), timeout=60)
        time.sleep(0.02)
        call.cancel()
        self.created_once("gone")

    def test_a_deadline_that_passes_while_a_job_is_created(self):
        start = time.monotonic()
        with self.assertRaises(grpc.RpcError) as caught:
            self.daemon.planner().CreateJob(self.request("late"), timeout=0.03)
        self.assertEqual(caught.exception.code(), Code.DEADLINE_EXCEEDED)
        self.assertLess(time.monotonic() - start, 2)
        self.created_once("late")

    def test_a_connection_that_breaks_while_a_job_is_created(self):
        channel = self.daemon.channel()
        call = self.daemon.planner(channel).CreateJob.future(self.request("broken"), timeout=60)
        time.sleep(0.02)
        channel.close()
        self.assertIsNotNone(call.exception())
        self.created_once("broken")

    def test_the_manager_hears_that_jobs_are_being_restored(self):
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        name = "skrull-test-restore-" + str(os.getpid())
        manager.bind("\0" + name)
        manager.settimeout(30)
        with Daemon(data_roots=[self.root], env={"NOTIFY_SOCKET": "@" + name}) as daemon:
            for i in range(8):
                daemon.planner().CreateJob(self.request(f"m-{i}"), timeout=60)
            daemon.close_channels()
            self.assertEqual(daemon.stop(), 0)
            states = [manager.recv(200) for _ in range(2)]  # of the first life
            self.assertEqual(states, [b"READY=1\nSTATUS=serving", b"STOPPING=1"])
            daemon.start()
            states = [manager.recv(200)]
            while not states[-1].startswith(b"READY=1"):
                states.append(manager.recv(200))
            self.assertGreater(len(states), 1)
            for state in states[:-1]:
                self.assertRegex(state, rb"^EXTEND_TIMEOUT_USEC=\d+\nSTATUS=restoring jobs$")

    def test_a_stop_while_jobs_are_restored(self):
        daemon = Daemon(data_roots=[self.root]).start()
        for i in range(3):
            daemon.planner().CreateJob(self.request(f"r-{i}"), timeout=60)
        daemon.close_channels()
        self.assertEqual(daemon.stop(), 0)
        offset = len(daemon.log())
        daemon.start(wait=False)
        wait_for(lambda: "restoring" in daemon.log(offset), 10, "it began")
        self.assertNotIn("job_restored", daemon.log())
        start = time.monotonic()
        self.assertEqual(daemon.stop(), 0)
        self.assertLess(time.monotonic() - start, 1)
        self.assertFalse(os.path.exists(daemon.address[len("unix:"):]))
        daemon.start()
        self.assertEqual(len(list_jobs(daemon)), 3)
        daemon.close_channels()
        self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main()
