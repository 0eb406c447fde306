#!/usr/bin/python3
"""The man pages against the programs: every verb, option and key that there is has its entry, and no other.

Environment: SKRULL_BUILD, the build folder; SKRULL_SOURCE, the source folder.
"""
import os
import re
import shlex
import subprocess
import unittest

BUILD = os.environ["SKRULL_BUILD"]
SOURCE = os.environ["SKRULL_SOURCE"]
PAGES = os.path.join(SOURCE, "deploy/man")
PROGRAMS = {"skrulld": "daemon/skrulld", "skrullctl": "client/ctl/skrullctl", "skrull-worker": "cuda/worker/skrull-worker"}
OPTION = r"(?<![\w-])--?[a-z][a-z-]*"


def run(program, *words):
    command = [os.path.join(BUILD, PROGRAMS[program]), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as source:
        return source.read()


def page(name):
    return read("deploy/man", next(p for p in os.listdir(PAGES) if p.rpartition(".")[0] == name))


def plain(line):
    """A line of roff as it reads: macros of fonts joined, fonts dropped."""
    macro = re.match(r"\.(B|I|BI|BR|IR|RB|RI) (.*)", line)
    if macro:
        words = shlex.split(macro.group(2).replace("\\-", "-").replace("\\f", "\\\\f").replace("'", "\\'"))
        line = (" " if len(macro.group(1)) == 1 else "").join(words)
    return re.sub(r"\\f[BIRP]", "", line.replace("\\-", "-").replace("\\(dq", '"'))


def entries(text, section):
    """[(what the entry is headed, its text as roff)] of a section's .TP entries."""
    body = re.search(rf'^\.SH "?{section}"?\n(.*?)(?=^\.SH |\Z)', text, re.M | re.S).group(1)
    found = []
    for entry in body.split(".TP\n")[1:]:
        head, _, rest = entry.partition("\n")
        found.append((plain(head), rest.split("\n.PP\n")[0]))
    return found


def named(text):
    """The options that a text names, in order."""
    return re.findall(OPTION, text)


def defined(table, macro):
    """The first arguments of a macro's lines in a .def table."""
    return re.findall(rf'^{macro}\("?([\w.-]+)', read(table), re.M)


class Format(unittest.TestCase):
    def test_no_warnings(self):
        for name in sorted(os.listdir(PAGES)):
            result = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", os.path.join(PAGES, name)],
                                    capture_output=True, text=True, check=False)
            self.assertEqual(result.stderr, "", name)


class Options(unittest.TestCase):
    def check(self, name, offered):
        text = page(name)
        headed = [option for head, _ in entries(text, "OPTIONS") for option in named(head)]
        self.assertEqual(sorted(headed), sorted(set(offered)), name)
        return text

    def test_of_the_daemon_and_the_worker(self):
        for name in ("skrulld", "skrull-worker"):
            # In the help an option begins its line; elsewhere others are spoken of.
            said = run(name, "--help")
            text = self.check(name, re.findall(rf"^  ({OPTION})", said, re.M))
            synopsis = plain_section(text, "SYNOPSIS")
            built = re.findall(rf"^  ({OPTION})(?!.*not built yet)", said, re.M)
            self.assertEqual(sorted(set(named(synopsis))), sorted(set(built)), name)

    def test_of_skrullctl(self):
        options = run("skrullctl", "--help").split("Options of every command:")[1]
        self.check("skrullctl", re.findall(rf"^  ({OPTION})", options, re.M))

    def test_none_is_spoken_of_that_is_not_there(self):
        for name in PROGRAMS:
            known = set(named(run(name, "--help"))) | {"-HUP"}
            for verb in verbs() if name == "skrullctl" else ():
                known |= set(named(run(name, *verb.split(), "--help")))
            text = "\n".join(plain(line) for line in page(name).split("\n"))
            self.assertEqual(set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) - known, set(), name)


def plain_section(text, section):
    body = re.search(rf"^\.SH {section}\n(.*?)(?=^\.SH )", text, re.M | re.S).group(1)
    return "\n".join(plain(line) for line in body.split("\n"))


def verbs():
    return re.findall(r"^  ([a-z]+(?: [a-z]+)?)  +\S", run("skrullctl", "--help").split("\nOptions")[0], re.M)


class Verbs(unittest.TestCase):
    def test_each_has_its_synopsis(self):
        heads = [head for head, _ in entries(page("skrullctl"), "COMMANDS")]
        helps = [run("skrullctl", *verb.split(), "--help") for verb in verbs()]
        helps = {re.match(r"usage: skrullctl (.*)", said).group(1): said for said in helps}
        self.assertEqual(sorted(heads), sorted(helps))
        for head, said in helps.items():
            own = re.search(r"\nOptions:\n(.*?)\n\n", said, re.S)
            self.assertEqual(sorted(set(named(head))), sorted(re.findall(rf"^  ({OPTION})", own[1] if own else "", re.M)))

    def test_every_option_is_explained(self):
        """In its verb's entry, or in an earlier one whose text is meant."""
        heads = entries(page("skrullctl"), "COMMANDS")
        explained = {"-o", "--server"} # of every verb, explained above
        for head, text in heads:
            verb = " ".join(word for word in head.split()[:2] if re.fullmatch("[a-z]+", word))
            spoken = set(named(plain(text.replace("\n", " "))))
            self.assertEqual(spoken - set(named(head)) - explained, set(), verb)
            explained |= spoken
            self.assertEqual(set(named(head)) - explained, set(), verb)

    def test_what_comes_later_is_listed(self):
        later = re.search(r"^Not built yet: (.*)$", run("skrullctl", "--help"), re.M).group(1).split(", ")
        text = plain(re.search(r"\n\.PP\n(.*?)\.SH EXIT", page("skrullctl"), re.S).group(1).replace("\n", " "))
        self.assertEqual(re.sub(" are not built yet.*", "", text).replace(" and ", ", ").split(", "), later)


class JobFile(unittest.TestCase):
    """skrull-job.5 against the tables of a job's fields."""

    @classmethod
    def setUpClass(cls):
        cls.fields = {} # key: (macro, arguments)
        for table, prefix in (("job_fields.def", ""), ("job_data_fields.def", "data[].")):
            for macro, arguments in re.findall(r"^(NUMBER|TEXT|WORD|FRACTION)\((.*?)\)", read("proto/src", table), re.M):
                words = [word.strip() for word in arguments.split(",")]
                words = words[1:] if macro == "NUMBER" else words # without the type
                cls.fields[prefix + words[0]] = (macro, words[1:])
        cls.words = {name: re.findall(r'\{"(\w+)", "', text) for name, text in re.findall(
            r"struct job_word (\w+)\[\] = \{(.*?)\};", read("proto/src/job_fields.c"), re.S)}
        cls.entries = entries(page("skrull-job"), "KEYS")

    def of(self, key):
        return next((head, text) for head, text in self.entries if key in re.split(r", | or | ", head))

    def test_each_key_has_its_entry(self):
        heads = [key for head, _ in self.entries for key in re.findall(r"[a-z_.\[\]]+", head.replace("(required)", ""))
                 if key != "or"]
        self.assertEqual(sorted(heads), sorted(self.fields))

    def test_what_is_required(self):
        for key, (_, arguments) in self.fields.items():
            required = "REQUIRED" in arguments or key == "model.preset" # which model.config will replace
            self.assertEqual("(required)" in self.of(key)[0], required, key)

    def test_words_and_defaults(self):
        for key, (macro, arguments) in self.fields.items():
            text = self.of(key)[1].replace("\\-", "-")
            if macro == "WORD":
                words = self.words[arguments[0]]
                default = next(word for word in words if arguments[1].endswith("_" + word.upper()))
                for word in words:
                    self.assertRegex(plain(text), rf"(?<!\w){word}(?!\w)", key)
            else:
                default = arguments[-1].strip('"')
            if macro in ("WORD", "TEXT", "NUMBER") and "REQUIRED" not in arguments and default != "NULL" and \
                    key not in ("epochs", "steps"):
                self.assertIn(f"\\fB{default}\\fR", text, key)

    def test_names_of_tables(self):
        for key, table, macro in (("data[].format", "daemon/index/formats.def", "X"),
                                  ("policy", "daemon/plan/policies.def", "POLICY"),
                                  ("model.preset", "daemon/cost/presets.def", "PRESET"),
                                  ("hardware.profile", "daemon/cost/profiles.def", "PROFILE")):
            names = defined(table, macro)
            self.assertTrue(names, table)
            for name in names:
                self.assertRegex(plain(self.of(key)[1]), rf"(?<![\w-]){re.escape(name)}(?![\w-])", key)


if __name__ == "__main__":
    unittest.main()
