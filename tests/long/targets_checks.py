"""Sanitizers, fuzzing, clang-tidy: what finds faults rather than figures."""
import os
import re
import subprocess

import builds
import reading
from facts import ROOT
from registry import target
from run import Broken

JOBS = int(os.environ.get("LONG_JOBS", "1"))
RUNS = int(os.environ.get("FUZZ_RUNS", "1000000"))
TEST_LIMIT = 1800
# They start programs or Python, whose other libraries carry no instrumentation.
PROCESS_FOLDERS = ("tests/functional", "tests/gui", "tests/golden", "tests/bench")
FUZZ_FOLDER = "tests/fuzz"  # parsers on one thread
NOT_INSTRUMENTED = re.compile(r"lib(torch|c10|grpc|grpc\+\+|Qt6Gui|Qt6Widgets|Qt6DBus)[.\w-]*\.so")


def loaded_libraries(program):
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    return done.stdout


def run_tests(run, folder, chosen, environment):
    """Each ctest entry is a part of its own, run directly: ctest's limits are those of a build without sanitizers."""
    def one(test):
        def judge(status, _):
            if test.skip_status is not None and status == test.skip_status:
                return "skipped"
            return "failed" if status else "passed"

        def read(output):
            return reading.totals(output) if reading.TOTALS.search(output) else {}
        run.part(test.name, test.command, read, env={**test.environment, **environment, "QTEST_FUNCTION_TIMEOUT": "3000000"},
                 limit=TEST_LIMIT, judge=judge)
    alone = [test for test in chosen if test.locks]
    run.together(JOBS, [lambda test=test: one(test) for test in chosen if not test.locks])
    run.together(1, [lambda test=test: one(test) for test in alone])
    run.tests = [{"name": part["name"], "outcome": part["outcome"], "seconds": part["seconds"]} for part in run.parts]
    run.figures = {outcome: sum(test["outcome"] == outcome for test in run.tests) for outcome in ("passed", "failed", "skipped")}
    run.figures["functions skipped"] = sum(part["figures"].get("skipped", 0) for part in run.parts)
    # A test that skips itself is listed; it does not make the target one that could not run.
    for part in run.parts:
        if part["outcome"] == "skipped":
            run.reasons.append(f"{part['name']} skipped itself")
            part.update(outcome="passed", skipped=True)


def ci_tests(folder, without=(), program=""):
    """The ci tests of a build, or those of one program. A test that is not built has no command."""
    chosen = [test for test in builds.tests(folder).values() if "ci" in test.labels and test.folder not in ("tests/lint", *without)]
    if program:
        chosen = [test for test in chosen if test.command and os.path.basename(test.command[0]) == program]
        if not chosen:
            raise Broken(f"no ci test of a program {program}")
    unbuilt = [test.name for test in chosen if not test.command]
    if unbuilt:
        raise Broken("not built: " + " ".join(unbuilt))
    return chosen


def of_program(run):
    return f" of {run.argument}" if run.argument else ""


@target("asan-ubsan", "ci tests under the address and undefined-behaviour sanitizers, or those of one program (asan-ubsan sim_tests)")
def asan_ubsan(run):
    builds.packages("build", "test")
    builds.build(run, "asan-ubsan", "-DNS_BUILD_TESTS=ON", targets=[run.argument] if run.argument else [])
    chosen = ci_tests("build/asan-ubsan", program=run.argument)
    # Torch and its many libraries keep allocations until exit, so leaks are looked for by the fuzz target.
    run_tests(run, "build/asan-ubsan", chosen, {"ASAN_OPTIONS": "detect_leaks=0:alloc_dealloc_mismatch=0",
                                                "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"})
    run.claim(f"ci tests{of_program(run)} under ASan and UBSan", "0 findings",
              f"{run.figures['failed']} of {len(run.tests)} failed", run.figures["failed"] == 0, f"{len(run.tests)} tests")


@target("tsan", "ci tests that load neither Torch, gRPC nor the Qt GUI, under the thread sanitizer, or those of one program; prints their list")
def tsan(run):
    builds.packages("build", "test")
    # The OpenMP runtime is not instrumented either: the compute module stays out. So does all that is left out below.
    builds.build(run, "tsan", "-DNS_BUILD_TESTS=ON", "-DNS_COMPUTE_MODULE=OFF", "-DNS_BUILD_APP=OFF",
                 targets=[run.argument] if run.argument else ["tests/unit/all", "tests/sim/all"])
    chosen, left_out = [], []
    for test in ci_tests("build/tsan", (*PROCESS_FOLDERS, FUZZ_FOLDER), run.argument):
        ours = test.command[0].startswith(str(ROOT / "build/tsan"))
        (chosen if ours and not NOT_INSTRUMENTED.search(loaded_libraries(test.command[0])) else left_out).append(test)
    print("Under the thread sanitizer:\n" + "\n".join("  " + test.name for test in chosen))
    print("Left out besides tests of whole programs, of windows and of parsers on one thread: "
          f"{len(left_out)} that load a library without instrumentation or start Python")
    if not chosen:
        raise Broken("no test is left for the thread sanitizer")
    supp = ROOT / "tests/long/tsan.supp"
    run_tests(run, "build/tsan", chosen, {"TSAN_OPTIONS": f"halt_on_error=1:second_deadlock_stack=1:suppressions={supp}"})
    run.figures["left out"] = [test.name for test in left_out]
    run.claim(f"ci tests{of_program(run)} without Torch, gRPC and Qt GUI under TSan", "0 findings",
              f"{run.figures['failed']} of {len(run.tests)} failed", run.figures["failed"] == 0, f"{len(run.tests)} tests")


def fuzz_figures(output):
    def stat(name):
        found = re.search(rf"^stat::{name}: *(\d+)", output, re.MULTILINE)
        return int(found.group(1)) if found else 0
    return {"runs": stat("number_of_executed_units"), "per_second": stat("average_exec_per_sec"), "peak_mib": stat("peak_rss_mb")}


@target("fuzz", "a million runs of every fuzz target, or of one (fuzz NAME; FUZZ_RUNS: another number; LONG_JOBS: so many at a time)")
def fuzz(run):
    builds.packages("build", "long")
    names = sorted(path.stem.removeprefix("fuzz_") for path in (ROOT / "tests/fuzz").glob("fuzz_*.cpp"))
    if run.argument:
        if run.argument not in names:
            raise Broken(f"no fuzz target {run.argument}; there are: {' '.join(names)}")
        names = [run.argument]
    builds.build(run, "fuzz", targets=[f"fuzz_{run.argument}" if run.argument else "fuzzers"])
    artifacts = run.folder / "artifacts"
    artifacts.mkdir(exist_ok=True)

    def one(name):
        corpus = run.base / "corpus" / name  # inputs, not results: what earlier runs found helps later ones
        corpus.mkdir(parents=True, exist_ok=True)
        # The limit of an input is that of a busy machine: libFuzzer counts the time in which other programs run as well.
        part = run.part(f"{name}-{RUNS}", ["nice", ROOT / f"build/fuzz/fuzz/fuzz_{name}", f"-runs={RUNS}", "-seed=1", "-max_len=65536",
                        "-timeout=120", "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={artifacts}/{name}-", corpus,
                        ROOT / f"tests/fuzz/corpus/{name}"], fuzz_figures)
        findings = [path.name for path in artifacts.glob(f"{name}-*") if re.fullmatch(rf"{name}-(crash|leak|timeout|oom|slow-unit)-\w+", path.name)]
        findings = [f for f in findings if "-slow-unit-" not in f]
        # Only a run that reached its number counts.
        runs = part.figures.get("runs", 0)
        run.figures[name] = {"runs": runs, "seconds": part.record["seconds"], "findings": len(findings) or int(not part.ok)}
        if part.ok and runs < RUNS:
            run.reasons.append(f"{name}: {runs} runs of {RUNS}")
        run.claim(f"Fuzzing {name}", "1,000,000 runs, 0 findings", f"{runs:,} runs, {run.figures[name]['findings']} findings, "
                  f"{part.record['seconds']:.0f} s", part.passed and runs >= 1_000_000 and not findings, runs)
    run.together(JOBS, [lambda name=name: one(name) for name in names])
    run.n = sum(figures["runs"] for figures in run.figures.values())


MODEL_LINE = re.compile(r"^([\w-]+) +([\d,]+) states  (\w+)(, expected: \w+)?", re.MULTILINE)


def model_figures(output):
    return {name: {"states": int(states.replace(",", "")), "verdict": verdict, "expected": not other}
            for name, states, verdict, other in MODEL_LINE.findall(output)}


@target("model", "the model of the chain's agreement, all configurations (docs/protocol/safety.md)")
def model(run):
    builds.packages("test")
    part = run.part("model", ["nice", "python3", "-B", ROOT / "tests/model/check.py", "--full"], model_figures, limit=7200, loud=True)
    run.figures = dict(part.figures)
    run.n = len(part.figures)
    for name, text, verdict in (("safe", "Configurations of the agreement's model that are to hold", "holds"),
                                ("unsafe", "Planted bugs and broken assumptions that the agreement's model is to find", None)):
        chosen = {key: f for key, f in part.figures.items() if (f["verdict"] == "holds") == (verdict == "holds")}
        states = sum(f["states"] for f in chosen.values())
        run.figures[f"states, {name}"] = states
        run.claim(text, "all as expected", f"{sum(f['expected'] for f in chosen.values())} of {len(chosen)}; {states:,} states",
                  part.passed and all(f["expected"] for f in chosen.values()), len(chosen))


FINDING = re.compile(r"^(?!.*Suppressed).*: (?:warning|error): .*\[.*\]$", re.MULTILINE)


@target("tidy", "clang-tidy over every unit that does not see Torch")
def tidy(run):
    builds.packages("build", "test", "long")
    builds.configure(run, "ci", "-DNS_BUILD_TESTS=ON")
    units = [path for area in ("core", "app") for path in sorted((ROOT / area).rglob("*.cpp")) if "core/model" not in str(path.relative_to(ROOT))]

    def judge(status, output):
        # clang-tidy also exits with 1 where it finds something; with no finding to show it broke down.
        found = bool(FINDING.search(output))
        return "missed" if found else "passed" if status == 0 else "failed"

    def one(unit):
        name = str(unit.relative_to(ROOT)).replace("/", "_")
        run.part(name, ["nice", "clang-tidy", "--quiet", "-p", ROOT / "build/release", unit],
                 lambda output: {"findings": sorted(set(FINDING.findall(output)))}, judge=judge)
    run.together(JOBS, [lambda unit=unit: one(unit) for unit in units])
    findings = sorted({finding.replace(f"{ROOT}/", "") for part in run.parts for finding in part["figures"].get("findings", [])})
    print("\n".join(findings))
    broke = sum(part["outcome"] == "failed" for part in run.parts)
    run.figures = {"units": len(units), "findings": findings, "units that clang-tidy could not read": broke}
    run.claim("clang-tidy over all units without Torch", "0 findings", f"{len(findings)} findings, {broke} units not read",
              not findings and not broke, f"{len(units)} units")
