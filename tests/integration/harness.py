"""A skrulld on a temporary socket, and Python stubs for it: what the integration tests share.

Programs are found in the build folder, $SKRULL_BUILD (meson sets it; default: ./build), protos and
data in the source tree that holds this file. Run a test by hand with
    SKRULL_BUILD=build /usr/bin/python3 tests/integration/test_daemon.py
"""
import atexit
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import grpc

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("SKRULL_BUILD", "build"))
SKRULLD = os.path.join(BUILD, "daemon", "skrulld")
SKRULLCTL = os.path.join(BUILD, "client", "ctl", "skrullctl")
WORKER = os.path.join(BUILD, "cuda", "worker", "skrull-worker")
LENGTHS = os.path.join(SOURCE, "tests", "data", "lengths")
START_SECONDS = 30
IS_SANITIZED = os.environ.get("SKRULL_SANITIZE", "none") != "none"
SANITIZED_MEMORY = 8  # what a sanitizer multiplies memory by, at most; it keeps freed memory for a while

_stubs = None


class Stubs:
    """The generated modules: job, plan, planner (messages), planner_grpc, health, health_grpc, status,
    error_details, reflection and reflection_grpc, reflection_alpha and reflection_alpha_grpc."""

    def __init__(self):
        folder = tempfile.mkdtemp(prefix="skrull-stubs-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        protos = ["skrull/v1/job.proto", "skrull/v1/plan.proto", "skrull/v1/planner.proto",
                  "grpc/health/v1/health.proto"]
        # The health proto under its own name would hide grpcio's package "grpc".
        root = os.path.join(folder, "proto")
        shutil.copytree(os.path.join(SOURCE, "proto", "skrull"), os.path.join(root, "skrull"))
        os.makedirs(os.path.join(root, "health"))
        shutil.copy(os.path.join(SOURCE, "proto", "grpc", "health", "v1", "health.proto"), os.path.join(root, "health"))
        protos[3] = "health/health.proto"
        # So would those of google.rpc hide protobuf's own package "google".
        os.makedirs(os.path.join(root, "rpc"))
        for name in ("status", "error_details"):
            shutil.copy(os.path.join(SOURCE, "proto", "google", "rpc", name + ".proto"), os.path.join(root, "rpc"))
            protos.append("rpc/" + name + ".proto")
        for name, version in (("reflection", "v1"), ("reflection_alpha", "v1alpha")):
            os.makedirs(os.path.join(root, name))
            shutil.copy(os.path.join(SOURCE, "proto", "grpc", "reflection", version, "reflection.proto"),
                        os.path.join(root, name))
            protos.append(name + "/reflection.proto")
        plugin = shutil.which("grpc_python_plugin")
        subprocess.run(["protoc", "-I" + root, "--python_out=" + folder, "--grpc_python_out=" + folder,
                        "--plugin=protoc-gen-grpc_python=" + plugin] + protos, check=True, cwd=root)
        sys.path.insert(0, folder)
        self.job = importlib.import_module("skrull.v1.job_pb2")
        self.plan = importlib.import_module("skrull.v1.plan_pb2")
        self.planner = importlib.import_module("skrull.v1.planner_pb2")
        self.planner_grpc = importlib.import_module("skrull.v1.planner_pb2_grpc")
        self.health = importlib.import_module("health.health_pb2")
        self.status = importlib.import_module("rpc.status_pb2")
        self.error_details = importlib.import_module("rpc.error_details_pb2")
        self.reflection = importlib.import_module("reflection.reflection_pb2")
        self.reflection_grpc = importlib.import_module("reflection.reflection_pb2_grpc")
        self.reflection_alpha = importlib.import_module("reflection_alpha.reflection_pb2")
        self.reflection_alpha_grpc = importlib.import_module("reflection_alpha.reflection_pb2_grpc")
        self.health_grpc = importlib.import_module("health.health_pb2_grpc")


def stubs():
    """The stubs, compiled once a process."""
    global _stubs
    if _stubs is None:
        _stubs = Stubs()
    return _stubs


class Daemon:
    """One skrulld. Its folder (socket, state) outlives a kill, so that start() again finds its state."""

    def __init__(self, *options, folder=None, data_roots=(LENGTHS,), listen=None, env=None,
                 preexec=None):
        self.folder = folder or tempfile.mkdtemp(prefix="skrulld-")
        if not folder:
            atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.address = listen or "unix:" + os.path.join(self.folder, "skrulld.sock")
        self.state = "sqlite:" + os.path.join(self.folder, "state.db")
        self.log_path = os.path.join(self.folder, "skrulld.log")
        self.options = list(options)
        self.data_roots = list(data_roots)
        self.env = dict(os.environ, **(env or {}))
        self.process = None
        self.preexec = preexec
        self._channels = []

    def argv(self):
        argv = [SKRULLD, "--listen", self.address, "--state", self.state, "--log-level", "debug"]
        for root in self.data_roots:
            argv += ["--data-root", root]
        return argv + self.options

    def start(self, wait=True):
        """Starts it; returns once it listens. Raises with its log where it does not."""
        offset = os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.argv(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=self.env, cwd=self.folder, preexec_fn=self.preexec)
        atexit.register(self.kill)
        until = time.monotonic() + START_SECONDS
        while wait:
            found = re.search(r" listening address=(\S+)", self.log(offset))
            if found:
                self.address = found.group(1)
                return self
            if self.process.poll() is not None or time.monotonic() > until:
                self.kill()
                raise AssertionError("skrulld did not start:\n" + self.log(offset))
            time.sleep(0.02)
        return self

    def log(self, offset=0):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            log.seek(offset)
            return log.read()

    def channel(self, **options):
        """A connection of its own (channels to one address would share one)."""
        settings = {"grpc.use_local_subchannel_pool": 1, "grpc.enable_http_proxy": 0,
                    "grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 500}
        settings.update(options)
        channel = grpc.insecure_channel(self.address, list(settings.items()))
        self._channels.append(channel)
        return channel

    def planner(self, channel=None):
        return stubs().planner_grpc.PlannerServiceStub(channel or self.channel())

    def health(self, channel=None):
        return stubs().health_grpc.HealthStub(channel or self.channel())

    def close_channels(self):
        for channel in self._channels:
            channel.close()
        self._channels = []

    def stop(self, timeout=30):
        """SIGTERM; returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout)
        self.process = None
        return status

    def kill(self):
        """As a crash would; harmless where it does not run."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *unused):
        self.close_channels()
        self.kill()


def job(name="a-job", **changes):
    """A small job on a bundled length list: <DP 4, CP 8>, by a policy that takes less than a millisecond, since what is
    tested with it is not the planner. Keyword arguments set top-level fields."""
    job_pb2 = stubs().job
    message = job_pb2.Job(
        name=name,
        model=job_pb2.Model(preset="qwen2.5-0.5b"),
        parallel=job_pb2.Parallel(dp=4, cp=8),
        batch=job_pb2.Batch(**{"global": 64}, bucket_tokens=26624,
                            equal_micro_batches=job_pb2.EQUAL_MICRO_BATCHES_FALSE),
        data=[job_pb2.Dataset(index="chatqa2.txt", over_length=job_pb2.OVER_LENGTH_DROP)],
        seed=42,
        policy="skrull",
        steps=100)
    for key, value in changes.items():
        if hasattr(value, "DESCRIPTOR"):
            getattr(message, key).CopyFrom(value)
        elif isinstance(value, list):
            del getattr(message, key)[:]
            getattr(message, key).extend(value)
        else:
            setattr(message, key, value)
    return message


def create(daemon, message=None, request_id="", planner=None):
    request = stubs().planner.CreateJobRequest(job=message or job(), request_id=request_id)
    return (planner or daemon.planner()).CreateJob(request, timeout=30)


def stream_request(name, rank, **fields):
    return stubs().planner.StreamPlansRequest(job=name, data_rank=rank, **fields)


def error_of(call, *args, **kwargs):
    """Calls, and returns the grpc.RpcError; fails where there is none."""
    try:
        reply = call(*args, timeout=30, **kwargs)
        if hasattr(reply, "__next__"):
            list(reply)
    except grpc.RpcError as error:
        return error
    raise AssertionError("the call succeeded")


def resident_mib(process):
    """Memory of a daemon; compare it with bounded_mib()."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1)) / 1024


def bounded_mib(limit):
    return limit * SANITIZED_MEMORY if IS_SANITIZED else limit


class Details:
    """What an RpcError says to programs: the google.rpc.Status of its trailers, taken apart."""

    def __init__(self, error):
        found = [value for key, value in error.trailing_metadata() if key == "grpc-status-details-bin"]
        assert len(found) == 1, error
        self.status = stubs().status.Status.FromString(found[0])
        self.info = self.retry = self.bad_request = None
        for any_ in self.status.details:
            for name, message in (("info", stubs().error_details.ErrorInfo()),
                                  ("retry", stubs().error_details.RetryInfo()),
                                  ("bad_request", stubs().error_details.BadRequest())):
                if any_.Is(message.DESCRIPTOR):
                    any_.Unpack(message)
                    setattr(self, name, message)

    @property
    def field(self):
        """The field that is wrong, or None."""
        return self.bad_request.field_violations[0].field if self.bad_request else None
