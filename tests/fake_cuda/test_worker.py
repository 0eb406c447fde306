#!/usr/bin/python3
"""skrull-worker --backend cuda, on a fake GPU: its losses and weights follow those of --backend cpu."""
import array
import os
import random
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "training"))
import training_harness as training  # noqa: E402
from training_harness import harness  # noqa: E402

FAKE_WORKER = sys.argv.pop(1)
HAS_MPI = sys.argv.pop(1) == "mpi"
STEPS = 3
TOLERANCE = 1e-2


class Worker(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="skrull-fake-")
        dice = random.Random(3)
        with open(os.path.join(cls.folder, "lengths.txt"), "w", encoding="utf-8") as out:
            out.write("\n".join(str(dice.randint(8, 40)) for _ in range(160)) + "\n")
        cls.daemon = harness.Daemon(data_roots=[cls.folder]).start()
        training.create(cls.daemon, "small", dp=1, cp=1, bucket=128)
        cls.cpu = cls.run_worker("cpu", harness.WORKER, "--backend", "cpu", "--comm", "none", "--model", "tiny64")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.kill()

    @classmethod
    def run_worker(cls, name, worker, *options, launcher=(), **env):
        """(losses, weights)"""
        path = os.path.join(cls.folder, name)
        output = training.run([*launcher, worker, "--server", cls.daemon.address, "--job", "small", "--count", str(STEPS),
                               "--save-weights", path, *options], **{"SKRULL_DATA_RANK": "0", **env})
        return training.losses(output), training.read_weights(path)

    def expect_like_cpu(self, found):
        losses, weights = found
        self.assertEqual(len(losses), STEPS)
        for is_, should in zip(losses, self.cpu[0]):
            self.assertLess(abs(is_ - should), TOLERANCE * should)
        self.assertIsInstance(weights, array.array)
        self.assertEqual(len(weights), len(self.cpu[1]))
        # A step moves a weight by the learning rate at most, whatever the sign of its gradient.
        self.assertLess(max(abs(a - b) for a, b in zip(weights, self.cpu[1])), 2.5e-3 * STEPS)
        self.assertNotEqual(weights, self.cpu[1])

    def test_alone(self):
        self.expect_like_cpu(self.run_worker("alone", FAKE_WORKER, "--backend", "cuda"))

    def test_by_the_environment_of_torchrun(self):
        env = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
        self.expect_like_cpu(self.run_worker("torchrun", FAKE_WORKER, "--backend", "cuda", "--comm", "tcp",
                                             "--optimizer", "sharded", **env))

    def test_by_slurm(self):
        env = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_LOCALID": "0", "SLURM_JOB_ID": "7",
               "SLURM_STEP_NODELIST": "n[1-2]"}
        self.expect_like_cpu(self.run_worker("slurm", FAKE_WORKER, "--backend", "cuda", "--comm", "tcp", "--recompute",
                                             "selective", **env))

    @unittest.skipIf(not HAS_MPI, "built without MPI")
    def test_by_mpirun(self):
        self.expect_like_cpu(self.run_worker("mpi", FAKE_WORKER, "--backend", "cuda", "--comm", "mpi",
                                             launcher=("mpirun", "-n", "1")))


if __name__ == "__main__":
    unittest.main()
