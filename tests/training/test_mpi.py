#!/usr/bin/python3
"""Eight MPI ranks that train by a daemon's plans get the losses and weights of one rank without a plan.

RUNS holds every pair of two choices at least once (checked here). All combinations, which take an hour:
    SKRULL_BUILD=build /usr/bin/python3 tests/training/test_mpi.py --all
"""
import itertools
import os
import signal
import sys
import time
import unittest

import training_harness as training

TOLERANCE = 1e-5

# policy and cp_mode (elastic: the default policy only), dp, cp, exchange, loss, shard, states, recompute, align
RUNS = [
    ("skrull", "fixed", 2, 4, "gather", "sequence_mean", "zigzag", "replicated", "selective", 1),
    ("skrull", "fixed", 1, 8, "ring", "token_mean", "zigzag", "sharded", "none", 1),
    ("skrull", "fixed", 4, 2, "gather", "token_mean", "contiguous", "replicated", "selective", 16),
    ("joint", "fixed", 2, 4, "ring", "sequence_mean", "zigzag", "sharded", "none", 1),
    ("joint", "fixed", 1, 8, "gather", "sequence_mean", "contiguous", "sharded", "selective", 16),
    ("joint", "fixed", 4, 2, "gather", "token_mean", "contiguous", "replicated", "selective", 1),
    ("joint", "elastic", 2, 4, "gather", "sequence_mean", "contiguous", "replicated", "none", 1),
    ("joint", "elastic", 1, 8, "gather", "token_mean", "contiguous", "sharded", "none", 1),
    ("joint", "elastic", 4, 2, "ring", "token_mean", "zigzag", "sharded", "selective", 16),
    ("uniform", "fixed", 2, 4, "ring", "token_mean", "zigzag", "sharded", "selective", 16),
    ("uniform", "fixed", 1, 8, "gather", "sequence_mean", "contiguous", "replicated", "none", 1),
    ("uniform", "fixed", 4, 2, "gather", "token_mean", "contiguous", "replicated", "none", 1),
    ("round_robin", "fixed", 2, 4, "gather", "token_mean", "zigzag", "replicated", "none", 1),
    ("round_robin", "fixed", 1, 8, "gather", "token_mean", "contiguous", "sharded", "none", 16),
    ("round_robin", "fixed", 4, 2, "ring", "sequence_mean", "contiguous", "replicated", "selective", 1),
    ("joint", "elastic", 2, 4, "ring", "token_mean", "zigzag", "sharded", "none", 1),
]
STEPS_OF = {"skrull": 20, "joint": 20, "uniform": 3, "round_robin": 3}


def choices(run):
    """A run as what can be paired: policy with mode, grid, and the rest."""
    return [run[0:2], run[2:4]] + list(run[4:])


def all_runs():
    columns = [sorted(set(column), key=str) for column in zip(*map(choices, RUNS))]
    return [(*kind, *grid, *rest) for kind, grid, *rest in itertools.product(*columns)]


class Mpi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon, cls.folder = training.daemon()
        cls.alone = {}

    @classmethod
    def tearDownClass(cls):
        cls.daemon.kill()

    def weights(self, name):
        return os.path.join(self.folder, name + ".weights")

    def reference(self, loss, steps):
        """(losses, weights) of one rank without a scheduler."""
        if (loss, steps) not in self.alone:
            name = f"alone-{loss.replace('_', '-')}-{steps}"
            training.create(self.daemon, name, dp=1, cp=1, policy="skrull", loss=loss, bucket=4096)
            output = training.run(training.worker(self.daemon, name, "--unscheduled", "--count", str(steps),
                                                  "--save-weights", self.weights(name)))
            losses = training.losses(output)
            if steps == training.STEPS:
                self.assertLess(sum(losses[-5:]), sum(losses[:5]), "nothing is learnt")
            self.alone[loss, steps] = (losses, training.read_weights(self.weights(name)))
        return self.alone[loss, steps]

    def train(self, i, run):
        """(losses, weights) of eight ranks."""
        policy, mode, dp, cp, exchange, loss, shard, states, recompute, align = run
        name = f"run-{i}"
        training.create(self.daemon, name, policy=policy, dp=dp, cp=cp, cp_mode=mode, shard=shard, align=align, loss=loss)
        output = training.run(["mpirun", "-n", "8"] + training.worker(
            self.daemon, name, "--count", str(STEPS_OF[policy]), "--exchange", exchange, "--optimizer", states,
            "--recompute", recompute, "--save-weights", self.weights(name)))
        return training.losses(output, ranks=8), training.read_weights(self.weights(name))

    def test_every_pair_is_run(self):
        columns = list(zip(*map(choices, RUNS)))
        for (i, one), (j, other) in itertools.combinations(enumerate(columns), 2):
            missing = set(itertools.product(set(one), set(other))) - set(zip(one, other))
            self.assertEqual(missing, set(), (i, j))

    def test_equals_one_rank(self):
        runs = all_runs() if "SKRULL_ALL_RUNS" in os.environ else RUNS
        for i, run in enumerate(runs):
            with self.subTest(run=run):
                started = time.monotonic()
                found = training.difference(self.train(i, run), self.reference(run[5], STEPS_OF[run[0]]))
                print(f"{found:.1e} {time.monotonic() - started:4.1f} s", *run, flush=True)
                self.assertLessEqual(found, TOLERANCE)

    def test_example(self):
        """Its loss of a token is the mean of the positions up to it, wherever these lie, times the token's weight. The last
        token of a sequence has no target."""
        training.create(self.daemon, "example", policy="joint", cp_mode="elastic")
        expected = 0
        for plan in training.plans(self.daemon, "example"):
            lengths = {s.sample: s.sequence_length for r in plan.ranks for m in r.micro_batches for s in m.segments}
            expected += sum((n - 1) * (n - 2) / 4 for n in lengths.values()) / plan.totals.loss_tokens
        output = training.run(["mpirun", "-n", "8", training.EXAMPLE, "example"], SKRULL_SERVER=self.daemon.address)
        found = [float(line.split()[1].rstrip(":")) for line in output.splitlines()]
        self.assertEqual(len(found), 8, output)
        for loss in found:
            self.assertAlmostEqual(loss / expected, 1, 4)

    def test_restarted_daemon_changes_nothing(self):
        """Killed at step 3, back two seconds later: the same losses to the last digit, the same weights."""
        training.create(self.daemon, "restart")
        whole = training.run(["mpirun", "-n", "8"] + training.worker(
            self.daemon, "restart", "--window", "2", "--save-weights", self.weights("whole")))
        run = training.Mpi((8, training.worker(self.daemon, "restart", "--window", "2", "--save-weights",
                                               self.weights("restarted"))))
        run.read_until("step=3 ")
        self.daemon.process.send_signal(signal.SIGKILL)
        self.daemon.process.wait()
        time.sleep(2)
        self.assertIsNone(run.process.poll(), "the run ended without its daemon: it had all plans before")
        self.daemon.start()
        status, errors = run.wait()
        self.assertEqual(status, 0, errors)
        self.assertEqual(training.losses(run.output, ranks=8), training.losses(whole, ranks=8))
        self.assertEqual(training.read_weights(self.weights("restarted")), training.read_weights(self.weights("whole")))


if __name__ == "__main__":
    if "--all" in sys.argv:
        sys.argv.remove("--all")
        os.environ["SKRULL_ALL_RUNS"] = "1"
    if not training.have_mpi():
        print("no mpirun: nothing can be tested")
        sys.exit(77)
    unittest.main()
