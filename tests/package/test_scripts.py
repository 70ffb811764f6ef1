#!/usr/bin/env python3
"""The maintainer scripts of neuroshardd with a service that runs, or without systemd. Run by packed.py.

A systemctl of the test notes its calls; deb-systemd-invoke is the system's. The scripts see a system in a folder of the test.
"""
import os
import pathlib
import shutil
import tempfile
import unittest

from packed import ROOT, run

SCRIPTS = ROOT / "installers/debian/neuroshardd"
# The folders of the system that the scripts name.
PLACES = ("/run/systemd/system", "/etc/systemd/system", "/var/lib/neuroshard")
RELOAD = "--system daemon-reload"
RESTART = "try-restart neuroshardd.service"
STOP = "stop neuroshardd.service"


class TestScripts(unittest.TestCase):
    def setUp(self):
        self.system = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.system)
        (self.system / "run/systemd/system").mkdir(parents=True)
        (self.system / "bin").mkdir()
        self.calls = self.system / "calls"
        self.program("systemctl", f"echo \"$*\" >>'{self.calls}'")
        self.program("getent", "exit 0")  # the user is there
        self.program("adduser", f"echo \"adduser $*\" >>'{self.calls}'")

    def program(self, name, lines, folder="bin"):
        file = self.system / folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{lines}\n")
        file.chmod(0o755)

    def script(self, name, *arguments):
        """Its output. The calls of systemctl and adduser are those of this script alone."""
        self.calls.unlink(missing_ok=True)
        text = (SCRIPTS / name).read_text()
        for place in PLACES:
            text = text.replace(place, f"{self.system}{place}")
        copy = self.system / name
        copy.write_text(text)
        # deb-systemd-invoke looks for the administrator's policy below DPKG_ROOT.
        status, said = run("sh", copy, *arguments,
                           env={"PATH": f"{self.system}/bin:{os.environ['PATH']}", "DPKG_ROOT": str(self.system)})
        self.assertEqual(0, status, f"{name} {arguments}: {said}")
        return said

    def called(self):
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def after(self, name, *arguments):
        self.script(name, *arguments)
        return self.called()

    def test_the_scripts_name_no_other_place(self):
        """Else a script would change this system."""
        for script in SCRIPTS.iterdir():
            for word in script.read_text().split():
                if word.startswith("/"):
                    self.assertTrue(word.startswith(PLACES), f"{script.name}: {word}")

    def test_an_upgrade_restarts_the_service_once(self):
        """It runs on until the new files are there."""
        self.assertEqual([], self.after("prerm", "upgrade", "2.0-1"))
        self.assertEqual([RELOAD], self.after("postrm", "upgrade", "2.0-1"))
        self.assertEqual([RELOAD, RESTART], self.after("postinst", "configure", "1.0-1"))

    def test_an_installation_starts_nothing(self):
        self.assertEqual([RELOAD], self.after("postinst", "configure", ""))
        self.assertEqual([RELOAD], self.after("postinst", "configure"))

    def test_an_upgrade_that_is_given_up_changes_nothing(self):
        for arguments in (("abort-upgrade", "2.0-1"), ("abort-remove",), ("abort-deconfigure",)):
            self.assertEqual([], self.after("postinst", *arguments))
        self.assertEqual([], self.after("prerm", "failed-upgrade", "1.0-1"))

    def test_a_removal_stops_the_service_before_its_files_go(self):
        self.assertEqual([STOP], self.after("prerm", "remove"))
        self.assertEqual([RELOAD], self.after("postrm", "remove"))

    def test_only_a_purge_disables_the_service_and_it_keeps_the_data(self):
        wants = self.system / "etc/systemd/system/multi-user.target.wants/neuroshardd.service"
        wants.parent.mkdir(parents=True)
        wants.write_text("")
        data = self.system / "var/lib/neuroshard"
        data.mkdir(parents=True)
        wallet = data / "wallet.keystore"
        wallet.write_text("")
        self.assertNotIn("is kept", self.script("postrm", "remove"))
        self.assertTrue(wants.exists())
        self.assertIn(f"{data} is kept because it may hold a wallet", self.script("postrm", "purge"))
        self.assertEqual([RELOAD], self.called())
        self.assertFalse(wants.exists())
        self.assertTrue(wallet.exists())
        shutil.rmtree(data)
        self.assertEqual("", self.script("postrm", "purge"))

    def test_the_administrators_policy_holds(self):
        """As in containers, where no package may start or stop a service."""
        self.program("policy-rc.d", "exit 101", "usr/sbin")
        self.assertEqual([RELOAD], self.after("postinst", "configure", "1.0-1"))
        self.assertEqual([], self.after("prerm", "remove"))

    def test_without_systemd_nothing_is_called(self):
        shutil.rmtree(self.system / "run")
        for name, *arguments in (("postinst", "configure", "1.0-1"), ("prerm", "remove"), ("postrm", "remove"), ("postrm", "purge")):
            self.assertEqual([], self.after(name, *arguments))

    def test_a_systemd_that_fails_holds_up_no_package(self):
        self.program("systemctl", "echo 'it fails' >&2; exit 1")
        for name, *arguments in (("postinst", "configure", "1.0-1"), ("prerm", "remove"), ("postrm", "remove"), ("postrm", "purge")):
            self.script(name, *arguments)

    def test_the_user_of_the_service_is_made_once(self):
        self.program("getent", "test \"$*\" != 'passwd neuroshard'")
        made = self.after("postinst", "configure", "")
        self.assertEqual(1, len(made[:-1]), made)
        self.assertRegex(made[0], r"^adduser --system .*--no-create-home .*neuroshard$")
        self.assertEqual(RELOAD, made[-1])
        self.program("getent", "exit 0")
        self.assertEqual([RELOAD], self.after("postinst", "configure", ""))


if __name__ == "__main__":
    unittest.main()
