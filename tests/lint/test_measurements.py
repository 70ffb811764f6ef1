#!/usr/bin/env python3
"""The page of measurements: a result replaces its row, moves it when the verdict changes, and what stands for no commit is refused."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
import measurements  # noqa: E402

MACHINE = {"processor": "EPYC", "cores": 2, "memory_gib": 24.0, "system": "Debian 12, Linux 6.1"}
RESULT = {"target": "fuzz", "command": "sh tests/long.sh fuzz", "commit": "a" * 40, "dirty": False, "kept_from_commits": [],
          "sources_changed_meanwhile": False, "machine": MACHINE, "load_at_start": 0.1, "verdict": "passed",
          "claims": [{"claim": "Fuzzing keys", "gate": "1,000,000 runs", "value": "1,000,000 runs", "n": "1000000", "verdict": "met"}]}


def page_text(settled, unsettled):
    rule = "|---" * 8 + "|"
    return "\n".join(["# M", "", "| machine | processor | cores | memory | system |", "|---|---|---|---|---|",
                      "| M1 | EPYC | 2 | 24 GiB | Debian 12, Linux 6.1 |", "", "## Claims", "", measurements.HEADER, rule, *settled, "",
                      measurements.OPEN_HEADING, "", measurements.HEADER, rule, *unsettled, ""])


class MeasurementsTest(unittest.TestCase):
    def setUp(self):
        self.head = measurements.git("rev-parse", "HEAD").stdout.strip()[:7] or "0000000"
        self.good = f"| Saves are quick. | ≤ 5 % | 1 % | 6 rounds | {self.head} | M1 | met | `neuroshardd bench` |"
        self.missed = f"| Fuzzing keys | 1,000,000 runs | 70 runs | 70 | {self.head} | M1 | missed | `sh tests/long.sh fuzz keys` |"

    def check(self, *lines):
        return [text for _, text in measurements.check(measurements.Page(page_text(*lines)))[0]]

    def test_a_whole_page_passes(self):
        self.assertEqual(self.check([self.good], [self.missed]), [])

    def test_each_fault_is_named(self):
        for bad, word in ((self.good.replace("| 6 rounds ", "|  "), "filled columns"), (self.good.replace("M1", "M9"), "machine"),
                          (self.good.replace("| met |", "| missed |"), "another table"), (self.good.replace(self.head, "soon"), "no commit"),
                          (self.good.replace("`", ""), "backquotes"), (self.good.replace("neuroshardd bench", "sh tests/long.sh nothing"), "long.sh has no"),
                          (self.good.replace("neuroshardd bench", "test_nothing"), "there is no test")):
            self.assertTrue(any(word in text for text in self.check([bad], [self.missed])), (bad, word))
        names, classes = measurements.ctest_names(), measurements.test_classes()
        for command, found in (("test_dht_sim", True), ("test_nothing", False), ("ctest -R ^test_dht_sim$", True), ("ctest -R ^test_dht$", False),
                               ("NS_LONG=1 sim_tests TestChainDisks", True), ("sim_tests TestNothing", False), ("unit_dht TestMessages", True),
                               ('sim_tests TestChainDisks "an_image_of_the_same_height_expels_nobody:a row"', True),
                               ("sim_tests TestChainDisks no_such_function", False)):
            self.assertEqual(measurements.unknown_test(f"`{command}`", names, classes) is None, found, command)
        self.assertTrue(any("stands in line" in text for text in self.check([self.good, self.good], [self.missed])))
        self.assertTrue(any("missing" in text for text in self.check([self.good], [])))

    def test_a_commit_that_does_not_exist_is_found(self):
        if measurements.missing_commits([])[1]:
            self.skipTest("no whole history here")
        wrong = self.check([self.good.replace(self.head, "ffffffff")], [self.missed])
        self.assertEqual(wrong, ["commit ffffffff is not in this history"])

    def update(self, result, text):
        with tempfile.TemporaryDirectory() as folder:
            page, file = pathlib.Path(folder) / "page.md", pathlib.Path(folder) / "result.json"
            page.write_text(text, encoding="utf-8")
            file.write_text(json.dumps(result))
            done = subprocess.run([sys.executable, "-B", str(TESTS / "measurements.py"), "--update", "--page", str(page), str(file)],
                                  capture_output=True, text=True, check=False)
            return done.returncode, measurements.Page(page.read_text(encoding="utf-8"))

    def test_a_met_claim_leaves_the_open_table(self):
        status, page = self.update(RESULT, page_text([self.good], [self.missed]))
        self.assertEqual(status, 0)
        rows = {row[0]: (is_open, row) for _, is_open, row in page.rows()}
        self.assertEqual(len(rows), 2)
        self.assertEqual((rows["Fuzzing keys"][0], rows["Fuzzing keys"][1][4:7]), (False, ["aaaaaaa", "M1", "met"]))

    def test_another_machine_gets_a_row(self):
        _, page = self.update({**RESULT, "machine": {**MACHINE, "cores": 16}}, page_text([self.good], [self.missed]))
        self.assertEqual(sorted(page.machines()), ["M1", "M2"])

    def test_results_that_stand_for_no_commit_are_refused(self):
        text = page_text([self.good], [self.missed])
        for change in ({"dirty": True}, {"commit": None}, {"sources_changed_meanwhile": True}, {"kept_from_commits": ["b" * 40]}, {"verdict": "failed"}):
            status, page = self.update({**RESULT, **change}, text)
            self.assertEqual((status, page.text()), (1, text), change)


if __name__ == "__main__":
    os.environ.pop("GIT_DIR", None)
    unittest.main()
