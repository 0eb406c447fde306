#!/usr/bin/python3
"""What ends a run of eight MPI ranks: every rank says why, once, within the time-out, and none hangs."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import training_harness as training

TIMEOUT_S = 5
# The exchange's time-out, then MPI's own way to end the others, on a loaded machine.
END_S = TIMEOUT_S + 25
OTHERS = [0, 1, 2, 4, 5, 6, 7]  # than rank 3


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon, cls.folder = training.daemon()
        training.create(cls.daemon, "long", epochs=1000)
        training.create(cls.daemon, "other", epochs=1000)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.kill()

    def setUp(self):
        self.said = tempfile.mkdtemp(dir=self.folder)

    def worker(self, name="long", daemon=None):
        """A worker whose messages go to a file of its rank: mpirun may lose some at a hard end."""
        return ["sh", "-c", 'exec "$@" 2>"$0/$OMPI_COMM_WORLD_RANK"', self.said] + training.worker(
            daemon or self.daemon, name, "--exchange-timeout-ms", str(TIMEOUT_S * 1000))

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

    def ends(self, run, ranks, *texts):
        """It ends in time; each of `ranks` says why in one message, which has one of `texts`, and one at least the first.
        Returns what mpirun said."""
        started = time.monotonic()
        status, errors = run.wait(END_S + 10)
        self.assertNotEqual(status, 0)
        self.assertLess(time.monotonic() - started, END_S)
        said = []
        for rank in ranks:
            with open(os.path.join(self.said, str(rank)), encoding="utf-8") as file:
                lines = [line for line in file if line.startswith("skrull-worker: ")]
            self.assertEqual(len(lines), 1, (rank, lines, errors))
            for line in lines:
                self.assertTrue(any(text in line for text in texts), line)
            said += lines
        self.assertIn(texts[0], "".join(said))
        return errors

    def test_a_rank_dies(self):
        run = training.Mpi((8, self.worker()))
        run.read_until("step=2 ")
        os.kill(self.ranks_of(run)[3], signal.SIGKILL)
        # mpirun names the dead one, and ends the others by SIGTERM, which says so, and soon after by SIGKILL.
        errors = self.ends(run, OTHERS, "ended by SIGTERM", "data rank 3, which did not come", "MPI_")
        self.assertIn("process rank 3", errors)

    def test_two_ranks_die(self):
        """The second death cuts short what mpirun waits before its signals."""
        run = training.Mpi((8, self.worker()))
        run.read_until("step=2 ")
        pids = self.ranks_of(run)
        os.kill(pids[3], signal.SIGKILL)
        os.kill(pids[6], signal.SIGKILL)
        self.ends(run, [0, 1, 2, 4, 5, 7], "ended by SIGTERM", "which did not come", "MPI_")

    def test_a_rank_stops(self):
        run = training.Mpi((8, self.worker()))
        run.read_until("step=2 ")
        os.kill(self.ranks_of(run)[3], signal.SIGSTOP)
        self.ends(run, OTHERS, "which did not come", "ended by SIGTERM")

    def test_a_rank_never_comes(self):
        run = training.Mpi((7, self.worker()), (1, ["sleep", "300"]))
        self.ends(run, range(7), "not all data ranks came", "ended by SIGTERM")

    def test_a_plan_of_another_job(self):
        run = training.Mpi((5, self.worker()), (1, self.worker("other")), (2, self.worker()))
        self.ends(run, range(8), "data rank 5 was given a plan of another job", "ended by SIGTERM")

    def test_a_differing_digest(self):
        """Rank 5 asks another daemon, which has a copy of the state, and there the job was revised: the same uid, the same
        step, another plan."""
        training.create(self.daemon, "split", epochs=1000)
        copy = training.copy_of(self.daemon)
        self.addCleanup(copy.kill)
        training.revise(copy, "split", policy="uniform")
        run = training.Mpi((5, self.worker("split")), (1, self.worker("split", copy)), (2, self.worker("split")))
        self.ends(run, range(8), "data rank 5 was given another plan (digest ", "ended by SIGTERM")

    def test_another_number_of_ranks(self):
        run = training.Mpi((4, self.worker()))
        self.ends(run, range(4), "run mpirun -n 8", "ended by SIGTERM")


if __name__ == "__main__":
    if not training.have_mpi():
        print("no mpirun: nothing can be tested")
        sys.exit(77)
    unittest.main()
