"""The packages: what a release consists of, in bare systems, from two builds."""
import json
import os

import builds
from facts import ROOT
from registry import target
from run import Broken

# Another language, place on earth and umask. The time is another one by itself.
ELSEWHERE = {"LC_ALL": "C.UTF-8", "LANGUAGE": "de", "TZ": "Asia/Tokyo"}
UMASK = "077"


def pack(run, name, folder, umask="022", **environment):
    """Packages of the release build in a folder."""
    run.part(name, ["sh", "-euc", f'umask {umask}; exec sh installers/pack.sh "$1"', "sh", folder], env=environment, files=[folder / "SHA256SUMS"])


def after_colon(output):
    """Lines of the form `name: value`."""
    return dict(line.split(": ", 1) for line in output.splitlines() if ": " in line)


def differing_files(first, second):
    """The files of two releases that differ. SHA256SUMS of each covers all of them."""
    lines = [dict(reversed(line.split("  ", 1)) for line in (folder / "SHA256SUMS").read_text().splitlines()) for folder in (first, second)]
    return sorted(name for name in {**lines[0], **lines[1]} if lines[0].get(name) != lines[1].get(name))


def bare_system(run, folders):
    part = run.part("bare-debian-12", ["sh", ROOT / "tests/package_debian.sh", run.folder / "state", folders["packages"], folders["newer"], ROOT],
                    loud=True, read=lambda output: after_colon((run.folder / "state/figures").read_text()))
    run.figures = part.figures
    run.claim("Packages in a bare Debian 12: install, train, upgrade while it trains, remove, purge, archive", "all succeed",
              part.figures.get("seconds to install", "?") + " s to install", part.passed, 1)
    seconds = float(part.figures.get("seconds from the start of the app to step 12", "inf"))
    run.claim("From the start of the installed app with the sample text to a loss that fell", "≤ 180 s", f"{seconds:.0f} s", seconds <= 180, 1)
    if "piuparts" in part.figures:
        run.claim("The packages under piuparts", "no finding", part.figures["piuparts"], part.passed, "2 packages")


@target("package", "the packages: lintian, twice the same bits, and install, training, upgrade, removal in a bare Debian 12 (root)")
def package(run):
    run.require(os.geteuid() == 0, "needs root: debootstrap, chroot")
    builds.programs(run, "package", "test", "release")
    folders = {name: run.folder / name for name in ("packages", "again", "newer")}
    pack(run, "pack", folders["packages"])
    pack(run, "pack-again", folders["again"], UMASK, **ELSEWHERE)
    pack(run, "pack-newer", folders["newer"], NS_PACKAGE_VERSION="0.1.0+newer")
    different = differing_files(folders["packages"], folders["again"])
    run.claim("Packages of one build, packed twice: other time, folder, locale and umask", "the same bits",
              "different: " + ", ".join(different) if different else "the same", not different, 2)
    debs = sorted(str(deb) for deb in folders["packages"].glob("*.deb"))
    run.part("check", ["python3", "-B", ROOT / "tests/package/check.py", folders["packages"], run.folder / "unpacked"])
    tags = run.part("lintian", ["lintian", "--fail-on", "error,warning", "--tag-display-limit", "0", *debs], missed=(2,)).output
    found = [line for line in tags.splitlines() if line[:2] in ("E:", "W:")]
    run.claim("lintian", "no error, no warning", f"{len(found)}", not found, f"{len(debs)} packages")
    flatpak(run)
    bare_system(run, folders)


def flatpak(run):
    """The manifest as flatpak-builder reads it: it warns of each property that it does not know."""
    path = next((ROOT / "installers/flatpak").glob("*.json"))
    work = run.folder / "flatpak"
    work.mkdir(exist_ok=True)  # flatpak-builder leaves a cache where it is started
    show = 'cd "$1"; flatpak-builder --show-manifest "$2" >understood.json 2>words; ! grep WARNING words'
    if not run.part("flatpak", ["sh", "-euc", show, "sh", work, path]).ok:
        return
    written, understood = json.loads(path.read_text()), json.loads((work / "understood.json").read_text())
    lost = sorted(set(written) - set(understood) - {"//"})
    same = not lost and [module["name"] for module in written["modules"]] == [module["name"] for module in understood["modules"]]
    run.claim("The Flatpak manifest, read by flatpak-builder", "all properties and modules are understood",
              f"{len(understood['modules'])} modules" + (f", lost {lost}" if lost else ""), same, 1)


@target("reproducible", "the packages of two builds in different folders, time zones, languages and umasks: the same bits")
def reproducible(run):
    builds.programs(run, "package", "test", "release")
    if run.source["dirty"] or not run.source["commit"]:
        raise Broken("the second build is of a clone, which has only what is committed: commit first")
    first, second, clone = run.folder / "packages", run.folder / "packages-of-the-clone", run.folder / "in-another-folder/clone"
    pack(run, "pack", first)
    # Without the compiler cache, which would hand out the objects of the first build.
    build = """
umask "$3"
export CCACHE_DISABLE=1
[ -d "$1" ] || git clone --quiet --no-hardlinks "$2" "$1"
cd "$1"
cmake --preset ci -DNS_BUILD_TESTS=OFF
cmake --build --preset ci --parallel "$4" --target $5"""
    run.part("build", ["sh", "-euc", build, "sh", clone, ROOT, UMASK, builds.jobs(), " ".join(builds.PROGRAMS)], env=ELSEWHERE, files=[clone])
    run.part("pack-clone", ["sh", "-euc", f'umask {UMASK}; cd "$1"; exec sh installers/pack.sh "$2"', "sh", clone, second], env=ELSEWHERE,
             files=[second / "SHA256SUMS"])
    different = differing_files(first, second)
    for name in different:
        print(f"different: {name}")
        if name.endswith((".deb", ".gz")):
            run.part("diffoscope-" + name.split("_")[0], ["diffoscope", "--max-report-size", "200000", first / name, second / name], missed=(1,))
    run.claim("Packages of builds in two different folders", "the same bits", "different: " + ", ".join(different) if different else "the same",
              not different, f"{len((first / 'SHA256SUMS').read_text().splitlines())} files, 2 builds")


@target("ubuntu", "the AppImage's file system in a bare Ubuntu 24.04: the app trains with the sample text (root; needs Ubuntu's package archive)")
def ubuntu(run):
    run.require(os.geteuid() == 0, "needs root: debootstrap, chroot")
    builds.programs(run, "package", "test", "release")
    folder = run.folder / "packages"
    pack(run, "pack", folder)
    for name in ("image", "image-again"):
        run.part(name, ["sh", "-euc", 'rm -f "$1"/*.squashfs; sh installers/appimage.sh "$1" && sha256sum "$1"/*.squashfs >"$2"', "sh", folder, run.folder / name],
                 env=ELSEWHERE if name == "image-again" else {}, files=[run.folder / name])
    same = (run.folder / "image").read_text() == (run.folder / "image-again").read_text()
    run.claim("File systems of AppImages of one archive: other time, language and umask", "the same bits", "the same" if same else "different", same, 2)
    part = run.part("bare-ubuntu-24.04", ["sh", ROOT / "tests/package_ubuntu.sh", run.folder / "state", folder],
                    loud=True, read=lambda output: after_colon((run.folder / "state/figures").read_text()))
    run.figures = part.figures
    run.claim("The AppImage's file system in a bare Ubuntu 24.04: the app trains with the sample text", "the loss falls",
              part.figures.get("smoothed loss at steps 2 and 12", "?"), part.passed, 1)
