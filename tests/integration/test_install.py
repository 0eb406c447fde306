#!/usr/bin/python3
"""What a packager gets: the installed tree, pkg-config files, exported symbols and units.

Environment: SKRULL_BUILD, the build folder; SKRULL_SOURCE, the source folder; SKRULL_SANITIZE, which
sanitizers it was built with ("none").
"""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import yaml

BUILD = os.environ["SKRULL_BUILD"]
SOURCE = os.environ["SKRULL_SOURCE"]


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp()
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", cls.root)
        cls.prefix = os.path.join(cls.root, "usr/local")
        cls.pkgconfig = next(where for where, _, files in os.walk(cls.prefix) if "skrull.pc" in files)
        cls.lib = os.path.dirname(cls.pkgconfig)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    def test_programs_run_from_where_they_are_installed(self):
        for program in ("skrulld", "skrullctl", "skrull-worker"):
            out = run(os.path.join(self.prefix, "bin", program), "--version",
                      env={"LD_LIBRARY_PATH": self.lib})
            self.assertRegex(out, rf"^{program} \d+\.\d+\.\d+")

    def test_headers_manuals_and_unit_are_in_place(self):
        for path in ("include/skrull/client.h", "include/skrull/planner.h", "include/skrull/plan.h",
                     "include/skrull/job.h", "include/skrull/error.h", "include/skrull/types.h",
                     "share/man/man8/skrulld.8", "share/man/man1/skrullctl.1",
                     "share/man/man1/skrull-worker.1", "share/man/man5/skrull-job.5",
                     "share/man/man7/skrull-embed.7", "share/doc/skrull/example_embed.c",
                     "share/bash-completion/completions/skrullctl", "share/zsh/site-functions/_skrullctl",
                     "share/fish/vendor_completions.d/skrullctl.fish", "lib/systemd/system/skrulld.service"):
            self.assertTrue(os.path.exists(os.path.join(self.prefix, path)), path)

    def test_libraries_export_public_symbols_only(self):
        for library in ("libskrull.so", "libskrull-plan.so"):
            symbols = run("nm", "-D", "--defined-only", os.path.join(self.lib, library)).split("\n")
            names = [line.split()[-1] for line in symbols if line]
            self.assertGreater(len(names), 5)
            self.assertEqual([name for name in names if not name.startswith("skrull_")], [], library)
            # libskrull has a planner inside, for streams without their daemon; two must not meet in a program.
            is_planner = any(name.startswith("skrull_planner_") for name in names)
            self.assertEqual(is_planner, library == "libskrull-plan.so")

    @unittest.skipIf(os.environ.get("SKRULL_SANITIZE", "none") != "none",
                     "a sanitized library needs a program that is linked with the sanitizer's runtime")
    def test_a_program_builds_against_either_library(self):
        programs = {
            "skrull": """#include <skrull/client.h>
                int main(void) { struct skrull_client *c; struct skrull_error e;
                  if (skrull_client_new(0, &c, &e)) return 1; skrull_client_free(c); return 0; }""",
            "skrull-plan": """#include <skrull/planner.h>
                int main(void) { struct skrull_cost_options o = {.preset = "qwen2.5-0.5b"};
                  struct skrull_cost_model *m; struct skrull_error e;
                  if (skrull_cost_model_new(&o, &m, &e)) return 1;
                  skrull_cost_model_free(m); return 0; }""",
        }
        env = {**os.environ, "PKG_CONFIG_PATH": self.pkgconfig, "PKG_CONFIG_SYSROOT_DIR": self.root,
               "LD_LIBRARY_PATH": self.lib}
        with open(os.path.join(self.prefix, "share/doc/skrull/example_embed.c"), encoding="utf-8") as example:
            text = example.read()
        self.assertLessEqual(text.count("\n"), 60)
        flags = run("pkg-config", "--cflags", "--libs", "skrull", "skrull-cuda", env=env).split()
        subprocess.run(["cc", "-Wall", "-x", "c", "-", "-o", os.path.join(self.root, "example"), *flags], input=text,
                       text=True, check=True)
        for package, text in programs.items():
            flags = run("pkg-config", "--cflags", "--libs", package, env=env).split()
            program = os.path.join(self.root, package + "-test")
            subprocess.run(["cc", "-std=c99", "-x", "c", "-", "-o", program, *flags], input=text, text=True,
                           check=True)
            run(program, env=env)


class Unit(unittest.TestCase):
    unit = os.path.join(BUILD, "deploy/skrulld.service")

    def test_unit_is_hardened(self):
        run("systemd-analyze", "security", "--offline=true", "--threshold=20", self.unit)

    def test_unit_has_no_unknown_keys(self):
        # The program and its manual are not installed here; any other complaint is a fault.
        result = subprocess.run(["systemd-analyze", "verify", self.unit], capture_output=True, text=True)
        said = [line for line in (result.stdout + result.stderr).split("\n")
                if line and "is not executable" not in line and "'man skrulld(8)'" not in line]
        self.assertEqual(said, [])


class Manifest(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(SOURCE, "deploy/k8s/skrulld.yaml"), encoding="utf-8") as manifest:
            self.objects = {item["kind"]: item for item in yaml.safe_load_all(manifest)}

    def test_port_and_selectors_agree(self):
        pod = self.objects["StatefulSet"]["spec"]["template"]
        container = pod["spec"]["containers"][0]
        self.assertEqual(self.objects["Service"]["spec"]["selector"], pod["metadata"]["labels"])
        port = container["ports"][0]["containerPort"]
        self.assertIn(f"--listen=0.0.0.0:{port}", container["args"])
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            self.assertEqual(container[probe]["grpc"]["port"], port)

    def test_daemon_takes_the_arguments(self):
        args = self.objects["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]["args"]
        result = subprocess.run([os.path.join(BUILD, "daemon/skrulld"), *args, "--help"],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_grace_is_longer_than_the_drain(self):
        pod = self.objects["StatefulSet"]["spec"]["template"]["spec"]
        drain = next(a for a in pod["containers"][0]["args"] if a.startswith("--drain-timeout="))
        self.assertGreater(pod["terminationGracePeriodSeconds"], int(drain.split("=")[1]))


if __name__ == "__main__":
    unittest.main()
