#!/usr/bin/python3
"""skrullctl's completions: what a shell offers where, held against the help. Bash is run; zsh and fish where they are."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import harness
from harness import Daemon, create, job

# As bash calls it: the function reads the line and the cursor's place, and fills COMPREPLY.
PROBE = 'source "$1"; COMP_LINE=$2; COMP_POINT=${#COMP_LINE}; _skrullctl; printf "%s\\n" "${COMPREPLY[@]}"'


def out(*words):
    return subprocess.run([harness.SKRULLCTL, *words], capture_output=True, text=True, check=True).stdout


def help_of(*words):
    """(verbs, options that take a value, options that take none) of a help text."""
    text = out(*words, "--help")
    verbs = re.findall(r"^  ([a-z]+(?: [a-z]+)?)  +\S", text.split("\nOptions")[0], re.M)
    options = re.findall(r"^  (-\S+) (\S*)", text, re.M)
    return verbs, {name for name, value in options if value}, {name for name, value in options if not value}


class Completion(unittest.TestCase):
    shells = ("bash", "zsh", "fish")

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="completion-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.scripts = {}
        for shell in cls.shells:
            cls.scripts[shell] = os.path.join(cls.folder, shell)
            with open(cls.scripts[shell], "w", encoding="ascii") as script:
                script.write(out("completion", shell))
        cls.env = dict(os.environ, SKRULL_SERVER="unix:" + os.path.join(cls.folder, "nobody"),
                       PATH=os.path.dirname(harness.SKRULLCTL) + ":" + os.environ["PATH"])

    def offers(self, line, **env):
        done = subprocess.run(["bash", "--norc", "-c", PROBE, "probe", self.scripts["bash"], line], cwd=self.folder,
                              env=dict(self.env, **env), capture_output=True, text=True, timeout=20, check=True)
        self.assertEqual(done.stderr, "", line)
        return sorted(done.stdout.split())

    def test_each_shell_can_read_its_script(self):
        for shell in self.shells:
            if shutil.which(shell):
                done = subprocess.run([shell, "-n", self.scripts[shell]], capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def test_every_verb_and_option_of_the_help_is_offered(self):
        verbs, valued, flags = help_of()
        self.assertGreater(len(verbs), 10)
        self.assertEqual(self.offers("skrullctl "), sorted({verb.split()[0] for verb in verbs}))
        self.assertEqual(self.offers("skrullctl -"), sorted(valued | flags))
        with open(self.scripts["fish"], encoding="ascii") as script:
            fish = script.read()
        for verb in verbs:
            noun, _, rest = verb.partition(" ")
            if rest:
                self.assertIn(rest, self.offers(f"skrullctl {noun} "))
            _, valued, flags = help_of(*verb.split())
            self.assertEqual(self.offers(f"skrullctl {verb} -"), sorted(valued | flags))
            for option in valued | flags:
                # A value is no operand: the verb's options are offered behind it too.
                line = f"skrullctl {verb} {option} " + ("value -" if option in valued else "-")
                self.assertEqual(self.offers(line), sorted(valued | flags), line)
                self.assertIn(f" -{'l' if option.startswith('--') else 's'} {option.lstrip('-')}", fish)

    def test_words(self):
        for line, words in (
                ("skrullctl pl", ["plan"]), ("skrullctl plan m", ["make"]), ("skrullctl nothing ", []),
                ("skrullctl plan make --da", ["--data-root"]), ("skrullctl -o ", ["csv", "json", "table", "wide"]),
                ("skrullctl -o json plan g", ["get"]), ("skrullctl --server unix:/x y", []),
                ("skrullctl --server=unix:/x hea", ["health"]), ("skrullctl --server unix:/x -o j", ["json"]),
                ("skrullctl index describe --format=js", ["json", "jsonl"]),
                ("skrullctl index describe --unit ", ["document", "sequence"]),
                ("skrullctl compare --policies skrull,un", ["skrull,uniform"]),
                ("skrullctl job update --mask batch.al", ["batch.align"]), ("skrullctl health ", []),
                ("skrullctl completion ", ["bash", "fish", "zsh"]), ("skrullctl plan make --step ", [])):
            self.assertEqual(self.offers(line), words, line)

    def test_files_and_folders(self):
        os.makedirs(os.path.join(self.folder, "data-folder"), exist_ok=True)
        with open(os.path.join(self.folder, "data.txt"), "w", encoding="ascii"):
            pass
        self.assertEqual(self.offers("skrullctl index describe data"), ["data-folder", "data.txt"])
        self.assertEqual(self.offers("skrullctl compare -f data.t"), ["data.txt"])
        self.assertEqual(self.offers("skrullctl compare --data-root da"), ["data-folder"])

    def test_jobs_of_the_daemon(self):
        self.assertEqual(self.offers("skrullctl job get "), []) # nobody answers
        with Daemon() as daemon:
            for name in ("one", "other", "third"):
                create(daemon, job(name=name))
            for line in ("skrullctl job get ", "skrullctl plan get --step 3 ", "skrullctl stream --rank=1 "):
                self.assertEqual(self.offers(line, SKRULL_SERVER=daemon.address), ["one", "other", "third"], line)
            self.assertEqual(self.offers(f"skrullctl --server {daemon.address} job delete o"), ["one", "other"])
            self.assertEqual(self.offers(f"skrullctl --server={daemon.address} job delete t"), ["third"])

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish(self):
        for line, words in (("skrullctl pl", ["plan"]), ("skrullctl plan m", ["make"]),
                            ("skrullctl -o ", ["csv", "json", "table", "wide"]),
                            ("skrullctl plan make --da", ["--data-root"]), ("skrullctl completion z", ["zsh"])):
            text = subprocess.run(["fish", "--no-config", "-c", f"source {self.scripts['fish']}; complete -C '{line}'"],
                                  env=self.env, capture_output=True, text=True, check=True).stdout
            self.assertEqual([offer.split("\t")[0] for offer in text.splitlines()], words)

    def test_another_shell_is_refused(self):
        done = subprocess.run([harness.SKRULLCTL, "completion", "tcsh"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("bash, zsh and fish", done.stderr)


if __name__ == "__main__":
    unittest.main()
