#!/usr/bin/python3
"""What ends a run of eight MPI ranks: every rank says why, once, within the time-out, and none hangs."""
import os
import re
import signal
import subprocess
import sys
import time
import unittest

import training_harness as training

TIMEOUT_S = 5
# The exchange's time-out, then MPI's own way to end the others, on a loaded machine.
END_S = TIMEOUT_S + 25


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon, cls.folder = training.daemon()
        training.create(cls.daemon, "long", epochs=1000)
        training.create(cls.daemon, "other", epochs=1000)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.kill()

    def worker(self, name="long"):
        return training.worker(self.daemon, name, "--exchange-timeout-ms", str(TIMEOUT_S * 1000))

    def ranks_of(self, run):
        """Process ids of the workers, by data rank."""
        found = subprocess.run(["pgrep", "-P", str(run.process.pid), "-f", "skrull-worker"], capture_output=True,
                               text=True, check=True).stdout.split()
        by_rank = {}
        for pid in map(int, found):
            with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as environ:
                by_rank[int(re.search("OMPI_COMM_WORLD_RANK=([0-9]+)", environ.read()).group(1))] = pid
        self.assertEqual(sorted(by_rank), list(range(8)))
        return by_rank

    def ends(self, run, at_least, *texts):
        """It ends in time with `at_least` messages of ranks, one each, each of which has one of `texts`."""
        started = time.monotonic()
        status, errors = run.wait(END_S + 10)
        self.assertNotEqual(status, 0)
        self.assertLess(time.monotonic() - started, END_S)
        said = [line for line in errors.splitlines() if line.startswith("skrull-worker: ")]
        self.assertGreaterEqual(len(said), at_least, errors)
        self.assertLessEqual(len(said), 8, errors)
        for line in said:
            self.assertTrue(any(text in line for text in texts), line)
        self.assertIn(texts[0], "\n".join(said))

    def test_a_rank_dies(self):
        run = training.Mpi((8, self.worker()))
        run.read_until("step=2 ")
        os.kill(self.ranks_of(run)[3], signal.SIGKILL)
        # Who looked for the dead one first may say so.
        self.ends(run, 7, "ended by SIGTERM", "data rank 3, which did not come", "MPI_")

    def test_a_rank_stops(self):
        run = training.Mpi((8, self.worker()))
        run.read_until("step=2 ")
        os.kill(self.ranks_of(run)[3], signal.SIGSTOP)
        self.ends(run, 7, "which did not come", "ended by SIGTERM")

    def test_a_rank_never_comes(self):
        run = training.Mpi((7, self.worker()), (1, ["sleep", "300"]))
        self.ends(run, 7, "not all data ranks came", "ended by SIGTERM")

    def test_a_plan_of_another_job(self):
        run = training.Mpi((5, self.worker()), (1, self.worker("other")), (2, self.worker()))
        self.ends(run, 8, "data rank 5 was given a plan of another job", "ended by SIGTERM")

    def test_another_number_of_ranks(self):
        run = training.Mpi((4, self.worker()))
        self.ends(run, 4, "run mpirun -n 8", "ended by SIGTERM")


if __name__ == "__main__":
    if not training.have_mpi():
        print("no mpirun: nothing can be tested")
        sys.exit(77)
    unittest.main()
