# SPDX-License-Identifier: MIT
"""A copy of the tree for mutants, its build, and its tests. Nothing outside of it is changed."""
import fnmatch
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import time

OUTPUT_DIRS = {"unit": "tests", "fault": "tests/fault", "torture": "tests/torture", "policy": "tests/policy",
               "scenario": "tests/scenario", "cli": "tests/cli"}
MEMORY_BYTES = 16 << 30  # a mutant that allocates without end fails before the host runs out


def limit_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_memory():
    limit_core()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))


class Test:
    """An executable: its name, its ninja target, and its time without a fault."""

    def __init__(self, source):
        kind, self.name = source.split("/")[1], os.path.basename(source)[:-2]
        self.target = "%s/%s" % (OUTPUT_DIRS[kind], self.name)
        self.seconds = 0.0


class Scratch:
    def __init__(self, top, folder, jobs, sanitize):
        self.top, self.src, self.jobs, self.sanitize = top, os.path.join(folder, "src"), jobs, sanitize
        self.build = os.path.join(self.src, "build", "sanitized" if sanitize else "plain")
        self.coverage = os.path.join(folder, "coverage")

    # ---- the copy ----

    def copy(self):
        """Bring the copy up to date with the work tree. Unchanged files keep their time, so ninja does not
        rebuild them."""
        listed = subprocess.run(["git", "-C", self.top, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                check=True, capture_output=True).stdout.decode().split("\0")
        wanted = {f for f in listed if f and os.path.isfile(os.path.join(self.top, f))}
        for f in wanted:
            self.copy_file(f)
        for root, dirs, files in os.walk(self.src):
            if root == self.src:
                dirs[:] = [d for d in dirs if d != "build"]
            for f in files:
                path = os.path.join(root, f)
                if os.path.relpath(path, self.src) not in wanted:
                    os.unlink(path)
        deps = os.path.join(self.top, "build", "deps")
        if os.path.isdir(deps) and not os.path.isdir(os.path.join(self.src, "build", "deps")):
            shutil.copytree(deps, os.path.join(self.src, "build", "deps"), symlinks=True)

    def copy_file(self, name):
        with open(os.path.join(self.top, name), "rb") as f:
            data = f.read()
        to = os.path.join(self.src, name)
        if os.path.exists(to):
            with open(to, "rb") as f:
                if f.read() == data:
                    return
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(to, "wb") as f:
            f.write(data)
        shutil.copymode(os.path.join(self.top, name), to)

    def configure(self):
        # Without debug information, which would be most of the linking time.
        values = {"CMAKE_BUILD_TYPE": "Debug", "CMAKE_C_FLAGS_DEBUG": "-O1", "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
                  "WEIR_TESTS": "ON", "WEIR_BENCH": "ON", "WEIR_WERROR": "OFF", "WEIR_SANITIZE": self.sanitize}
        command = ["cmake", "-S", self.src, "-B", self.build, "-G", "Ninja"]
        command += ["-D%s=%s" % value for value in values.items()]
        if shutil.which("ccache"):
            command.append("-DCMAKE_C_COMPILER_LAUNCHER=ccache")
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def path(self, name):
        return os.path.join(self.src, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)

    # ---- objects ----

    def command_of(self, name):
        """The compiler's words for a source file with {out} for the object, and its folder; None for a header."""
        with open(os.path.join(self.build, "compile_commands.json"), encoding="utf-8") as f:
            for c in json.load(f):
                if os.path.relpath(os.path.join(c["directory"], c["file"]), self.src) == name:
                    words = shlex.split(c["command"])
                    return words[os.path.basename(words[0]) == "ccache":], c["directory"]
        return None

    def object_of(self, name):
        """The bytes that the compiler makes of a source file, without debug information, which differs for
        equal code; None for a header, or when it does not compile."""
        command = self.command_of(name)
        if not command:
            return None
        words, folder = command
        out = os.path.join(self.build, "one.o")
        words[words.index("-o") + 1] = out
        if subprocess.run(words + ["-g0"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            return None
        with open(out, "rb") as f:
            return f.read()

    # ---- executable lines ----

    def lines(self, folder):
        """[(file, line)] of the folder that gcc generates code for, including headers, sorted."""
        with open(os.path.join(self.build, "compile_commands.json"), encoding="utf-8") as f:
            commands = json.load(f)
        shutil.rmtree(self.coverage, ignore_errors=True)
        os.makedirs(self.coverage)
        found, seen = set(), set()
        for c in commands:
            name = os.path.relpath(os.path.join(c["directory"], c["file"]), self.src)
            if name.startswith(folder + "/") and name not in seen:
                seen.add(name)
                found |= self.lines_of(c, folder)
        return sorted(found)

    def lines_of(self, command, folder):
        words = shlex.split(command["command"])
        if os.path.basename(words[0]) == "ccache":
            words = words[1:]
        out = os.path.join(self.coverage, "one.o")
        words[words.index("-o") + 1] = out
        words = [w for w in words if not w.startswith("-O")] + ["-O0", "--coverage", "-w"]
        subprocess.run(words, cwd=command["directory"], check=True, stdout=subprocess.DEVNULL)
        text = subprocess.run(["gcov", "--json-format", "--stdout", out], cwd=self.coverage, check=True,
                              capture_output=True).stdout
        found = set()
        for file in json.loads(text)["files"]:
            name = os.path.relpath(os.path.join(command["directory"], file["file"]), self.src)
            if name.startswith(folder + "/"):
                found |= {(name, line["line_number"]) for line in file["lines"]}
        return found

    # ---- tests ----

    def tests(self, globs):
        found = set()
        for g in globs:
            folder = os.path.join(self.src, "tests", os.path.dirname(g))
            for f in os.listdir(folder) if os.path.isdir(folder) else []:
                pattern = os.path.basename(g)
                if re.match(r"(test|fault|torture)_\w+\.c$", f) and fnmatch.fnmatch(f, pattern):
                    found.add("tests/%s/%s" % (os.path.dirname(g), f))
        return [Test(s) for s in sorted(found)]

    def make(self, tests, mutated=False):
        """Build the tests; False when it fails. Objects of a mutant are not worth caching."""
        env = dict(os.environ, CCACHE_READONLY="1") if mutated else None
        command = ["ninja", "-C", self.build, "-j", str(self.jobs)] + [t.target for t in tests]
        return subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def run(self, test, limit_s):
        """"passed", "failed" or "timeout". As with ctest, files may belong to anybody."""
        start = time.monotonic()
        p = subprocess.Popen([os.path.join(self.build, test.target)], cwd=os.path.join(self.build, "tests"),
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env=dict(os.environ, WEIR_TRUST_FILES="any"), start_new_session=True,
                             preexec_fn=limit_core if self.sanitize else limit_memory)  # a limit would not work with a sanitizer's shadow memory
        try:
            result = "passed" if p.wait(limit_s) == 0 else "failed"
        except subprocess.TimeoutExpired:
            result = "timeout"
        finally:  # also when this program is terminated
            try:
                # Its own group: processes that it started end with it
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()
        test.seconds = test.seconds or time.monotonic() - start
        return result
