#!/usr/bin/env python3
"""Users can check and start the files published with the packages: signed sums and an AppImage. Run by packed.py."""
import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

import packed
from packed import ELSEWHERE, ROOT, VERSION, run

class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def must(self, *command, **options):
        status, said = run(*command, **options)
        self.assertEqual(0, status, said)
        return said

    def refused(self, word, *command, **options):
        status, said = run(*command, **options)
        self.assertNotEqual(0, status, said)
        self.assertIn(word, said)


class TestSignature(Case):
    """A release of small files, signed by a key of this test."""

    def setUp(self):
        super().setUp()
        self.release = self.folder / "release"
        self.release.mkdir()
        for name in (f"neuroshardd_{VERSION}-1_amd64.deb", f"neuroshard-{VERSION}-linux-x86_64.tar.gz", f"neuroshard-{VERSION}.spdx.json"):
            (self.release / name).write_text(name)
        self.sum()
        self.key = self.make_key("own")

    def sum(self):
        self.must("sh", "-c", "sha256sum -- *.* >SHA256SUMS", cwd=self.release)

    def make_key(self, name):
        self.must("minisign", "-G", "-W", "-p", self.folder / f"{name}.pub", "-s", self.folder / f"{name}.key")
        return self.folder / f"{name}.key"

    def sign(self, public="own.pub"):
        return ("sh", ROOT / "installers/sign.sh", self.release, self.key, self.folder / public)

    def check(self, key="neuroshard.pub"):
        """The command of the guide."""
        guide = (ROOT / "docs/guide/install.md").read_text()
        command = "minisign -Vm SHA256SUMS -p neuroshard.pub && sha256sum -c SHA256SUMS"
        self.assertTrue(command in guide, "the guide does not name the command")
        return ("sh", "-c", command.replace("neuroshard.pub", str(key)))

    def test_a_good_release_passes(self):
        self.must(*self.sign())
        said = self.must(*self.check(), cwd=self.release)
        self.assertIn(f"Trusted comment: version:{VERSION} file:SHA256SUMS\n", said)
        self.assertEqual(3, said.count(": OK"))
        self.assertEqual((self.folder / "own.pub").read_text(), (self.release / "neuroshard.pub").read_text())
        self.must("minisign", "-VHm", "SHA256SUMS", "-p", "neuroshard.pub", cwd=self.release)  # of the hash, not of the text

    def test_changes_are_refused(self):
        self.must(*self.sign())
        package = self.release / f"neuroshardd_{VERSION}-1_amd64.deb"
        package.write_text("another")
        self.refused("WARNING: 1 computed checksum did NOT match", *self.check(), cwd=self.release)
        self.sum()
        self.refused("Signature verification failed", *self.check(), cwd=self.release)

    def test_a_truncated_package_is_refused(self):
        self.must(*self.sign())
        archive = self.release / f"neuroshard-{VERSION}-linux-x86_64.tar.gz"
        archive.write_bytes(archive.read_bytes()[:-1])
        self.refused(f"{archive.name}: FAILED", *self.check(), cwd=self.release)

    def test_another_key_and_comment_are_refused(self):
        self.must(*self.sign())
        self.make_key("foreign")
        self.refused("but the key id in the public key is", *self.check(self.folder / "foreign.pub"), cwd=self.release)
        signature = self.release / "SHA256SUMS.minisig"
        signature.write_text(signature.read_text().replace(VERSION, "9.9.9"))
        self.refused("Comment signature verification failed", *self.check(), cwd=self.release)

    def test_what_does_not_hold_is_not_signed(self):
        (self.release / "neuroshard_0.0.9-1_amd64.deb").write_text("old")
        self.refused("SHA256SUMS does not cover neuroshard_0.0.9-1_amd64.deb", *self.sign())
        (self.release / "neuroshard_0.0.9-1_amd64.deb").unlink()
        (self.release / f"neuroshard-{VERSION}.spdx.json").write_text("another")
        self.refused("SHA256SUMS does not hold", *self.sign())
        (self.release / f"neuroshard-{VERSION}.spdx.json").unlink()
        self.sum()
        self.refused("does not name neuroshard-", *self.sign())
        self.assertFalse((self.release / "SHA256SUMS.minisig").exists())

    def test_keys_that_are_no_pair_sign_nothing(self):
        self.make_key("foreign")
        self.refused("are both keys of one pair?", *self.sign("foreign.pub"))
        self.assertFalse((self.release / "SHA256SUMS.minisig").exists())
        self.refused("the public key", *self.sign("nothing"))

    def test_the_public_key_may_be_left_out(self):
        """It is that of the sources; before the first release there is none, and it is made."""
        if (ROOT / "installers/neuroshard.pub").exists():
            self.refused("are both keys of one pair?", *self.sign()[:-1])
        else:
            self.must(*self.sign()[:-1])
            self.must(*self.check(self.folder / "own.pub"), cwd=self.release)

    def test_what_is_no_key_signs_nothing(self):
        self.key = self.folder / "own.pub"
        self.refused("a secret key of minisign?", *self.sign())
        self.key = self.folder / "nothing"
        self.refused("can't be read", *self.sign())


class TestAppImage(Case):
    RUNTIME = b"\x7fELF\2\1\1\0AI\2" + bytes(53) + b"runtime"

    def setUp(self):
        """An archive of the core alone: the libraries of the app and of the modules have 500 MB (tests/long.sh ubuntu)."""
        super().setUp()
        archive = next(packed.release().glob("*.tar.gz"))
        self.must("tar", "-xzf", archive, "-C", self.folder)
        unpacked = self.folder / archive.name.removesuffix(".tar.gz")
        shutil.rmtree(unpacked / "lib")
        (unpacked / "bin/neuroshard").unlink()
        self.must("tar", "-czf", self.folder / archive.name, "-C", self.folder, unpacked.name)
        shutil.rmtree(unpacked)
        self.name = f"neuroshard-{VERSION}-x86_64"

    def make(self, *runtime):
        return ("sh", ROOT / "installers/appimage.sh", self.folder, *runtime)

    def test_it_starts_with_its_own_libraries(self):
        runtime = self.folder / "runtime"
        runtime.write_bytes(self.RUNTIME)
        self.must("sh", "-c", "sha256sum -- *.tar.gz >SHA256SUMS", cwd=self.folder)
        made = []
        for options in ({}, {"env": {**ELSEWHERE, "SOURCE_DATE_EPOCH": "1"}, "umask": 0o077}):
            self.must(*self.make(runtime), **options)
            self.assertEqual(2, self.must("sha256sum", "-c", "SHA256SUMS", cwd=self.folder).count(": OK"))
            made.append((self.folder / f"{self.name}.AppImage").read_bytes())
        self.assertEqual(made[0], made[1])
        whole = self.folder / f"{self.name}.AppImage"
        self.assertTrue(os.access(whole, os.X_OK))
        self.assertEqual(self.RUNTIME, whole.read_bytes()[:len(self.RUNTIME)])
        squashfs = self.folder / f"{self.name}.squashfs"
        self.assertEqual(squashfs.read_bytes(), whole.read_bytes()[len(self.RUNTIME):])
        self.must("unsquashfs", "-quiet", "-no-progress", "-dest", self.folder / "App Dir", squashfs)
        start = self.folder / "App Dir/AppRun"
        self.assertRegex(self.must(start, "neuroshardd", "--version"), r"^neuroshardd \d")
        self.assertRegex(self.must(start, "--version", env={"ARGV0": "/usr/local/bin/neuroshardd"}), r"^neuroshardd \d")
        said = self.must("ldd", self.folder / "App Dir/bin/neuroshardd")
        own = {name for name, path in re.findall(r"^\s*(\S+) => (/.+) \(", said, re.MULTILINE) if path.startswith(str(self.folder))}
        self.assertIn("libsodium.so.23", own)
        self.assertNotIn("libc.so.6", own)
        self.assertTrue((self.folder / "App Dir/share/doc/libsodium23/copyright").is_file())
        self.assertNotIn("apt-get", (self.folder / "App Dir/README.txt").read_text())

    def test_what_does_not_fit_is_refused(self):
        runtime = self.folder / "runtime"
        runtime.write_bytes(b"\x7fELF" + bytes(60))
        self.refused("is no AppImage runtime of type 2", *self.make(runtime))
        archive = self.folder / f"neuroshard-{VERSION}-linux-x86_64.tar.gz"
        archive.write_bytes(archive.read_bytes()[:5000])
        self.refused("is damaged", *self.make())
        archive.unlink()
        self.refused("has no archive", *self.make())
        self.assertEqual([], list(self.folder.glob("*.squashfs")) + list(self.folder.glob("*.AppImage")))


class TestFlatpak(unittest.TestCase):
    """The long check `package` lets flatpak-builder read it; here, what that does not look at."""

    def test_sources_have_sums_and_files_exist(self):
        path = next((ROOT / "installers/flatpak").glob("*.json"))
        manifest = json.loads(path.read_text())
        self.assertEqual(path.stem, manifest["id"])
        for module in manifest["modules"]:
            for source in module["sources"]:
                if source["type"] == "archive":
                    self.assertRegex(source["sha256"], r"^[0-9a-f]{64}$", module["name"])
                    self.assertRegex(source["url"], r"^https://snapshot\.debian\.org/archive/debian/\d{8}T\d{6}Z/pool/main/\S+$")
                elif source["type"] == "git":
                    self.assertRegex(source["commit"], r"^[0-9a-f]{40}$", module["name"])
                else:
                    self.assertTrue((path.parent / source["path"] / "CMakeLists.txt").is_file(), source)
        desktop = (ROOT / "resources/desktop" / manifest["rename-desktop-file"]).read_text()
        self.assertIn(f"Icon={manifest['rename-icon']}\n", desktop)
        self.assertIn(f"Exec={manifest['command']} ", desktop)


if __name__ == "__main__":
    packed.main()
