#!/usr/bin/env python3
"""The tests of the packages: all see one release, which is packed once.    packed.py BUILD_FOLDER [TEST…]"""
import atexit
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VERSION = "0.1.0+test"
ELSEWHERE = {"LC_ALL": "C.UTF-8", "LANGUAGE": "de", "TZ": "Asia/Tokyo"}


def run(*command, **options):
    """Exit status and output."""
    environment = {**os.environ, **options.pop("env", {})}
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False, env=environment, **options)
    return done.returncode, done.stdout


@functools.lru_cache(None)
def release():
    """A folder with the packages and the archive. Without compression, which takes most of the time."""
    folder = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    for generator in ("DEB", "TGZ"):
        subprocess.run(["cpack", "-G", generator, "-B", str(folder), "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=none"], cwd=os.environ["NS_BUILD"],
                       check=True, stdout=subprocess.DEVNULL, env={**os.environ, "NS_PACKAGE_VERSION": VERSION},
                       umask=0o077)  # which must not reach the packages
    shutil.rmtree(folder / "_CPack_Packages")
    return folder


def main():
    """NS_BUILD names the folder of the build; this module is imported by the tests, so a variable of it would exist twice."""
    os.environ["NS_BUILD"] = sys.argv.pop(1)
    sys.path.insert(0, str(HERE))
    unittest.main(module=None if __name__ == "__main__" else "__main__", verbosity=2,
                  argv=[sys.argv[0], *(sys.argv[1:] or (["discover", "-s", str(HERE)] if __name__ == "__main__" else []))])


if __name__ == "__main__":
    main()
