"""How long builds take, before and after a change, on one machine.

Each checkout is built from nothing with ninja, without ccache, into folders of its own: first the programs
(NS_BUILD_TESTS off: neuroshardd, its modules, the app), then everything with all tests, from nothing again. Then some sources are
touched one by one and what depends on them is built again.
"""
import os
import pathlib
import shutil
import time

import facts
from facts import ROOT
from registry import target
from run import Broken

import builds

TOUCHED = ["core/base/executor.cpp", "core/rounds/participant.cpp", "app/node/main.cpp"]
NO_CCACHE = {"CCACHE_DISABLE": "1"}


def measured(part):
    return {"wall_s": part.record["seconds"], "processor_s": part.record["processor_seconds"]} if part.ok else {}


def one_checkout(run, label, checkout, jobs):
    """All figures of one checkout."""
    source = facts.source_state(checkout)
    figures = {"commit": source["commit"]}
    label = f"{label}-{source['key'] or 'unknown'}"  # the key of the run names this checkout only, not the older one

    def configured(kind, *options):
        folder = run.folder / f"{label}-{kind}"
        part = run.finished(f"{label}-{kind}", build_command(folder, jobs))
        if part is None:
            shutil.rmtree(folder, ignore_errors=True)
            (run.folder / f"{label}-{kind}-configure.json").unlink(missing_ok=True)
            done = run.part(f"{label}-{kind}-configure", ["cmake", "-S", checkout, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                            "-DNS_WERROR=ON", "-DNS_CCACHE=", *options], env=NO_CCACHE)
            if not done.ok:
                raise Broken(f"{label}: configuring failed")
        return folder

    for kind, options in (("programs", ["-DNS_BUILD_TESTS=OFF"]), ("everything", ["-DNS_BUILD_TESTS=ON"])):
        folder = configured(kind, *options)
        part = run.part(f"{label}-{kind}", build_command(folder, jobs), env=NO_CCACHE)
        figures[kind] = measured(part)
        if not part.ok:
            return figures
    folder = run.folder / f"{label}-programs"
    for source in TOUCHED:
        path = pathlib.Path(checkout) / source
        if path.exists():
            figures[f"after touching {source}"] = relink(run, label, folder, path, source, jobs)
    if os.environ.get("BUILD_TIMES_TESTS"):
        part = run.part(f"{label}-ctest", ["ctest", "--test-dir", run.folder / f"{label}-everything", "-L", "^ci$", "-j2", "--output-on-failure"])
        figures["ci tests"] = measured(part)
    return figures


def build_command(folder, jobs):
    return ["cmake", "--build", folder, "--parallel", jobs]


def relink(run, label, folder, path, source, jobs):
    """Time until the programs are linked again after one source changed. Its times of change are put back."""
    if not (folder / "build.ninja").exists():
        return {}
    before = path.stat()
    now = time.time()
    os.utime(path, (now, now))
    try:
        return measured(run.part(f"{label}-touch-{source.replace('/', '_')}", build_command(folder, jobs), env=NO_CCACHE))
    finally:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def cell(figures):
    return f"{figures['wall_s']:.0f} s, {figures['processor_s']:.0f} s of processors" if figures else "not measured"


@target("build-times", "clean builds without ccache and relinking after one source (build-times OLD_CHECKOUT: before and after; BUILD_TIMES_TESTS=1: ci tests, too)")
def build_times(run):
    builds.packages("build", "test")
    jobs = builds.jobs()
    checkouts = {"after": ROOT}
    if run.argument:
        old = pathlib.Path(run.argument).resolve()
        if not (old / "CMakeLists.txt").exists():
            raise Broken(f"{old} is not a checkout")
        checkouts = {"before": old, **checkouts}
    for label, checkout in checkouts.items():
        run.figures[label] = one_checkout(run, label, checkout, jobs)
    rows = [name for name in run.figures["after"] if name != "commit"]
    table = ["| what | " + " | ".join(run.figures) + " |", "|---|" + "---|" * len(run.figures)]
    table += [f"| {name} | " + " | ".join(cell(figures.get(name)) for figures in run.figures.values()) + " |" for name in rows]
    print("\n" + "\n".join(table))
    after = run.figures["after"]
    run.figures["table"] = table
    run.figures["jobs"] = jobs
    for claim, name, limit in (("Programs built from nothing", "programs", 720), ("Everything with all tests built from nothing", "everything", 1800),
                               ("ci tests run", "ci tests", 900)):
        if after.get(name):
            run.claim(claim, f"≤ {limit // 60} min on 2 quiet cores", cell(after[name]), after[name]["wall_s"] <= limit, f"1; {jobs} jobs")
    touched = [figures["wall_s"] for name, figures in after.items() if name.startswith("after touching") and figures]
    if touched:
        run.claim("Programs linked after one source changed", "≤ 15 s", f"{min(touched):.0f} to {max(touched):.0f} s", max(touched) <= 15, len(touched))
