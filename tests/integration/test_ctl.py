#!/usr/bin/python3
"""skrullctl: every verb, its formats, its exit statuses, its complaints."""
import csv
import io
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

from google.protobuf import json_format

import harness
from harness import Daemon, stubs

NOWHERE = "unix:/nonexistent/skrulld.sock"
JOB = """
name: {name}
model: {{preset: qwen2.5-0.5b}}
parallel: {{dp: 2, cp: 4}}
batch: {{global: 32, bucket_tokens: 26624}}
data: [{{index: {index}, over_length: drop}}]
seed: 5
steps: 20
"""


class Ctl(unittest.TestCase):
    """Runs skrullctl without a daemon, in a folder with a job file and its index."""

    server = NOWHERE

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="skrullctl-")
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copy(os.path.join(harness.LENGTHS, "wikipedia.txt"), self.folder)
        self.write("job.yaml", JOB.format(name="a-job", index="wikipedia.txt"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)
        return self.path(name)

    def run_ctl(self, *words, env=None, stdin=None):
        clean = {name: value for name, value in os.environ.items() if name not in ("LC_ALL", "LANG", "COLUMNS")}
        return subprocess.run([harness.SKRULLCTL, *words], capture_output=True, timeout=60, check=False, input=stdin,
                              encoding="utf-8", env=dict(clean, SKRULL_SERVER=self.server, **(env or {})))

    def out(self, *words, **options):
        done = self.run_ctl(*words, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def fails(self, status, pattern, *words, **options):
        done = self.run_ctl(*words, **options)
        self.assertEqual(done.returncode, status, (words, done.stdout, done.stderr))
        self.assertRegex(done.stderr, r"^skrullctl: [^:]+: ")
        self.assertRegex(done.stderr, pattern)
        self.assertEqual(done.stdout, "")

    def rows(self, *words):
        return list(csv.DictReader(io.StringIO(self.out(*words, "-o", "csv"))))


class Usage(Ctl):
    def test_wrong_usage_is_2(self):
        for words, pattern in (
                ([], "no command"), (["nothing"], "no such command"), (["plan"], "which of its commands"),
                (["health", "--nothing"], "no such option"), (["health", "x"], "one operand too many"),
                (["job", "get"], "an operand is missing: NAME"), (["plan", "make", "-f", "x"], "--step N is required"),
                (["plan", "make", "--step", "1"], "-f JOB is required"),
                (["plan", "make", "-f", "x", "--step", "-1"], "not a number"),
                (["plan", "make", "-f", "x", "--step", "18446744073709551616"], "not a number"),
                (["health", "-o", "xml"], "table, wide, json and csv"), (["health", "--server"], "a value is missing"),
                (["health", "--server", "localhost"], "no port"), (["plan", "show"], "is required"),
                (["plan", "show", "-f", "x", "job"], "either"), (["plan", "check", "-f", "x"], "belong together"),
                (["plan", "check", "job", "--step", "1", "--job", "x"], "belong together"),
                (["compare", "-f", "x", "--policies", "uniform,best"], "unknown policy best")):
            self.fails(2, pattern, *words)

    def test_a_file_that_cannot_be_read_is_no_daemon_that_is_not_reached(self):
        self.fails(1, "Is a directory", "plan", "make", "-f", self.folder, "--step", "0")
        self.fails(1, "Is a directory", "job", "create", "-f", self.folder)

    def test_show_says_which_exchange_crosses_nodes(self):
        for profile, cp, words in (("h100-nodes", 16, "ms of exchange across nodes"), ("paper-h100", 16, "ms of exchange"),
                                   ("h100-nodes", 8, "ms of exchange")):
            path = self.path("nodes.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"name: nodes\nmodel: {{preset: qwen2.5-0.5b}}\nparallel: {{dp: 1, cp: {cp}}}\n"
                           f"hardware: {{profile: {profile}}}\n"
                           "batch: {global: 1, bucket_tokens: 4096}\ndata: [{index: nodes.txt}]\n")
            with open(self.path("nodes.txt"), "w", encoding="utf-8") as file:
                file.write("30000\n")
            with open(self.path("nodes.json"), "w", encoding="utf-8") as file:
                file.write(self.out("plan", "make", "-f", path, "--step", "0", "-o", "json"))
            shown = self.out("plan", "show", "-f", self.path("nodes.json"), "--job", path)
            self.assertRegex(shown, rf"sample 0, 30000 tokens .* {words}\n")
            self.out("plan", "check", "-f", self.path("nodes.json"), "--job", path)

    def test_exact_is_no_slower_than_joint(self):
        with open(self.path("small.yaml"), "w", encoding="utf-8") as file:
            file.write("name: small\nmodel: {preset: qwen2.5-0.5b}\nparallel: {dp: 1, cp: 2}\n"
                       "batch: {global: 4, bucket_tokens: 4096}\ndata: [{index: small.txt}]\n")
        with open(self.path("small.txt"), "w", encoding="utf-8") as file:
            file.write("4000\n3000\n500\n200\n")
        exact = json.loads(self.out("exact", "-f", self.path("small.yaml"), "--step", "0", "-o", "json"))
        self.assertTrue(exact["proved"])
        self.assertEqual(exact["bestNs"], exact["boundNs"])
        self.assertLessEqual(int(exact["bestNs"]), int(exact["jointNs"]))
        self.assertIn("proved yes", self.out("exact", "-f", self.path("small.yaml"), "--step", "0"))
        self.fails(3, "step", "exact", "-f", self.path("small.yaml"), "--step", "9")

    def test_a_setting_of_a_job_file_that_the_planner_refuses_has_its_line(self):
        good = JOB.format(name="a", index="wikipedia.txt")
        for text, pattern in ((good.replace("qwen2.5-0.5b", "gpt9"), "line 3: model.preset: "),
                              (good + "policy: best\n", "line 9: policy: "),
                              (good + "hardware: {profile: none}\n", "line 9: hardware.profile: "),
                              (good.replace("cp: 4", "cp: 4, min_degree: 3, max_degree: 3"), "line 4: parallel")):
            path = self.write("bad.yaml", text)
            for words in (["plan", "make", "-f", path, "--step", "0"], ["compare", "-f", path],
                          ["job", "create", "-f", path]):
                self.fails(1, f": {re.escape(path)}: {pattern}", *words)

    def test_a_job_file_from_standard_input(self):
        self.fails(1, "job create: -: line 2: nothing: unknown key", "job", "create", "-f", "-",
                   stdin="name: a\nnothing: 1\n")
        with open(self.path("job.yaml"), encoding="utf-8") as file:
            self.fails(4, "is not available", "job", "create", "-f", "-", stdin=file.read())

    def test_what_comes_later_says_so(self):
        for verb in ("plan diff", "bucket", "watch", "calibrate", "profile show"):
            done = self.run_ctl(*verb.split(), "a", "--b")
            self.assertEqual((done.returncode, done.stderr), (1, f"skrullctl: {verb}: not built yet\n"))
        for words, option in ((["--tls-ca", "f", "health"], "--tls-ca"), (["--token-file=f", "health"], "--token-file"),
                              (["plan", "show", "--svg", "f"], "--svg"), (["plan", "show", "--trace=f"], "--trace")):
            done = self.run_ctl(*words)
            self.assertEqual((done.returncode, done.stderr), (1, f"skrullctl: {option}: not built yet\n"))

    def test_help_of_the_program_names_every_verb_and_each_has_its_own(self):
        verbs = re.findall(r"^  ([a-z]+(?: [a-z]+)?)  +\S", self.out("--help").split("Options")[0], re.M)
        self.assertEqual(len(verbs), 16)
        for verb in verbs:
            self.assertIn("usage: skrullctl " + verb, self.out(*verb.split(), "--help"))

    def test_a_closed_pipe_or_a_full_disk_is_a_failure(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([harness.SKRULLCTL, "--help"], stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard output", done.stderr)

    def test_nobody_there_is_4(self):
        for words in (["health"], ["job", "list"], ["job", "get", "x"], ["job", "delete", "x"],
                      ["job", "create", "-f", self.path("job.yaml")], ["job", "update", "-f", self.path("job.yaml")],
                      ["plan", "get", "x", "--step", "0"],
                      ["plan", "show", "x", "--step", "0"], ["plan", "check", "x", "--step", "0"]):
            self.fails(4, "skrulld at unix:/nonexistent/skrulld.sock is not available: .*is it running", *words)


class Index(Ctl):
    def test_describe(self):
        lengths = [1, 2, 3, 3, 100, 1000]
        path = self.write("few.txt", "".join(f"{n}\n" for n in lengths))
        stats = json_format.Parse(self.out("index", "describe", path, "-o", "json"), stubs().planner.IndexStats())
        self.assertEqual((stats.format, stats.count, stats.tokens, stats.min, stats.max, stats.p50),
                         ("text", 6, sum(lengths), 1, 1000, 3))
        self.assertEqual([(b.upper, b.count) for b in stats.histogram], [(2, 1), (4, 3), (128, 1), (1024, 1)])
        self.assertEqual(self.rows("index", "describe", path)[0]["p50"], "3")

    def test_histogram_is_drawn_as_the_terminal_can(self):
        path = self.write("few.txt", "1\n3\n3\n3\n3\n")
        text = self.out("index", "describe", path, env={"LC_ALL": "C", "COLUMNS": "80"})
        bars = re.findall(r"^ +\d+ to \d+ +\d+  (#+)$", text, re.M)
        self.assertEqual([len(bar) for bar in bars], [10, 40])
        text = self.out("index", "describe", path, env={"LC_ALL": "C.UTF-8", "COLUMNS": "80"})
        self.assertIn("█" * 40, text)
        self.assertNotIn("#", text)

    def test_convert_keeps_what_describe_says(self):
        made = self.path("wikipedia.skx")
        self.out("index", "convert", self.path("wikipedia.txt"), made)
        with open(made, "rb") as skx:
            self.assertEqual(struct.unpack("<8sI", skx.read(12)), (b"SKRULLX\0", 1))
        before, after = (json.loads(self.out("index", "describe", path, "-o", "json"))
                         for path in (self.path("wikipedia.txt"), made))
        self.assertEqual((before.pop("format"), after.pop("format")), ("text", "skx"))
        self.assertEqual(before, after)

    def test_convert_loses_no_file(self):
        source, made = self.path("wikipedia.txt"), self.path("made.skx")
        with open(source, "rb") as file:
            before = file.read()
        os.symlink(source, self.path("symlink"))
        os.link(source, self.path("link"))
        for name in ("wikipedia.txt", "./wikipedia.txt", "symlink", "link"):
            self.fails(1, "is the same file as", "index", "convert", source, os.path.join(self.folder, name))
        self.out("index", "convert", source, self.write("empty", ""))
        self.out("index", "convert", source, made)
        self.fails(1, "is the same file as", "index", "convert", made, made)
        self.out("index", "convert", self.write("other.txt", "5\n6\n"), made)
        self.assertIn("sequences 2 ", self.out("index", "describe", made))
        for other in (self.path("job.yaml"), self.path("other.txt"), self.folder, "/dev/null"):
            self.fails(1, "exists and is no .skx.* remove it first", "index", "convert", source, other)
        with open(source, "rb") as file:
            self.assertEqual(file.read(), before)
        with open(self.path("other.txt"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "5\n6\n")

    def test_a_pipe_is_refused_at_once(self):
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        self.fails(1, "this is a pipe; an index is a regular file", "index", "describe", pipe)
        self.fails(1, "this is a pipe; an index is a regular file", "index", "convert", pipe, self.path("x.skx"))
        self.fails(1, "exists and is no .skx", "index", "convert", self.path("wikipedia.txt"), pipe)

    def test_column_and_unit_choose_the_lengths(self):
        table = self.write("table.csv", "a,b,length\n1,20,5\n2,30,6\n")
        for words, tokens in (((), "11"), (("--column", "a"), "3"), (("--column", "a+b", "--format", "csv"), "53")):
            stats = json.loads(self.out("index", "describe", table, "-o", "json", *words))
            self.assertEqual((stats["format"], stats["count"], stats["tokens"]), ("csv", "2", tokens))
        self.out("index", "convert", table, self.path("table.skx"), "--column", "b")
        self.assertEqual(json.loads(self.out("index", "describe", self.path("table.skx"), "-o", "json"))["tokens"], "50")
        self.fails(1, "no column c; its columns: a, b, length", "index", "describe", table, "--column", "c")
        self.fails(1, "csv knows sequences only", "index", "describe", table, "--unit", "document")
        self.fails(2, "--unit page: sequence and document", "index", "describe", table, "--unit", "page")

    def test_refusals(self):
        self.fails(3, "No such file", "index", "describe", self.path("absent"))
        self.fails(1, "line 2", "index", "describe", self.write("bad.txt", "1\nx\n"))
        self.fails(1, "format", "index", "describe", self.path("wikipedia.txt"), "--format", "nothing")
        self.fails(3, "absent", "index", "convert", self.path("absent"), self.path("x.skx"))
        self.assertFalse(os.path.exists(self.path("x.skx")))


class Plans(Ctl):
    def make(self, step=0, *words):
        return self.out("plan", "make", "-f", self.path("job.yaml"), "--step", str(step), "-o", "json", *words)

    def test_make_is_a_plan_of_the_step_and_always_the_same(self):
        plan = json_format.Parse(self.make(3), stubs().plan.Plan())
        self.assertEqual((plan.job, plan.step, plan.dp, plan.cp, plan.policy), ("a-job", 3, 2, 4, "joint"))
        self.assertEqual([rank.data_rank for rank in plan.ranks], list(range(8)))
        self.assertEqual(self.make(3), self.make(3))
        self.assertNotEqual(self.make(3), self.make(4))

    def test_timing_is_on_standard_error_only(self):
        done = self.run_ctl("plan", "make", "-f", self.path("job.yaml"), "--step", "0", "--timing", "-o", "json")
        self.assertRegex(done.stderr, r"^planning_ns=\d+\n$")
        self.assertEqual(done.stdout, self.make(0))

    def test_data_roots(self):
        plan = self.make(0)
        elsewhere = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, elsewhere)
        shutil.move(self.path("wikipedia.txt"), elsewhere)
        self.fails(3, "wikipedia.txt", "plan", "make", "-f", self.path("job.yaml"), "--step", "0")
        self.assertEqual(self.make(0, "--data-root", elsewhere), plan)
        self.write("job.yaml", JOB.format(name="a-job", index=os.path.join(elsewhere, "wikipedia.txt")))
        self.assertEqual(self.make(0), plan)

    def test_refusals(self):
        self.fails(3, "step 20: the job has 20", "plan", "make", "-f", self.path("job.yaml"), "--step", "20")
        self.fails(3, "absent", "plan", "make", "-f", self.path("absent"), "--step", "0")
        self.fails(1, "line 2: nothing", "plan", "make", "-f", self.write("x.yaml", "name: a\nnothing: 1\n"),
                   "--step", "0")

    def test_tables(self):
        rows = self.rows("plan", "make", "-f", self.path("job.yaml"), "--step", "0")
        plan = json.loads(self.make(0))
        self.assertEqual(len(rows), sum(len(rank["microBatches"]) for rank in plan["ranks"]))
        self.assertEqual(sum(int(row["tokens"]) for row in rows), int(plan["totals"]["tokens"]))
        text = self.out("plan", "make", "-f", self.path("job.yaml"), "--step", "0")
        self.assertIn(plan["digest"], text)
        self.assertEqual(len(text.splitlines()), 3 + 8)

    def test_show_draws_a_line_a_rank(self):
        path = self.write("plan.json", self.make(0))
        text = self.out("plan", "show", "-f", path, env={"LC_ALL": "C", "COLUMNS": "90"})
        lines = re.findall(r"^rank +(\d+) \|([#=.-]+)\| +(\d+) %$", text, re.M)
        self.assertEqual([int(line[0]) for line in lines], list(range(8)))
        self.assertEqual({len(line[1]) for line in lines}, {70})
        for _, cells, busy in lines:
            drawn = 100 * sum(cell in "#=" for cell in cells) / len(cells)
            self.assertAlmostEqual(drawn, int(busy), delta=3)
        self.assertNotIn("\033", text)
        self.assertIn("█", self.out("plan", "show", "-f", "-", stdin=self.make(0), env={"LC_ALL": "C.UTF-8"}))

    def test_show_says_why(self):
        path = self.write("plan.json", self.make(0))
        text = self.out("plan", "show", "-f", path)
        self.assertRegex(text, r"why [0-9.]+ ms, micro-batch by micro-batch:\n  micro-batch 0, rank \d+")
        self.assertRegex(text, r"idle, of all ranks' time:.* after a rank's last micro-batch")
        self.assertNotIn(" instead of ", text)
        shared = any(int(segment.get("groupSize", 1)) > 1 for rank in json.loads(self.make(0))["ranks"]
                     for batch in rank["microBatches"] for segment in batch.get("segments", []))
        known = self.out("plan", "show", "-f", path, "--job", self.path("job.yaml"))
        self.assertEqual(shared, " instead of " in known)

    def test_check_of_a_sound_plan(self):
        path = self.write("plan.json", self.make(2))
        files = ["-f", path, "--job", self.path("job.yaml")]
        self.assertRegex(self.out("plan", "check", *files), r"^sound  step 2  .*iteration [\d.]+ ms  bound [\d.]+ ms")
        estimate = json.loads(self.out("plan", "check", *files, "-o", "json"))
        self.assertEqual(estimate["iterationNs"], json.loads(self.make(2))["estimate"]["iterationNs"])
        barrier = json.loads(self.out("plan", "check", *files, "--barrier", "-o", "json"))
        self.assertGreaterEqual(int(barrier["iterationNs"]), int(estimate["iterationNs"]))

    def test_check_finds_faults(self):
        def spoil_row(plan):
            plan["ranks"][0]["microBatches"][0]["segments"][0]["index"] = "1"

        def spoil_digest(plan):
            plan["digest"] = "0" * 32

        def drop_rank(plan):
            plan["ranks"].pop()

        def drop_segment(plan):
            plan["ranks"][3]["microBatches"][0]["segments"].pop()

        for spoil in (spoil_row, spoil_digest, drop_rank, drop_segment):
            plan = json.loads(self.make(2))
            spoil(plan)
            path = self.write("plan.json", json.dumps(plan))
            done = self.run_ctl("plan", "check", "-f", path, "--job", self.path("job.yaml"))
            self.assertEqual(done.returncode, 5, (spoil, done.stderr))
            self.assertEqual(done.stdout, "")
            for line in done.stderr.splitlines():
                self.assertTrue(line.startswith("skrullctl: plan check: "), line)

    def check_spoiled(self, status, pattern, spoil, *words):
        plan = json.loads(self.make(2))
        spoil(plan)
        self.fails(status, pattern, "plan", "check", "-f", self.write("plan.json", json.dumps(plan)), "--job",
                   self.path("job.yaml"), *words)

    def test_check_holds_every_estimate_against_the_model(self):
        def add(estimate, name, more):
            estimate[name] = str(int(estimate.get(name, 0)) + more)

        for name, word in (("iterationNs", "iteration"), ("boundNs", "bound"), ("compNs", "comp"), ("commNs", "comm"),
                           ("idleNs", "idle")):
            self.check_spoiled(5, rf"plan check: the plan: the estimate says {word} \d+ ns, the model says \d+ ns",
                               lambda plan, name=name: add(plan["estimate"], name, 1))
        self.check_spoiled(5, "rank 3: the estimate says comp ", lambda plan: add(plan["ranks"][3]["estimate"], "compNs", 7))
        self.check_spoiled(5, "rank 5, micro-batch 0: the estimate says idle ", lambda plan: add(
            plan["ranks"][5]["microBatches"][0]["estimate"], "idleNs", 1), "--barrier")
        self.check_spoiled(5, "the bound is above the time",
                           lambda plan: plan["estimate"].update(boundNs=str(int(plan["estimate"]["iterationNs"]) + 1)))

    def test_check_of_a_plan_without_estimates(self):
        plan = json.loads(self.make(2))
        for holder in [plan] + plan["ranks"] + [batch for rank in plan["ranks"] for batch in rank["microBatches"]]:
            holder.pop("estimate", None)
        self.assertRegex(self.out("plan", "check", "-f", self.write("plan.json", json.dumps(plan)), "--job",
                                  self.path("job.yaml")), "^sound  step 2 ")

    def test_check_where_the_index_cannot_be_read(self):
        path = self.write("plan.json", self.make(2))
        os.remove(self.path("wikipedia.txt"))
        done = self.run_ctl("plan", "check", "-f", path, "--job", self.path("job.yaml"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^sound \(lengths not checked\)  step 2 ")
        self.assertRegex(done.stderr, "lengths are not checked, the index cannot be read here: .*wikipedia.txt: no such")
        with open(path, encoding="utf-8") as file:
            plan = json.load(file)
        plan["ranks"][0]["estimate"]["compNs"] = "1"
        done = self.run_ctl("plan", "check", "-f", self.write("plan.json", json.dumps(plan)), "--job",
                            self.path("job.yaml"))
        self.assertEqual((done.returncode, done.stdout), (5, ""))
        self.assertIn("rank 0: the estimate says comp 1 ns", done.stderr)

    def test_check_of_another_steps_plan_as_this_one(self):
        plan = json.loads(self.make(2))
        for message in [plan] + plan["ranks"]:
            message["step"] = "3"
        self.fails(5, "sample", "plan", "check", "-f", self.write("plan.json", json.dumps(plan)), "--job",
                   self.path("job.yaml"))

    def test_a_file_that_is_no_plan(self):
        for text in ("", "{", "[]", '{"nothing": 1}', '{"dp": "x"}'):
            self.fails(1, "plan.json: ", "plan", "show", "-f", self.write("plan.json", text))


class Compare(Ctl):
    def test_rows(self):
        rows = json_format.Parse(self.out("compare", "-f", self.path("job.yaml"), "--steps", "5", "-o", "json"),
                                 stubs().planner.Comparison()).rows
        names = [row.policy for row in rows]
        self.assertTrue({"uniform", "round_robin", "skrull"} <= set(names))
        row = dict(zip(names, rows))
        self.assertEqual(row["uniform"].speedup, 1.0)
        self.assertGreater(row["skrull"].speedup, 1.0)
        self.assertLess(row["skrull"].speedup_with_step, row["skrull"].speedup)
        for name in names:
            self.assertGreaterEqual(row[name].gap, 0)
            self.assertLessEqual(row[name].p50_ns, row[name].p95_ns)

    def test_one_policy_is_measured_over_uniform_all_the_same(self):
        all_rows = self.rows("compare", "-f", self.path("job.yaml"), "--steps", "4")
        some = self.rows("compare", "-f", self.path("job.yaml"), "--steps", "4", "--policies", "skrull,round_robin")
        self.assertEqual([row["policy"] for row in some], ["skrull", "round_robin"])
        for row in some:
            same = next(other for other in all_rows if other["policy"] == row["policy"])
            row.pop("planning_ns"), same.pop("planning_ns")
            self.assertEqual(row, same)

    def test_policies_to_come_say_so(self):
        with open(os.path.join(harness.SOURCE, "daemon/plan/policies.def"), encoding="utf-8") as table:
            for policy in re.findall(r"^PLANNED\((\w+)\)", table.read(), re.M):
                self.fails(1, f"policy: {policy} is not built yet", "compare", "-f", "x", "--policies", policy)

    def test_figures_are_those_of_the_plans(self):
        estimates = [json.loads(self.out("plan", "make", "-f", self.path("job.yaml"), "--step", str(step), "-o",
                                         "json"))["estimate"] for step in range(5)]
        times = [int(estimate["iterationNs"]) for estimate in estimates]
        gaps = [time / int(estimate["boundNs"]) - 1 for time, estimate in zip(times, estimates)]
        row = self.rows("compare", "-f", self.path("job.yaml"), "--steps", "5", "--policies", "joint")[0]
        self.assertEqual(int(row["mean_ns"]), sum(times) // 5)
        self.assertEqual(int(row["p50_ns"]), sorted(times)[2])
        self.assertAlmostEqual(float(row["gap"]), sum(gaps) / 5, 12)

    def test_there_is_no_speedup_where_uniform_is_refused(self):
        text = JOB.format(name="a", index="wikipedia.txt").replace("26624", "26624, micro_batches: 3")
        path = self.write("few.yaml", text.replace("steps: 20", "steps: 2"))
        rows = {row["policy"]: row for row in self.rows("compare", "-f", path)}
        self.assertIn("by policy uniform", rows["uniform"]["refused"])
        self.assertEqual((rows["joint"]["speedup"], rows["joint"]["speedup_with_step"], rows["joint"]["refused"]),
                         ("", "", ""))
        self.assertGreater(int(rows["joint"]["mean_ns"]), 0)
        self.assertRegex(self.out("compare", "-f", path), r"(?m)^joint +[\d.]+ +[\d.]+ +[\d.]+ +- +- +[\d.]+ %")
        joint = [row for row in json.loads(self.out("compare", "-f", path, "-o", "json"))["rows"]
                 if row["policy"] == "joint"]
        self.assertFalse({"speedup", "speedupWithStep"} & set(joint[0]))

    def test_barrier_is_no_faster(self):
        for free, bound in zip(self.rows("compare", "-f", self.path("job.yaml"), "--steps", "3"),
                               self.rows("compare", "-f", self.path("job.yaml"), "--steps", "3", "--barrier")):
            self.assertGreaterEqual(int(bound["mean_ns"]), int(free["mean_ns"]))

    def test_more_steps_than_there_are(self):
        self.fails(3, "20 steps", "compare", "-f", self.path("job.yaml"), "--steps", "21")
        self.fails(2, "at least 1", "compare", "-f", self.path("job.yaml"), "--steps", "0")


class WithDaemon(Ctl):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon().start()
        cls.server = cls.daemon.address

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close_channels()
        cls.daemon.kill()

    def create(self, name):
        path = self.write(name + ".yaml", JOB.format(name=name, index="wikipedia.txt"))
        return json_format.Parse(self.out("job", "create", "-f", path, "-o", "json"), stubs().job.Job())

    def test_health(self):
        self.assertEqual(self.out("health"), self.server + " serving\n")
        self.assertEqual(json.loads(self.out("health", "-o", "json")), {"status": "SERVING"})

    def test_life_of_a_job(self):
        created = self.create("life")
        self.assertEqual((created.revision, created.info.steps), (1, 20))
        self.assertRegex(created.uid, "^[0-9a-f]{32}$")
        self.assertEqual(json_format.Parse(self.out("job", "get", "life", "-o", "json"), stubs().job.Job()), created)
        self.assertIn(created.uid, self.out("job", "get", "life"))
        listed = json_format.Parse(self.out("job", "list", "-o", "json"), stubs().planner.ListJobsResponse())
        self.assertIn(created, list(listed.jobs))
        self.assertIn("life", [row["name"] for row in self.rows("job", "list")])
        path = self.write("again.json", self.out("job", "get", "life", "-o", "json"))
        self.fails(1, "life", "job", "create", "-f", path)  # it exists
        self.out("job", "delete", "life")
        self.fails(3, "life", "job", "get", "life")
        self.fails(3, "life", "job", "delete", "life")
        self.out("job", "create", "-f", path)  # what get printed can be created

    def test_update(self):
        created = self.create("changing")
        patch = self.write("patch.yaml", "name: changing\nparallel: {dp: 4}\nbatch: {bucket_tokens: 30000}\n")
        updated = json_format.Parse(self.out("job", "update", "-f", patch, "-o", "json"), stubs().job.Job())
        self.assertEqual((updated.revision, updated.uid, updated.parallel.dp, updated.parallel.cp), (2, created.uid, 4, 4))
        self.assertEqual((updated.batch.bucket_tokens, updated.info.bucket_tokens), (30000, 30000))
        self.assertEqual([(r.revision, r.first_step) for r in updated.info.revisions], [(1, 0), (2, 0)])
        self.assertEqual(json_format.Parse(self.out("job", "get", "changing", "-o", "json"), stubs().job.Job()), updated)
        self.assertIn("revision       2", self.out("job", "update", "-f", patch))  # nothing changes any more
        self.fails(1, "has revision 2, not 1", "job", "update", "-f", patch, "--expected-revision", "1")
        other = self.write("other.yaml", "name: changing\nparallel: {dp: 3}\nseed: 6\n")
        self.fails(1, "seed: cannot change", "job", "update", "-f", other)
        masked = json.loads(self.out("job", "update", "-f", other, "--mask", "parallel.dp,batch.align", "--from-step",
                                     "7", "--expected-revision", "2", "-o", "json"))
        self.assertEqual((masked["parallel"]["dp"], masked["info"]["revisions"][2]["firstStep"]), (3, "7"))
        self.assertRegex(self.out("job", "get", "changing"), r"(?m)^revision +3\nfrom_step +7$")
        self.assertIn(("changing", "3", "7"), [(row["name"], row["revision"], row["from_step"])
                                               for row in self.rows("job", "list")])
        self.fails(1, "update_mask: dp is no field", "job", "update", "-f", other, "--mask", "dp")
        self.fails(1, "step 7 or later", "job", "update", "-f", patch, "--from-step", "6")
        self.fails(3, "nobody", "job", "update", "-f", self.write("n.yaml", "name: nobody\n"))
        self.fails(1, "job.name: is required", "job", "update", "-f", self.write("n.yaml", "seed: 5\n"))
        self.fails(1, "line 1: batch.global: 0 is out of range|line 1: batch.global", "job", "update", "-f",
                   self.write("n.yaml", "batch: {global: -1}\n"))
        self.fails(2, "--from-step", "job", "update", "-f", patch, "--from-step", "x")
        whole = self.write("whole.json", self.out("job", "get", "changing", "-o", "json").replace("changing", "copy"))
        self.assertEqual(json.loads(self.out("job", "create", "-f", whole, "-o", "json"))["revision"], 1)

    def test_a_repeated_request_is_harmless(self):
        path = self.write("r.yaml", JOB.format(name="repeated", index="wikipedia.txt"))
        words = ["job", "create", "-f", path, "--request-id", "7", "-o", "json"]
        self.assertEqual(self.out(*words), self.out(*words))

    def test_the_daemon_plans_as_this_process_does(self):
        created = self.create("same")
        path = self.write("same.yaml", JOB.format(name="same", index="wikipedia.txt"))
        for step in (0, 7, 19):
            there = json.loads(self.out("plan", "get", "same", "--step", str(step), "-o", "json"))
            here = json.loads(self.out("plan", "make", "-f", path, "--step", str(step), "-o", "json"))
            for message in [there] + there["ranks"]:
                self.assertEqual((message.pop("uid"), message.pop("revision")), (created.uid, 1))
            self.assertEqual(there, here)

    def test_plans_of_the_daemon(self):
        self.create("plans")
        self.assertEqual(self.out("plan", "get", "plans", "--step", "1").count("\n"), 11)
        self.assertEqual(self.out("plan", "get", "plans", "--step", "1", "--rank", "5").count("\n"), 4)
        self.assertEqual(len(re.findall("^rank", self.out("plan", "show", "plans", "--step", "1"), re.M)), 8)
        self.assertRegex(self.out("plan", "check", "plans", "--step", "1", "--data-root", harness.LENGTHS), "^sound  ")
        # Where the index is elsewhere, the rest is checked, and that is said.
        done = self.run_ctl("plan", "check", "plans", "--step", "1", "--data-root", "/proc")
        self.assertEqual(done.returncode, 0)
        self.assertIn("lengths are not checked", done.stderr)
        self.assertIn("lengths not checked", done.stdout)
        self.fails(3, "20", "plan", "get", "plans", "--step", "20")
        self.fails(3, "no-such", "plan", "get", "no-such", "--step", "0")
        self.fails(1, "8", "plan", "get", "plans", "--step", "0", "--rank", "8")

    def test_stream(self):
        self.create("stream")
        lines = self.out("stream", "stream", "--rank", "3").splitlines()
        self.assertEqual([line.split()[0] for line in lines], [f"step={step}" for step in range(20)])
        rows = self.rows("stream", "stream", "--rank", "3", "--from", "17")
        self.assertEqual([row["step"] for row in rows], ["17", "18", "19"])
        self.assertEqual(self.out("stream", "stream", "--rank", "3", "--from", "20"), "")
        self.fails(3, "21", "stream", "stream", "--rank", "3", "--from", "21")
        self.fails(1, "8", "stream", "stream", "--rank", "8")
        self.fails(3, "absent", "stream", "absent", "--rank", "0")

    def test_a_revision_is_no_loss_of_the_stream(self):
        self.create("revised")
        patch = self.write("patch.yaml", "name: revised\nbatch: {bucket_tokens: 30000}\n")
        self.out("job", "update", "-f", patch, "--from-step", "7")
        done = self.run_ctl("stream", "revised", "--rank", "3")
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()], [f"step={step}" for step in range(20)])
        self.assertRegex(done.stderr, r"^[^\n]*stream of job revised, rank 3: revision begins at step 7\n$")


if __name__ == "__main__":
    unittest.main()
