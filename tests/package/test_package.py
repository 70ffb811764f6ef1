#!/usr/bin/env python3
"""The packages of a build hold what they should, and the check of that bites. Run by packed.py."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import check
import packed


class TestPackage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.release = packed.release()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def unpacked(self, name):
        return check.Packages(self.release, self.folder / name / "root")

    def test_packages_are_complete(self):
        self.assertEqual([], self.unpacked("whole").check())

    def test_the_archive_names_the_packages_that_it_needs(self):
        """All that the two packages depend on, apart from each other and the tool that makes a user."""
        said = subprocess.run(["tar", "-xzOf", str(next(self.release.glob("*.tar.gz"))), "--wildcards", "*/README.txt"], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        named = re.search(r"^ +apt-get install --no-install-recommends (.+)$", said, re.MULTILINE).group(1).split()
        needed = {name.split()[0] for deb in self.unpacked("needs").debs.values()
                  for name in check.Packages.control(deb)["Depends"].split(",")} - {"adduser", "neuroshardd"}
        self.assertLessEqual({"libc6", "libfmt9", "libqt6gui6"}, needed)
        self.assertEqual(sorted(needed), sorted(named))

    def test_made_files_are_listed_as_installed(self):
        """The guide removes an installation by that list."""
        root, listing, script = (self.folder / name for name in ("made", "made.txt", "made.cmake"))
        script.write_text(f"""set(NS_SOURCE "{packed.ROOT}")
set(NS_BIN "{os.environ['NS_BUILD']}/bin")
set(NS_DATA "{root}/usr/share")
set(NS_PROGRAMS neuroshardd)
set(CMAKE_INSTALL_MANIFEST_FILES /usr/bin/neuroshardd)
include("{packed.ROOT}/installers/made_files.cmake")
file(WRITE "{listing}" "${{CMAKE_INSTALL_MANIFEST_FILES}}")
""")
        subprocess.run(["cmake", "-P", str(script)], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "DESTDIR": str(root)})
        made = {"/" + str(file.relative_to(root)) for file in root.rglob("*") if file.is_file()}
        self.assertIn("/usr/share/man/man1/neuroshardd.1", made)
        self.assertEqual(made | {"/usr/bin/neuroshardd"}, set(listing.read_text().split(";")))

    def test_the_services_create_no_wallet(self):
        """Its words would stand in the journal."""
        packages = self.unpacked("services")
        for kind in ("system", "user"):
            unit = packages.path(f"/usr/lib/systemd/{kind}/neuroshardd.service").read_text()
            self.assertRegex(unit, r"(?m)^ExecStart=\S+ run .*--existing-wallet")

    def test_a_module_that_is_left_out_is_found(self):
        """The same package without one module, packed again."""
        packages = self.unpacked("less")
        deb = packages.debs["neuroshardd"]
        tree = self.folder / "tree"
        subprocess.run(["dpkg-deb", "--raw-extract", str(deb), str(tree)], check=True)
        (tree / "usr/lib/neuroshard/compute_cpu.so").unlink()
        changed = self.folder / "changed"
        changed.mkdir()
        subprocess.run(["dpkg-deb", "-Znone", "--root-owner-group", "--build", str(tree), str(changed / deb.name)], check=True,
                       stdout=subprocess.DEVNULL)
        shutil.copy(packages.debs["neuroshard"], changed)
        less = check.Packages(changed, self.folder / "less2" / "root")
        less.check_files()
        less.check_start()
        self.assertIn("neuroshardd: /usr/lib/neuroshard/compute_cpu.so is missing", less.findings)
        self.assertTrue(any(text.startswith("training a step:") for text in less.findings), less.findings)

    def test_a_library_that_is_missing_is_found(self):
        """A program that asks for a library that nobody has."""
        packages = self.unpacked("library")
        module = packages.path("/usr/lib/neuroshard/network.so")
        data = module.read_bytes()
        self.assertIn(b"libzip.so.4\0", data)
        module.write_bytes(data.replace(b"libzip.so.4\0", b"libzap.so.4\0"))
        packages.check_programs()
        self.assertEqual(["usr/lib/neuroshard/network.so: libraries are missing: libzap.so.4"], packages.findings)


if __name__ == "__main__":
    packed.main()
