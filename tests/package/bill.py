"""Checks a bill of materials (SPDX 2.3, JSON) against the specification and against what is packed.

check(DOCUMENT, UNPACKED): findings, as text. UNPACKED names the folder of each unpacked package and archive by its file name.
"""
import hashlib
import pathlib
import re
import subprocess

# Of SPDX 2.3: the mandatory fields of each element, and the form of those that have one.
DOCUMENT = {"spdxVersion": r"SPDX-2\.3", "dataLicense": r"CC0-1\.0", "SPDXID": "SPDXRef-DOCUMENT", "name": r".+",
            "documentNamespace": r"https?://[^#\s]+"}
PACKAGE = {"SPDXID": r"SPDXRef-[A-Za-z0-9.-]+", "name": r".+", "downloadLocation": r"NONE|NOASSERTION|\w+://\S+"}
FILE = {"SPDXID": r"SPDXRef-[A-Za-z0-9.-]+", "fileName": r"\./.+"}
CREATED, CREATOR = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", r"(Person|Organization|Tool): .+"
KINDS = {"DESCRIBES", "CONTAINS", "DYNAMIC_LINK", "DEPENDS_ON", "OPTIONAL_DEPENDENCY_OF", "RUNTIME_DEPENDENCY_OF", "BUILD_DEPENDENCY_OF"}
SUM_LENGTHS = {"SHA1": 40, "SHA256": 64}
PURL = r"pkg:deb/[a-z]+/([\w.%-]+)@([\w.~%-]+)\?arch=\w+&distro=\w+"


def run(*command):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False).stdout


def malformed(what, element, forms):
    return [f"{what}: {name} is {element.get(name)!r}" for name, form in forms.items()
            if not isinstance(element.get(name), str) or not re.fullmatch(form, element[name])]


def check_form(document):
    """The specification's rules for any document."""
    found = malformed("document", document, DOCUMENT)
    creation = document.get("creationInfo", {})
    if not re.fullmatch(CREATED, creation.get("created", "")):
        found.append(f"document: created {creation.get('created')!r}")
    if not creation.get("creators") or not all(re.fullmatch(CREATOR, name) for name in creation["creators"]):
        found.append(f"document: creators {creation.get('creators')!r}")
    names = ["SPDXRef-DOCUMENT"]
    for kind, forms in (("packages", PACKAGE), ("files", FILE)):
        for element in document.get(kind, []):
            found += malformed(element.get("SPDXID", kind), element, forms)
            names.append(element.get("SPDXID"))
    found += [f"{name} stands for two elements" for name in sorted({name for name in names if names.count(name) > 1})]
    for relation in document.get("relationships", []):
        if relation["relationshipType"] not in KINDS:
            found.append(f"unknown relation {relation['relationshipType']}")
        found += [f"a relation names {end}, which is not there" for end in (relation["spdxElementId"], relation["relatedSpdxElement"])
                  if end not in names]
    return found


def relations(document, kind):
    return {(relation["spdxElementId"], relation["relatedSpdxElement"]) for relation in document["relationships"]
            if relation["relationshipType"] == kind}


def digests(element):
    return {checksum["algorithm"]: checksum["checksumValue"] for checksum in element.get("checksums", [])}


def check_sums(name, element, path):
    data, said, found = path.read_bytes(), digests(element), []
    for algorithm in SUM_LENGTHS:
        if said.get(algorithm) != hashlib.new(algorithm.lower(), data).hexdigest():
            found.append(f"{name}: {algorithm} does not hold for {path.name}")
    return found


def check_files(document, unpacked):
    """Each package with exactly its files, and their sums."""
    found, described = [], {other for _, other in relations(document, "DESCRIBES")}
    files = {file["SPDXID"]: file for file in document["files"]}
    packed = {package.get("packageFileName"): package for package in document["packages"] if package["SPDXID"] in described}
    found += [f"{name} is not in the document" for name in sorted(set(unpacked) - set(packed))]
    found += [f"{name} was not packed" for name in sorted(set(packed) - set(unpacked))]
    for name in sorted(set(unpacked) & set(packed)):
        own = [files[other] for one, other in relations(document, "CONTAINS") if one == packed[name]["SPDXID"]]
        there = {"./" + path.relative_to(unpacked[name]).as_posix(): path for path in unpacked[name].rglob("*")
                 if path.is_file() and not path.is_symlink()}
        listed = {file["fileName"]: file for file in own}
        found += [f"{name}: {file} is missing" for file in sorted(set(there) - set(listed))]
        found += [f"{name}: {file} was not packed" for file in sorted(set(listed) - set(there))]
        for file in sorted(set(there) & set(listed)):
            found += check_sums(name, listed[file], there[file])
        code = hashlib.sha1("".join(sorted(digests(file).get("SHA1", "") for file in own)).encode()).hexdigest()
        if packed[name].get("packageVerificationCode", {}).get("packageVerificationCodeValue") != code:
            found.append(f"{name}: its verification code does not hold")
    return found


def owners(paths):
    """The Debian package of each library; a merged /usr has each under two names."""
    names = {}
    for path in paths:
        real = str(pathlib.Path(path).resolve())
        for name in (real, path, real.removeprefix("/usr")):
            names.setdefault(name, []).append(path)
    found = {}
    for line in run("dpkg-query", "--search", *names).splitlines():
        package, _, name = line.partition(": ")
        for path in names.get(name, []):
            found.setdefault(path, package.split(":")[0])
    return found


def check_libraries(document, unpacked):
    """Every library that ldd lists for a program is in a package of the document, which is the installed one; what a program
    names as needed is what the document says it links."""
    found = []
    debian = {package["name"]: package for package in document["packages"] if not package.get("filesAnalyzed", True)}
    names = {package["SPDXID"]: package["name"] for package in debian.values()}
    links = relations(document, "DYNAMIC_LINK")
    roots = {package["SPDXID"]: unpacked.get(package.get("packageFileName")) for package in document["packages"]}
    holder = {other: roots[one] for one, other in relations(document, "CONTAINS") if roots.get(one)}
    programs = {file["SPDXID"]: holder[file["SPDXID"]] / file["fileName"] for file in document["files"] if "BINARY" in file.get("fileTypes", [])}
    tables = {name: dict(re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", path), re.MULTILINE)) for name, path in programs.items()}
    owner = owners({place for table in tables.values() for place in table.values()})
    for program, table in tables.items():
        path = programs[program]
        if not table:
            found.append(f"ldd lists nothing for {path.name}")
        for library, place in table.items():
            package = debian.get(owner.get(place))
            if package is None or library not in package.get("comment", "").split():
                found.append(f"{path.name} loads {library} of {owner.get(place)}, which the document does not say")
        needed = {owner.get(table[library]) for library in re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", path)) if library in table}
        said = {names.get(other) for one, other in links if one == program}
        if needed != said - ({"libc6"} - needed):  # ldd shows the loader, which is of libc6, in another form
            found.append(f"{path.name} links {sorted(needed ^ said, key=str)}: said or linked, not both")
    return found + check_debian(debian)


def check_debian(packages):
    """Name, version and purl of the installed packages."""
    installed, found = {}, []
    for line in run("dpkg-query", "--show", "-f", "${Package} ${Version}\n", *packages).splitlines():
        installed.setdefault(*line.split())
    for name, package in packages.items():
        if package.get("versionInfo") != installed.get(name):
            found.append(f"{name}: {package.get('versionInfo')}, installed is {installed.get(name)}")
        locator = [reference["referenceLocator"] for reference in package.get("externalRefs", []) if reference["referenceType"] == "purl"]
        form = re.fullmatch(PURL, locator[0]) if len(locator) == 1 else None
        plain = [re.sub("%([0-9A-F]{2})", lambda hit: chr(int(hit.group(1), 16)), part) for part in form.groups()] if form else []
        if plain != [name, installed.get(name)]:
            found.append(f"{name}: purl {locator}")
    return found


def check(document, unpacked):
    found = check_form(document)
    return found or check_files(document, unpacked) + check_libraries(document, unpacked)
