"""The product as people meet it: the app with the real core, pictures of its pages, a bare system."""
import os
import signal
import subprocess

import builds
from facts import ROOT
from registry import target
from run import Broken


@target("app", "the desktop app with the real core (test_app_*), each ten times beside a busy processor")
def app(run):
    builds.release(run)
    names = sorted(name for name in builds.tests() if name.startswith("test_app_"))
    if not names:
        raise Broken("there is no test_app_*")
    burner = subprocess.Popen(["nice", "sh", "-c", "while :; do :; done"], start_new_session=True)
    try:
        for name in names:
            run.part(name, ["ctest", "--test-dir", ROOT / "build/release", "-R", f"^{name}$", "--no-tests=error", "--repeat", "until-fail:10",
                     "--output-on-failure"])
    finally:
        os.killpg(burner.pid, signal.SIGKILL)
        burner.wait()
    run.figures = {part["name"]: part["seconds"] for part in run.parts}
    failed = [part["name"] for part in run.parts if part["outcome"] != "passed"]
    run.claim("The app with the real core, ten times each beside a busy processor", "0 failures", f"{len(failed)} of {len(names)} tests failed",
              not failed, f"{10 * len(names)} runs")


@target("screenshots", "every page of the app as PNG: light, dark, 100 and 200 %, normal, narrow, English, pseudo-locale, mirrored; dialogs, set-up")
def screenshots(run):
    builds.release(run)
    pictures = run.folder / "pictures"
    for language in ("en", "pseudo", "pseudo-rtl"):
        for scale in ("1", "2"):
            run.part(f"{language}-{scale}", [builds.program("ns_screenshots"), pictures, language, builds.NODE],
                     env={"QT_QPA_PLATFORM": "offscreen", "QT_SCALE_FACTOR": scale, "TZ": "UTC", "DBUS_SESSION_BUS_ADDRESS": "disabled:"})
    run.n = len(list(pictures.rglob("*.png")))
    run.figures = {"pictures": run.n, "folder": str(pictures.relative_to(ROOT))}


def timings(output):
    """Lines of the form `name: 123 s, exit 0`."""
    figures = {}
    for line in output.splitlines():
        name, _, rest = line.partition(": ")
        words = rest.split()
        if len(words) == 4 and words[1] == "s," and words[2] == "exit":
            figures[name] = int(words[0])
    return figures


@target("bare-debian", "both commands of the README in a bare Debian 12 made by debootstrap (root)")
def bare_debian(run):
    run.require(os.geteuid() == 0, "needs root: debootstrap, chroot")
    builds.packages("long")
    if run.source["dirty"]:
        run.reasons.append("the bare system gets what is committed; local changes are not in it")
    part = run.part("bare-debian", ["sh", ROOT / "tests/bare_debian.sh", run.folder, ROOT], loud=True,
                    read=lambda output: timings((run.folder / "timings").read_text()))
    run.figures = part.figures
    for name, seconds in part.figures.items():
        run.claim(f"Bare Debian 12: {name}", "exit status 0", f"{seconds} s", True, 1)
