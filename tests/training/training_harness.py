"""Jobs whose batches a small decoder can be trained on, and skrull-worker under mpirun."""
import array
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import harness  # noqa: E402

EXAMPLE = os.path.join(harness.BUILD, "tests", "training", "example_embed")
STEPS = 20
SECONDS = 120  # of one run, on a loaded machine

# Open MPI as any user, more ranks than cores, none of them bound.
MPI_ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
           "OMPI_MCA_btl_base_warn_component_unused": "0"}


def write_lengths(path):
    """160 sequences: one of 4,096 tokens, the others up to 1,024, most of them short."""
    dice = random.Random(5)
    lengths = [min(1024, max(1, int(dice.lognormvariate(4.6, 1.2)))) for _ in range(8 * STEPS - 1)] + [4096]
    with open(path, "w", encoding="utf-8") as out:
        out.write("\n".join(map(str, lengths)) + "\n")


def daemon():
    """A skrulld, started, whose data root holds the lengths."""
    folder = tempfile.mkdtemp(prefix="skrull-training-")
    write_lengths(os.path.join(folder, "lengths.txt"))
    return harness.Daemon(data_roots=[folder]).start(), folder


def copy_of(daemon):
    """Another daemon, started, with all that this one has stored. This one is restarted."""
    folder = tempfile.mkdtemp(prefix="skrull-training-")
    daemon.stop()
    shutil.copy(os.path.join(daemon.folder, "state.db"), folder)
    daemon.start()
    return harness.Daemon(folder=folder, data_roots=daemon.data_roots).start()


def revise(server, name, **changes):
    """Other values of fields of the job."""
    stubs = harness.stubs()
    stubs.planner_grpc.PlannerServiceStub(server.channel()).UpdateJob(
        stubs.planner.UpdateJobRequest(job=stubs.job.Job(name=name, **changes), update_mask={"paths": list(changes)}))


def plans(server, name):
    """All steps' plans of a job."""
    planner_pb2, planner = harness.stubs().planner, harness.stubs().planner_grpc.PlannerServiceStub(server.channel())
    return [planner.GetPlan(planner_pb2.GetPlanRequest(job=name, step=step)) for step in range(STEPS)]


def create(server, name, policy="skrull", dp=2, cp=4, cp_mode="fixed", shard="zigzag", align=1, loss="token_mean",
           epochs=1, bucket=2048):
    """A job of 20 steps an epoch. Its batches do not depend on anything but the step."""
    job_pb2 = harness.stubs().job
    words = {"CP_MODE": cp_mode, "SHARD": shard, "LOSS": loss}
    enum = {key: getattr(job_pb2, key + "_" + word.upper()) for key, word in words.items()}
    return harness.create(server, job_pb2.Job(
        name=name, model=job_pb2.Model(preset="qwen2.5-0.5b"), policy=policy, seed=7, epochs=epochs, loss=enum["LOSS"],
        parallel=job_pb2.Parallel(dp=dp, cp=cp, cp_mode=enum["CP_MODE"]),
        batch=job_pb2.Batch(**{"global": 8}, bucket_tokens=bucket, align=align, shard=enum["SHARD"]),
        data=[job_pb2.Dataset(index="lengths.txt")]))


def worker(server, name, *options):
    return [harness.WORKER, "--server", server.address, "--job", name, "--backend", "cpu"] + list(options)


class Mpi:
    """mpirun over (number of ranks, argv) pairs, while it runs."""

    def __init__(self, *commands):
        argv = ["mpirun"]
        for i, (count, command) in enumerate(commands):
            argv += ([":"] if i else []) + ["-n", str(count)] + command
        self.errors = tempfile.TemporaryFile("w+")
        self.output = ""
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        env=dict(os.environ, **MPI_ENV), stdin=subprocess.DEVNULL)

    def read_until(self, start):
        """Reads lines up to one that starts so."""
        for line in self.process.stdout:
            self.output += line
            if line.startswith(start):
                return
        raise AssertionError(f"no line {start}; {self.wait()}")

    def wait(self, seconds=SECONDS):
        """(exit status, standard error); the output is whole then. Fails where it takes longer."""
        timer = threading.Timer(seconds, self.process.kill)
        timer.start()
        self.output += self.process.stdout.read()
        status = self.process.wait()
        if not timer.is_alive():
            raise AssertionError(f"mpirun was still there after {seconds} s")
        timer.cancel()
        self.process.stdout.close()
        self.errors.seek(0)
        errors = self.errors.read()
        self.errors.close()
        return status, errors


def run(argv, **env):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, env=dict(os.environ, **MPI_ENV, **env),
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(argv)}: {done.returncode}\n{done.stderr}")
    return done.stdout


def fields(line):
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def losses(output, ranks=None):
    """Loss by step; all of `ranks` must have printed the same."""
    found = {}
    for line in map(fields, output.splitlines()):
        if "loss" in line:
            found.setdefault(int(line["step"]), []).append(line["loss"])
    for step, values in found.items():
        if len(set(values)) != 1 or (ranks and len(values) != ranks):
            raise AssertionError(f"step {step}: ranks say {values}")
    return [float(found[step][0]) for step in sorted(found)]


def read_weights(path):
    weights = array.array("f")
    with open(path, "rb") as file:
        weights.frombytes(file.read())
    return weights


def difference(one, other):
    """(losses, weights) of two runs: the largest difference, of losses relative to the loss."""
    if len(one[0]) != len(other[0]) or len(one[1]) != len(other[1]):
        raise AssertionError("the runs have different numbers of steps or weights")
    return max([abs(a - b) / abs(b) for a, b in zip(one[0], other[0])]
               + [abs(a - b) for a, b in zip(one[1], other[1])])


def have_mpi():
    return shutil.which("mpirun") is not None
