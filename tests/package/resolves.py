#!/usr/bin/env python3
"""Whether the dependencies of packages can be had from another distribution.

    resolves.py FOLDER Packages.xz [Packages.xz …]

FOLDER has the .deb files. The indexes are those of the distribution's sections. Prints each dependency that no package
there satisfies, by its own name or by what it provides, and the counts. Exit status 1 if there is one.
"""
import lzma
import pathlib
import re
import subprocess
import sys

TERM = re.compile(r"\s*(\S+)(?: \((\S+) (\S+)\))?")
OPERATORS = {">=": "ge", "=": "eq", "<<": "lt", ">>": "gt", "<=": "le"}


def index(paths):
    """Versions by name; None: provided without a version."""
    versions = {}
    for path in paths:
        for block in lzma.open(path, "rt", encoding="utf-8").read().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line and not line.startswith(" "))
            if "Package" not in fields:
                continue
            versions.setdefault(fields["Package"], []).append(fields["Version"])
            for provided in filter(None, fields.get("Provides", "").split(",")):
                name, _, version = TERM.match(provided).groups()
                versions.setdefault(name, []).append(version)
    return versions


def satisfies(version, operator, wanted):
    if operator is None:
        return True
    return version is not None and subprocess.run(["dpkg", "--compare-versions", version, OPERATORS[operator], wanted], check=False).returncode == 0


def resolves(dependency, versions):
    for alternative in dependency.split("|"):
        name, operator, wanted = TERM.match(alternative).groups()
        if any(satisfies(version, operator, wanted) for version in versions.get(name, [])):
            return True
    return False


def field(deb, name):
    return subprocess.run(["dpkg-deb", "-f", deb, name], capture_output=True, text=True, check=True).stdout.strip()


def main(folder, *indexes):
    versions, missing = index(indexes), 0
    debs = sorted(pathlib.Path(folder).glob("*.deb"))
    if not debs:
        sys.exit(f"{folder} has no packages: make them with sh installers/package.sh {folder}")
    for deb in debs:  # of one release: they depend on each other
        versions.setdefault(field(deb, "Package"), []).append(field(deb, "Version"))
    for deb in debs:
        wanted = [one.strip() for one in field(deb, "Depends").split(",")]
        lost = [one for one in wanted if not resolves(one, versions)]
        print(f"{field(deb, 'Package')}: {len(wanted) - len(lost)} of {len(wanted)}", *lost, sep="\n  ")
        missing += len(lost)
    return 1 if missing else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
