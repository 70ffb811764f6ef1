#!/usr/bin/env python3
"""What the packages hold and need.    check.py FOLDER_WITH_DEBS FOLDER_TO_UNPACK_IN

Prints one line for each finding and ends with 1 if there is any. Needs no root and installs nothing. The lists of files are
neuroshard.files and neuroshardd.files beside this script.
"""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = ("neuroshardd", "neuroshard")
# A name of a site of its own (reverse DNS) is asked for; the project has no site yet.
METAINFO_EXCEPTION = "--override=cid-desktopapp-is-not-rdns=info"


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, **options)
    return done.returncode, done.stdout


class Packages:
    """Unpacked packages, as their files would be in the system: all in one root."""

    def __init__(self, folder, root):
        self.root, self.findings = pathlib.Path(root), []
        self.root.mkdir(parents=True)
        self.debs = {}
        for package in PACKAGES:
            found = sorted(pathlib.Path(folder).glob(f"{package}_*.deb"))
            if len(found) != 1:
                self.finding(f"{len(found)} packages {package}_*.deb in {folder} instead of one")
                continue
            self.debs[package] = found[0]
            status, said = run("dpkg-deb", "--extract", found[0], self.root)
            if status != 0:
                self.finding(f"{found[0].name} can't be unpacked: {said.strip()}")

    def finding(self, text):
        self.findings.append(text)

    def path(self, name):
        return self.root / name.lstrip("/")

    def must(self, what, *command, **options):
        """A tool that finds nothing."""
        if shutil.which(command[0]) is None:
            return self.finding(f"{command[0]} is not installed (installers/debian-packages.txt, section [test])")
        status, said = run(*command, **options)
        if status != 0:
            self.finding(f"{what}: {said.strip()}")
        return None

    # ---- each package ----------------------------------------------------------------------------------------------
    def check_files(self):
        """Exactly the expected files, all of root, with the usual permissions."""
        for package, deb in self.debs.items():
            status, listed = run("dpkg-deb", "--contents", deb)
            found = set()
            for line in listed.splitlines() if status == 0 else []:
                mode, owner, _, _, _, name = line.split(None, 5)
                if owner != "root/root":
                    self.finding(f"{package}: {name} belongs to {owner}")
                # Programs and folders, all other files.
                if mode not in ("-rwxr-xr-x", "drwxr-xr-x", "-rw-r--r--"):
                    self.finding(f"{package}: {name} has the permissions {mode}")
                if not name.endswith("/"):
                    found.add(name[1:])
            expected = set((HERE / f"{package}.files").read_text().split())
            self.findings += [f"{package}: {name} is missing" for name in sorted(expected - found)]
            self.findings += [f"{package}: {name} is not expected" for name in sorted(found - expected)]

    def check_sums(self):
        for package, deb in self.debs.items():
            _, sums = run("dpkg-deb", "--info", deb, "md5sums")
            named = dict(reversed(line.split("  ", 1)) for line in sums.splitlines() if "  " in line)
            for name in (HERE / f"{package}.files").read_text().split():
                file = self.path(name)
                if file.is_file() and named.get(name[1:]) != hashlib.md5(file.read_bytes()).hexdigest():
                    self.finding(f"{package}: md5sums does not hold for {name}")

    def check_control(self):
        fields = {package: self.control(deb) for package, deb in self.debs.items()}
        for package, control in fields.items():
            for field in ("Package", "Version", "Architecture", "Maintainer", "Section", "Priority", "Depends", "Description"):
                if not control.get(field):
                    self.finding(f"{package}: no field {field}")
        core, app = fields.get("neuroshardd", {}), fields.get("neuroshard", {})
        if f"neuroshardd (= {core.get('Version')})" not in app.get("Depends", ""):
            self.finding("neuroshard does not depend on neuroshardd of its own version")
        # Only the modules, which are opened at run time, need these.
        for library in ("libtorch", "libgrpc++", "libdnnl"):
            if not re.search(rf"\b{re.escape(library)}[\d.]*\b", core.get("Depends", "")):
                self.finding(f"neuroshardd does not depend on {library}: was a module left out?")

    @staticmethod
    def control(deb):
        _, text = run("dpkg-deb", "--field", deb)
        fields, name = {}, ""
        for line in text.splitlines():
            if line.startswith(" "):
                fields[name] += "\n" + line
            else:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
        return fields

    # ---- programs and modules --------------------------------------------------------------------------------------
    def check_programs(self):
        programs = [file for file in sorted(self.root.rglob("*")) if file.is_file() and not file.is_symlink()
                    and file.read_bytes()[:4] == b"\x7fELF"]
        if len(programs) < 4:
            self.finding(f"{len(programs)} programs and modules instead of four")
        for file in programs:
            name = file.relative_to(self.root)
            _, dynamic = run("readelf", "--dynamic", "--wide", file)
            if "RPATH" in dynamic or "RUNPATH" in dynamic:
                self.finding(f"{name} looks for libraries in folders of its own")
            _, sections = run("readelf", "--sections", "--wide", file)
            if ".symtab" in sections or ".debug_info" in sections:
                self.finding(f"{name} is not stripped")
            status, said = run("ldd", file)
            missing = [line.split()[0] for line in said.splitlines() if "not found" in line]
            if status != 0 or missing:
                self.finding(f"{name}: libraries are missing: {' '.join(missing) or said.strip()}")

    def check_start(self):
        """They start, and the core opens both of its modules from here."""
        for program in PACKAGES:
            file = self.path(f"/usr/bin/{program}")
            if file.is_file():
                self.must(f"{program} --version", str(file), "--version")
        data = self.root.parent / "data"
        core = str(self.path("/usr/bin/neuroshardd"))
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(data / "runtime")}
        if pathlib.Path(core).is_file():
            self.must("training a step", core, "train", "--data-dir", str(data / "one"), "--profile", "devnet", "--steps", "1",
                      "--text", str(self.path("/usr/share/neuroshardd/sample-text")), env=environment)

    # ---- what the system reads -------------------------------------------------------------------------------------
    def check_desktop(self):
        self.must("desktop entry", "desktop-file-validate", self.path("/usr/share/applications/neuroshard.desktop"))
        self.must("metainfo", "appstreamcli", "validate", "--no-net", METAINFO_EXCEPTION,
                  self.path("/usr/share/metainfo/neuroshard.metainfo.xml"))

    def check_services(self):
        for kind in ("system", "user"):
            unit = self.path(f"/usr/lib/systemd/{kind}/neuroshardd.service")
            if not unit.is_file():
                continue
            # The program is not installed here: its path is that of the unpacked one.
            copy = self.root.parent / kind / "neuroshardd.service"
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(unit.read_text().replace("ExecStart=/usr/bin/", f"ExecStart={self.root}/usr/bin/"))
            status, said = run("systemd-analyze", f"--{kind}", "--man=no", "verify", copy,
                               env={**os.environ, "XDG_RUNTIME_DIR": str(self.root.parent)})
            ours = [line for line in said.splitlines() if "neuroshardd" in line]
            if ours or status not in (0, 1):
                self.finding(f"{kind} service: {' '.join(ours) or said.strip()}")

    def check_pages(self):
        for program in PACKAGES:
            page = self.path(f"/usr/share/man/man1/{program}.1.gz")
            if not page.is_file():
                continue
            status, said = run("man", "--warnings", "--local-file", page, env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8"})
            if status != 0 or "warning:" in said:
                self.finding(f"manual of {program}: {said[:500]}")
            for word in self.words_of(str(self.path(f"/usr/bin/{program}"))):
                if word not in said.replace("\u2010", "-"):
                    self.finding(f"manual of {program}: {word} is missing")

    def check_completions(self):
        """Each shell can read its script, which names all commands and options."""
        words = self.words_of(str(self.path("/usr/bin/neuroshardd")))
        if len(words) < 100:
            self.finding(f"neuroshardd --help names {len(words)} words: was it read?")
        for shell, name in (("bash", "bash-completion/completions/neuroshardd"), ("zsh", "zsh/vendor-completions/_neuroshardd"),
                            ("fish", "fish/vendor_completions.d/neuroshardd.fish")):
            script = self.path("/usr/share/" + name)
            if not script.is_file():
                continue
            self.must(f"completion of {shell}", shell, "-n", str(script))
            text = script.read_text()
            for word in words:
                if not re.search(rf"(?<![\w-]){re.escape(word if shell != 'fish' else word.lstrip('-'))}(?![\w-])", text):
                    self.finding(f"completion of {shell}: {word} is missing")

    def words_of(self, program, path=()):
        """The commands and options that --help shows, of all commands."""
        status, said = run(program, *path, "--help")
        if status != 0:
            return set()
        words = set(re.findall(r"^ +(?:-\w, ?)?(--[\w-]+)", said, re.MULTILINE))
        commands = re.search(r"^Commands:\n((?: .*\n)+)", said, re.MULTILINE)
        for name in re.findall(r"^  ([a-z][\w-]*)", commands.group(1) if commands else "", re.MULTILINE):
            words |= {name} | self.words_of(program, (*path, name))
        return words

    def check(self):
        for name in sorted(name for name in dir(self) if name.startswith("check_")):
            getattr(self, name)()
        return self.findings


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    packages = Packages(sys.argv[1], pathlib.Path(sys.argv[2]) / "root")
    findings = packages.check()
    for text in findings:
        print(text)
    sizes = ", ".join(f"{deb.name} {deb.stat().st_size / 1e6:.2f} MB" for deb in packages.debs.values())
    print(f"{len(findings)} findings; {sizes}")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
