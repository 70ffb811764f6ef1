"""Packages, builds and the list of tests, for targets."""
import functools
import json
import os
import subprocess

from facts import ROOT
from run import Broken

BIN = ROOT / "build/release/bin"
NODE = BIN / "neuroshardd"
PROGRAMS = ("neuroshardd", "neuroshard_network", "compute_cpu", "neuroshard")  # what packages hold
TESTS = ROOT / "build/release/tests"
DATA = os.environ.get("NS_SHARED_DATA", str(ROOT.parent / "shared/data"))


def shell(script, *arguments):
    """A function of installers/debian.sh, which sh/run.sh and the quickstart use as well."""
    return subprocess.run(["sh", "-eu", "-c", f'. installers/debian.sh; {script}', "sh", *arguments], cwd=ROOT,
                          env={**os.environ, "ROOT": str(ROOT)}, capture_output=script.startswith("build_jobs"), text=True, check=False)


def packages(*sections):
    if shell('install_packages "$@"', *sections).returncode != 0:
        raise Broken("packages are missing: " + " ".join(sections))


def jobs():
    return os.environ.get("LONG_BUILD_JOBS") or shell("build_jobs").stdout.strip() or "1"


def configure(run, preset, *options):
    (ROOT / "build").mkdir(exist_ok=True)
    log = run.folder / f"configure-{preset}.log"
    with open(log, "wb") as out:
        done = subprocess.run(["cmake", "--preset", preset, *options], cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        print(log.read_text(errors="replace")[-4000:])
        raise Broken(f"configuring {preset} failed; the output is in {log}")


def build(run, preset, *options, targets=()):
    """Configures and builds a preset. The build itself is not a part: ninja knows what is up to date."""
    configure(run, preset, *options)
    command = ["cmake", "--build", "--preset", preset, "--parallel", jobs()]
    if targets:
        command += ["--target", *targets]
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        raise Broken(f"building {preset} failed")


def release(run, *more_packages):
    packages("build", "test", *more_packages)
    build(run, "ci", "-DNS_BUILD_TESTS=ON")


def programs(run, *more_packages):
    packages("build", *more_packages)
    build(run, "ci", targets=PROGRAMS)


class Test:
    """One entry of ctest: its command, environment, and the folder whose CMakeLists.txt adds it."""

    def __init__(self, entry, folder):
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        self.name, self.command, self.folder = entry["name"], entry.get("command", []), folder
        self.labels = properties.get("LABELS", [])
        self.environment = dict(item.split("=", 1) for item in properties.get("ENVIRONMENT", []))
        self.skip_status = properties.get("SKIP_RETURN_CODE")
        self.locks = properties.get("RESOURCE_LOCK", [])
        self.cwd = properties.get("WORKING_DIRECTORY")


@functools.lru_cache(None)
def tests(build_folder="build/release"):
    done = subprocess.run(["ctest", "--test-dir", str(ROOT / build_folder), "--show-only=json-v1"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Broken(f"ctest can't list the tests of {build_folder}: {done.stderr.strip()}")
    listed = json.loads(done.stdout)
    graph = listed["backtraceGraph"]
    found = {}
    for entry in listed["tests"]:
        index = entry.get("backtrace")
        place = ""
        while index is not None:  # the outermost frame is the folder's own CMakeLists.txt
            node = graph["nodes"][index]
            place, index = graph["files"][node["file"]], node.get("parent")
        folder = os.path.dirname(os.path.relpath(os.path.join(ROOT, place), ROOT)) if place else ""
        test = Test(entry, folder)
        found[test.name] = test
    if not found:
        raise Broken(f"{build_folder} has no tests")
    return found


def test(name, build_folder="build/release"):
    if name not in tests(build_folder):
        raise Broken(f"{build_folder} has no test {name}")
    return tests(build_folder)[name]


def program(name):
    path = TESTS / name
    if not path.exists():
        raise Broken(f"{path} was not built")
    return path
