#!/usr/bin/python3
"""Requests made to hurt: too long, too many, too deep, of the wrong kind, small on the wire and large in memory.

Every method that is built is tried with each, found by walking the schema, so that a new field is tried too.
"""
import concurrent.futures
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

import grpc

import harness
from harness import Daemon, Details, bounded_mib, create, error_of, job, resident_mib, stream_request, stubs

Code = grpc.StatusCode
REFUSED = (Code.INVALID_ARGUMENT, Code.RESOURCE_EXHAUSTED)
MAX_REQUEST = 1 << 20
LARGE_REQUESTS = {"PlanBatch": 8 << 20}  # bytes, where it is more
CHUNK = 16384  # bytes of a request that is sent by hand
FLOOD_S = 6
SERVICE = "/skrull.v1.PlannerService/"


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def tag(number, wire):
    return varint(number << 3 | wire)


def block(number, content):
    return tag(number, 2) + varint(len(content)) + content


def is_list(field):
    return field.label == field.LABEL_REPEATED


def fields_of(descriptor, path=()):
    """Every field below a message, with the fields that lead to it."""
    for field in descriptor.fields:
        yield path + (field,)
        if field.message_type:
            yield from fields_of(field.message_type, path + (field,))


def wrap(path, content):
    """`content` as the encoded last field of `path`, inside the messages before it."""
    for field in reversed(path[:-1]):
        content = block(field.number, content)
    return content


def dotted(path):
    return ".".join(field.name for field in path)


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon().start()
        cls.planner = cls.daemon.planner()
        create(cls.daemon, job("h"), planner=cls.planner)
        cls.channel = cls.daemon.channel(**{"grpc.max_send_message_length": -1})
        service = stubs().planner.DESCRIPTOR.services_by_name["PlannerService"]
        cls.methods = {m.name: m.input_type for m in service.methods
                       if cls.call(m.name, b"").code() is not Code.UNIMPLEMENTED}
        assert len(cls.methods) >= 9, cls.methods

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close_channels()
        assert cls.daemon.stop() == 0, cls.daemon.log()

    @classmethod
    def call(cls, method, body, timeout=30):
        if method == "StreamPlans" or method == "WatchJob":
            call = cls.channel.unary_stream(SERVICE + method)(body, timeout=timeout)
            try:
                for _ in call:
                    call.cancel()
                return call
            except grpc.RpcError as error:
                return error
        _, call = None, cls.channel.unary_unary(SERVICE + method).future(body, timeout=timeout)
        call.exception()
        return call

    def refused(self, method, body, what):
        error = self.call(method, body)
        self.assertIn(error.code(), REFUSED, (method, what, error.details()))
        return error

    def alive(self):
        self.assertEqual(self.planner.GetJob(stubs().planner.GetJobRequest(name="h"), timeout=10).name, "h")

    def test_every_string_has_a_limit(self):
        tried = 0
        for method, message in self.methods.items():
            for path in fields_of(message):
                field = path[-1]
                if field.type != field.TYPE_STRING or dotted(path).startswith("job.info."):
                    continue
                tried += 1
                if dotted(path) == "job.uid":
                    continue  # output only: ignored on input
                error = self.refused(method, wrap(path, block(field.number, b"a" * 100_000)), dotted(path))
                self.assertLess(len(error.details()), 512)
        self.assertGreater(tried, 30)
        self.alive()

    def test_every_string_is_utf8_without_nul(self):
        for method, message in self.methods.items():
            for path in fields_of(message):
                field = path[-1]
                if field.type != field.TYPE_STRING:
                    continue
                for text in (b"a\0b", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"):
                    error = self.refused(method, wrap(path, block(field.number, text)), dotted(path))
                    self.assertEqual(error.code(), Code.INVALID_ARGUMENT)
                    self.assertEqual(Details(error).field, dotted(path))

    def test_every_list_has_a_limit(self):
        tried = 0
        for method, message in self.methods.items():
            limit = LARGE_REQUESTS.get(method, MAX_REQUEST)
            for path in fields_of(message):
                field = path[-1]
                if not is_list(field) or dotted(path).startswith("job.info."):
                    continue
                tried += 1
                entry = block(field.number, b"") if field.message_type or field.type == field.TYPE_STRING else \
                    tag(field.number, 0) + b"\x01"
                self.refused(method, wrap(path, entry * (limit // len(entry) - 16)), dotted(path))
        self.assertGreater(tried, 5)
        self.alive()

    def test_every_field_refuses_other_wire_types(self):
        values = {0: b"\x01", 1: b"\0" * 8, 2: b"\x01a", 5: b"\0" * 4}
        for method, message in self.methods.items():
            for path in fields_of(message):
                field = path[-1]
                own = 2 if field.message_type or field.type == field.TYPE_STRING else \
                    1 if field.type == field.TYPE_DOUBLE else 0
                for wire, value in values.items():
                    if wire == own or (wire == 2 and is_list(field)):
                        continue
                    error = self.refused(method, wrap(path, tag(field.number, wire) + value), (dotted(path), wire))
                    self.assertEqual(error.code(), Code.INVALID_ARGUMENT)

    def test_numbers_that_do_not_fit(self):
        for method, message in self.methods.items():
            for path in fields_of(message):
                field = path[-1]
                if field.type == field.TYPE_UINT32:
                    for value in (1 << 32, (1 << 64) - 1):
                        self.refused(method, wrap(path, tag(field.number, 0) + varint(value)), dotted(path))
                if field.type in (field.TYPE_UINT32, field.TYPE_UINT64, field.TYPE_INT64):
                    self.refused(method, wrap(path, tag(field.number, 0) + b"\xff" * 11 + b"\x01"), dotted(path))

    def test_nesting(self):
        deep = b""
        for _ in range(3000):
            deep = block(1, deep)
        for method, message in self.methods.items():
            self.assertEqual(self.refused(method, deep, "ones").code(), Code.INVALID_ARGUMENT)
            # Groups, which nobody sends any more; and messages in a field that nobody knows.
            self.refused(method, tag(15, 3) * 10000, "groups")
            unknown = block(1000, deep)
            self.assertNotIn(self.call(method, unknown).code(), (Code.INTERNAL, Code.UNAVAILABLE))
        self.alive()

    def test_requests_that_are_too_large(self):
        for method in self.methods:
            limit = LARGE_REQUESTS.get(method, MAX_REQUEST)
            error = self.call(method, b"\0" * (limit + 1))
            self.assertEqual(error.code(), Code.RESOURCE_EXHAUSTED, method)
        self.alive()

    def test_small_on_the_wire_and_large_in_memory(self):
        """protobuf-c takes up to a hundred bytes for one of these; the decoding of a call has a budget."""
        bodies = []
        for method, message in self.methods.items():
            bodies.append((method, (tag(1000, 0) + b"\0") * (MAX_REQUEST // 3 - 8)))  # unknown fields
            bodies.append((method, b"".join(block(1000 + i % 7, b"") for i in range(MAX_REQUEST // 3 - 8))))
            for path in fields_of(message):
                field = path[-1]
                if is_list(field):  # empty messages, empty strings, numbers one by one
                    entry = block(field.number, b"") if field.message_type or field.type == field.TYPE_STRING else \
                        tag(field.number, 0) + b"\0"
                    bodies.append((method, wrap(path, entry * (MAX_REQUEST // len(entry) - 16))))
                elif field.message_type:  # the same message again and again: they are merged
                    bodies.append((method, wrap(path, block(field.number, b"") * (MAX_REQUEST // 2 - 16))))
        before = resident_mib(self.daemon.process)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            codes = list(pool.map(lambda body: self.call(*body).code(), bodies))
        self.assertGreater(len(codes), 40)
        self.assertGreater(codes.count(Code.RESOURCE_EXHAUSTED), 20)
        self.assertFalse(set(codes) & {Code.INTERNAL, Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.UNKNOWN}, codes)
        self.assertLess(resident_mib(self.daemon.process) - before, bounded_mib(128))
        self.alive()

    def test_bytes_at_random(self):
        seed = int(os.environ.get("SKRULL_SEED", time.time_ns() % 2**32))
        print(f"# SKRULL_SEED={seed}")
        rng = random.Random(seed)
        good = {
            "GetJob": stubs().planner.GetJobRequest(name="h"),
            "ListJobs": stubs().planner.ListJobsRequest(page_size=2),
            "GetPlan": stubs().planner.GetPlanRequest(job="h", step=3, data_ranks=[1, 2]),
            "StreamPlans": stream_request("h", 1, from_step=1, count=1),
            "ReportSteps": stubs().planner.ReportStepsRequest(job="h", reports=[stubs().planner.StepReport(
                step=1, data_rank=2, digest="0" * 32)]),
            "DescribeIndex": stubs().planner.DescribeIndexRequest(path="chatqa2.txt"),
            "CreateJob": stubs().planner.CreateJobRequest(job=job("h"), request_id="x"),
        }
        for _ in range(600):
            method = rng.choice(list(good))
            body = bytearray(good[method].SerializeToString())
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(body))
                body[at:at + rng.randint(0, 2)] = rng.randbytes(rng.randint(0, 3))
                body = body or bytearray(b"\0")
            code = self.call(method, bytes(body)).code()
            self.assertNotIn(code, (Code.INTERNAL, Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.DATA_LOSS),
                             (seed, method, bytes(body)))
        self.alive()

    def test_headers_that_are_too_large(self):
        for metadata in ([("x-large", "a" * 100_000)], [(f"x-{i}", "a" * 100) for i in range(2000)]):
            call = self.channel.unary_unary(SERVICE + "GetJob").future(b"\x0a\x01h", timeout=10, metadata=metadata)
            call.exception()
            self.assertIn(call.code(), (Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE))
            self.alive()

    def test_pages_of_jobs(self):
        made = concurrent.futures.ThreadPoolExecutor(16)
        list(made.map(lambda i: create(self.daemon, job(f"many-{i:04}"), planner=self.planner), range(1200)))
        listed = self.planner.ListJobs
        for size in (0, 1000, 1_000_000, 2**64 - 1):
            page = listed(stubs().planner.ListJobsRequest(page_size=size), timeout=10)
            self.assertEqual(len(page.jobs), 1000 if size else 100)
        for token in ("zzz", "many-0000-gone", "a" * 63):
            listed(stubs().planner.ListJobsRequest(page_token=token), timeout=10)
        for token in ("a" * 64, "A", "../x", "\n"):
            error = error_of(listed, stubs().planner.ListJobsRequest(page_token=token))
            self.assertEqual(Details(error).field, "page_token")
        for name in (f"many-{i:04}" for i in range(1200)):
            self.planner.DeleteJob(stubs().planner.DeleteJobRequest(name=name), timeout=10)


class HalfRequests(threading.Thread):
    """Speaks HTTP/2 by hand: opens calls on one connection and sends all of a large request each but its end."""

    def __init__(self, address, method, size, n_calls=1, is_rude=False):
        super().__init__(daemon=True)
        host, _, port = address.rpartition(":")
        self.peer = socket.create_connection((host, int(port)))
        self.peer.settimeout(0.5)
        self.method, self.size = method.encode(), size
        self.left = {2 * i + 1: size - CHUNK for i in range(n_calls)}  # bytes, by stream
        self.windows = {0: 65535}
        self.first_window = None  # of a stream, as the daemon's settings say
        self.n_sent = 0
        self.is_rude = is_rude  # stays though it is told to go
        self.was_cut = False
        self.is_over = threading.Event()
        self.start()

    @staticmethod
    def frame(kind, flags, stream, payload):
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    def run(self):
        try:
            self.talk()
        except OSError:
            self.was_cut = True  # the daemon hung up
        self.peer.close()

    def open(self):
        headers = b"\x83\x86"  # POST, http
        for key, value in ((b":path", b"/skrull.v1.PlannerService/" + self.method), (b":authority", b"x"),
                           (b"content-type", b"application/grpc"), (b"te", b"trailers")):
            headers += b"\0" + bytes([len(key)]) + key + bytes([len(value)]) + value
        for stream in self.left:
            self.peer.sendall(self.frame(1, 4, stream, headers))
            self.windows[stream] = self.first_window
            self.data(stream, b"\0" + struct.pack(">I", self.size))

    def data(self, stream, payload):
        self.peer.sendall(self.frame(0, 0, stream, payload))
        self.windows[0] -= len(payload)
        self.windows[stream] -= len(payload)
        self.n_sent += len(payload)

    def send(self):
        """What the windows let through."""
        for stream in list(self.left):
            while self.left.get(stream, 0) >= CHUNK <= min(self.windows[0], self.windows.get(stream, 0)):
                self.data(stream, b"\x12" * CHUNK)
                self.left[stream] -= CHUNK

    def talk(self):
        self.peer.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(4, 0, 0, b""))
        received = b""
        while not self.is_over.is_set() and self.left:
            if self.first_window and 1 not in self.windows:
                self.open()
            self.send()
            try:
                received += self.peer.recv(65536) or self.hung_up()
            except socket.timeout:
                continue
            while len(received) >= 9 and len(received) >= 9 + int.from_bytes(received[:3], "big"):
                end = 9 + int.from_bytes(received[:3], "big")
                self.take(received[3], received[4], int.from_bytes(received[5:9], "big"), received[9:end])
                received = received[end:]

    def take(self, kind, flags, stream, payload):
        if kind == 4 and not flags & 1:
            settings = dict(struct.iter_unpack(">HI", payload))
            self.first_window = self.first_window or settings.get(4, 65535)  # SETTINGS_INITIAL_WINDOW_SIZE
        if kind == 8:  # WINDOW_UPDATE
            self.windows[stream] = self.windows.get(stream, 0) + int.from_bytes(payload, "big")
        elif kind in (4, 6) and not flags & 1:  # SETTINGS, PING: acknowledge
            self.peer.sendall(self.frame(kind, 1, 0, payload if kind == 6 else b""))
        elif kind == 3:  # RST_STREAM
            self.left.pop(stream, None)
        elif kind == 7 and not self.is_rude:  # GOAWAY
            self.hung_up()

    @staticmethod
    def hung_up():
        raise OSError


class Flood(unittest.TestCase):
    """Requests that never end, and an honest client among them. The daemon holds 32 at a time, and memory of 32 more that it
    refused, until others need it."""

    def flood(self, limit, *peers):
        before = resident_mib(self.daemon.process)
        peers = [HalfRequests(self.daemon.address, *peer) for peer in peers]
        planner = self.daemon.planner(self.daemon.channel())
        worker = subprocess.Popen([harness.WORKER, "--server", self.daemon.address, "--job", "h", "--data-rank", "1",
                                   "--pause-ms", "20"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(worker.kill)
        worst = n_failed = 0
        until = time.monotonic() + FLOOD_S
        while time.monotonic() < until:
            request = stubs().planner.GetPlanRequest(job="h", step=3, data_ranks=[1])
            for attempt in range(5):
                try:
                    self.assertEqual(planner.GetPlan(request, timeout=20).step, 3)
                    break
                except grpc.RpcError as error:
                    # On a machine so slow that it looks like the others.
                    self.assertEqual(Details(error).info.reason, "BUSY", error)
                    self.assertLess(attempt, 4)
                    n_failed += 1
            worst = max(worst, resident_mib(self.daemon.process) - before)
            time.sleep(0.05)
        print(f"{worst:.0f} MiB of {sum(peer.n_sent for peer in peers) >> 20}, {n_failed} calls repeated", flush=True)
        self.assertLess(worst, bounded_mib(limit))
        self.assertFalse(any(peer.was_cut for peer in peers), "they keep to the rules")
        self.assertLess(n_failed, 20)
        steps = re.findall(r"^step=(\d+) ", worker.communicate(timeout=30)[0], re.M)
        self.assertEqual(worker.returncode, 0)
        self.assertEqual(steps, [str(step) for step in range(100)])
        for peer in peers:
            peer.is_over.set()
        for peer in peers:
            peer.join()

    def setUp(self):
        self.daemon = Daemon(listen="127.0.0.1:0").start()
        self.addCleanup(self.daemon.kill)
        self.addCleanup(self.daemon.close_channels)
        create(self.daemon, job("h"))

    def test_a_drain_does_not_wait_for_them(self):
        peers = [HalfRequests(self.daemon.address, "CreateJob", 1 << 20, 10, True) for _ in range(4)]  # more than are received
        until = time.monotonic() + 20
        while sum(peer.n_sent for peer in peers) < 32 << 20 and time.monotonic() < until:
            time.sleep(0.05)
        start = time.monotonic()
        self.assertEqual(self.daemon.stop(), 0)
        self.assertLess(time.monotonic() - start, 4)
        for peer in peers:
            peer.is_over.set()
            peer.join()

    def test_of_many_connections(self):  # 1,280 MiB
        self.flood(650, *[("PlanBatch", 8 << 20)] * 160)

    def test_of_many_calls_on_few_connections(self):  # 800 MiB
        self.flood(150, *[("CreateJob", 1 << 20, 100)] * 8)


class Paths(unittest.TestCase):
    """No path leads out of the data roots: for CreateJob and DescribeIndex alike."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="skrull-data-")
        cls.root = os.path.join(cls.folder, "root")
        os.makedirs(os.path.join(cls.root, "sub"))
        os.makedirs(os.path.join(cls.folder, "root-beside"))
        for place in ("secret.txt", "root-beside/secret.txt", "root/inside.txt"):
            with open(os.path.join(cls.folder, place), "w", encoding="ascii") as file:
                file.write("117\n" * 1000)
        links = {"file-link.txt": "../secret.txt", "absolute-link.txt": os.path.join(cls.folder, "secret.txt"),
                 "folder-link": "..", "chain-1.txt": "chain-2.txt", "chain-2.txt": "file-link.txt",
                 "loop.txt": "loop.txt", "proc-link": "/proc/self", "sub/up": "../..",
                 "good-link.txt": "inside.txt", "sub/good-up.txt": "../inside.txt"}
        for name, target in links.items():
            os.symlink(target, os.path.join(cls.root, name))
        os.mkfifo(os.path.join(cls.root, "fifo.txt"))
        cls.daemon = Daemon(data_roots=[cls.root]).start()
        cls.planner = cls.daemon.planner()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close_channels()
        assert cls.daemon.stop() == 0, cls.daemon.log()
        shutil.rmtree(cls.folder)

    def both(self, path):
        create_request = stubs().planner.CreateJobRequest(job=job("p", data=[stubs().job.Dataset(index=path)]))
        yield self.planner.CreateJob, create_request
        yield self.planner.DescribeIndex, stubs().planner.DescribeIndexRequest(path=path)

    def test_ways_out(self):
        for path in ("../secret.txt", "sub/../../secret.txt", "../root-beside/secret.txt", "./../secret.txt",
                     "file-link.txt", "absolute-link.txt", "folder-link/secret.txt", "chain-1.txt", "sub/up/secret.txt",
                     "sub/up/root-beside/secret.txt", "proc-link/root/etc/passwd", "proc-link/environ",
                     os.path.join(self.folder, "secret.txt"), os.path.join(self.root, "../secret.txt"),
                     os.path.join(self.folder, "root-beside/secret.txt"), "/proc/self/environ", "/dev/zero",
                     "/dev/stdin", self.folder, "/"):
            for call, request in self.both(path):
                error = error_of(call, request)
                self.assertIn(error.code(), (Code.PERMISSION_DENIED, Code.NOT_FOUND), (path, error.details()))
                self.assertNotIn("117", error.details())

    def test_no_index_there(self):
        for path in ("", ".", "..", "sub", "fifo.txt", "loop.txt", "none.txt", "inside.txt/x", "x" * 4096, "a/" * 2000):
            for call, request in self.both(path):
                start = time.monotonic()
                self.assertIn(error_of(call, request).code(), (Code.INVALID_ARGUMENT, Code.NOT_FOUND,
                                                               Code.PERMISSION_DENIED), path)
                self.assertLess(time.monotonic() - start, 5, path)

    def test_links_that_stay_inside(self):
        for path in ("inside.txt", "./inside.txt", "sub/../inside.txt", "good-link.txt", "sub/good-up.txt",
                     os.path.join(self.root, "sub/good-up.txt")):
            stats = self.planner.DescribeIndex(stubs().planner.DescribeIndexRequest(path=path), timeout=10)
            self.assertEqual(stats.count, 1000)


if __name__ == "__main__":
    unittest.main()
