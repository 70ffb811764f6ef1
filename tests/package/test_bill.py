#!/usr/bin/env python3
"""The bill of materials names what is packed and what that loads, and the check of it bites. Run by packed.py."""
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import bill
import packed
from packed import ROOT, VERSION


class TestBill(unittest.TestCase):
    """Of the packages of this build."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.release = packed.release()
        cls.path = cls.make(cls.release)
        cls.document = json.loads(cls.path.read_text())
        cls.unpacked = {}
        for artefact in [*cls.release.glob("*.deb"), *cls.release.glob("*.tar.gz")]:
            root = cls.unpacked[artefact.name] = cls.folder / "unpacked" / artefact.name
            root.mkdir(parents=True)
            unpack = ["dpkg-deb", "--extract", artefact, root] if artefact.suffix == ".deb" else \
                ["tar", "-xzf", artefact, "-C", root, "--strip-components=1"]
            subprocess.run(unpack, check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @staticmethod
    def make(release, **options):
        status, said = packed.run(sys.executable, "-B", ROOT / "installers/sbom.py", release, **options)
        if status != 0:
            raise RuntimeError(said)
        return release / f"neuroshard-{VERSION}.spdx.json"

    def changed(self):
        return json.loads(self.path.read_text())

    def test_it_names_what_is_packed_and_loaded(self):
        self.assertEqual(3, len(self.unpacked))
        self.assertEqual([], bill.check(self.document, self.unpacked))

    def test_it_names_what_is_opened_by_name(self):
        """Each name of a library in the sources."""
        said = " ".join(package.get("comment", "") for package in self.document["packages"]).split()
        names = {name for path in (ROOT / "core").rglob("*.cpp") for name in re.findall(r'library_name = "(lib[^"]+)"', path.read_text())}
        self.assertLessEqual({"libsecret-1.so.0", "libsystemd.so.0"}, names)
        self.assertEqual(set(), names - set(said))

    def test_it_names_plugins_of_qt_and_headers(self):
        packages = {package["name"]: package for package in self.document["packages"]}
        self.assertIn("libxcb-icccm.so.4", packages["libxcb-icccm4"]["comment"])  # of the plugin xcb alone
        self.assertEqual("headers, compiled into the programs", packages["libcli11-dev"]["comment"])
        self.assertEqual("ISC", packages["libsodium23"]["licenseDeclared"])
        self.assertEqual(["NOASSERTION", "Debian's copyright file says of all files: Expat with embedded exception"],
                         [packages["libfmt9"][name] for name in ("licenseDeclared", "licenseComments")])

    def test_it_has_the_same_bytes_elsewhere(self):
        other = self.folder / "other"
        shutil.copytree(self.release, other)
        again = self.make(other, env=packed.ELSEWHERE, umask=0o077)
        self.assertEqual(self.path.read_bytes(), again.read_bytes())

    def test_a_library_that_is_left_out_is_found(self):
        document = self.changed()
        gone = next(package for package in document["packages"] if package["name"] == "libzip4")
        document["packages"].remove(gone)
        document["relationships"] = [relation for relation in document["relationships"]
                                     if gone["SPDXID"] not in (relation["spdxElementId"], relation["relatedSpdxElement"])]
        found = bill.check(document, self.unpacked)
        self.assertTrue(any("loads libzip.so.4 of libzip4, which the document does not say" in text for text in found), found)

    def test_a_wrong_version_sum_or_relation_is_found(self):
        document = self.changed()
        next(package for package in document["packages"] if package["name"] == "libzip4")["versionInfo"] = "9"
        program = next(file for file in document["files"] if file["fileName"] == "./usr/bin/neuroshardd")
        program["checksums"][1]["checksumValue"] = hashlib.sha256(b"").hexdigest()
        found = " ".join(bill.check(document, self.unpacked))
        self.assertIn("libzip4: 9, installed is", found)
        self.assertIn("SHA256 does not hold for neuroshardd", found)
        document["relationships"][0]["relatedSpdxElement"] = "SPDXRef-nobody"
        self.assertIn("SPDXRef-nobody, which is not there", " ".join(bill.check(document, self.unpacked)))

    def test_other_files_are_refused(self):
        empty = self.folder / "empty"
        empty.mkdir()
        self.assertIn("must hold one archive", packed.run(sys.executable, "-B", ROOT / "installers/sbom.py", empty)[1])


if __name__ == "__main__":
    packed.main()
