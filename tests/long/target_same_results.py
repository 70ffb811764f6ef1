"""The target that compares this build with another one; the comparison itself is same_results.py."""
import hashlib
import os
import pathlib

import builds
import reading
from builds import BIN
from facts import ROOT
from registry import target
from run import Broken


@target("same-results", "compares this build with another (same-results OLD_BIN_FOLDER): losses, weights, anchors, simulations, partitions, digit for digit")
def same_results(run):
    old = pathlib.Path(run.argument or "missing").resolve()
    if not (old / "neuroshardd").exists():
        raise Broken("same-results needs the folder of the other build's neuroshardd, such as /path/to/build/release/bin")
    if not os.environ.get("SAME_RESULTS_AS_BUILT"):  # set: takes build/release as it is
        builds.packages("build")
        builds.build(run, "ci", targets=["neuroshardd", "compute_cpu"])
    # The key of the run names this build only, not the other one.
    other = hashlib.sha256((old / "neuroshardd").read_bytes()).hexdigest()[:8]
    part = run.part(f"comparison-{other}", ["python3", ROOT / "tests/long/same_results.py", old, BIN, run.folder / "compared"], reading.last_json,
                    loud=True, missed=(1,))
    run.figures = part.figures
    run.n = part.figures.get("values", 0)
    run.claim("Same seeds, same results as the build before", "no difference",
              f"{len(part.figures.get('different', []))} of {part.figures.get('checks', 0)} checks differ", part.record["outcome"] == "passed",
              f"{run.n} values")
