#!/usr/bin/python3
"""Every public header compiles alone as C99, C11 and C++, without a warning; a C++ program can use them.

Environment: SKRULL_BUILD, the build folder (default ./build); SKRULL_SANITIZE, which sanitizers it was built
with ("none").
"""
import glob
import os
import shutil
import subprocess
import tempfile
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("SKRULL_BUILD", "build"))
INCLUDES = [os.path.join(SOURCE, folder, "include") for folder in ("proto", "client", "cuda")]
HEADERS = sorted(os.path.relpath(path, folder) for folder in INCLUDES
                 for path in glob.glob(os.path.join(folder, "skrull", "*.h")))
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
C = [compiler for compiler in ("gcc", "clang") if shutil.which(compiler)]
CPP = [compiler for compiler in ("g++", "clang++") if shutil.which(compiler)]


def compile_text(text, compiler, standard, *options):
    language = "c++" if "+" in compiler else "c"
    command = [compiler, "-x", language, "-std=" + standard, *STRICT, *("-I" + folder for folder in INCLUDES), "-"]
    return subprocess.run(command + list(options), input=text, capture_output=True, text=True, check=False)


class Headers(unittest.TestCase):
    def test_there_are_some(self):
        self.assertTrue({"skrull/client.h", "skrull/planner.h", "skrull/plan.h", "skrull/job.h", "skrull/error.h",
                         "skrull/types.h"} <= set(HEADERS), HEADERS)
        self.assertTrue(C and CPP, "no compiler")

    def test_each_compiles_alone(self):
        for header in HEADERS:
            # Twice: it must also be harmless beside another that includes it.
            text = f"#include <{header}>\n#include <{header}>\nint main(void) {{ return 0; }}\n"
            for compiler, standard in ([(c, s) for c in C for s in ("c99", "c11")] +
                                       [(c, s) for c in CPP for s in ("c++11", "c++20")]):
                done = compile_text(text, compiler, standard, "-fsyntax-only")
                self.assertEqual(done.returncode, 0, f"{header} by {compiler} -std={standard}:\n{done.stderr}")

    @unittest.skipIf(os.environ.get("SKRULL_SANITIZE", "none") != "none",
                     "a sanitized library needs a program that is linked with the sanitizer's runtime")
    def test_a_cpp_program_uses_both_libraries(self):
        with open(os.path.join(SOURCE, "tests", "contract", "uses_headers.cpp"), encoding="utf-8") as source:
            text = source.read()
        libraries = [os.path.join(BUILD, folder, "lib" + name + ".so")
                     for folder, name in (("client", "skrull"), ("daemon/plan", "skrull-plan"))]
        for compiler in CPP:
            with tempfile.TemporaryDirectory() as folder:
                program = os.path.join(folder, "program")
                paths = ["-Wl,-rpath," + os.path.dirname(library) for library in libraries]
                done = compile_text(text, compiler, "c++11", "-x", "none", *libraries, *paths, "-o", program)
                self.assertEqual(done.returncode, 0, done.stderr)
                done = subprocess.run([program], capture_output=True, text=True, timeout=30, check=False)
                self.assertEqual((done.returncode, done.stdout), (0, "1 rank, 1 segment of 100 tokens\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
