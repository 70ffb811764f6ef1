#!/usr/bin/env python3
"""The bill of materials of a release, as SPDX 2.3 in JSON.    sbom.py FOLDER

FOLDER holds the packages (*.deb) and the archive (*.tar.gz) of one version. Writes FOLDER/neuroshard-VERSION.spdx.json, which names
  - each package and the archive, with all their files and sums,
  - each Debian package with a library that a program or module loads: by its list of needed libraries, by name at run time, or
    as a plugin of Qt,
  - the Debian packages of headers that are compiled in.
The document depends on the packed files and on the installed libraries alone. Its time is that of the packed files: the commit's.
Reads only what Debian has: dpkg, ldd, readelf, ldconfig.
"""
import hashlib
import json
import pathlib
import re
import sys
import tempfile
import time
import urllib.parse

from libraries import Libraries, is_program, must, run

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Sources are under the first; the program that links Qt Charts comes under the second (installers/debian/copyright).
SOURCE_LICENCE, APP_LICENCE = "Apache-2.0", "GPL-3.0-only"
NAMESPACE = "https://neuroshard.example/spdx/"
# Names of licences in machine-readable copyright files that SPDX calls otherwise.
LICENCES = {
    "Apache-2": "Apache-2.0", "Apache-2.0": "Apache-2.0", "Artistic": "Artistic-1.0-Perl", "Boost-1.0": "BSL-1.0", "BSL-1.0": "BSL-1.0",
    "BSD-2-clause": "BSD-2-Clause", "BSD-2-Clause": "BSD-2-Clause", "BSD-3-clause": "BSD-3-Clause", "BSD-3-Clause": "BSD-3-Clause",
    "CC0-1.0": "CC0-1.0", "BSD-3-Clause~Google": "BSD-3-Clause", "BSD-3-clause-Google": "BSD-3-Clause", "PostgreSQL": "PostgreSQL",
    "curl": "curl", "FTL": "FTL", "MIT/X11": "MIT", "Expat": "MIT", "MIT": "MIT", "ISC": "ISC", "Zlib": "Zlib", "zlib": "Zlib",
    "GPL-2": "GPL-2.0-only", "GPL-2+": "GPL-2.0-or-later", "GPL-3": "GPL-3.0-only", "GPL-3+": "GPL-3.0-or-later", "LGPL-2": "LGPL-2.0-only",
    "LGPL-2+": "LGPL-2.0-or-later", "LGPL-2.0+": "LGPL-2.0-or-later", "LGPL-2.1": "LGPL-2.1-only", "LGPL-2.1+": "LGPL-2.1-or-later",
    "LGPL-3": "LGPL-3.0-only", "LGPL-3+": "LGPL-3.0-or-later", "MPL-2.0": "MPL-2.0", "X11": "X11",
}


# ---- Debian packages ---------------------------------------------------------------------------------------------------------
def system():
    """The names of this distribution and its release, as purl wants them."""
    words = dict(re.findall(r'^(\w+)="?([^"\n]*)', pathlib.Path("/etc/os-release").read_text(), re.MULTILINE))
    return words.get("ID", "debian"), words.get("VERSION_CODENAME", words.get("VERSION_ID", ""))


def licence(package):
    """The licence of all files of a package for SPDX, and the words of its copyright file."""
    path = pathlib.Path("/usr/share/doc") / package / "copyright"
    text = path.read_text(errors="replace") if path.is_file() else ""
    if not re.match(r"Format(-Specification)?:", text):
        return "NOASSERTION", ""
    for paragraph in re.split(r"\n\s*\n", text):
        found = re.search(r"^License: *(\S.*)$", paragraph, re.MULTILINE)
        if found and re.search(r"^Files:\s*\*\s*$", paragraph, re.MULTILINE):
            words = found.group(1).strip()
            parts = re.split(r" (or|and) ", words)
            if all(part in LICENCES for part in parts[::2]):
                return " ".join(part.upper() if i % 2 else LICENCES[part] for i, part in enumerate(parts)), words
            return "NOASSERTION", words
    return "NOASSERTION", ""


def identifier(text):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", text.replace("+", "plus").replace("_", "-"))


def debian_packages(comments):
    """An element of each package, with its comment."""
    form = "${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\t${Maintainer}\t${Homepage}\n"
    distribution, release = system()
    found = {}
    for line in sorted(must("dpkg-query", "--show", "-f", form, *comments).splitlines()):
        name, version, architecture, source, source_version, maintainer, home = line.split("\t")
        purl = f"pkg:deb/{distribution}/{urllib.parse.quote(name)}@{urllib.parse.quote(version, safe='')}?arch={architecture}" \
            f"&distro={release}"
        declared, words = licence(name)
        element = {
            "SPDXID": identifier("Debian-" + name), "name": name, "versionInfo": version,
            "supplier": "Organization: " + re.sub(r" <.*", "", maintainer), "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": declared, "copyrightText": "NOASSERTION",
            "sourceInfo": f"built from the source package {source} {source_version}", "comment": comments[name],
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}],
        }
        if words:
            element["licenseComments"] = "Debian's copyright file says of all files: " + words
        if home:
            element["homepage"] = home
        found.setdefault(name, element)  # a package of two architectures has one version
    return list(found.values())


def header_packages():
    """Packages of the section [build] that have headers and no library: what is used of them is compiled in."""
    text = (ROOT / "installers/debian-packages.txt").read_text()
    section = text.split("[build]")[1].split("\n[")[0]
    named = re.findall(r"^([a-z0-9][\w+.-]*-dev)\b", section, re.MULTILINE)
    _, said, _ = run("dpkg-query", "--show", "-f", "${db:Status-Status} ${Package}\n", *named)
    installed = [line.split()[1] for line in said.splitlines() if line.startswith("installed ")]
    found = []
    for package, files in zip(installed, must("dpkg-query", "--listfiles", *installed).split("\n\n")):
        if re.search(r"\.(h|hpp)$", files, re.MULTILINE) and not re.search(r"\.(so|a)$", files, re.MULTILINE):
            found.append(package)
    return sorted(found)


# ---- the release -------------------------------------------------------------------------------------------------------------
def sums(path):
    data = path.read_bytes()
    return [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
            {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}]


def unpack(artefact, folder):
    folder.mkdir()
    if artefact.suffix == ".deb":
        must("dpkg-deb", "--extract", artefact, folder)
        return folder
    must("tar", "-xzf", artefact, "-C", folder, "--strip-components=1")
    return folder


class Document:
    def __init__(self, folder):
        self.libraries = Libraries()
        self.files, self.packages, self.relations, self.newest = [], [], set(), 0
        self.seen = {}  # Debian package → the names of the libraries that are loaded from it
        self.walked, self.headers = set(), header_packages()
        self.artefacts = sorted([*folder.glob("*.deb"), *folder.glob("*.tar.gz")])
        archives = [path.name for path in self.artefacts if path.suffix == ".gz"]
        found = re.fullmatch(r"neuroshard-(.+)-linux-[^-]+\.tar\.gz", archives[0]) if len(archives) == 1 else None
        if not found:
            sys.exit(f"error: {folder} must hold one archive neuroshard-VERSION-linux-ARCH.tar.gz and the packages of the same version")
        self.version = found.group(1)

    def relate(self, element, kind, other):
        self.relations.add((element, kind, other))

    def add_artefact(self, path, work):
        root = unpack(path, work / path.name)
        core_only = path.name.startswith("neuroshardd")
        ours = identifier(path.name)
        digests = []
        for file in sorted(file for file in root.rglob("*") if file.is_file() and not file.is_symlink()):
            self.newest = max(self.newest, int(file.stat().st_mtime))
            name = file.relative_to(root).as_posix()
            element = {"SPDXID": identifier(f"{path.name}-{name}"), "fileName": "./" + name, "checksums": sums(file),
                       "licenseConcluded": APP_LICENCE if name.endswith("bin/neuroshard") else "NOASSERTION", "copyrightText": "NOASSERTION"}
            digests.append(element["checksums"][0]["checksumValue"])
            if is_program(file):
                element["fileTypes"] = ["BINARY"]
                self.add_libraries(element["SPDXID"], file)
            self.files.append(element)
            self.relate(ours, "CONTAINS", element["SPDXID"])
        self.packages.append({
            "SPDXID": ours, "name": path.name.split("_")[0] if path.suffix == ".deb" else "neuroshard (archive)", "versionInfo": self.version,
            "packageFileName": path.name, "downloadLocation": "NOASSERTION", "filesAnalyzed": True, "checksums": sums(path),
            "packageVerificationCode": {"packageVerificationCodeValue": hashlib.sha1("".join(sorted(digests)).encode()).hexdigest()},
            "supplier": "Organization: NeuroShard maintainers", "licenseConcluded": "NOASSERTION",
            "licenseDeclared": SOURCE_LICENCE if core_only else f"{SOURCE_LICENCE} AND {APP_LICENCE}", "copyrightText": "NOASSERTION",
            "primaryPackagePurpose": "APPLICATION"})
        self.relate("SPDXRef-DOCUMENT", "DESCRIBES", ours)
        for package in self.headers:
            self.seen.setdefault(package, set())
            self.relate(identifier("Debian-" + package), "BUILD_DEPENDENCY_OF", ours)

    def add_libraries(self, element, file):
        table = self.libraries.loaded(file)
        for name in self.libraries.needed(file):
            self.relate(element, "DYNAMIC_LINK", self.add_library(name, table[name], table))
        for name in self.libraries.opened_by_name(file):
            path = self.libraries.find(name, file.name)
            self.relate(self.add_library(name, path, self.libraries.loaded(pathlib.Path(path))), "OPTIONAL_DEPENDENCY_OF", element)
        # The libraries that the loader brings in beyond the named libraries, each by the library that names it.
        for name, path in table.items():
            self.add_library(name, path, table)

    def add_library(self, name, path, table):
        owner = self.libraries.owner(path)
        element = identifier("Debian-" + owner)
        self.seen.setdefault(owner, set()).add(name)
        if path in self.walked:
            return element
        self.walked.add(path)
        for other in self.libraries.needed(path):
            # A library that is loaded from a cache of its own folder stands in the table under its name as well.
            target = self.add_library(other, table.get(other) or self.libraries.find(other, name), table)
            if target != element:
                self.relate(element, "DEPENDS_ON", target)
        return element

    def add_plugins(self):
        """Qt's packages bring plugins, which load further libraries, until nothing new comes."""
        done = set()
        while set(self.seen) - done:
            for package in sorted(set(self.seen) - done):
                done.add(package)
                for plugin in sorted(self.libraries.plugins.get(package, [])):
                    table = self.libraries.loaded(plugin)
                    for name in self.libraries.needed(plugin):
                        target = self.add_library(name, table[name], table)
                        if target != identifier("Debian-" + package):
                            self.relate(target, "RUNTIME_DEPENDENCY_OF", identifier("Debian-" + package))

    def make(self):
        with tempfile.TemporaryDirectory() as work:
            for path in self.artefacts:
                self.add_artefact(path, pathlib.Path(work))
        self.add_plugins()
        self.packages += debian_packages({package: "libraries: " + " ".join(sorted(names)) if names else "headers, compiled into the programs"
                                          for package, names in self.seen.items()})
        document = {
            "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"neuroshard-{self.version}",
            "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.newest)),
                             "creators": ["Organization: NeuroShard maintainers", "Tool: neuroshard-sbom.py"]},
            "packages": self.packages, "files": self.files,
            "relationships": [{"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": other}
                              for element, kind, other in sorted(self.relations)],
        }
        content = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
        document["documentNamespace"] = f"{NAMESPACE}neuroshard-{urllib.parse.quote(self.version)}-{content}"
        return document


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    document = Document(folder)
    path = folder / f"neuroshard-{document.version}.spdx.json"
    made = document.make()
    path.write_text(json.dumps(made, indent=1) + "\n")
    print(f"{path.name}: {len(made['files'])} files, {len(document.seen)} Debian packages")


if __name__ == "__main__":
    main()
