# SPDX-License-Identifier: MIT
"""The program of a commit and of the working tree, built side by side for the proofs in this folder."""
import os
import shutil
import subprocess

OPTIONS = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DWEIR_LTO=OFF", "-DWEIR_TESTS=OFF", "-DWEIR_BENCH=OFF"]


def run(*words, **more):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, **more)


def build(source, folder, flags):
    """Builds `weir` of the tree `source` in `folder`; returns the program."""
    run("cmake", "-S", source, "-B", folder, *OPTIONS, "-DCMAKE_C_FLAGS_RELEASE=" + flags)
    run("cmake", "--build", folder, "--target", "weir")
    return os.path.join(folder, "weir")


def unpack(commit, top, folder):
    """Writes the files of `commit` into `folder`, with the dependencies that this tree has unpacked."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    archive = subprocess.run(["git", "-C", top, "archive", commit], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    deps = os.path.join(top, "build", "deps")
    if os.path.isdir(deps):
        os.makedirs(os.path.join(folder, "build"))
        os.symlink(deps, os.path.join(folder, "build", "deps"))


def programs(base, work, flags):
    """The programs of the commit `base` and of the working tree, built below `work`."""
    top = subprocess.run(["git", "rev-parse", "--show-toplevel"], check=True, capture_output=True, text=True).stdout.strip()
    work = os.path.abspath(work)
    before = os.path.join(work, "before")
    unpack(base, top, before)
    return build(before, os.path.join(work, "build-before"), flags), build(top, os.path.join(work, "build-after"), flags)
