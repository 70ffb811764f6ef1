"""The libraries of this system as the loader finds them, and the Debian package that each comes from.

Reads only what Debian has: dpkg, ldd, readelf, ldconfig. A library that is missing ends the program with a word about it.
"""
import pathlib
import re
import subprocess
import sys


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"})
    return done.returncode, done.stdout, done.stderr.strip()


def must(*command):
    status, said, error = run(*command)
    if status != 0:
        sys.exit(f"error: \"{' '.join(map(str, command))}\" ended with {status}: {error}")
    return said


def is_program(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


class Libraries:
    """The files that the loader finds, and the Debian package that each file comes from."""

    def __init__(self):
        self.cache = {}
        for line in must("ldconfig", "-p").splitlines():
            found = re.match(r"\s+(\S+) \(.*x86-64.*\) => (\S+)$", line) or re.match(r"\s+(\S+) \(.*AArch64.*\) => (\S+)$", line)
            if found:
                self.cache.setdefault(found.group(1), found.group(2))
        self.needs, self.tables, self.owners, self.plugins = {}, {}, {}, {}
        for line in must("dpkg-query", "--search", "*.so*").splitlines():
            packages, _, name = line.partition(": ")
            package = packages.split(", ")[0].split(":")[0]
            self.owners.setdefault(name, package)
            if "/qt6/plugins/" in name and name.endswith(".so"):  # the programs open those that fit the desktop
                self.plugins.setdefault(package, []).append(pathlib.Path(name))

    def loaded(self, path):
        """All libraries that come into the process with this file: name → path."""
        if path not in self.tables:
            found = {}
            for line in must("ldd", path).splitlines():
                words = line.split()
                if "not found" in line:
                    sys.exit(f"error: {path.name} needs {words[0]}, which is not installed: install its package and pack again")
                if "=>" in words:
                    found[words[0]] = words[2]
                elif words[0].startswith("/"):
                    found[pathlib.Path(words[0]).name] = words[0]
            self.tables[path] = found
        return self.tables[path]

    def needed(self, path):
        """The libraries that the file itself names."""
        if path not in self.needs:
            self.needs[path] = sorted(re.findall(r"\(NEEDED\).*\[(.+)\]", must("readelf", "--dynamic", "--wide", path)))
        return self.needs[path]

    def opened_by_name(self, path):
        """Names of libraries in the program's data that the loader does not open by itself: dlopen gets them."""
        names = {name.decode() for name in re.findall(rb"(?<=\0)lib[\w+.-]+\.so\.\d+(?=\0)", path.read_bytes())}
        return sorted(names - set(self.needed(path)) - set(self.loaded(path)))

    def find(self, name, asker):
        if name not in self.cache:
            sys.exit(f"error: {asker} opens {name} by name, which is not installed: install its package and pack again")
        return self.cache[name]

    def owner(self, path):
        """The Debian package of a library. A merged /usr has each file under two names, of which dpkg knows one."""
        real = str(pathlib.Path(path).resolve())
        for name in (real, path, real.removeprefix("/usr"), "/usr" + path):
            if name in self.owners:
                return self.owners[name]
        sys.exit(f"error: {path} is in no Debian package: nothing says where it comes from and under which licence")
