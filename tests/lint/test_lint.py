#!/usr/bin/env python3
"""The lint must complain: a small good tree passes, and every way of spoiling it is named by the right rule."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import commits  # noqa: E402
from lint import Lint  # noqa: E402

GOOD = {
    "core/layers.txt": "base : 0 : : \ncrypto : 1 : base : sodium\nstorage : 1 : base : os\ndata : 2 : base crypto : nlohmann\n",
    "core/base/a.h": "// A value.\n#pragma once\n#include <vector>\n#include <stdint.h>\n",
    "core/base/detail/inner.h": "#pragma once\n",
    "core/crypto/k.h": '#pragma once\n#include "core/base/a.h"\n',
    "core/crypto/k.cpp": '#include "core/crypto/k.h"\n#include <sodium.h>\n#include <fmt/format.h>\n',
    "core/storage/s.cpp": "#include <sys/stat.h>\n#include <unistd.h>\n",
    "core/data/d.cpp": '#include "core/crypto/k.h"\n#include <nlohmann/json.hpp>\n'
                       "// std::rand() in a comment, \nconst char* s = \"std::thread rand()\"; int big = 1'000'000; char c = 'x';\n",
    "core/data/CMakeLists.txt": "ns_library(data SOURCES d.cpp DEPS base crypto LIBS nlohmann_json::nlohmann_json)\n",
    "app/node/main.cpp": '#include "core/data/../data/d.cpp"\n'.replace("../data/", "") + "#include <CLI/CLI.hpp>\n",
    "tests/unit/base/test_a.cpp": '#include "core/base/detail/inner.h"\n#include <QtTest>\n#include "test_a.moc"\n',
    "tests/unit/crypto/CMakeLists.txt": "", "tests/unit/storage/CMakeLists.txt": "", "tests/unit/data/CMakeLists.txt": "",
    "ui/layers.txt": "theme : 0 : :\nwidgets : 1 : theme :\n",
    "ui/theme/t.h": '#pragma once\n#include <QColor>\n#include "core/base/a.h"\n',
    "ui/widgets/w.cpp": '#include "ui/theme/t.h"\n#include <QWidget>\n#include "w.moc"\n',
    "app/gui/main.cpp": '#include "ui/widgets/w.cpp"\n#include "core/storage/s.cpp"\n#include <QApplication>\n',
    "tests/unit/ui/theme/test_t.cpp": '#include "ui/theme/t.h"\n',
    "tests/fuzz/fuzz_k.cpp": "#include <cstddef>\n", "tests/fuzz/corpus/k/seed": "x",
    "README.md": "Kept in ~/.local/share. See [a](docs/a.md#two-words), [b](#it-s) not `[c](d.md)`, [e](https://e.org/f).\n# It-s\n"
                 "```\n[g](h.md)\n# Code\n```\n",
    "docs/a.md": "# Two, words\n[back](../README.md) [folder](..)\n",
}


class LintTest(unittest.TestCase):
    def lint(self, changes=None, remove=()):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**GOOD, **(changes or {})}.items():
                if path in remove:
                    continue
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as f:
                    f.write(text)
            lint = Lint(root)
            lint.run(check_format=False)
            return lint.findings

    def complains(self, rule, path, changes, remove=()):
        findings = self.lint(changes, remove)
        self.assertTrue(any(f.startswith(path + ":") and f": {rule}:" in f for f in findings), (rule, path, findings))
        self.assertEqual(len(findings), 1, findings)

    def test_good_tree_passes(self):
        self.assertEqual(self.lint(), [])

    def test_the_window_never_waits(self):
        for line in ("p.waitForFinished(100);", "QDBusInterface i(a, b);", "bus.call(message);", "app.processEvents();",
                     "connect(a, b, c, d, Qt::BlockingQueuedConnection);", "std::future<int> answer;"):
            self.complains("blocking", "ui/widgets/w.cpp", {"ui/widgets/w.cpp": line + "\n"})
            self.complains("blocking", "app/gui/main.cpp", {"app/gui/main.cpp": line + "\n"})
        self.assertEqual(self.lint({"tests/unit/ui/theme/test_t.cpp": "p.waitForFinished(100);\n"}), [])

    def test_layers(self):
        self.complains("layers", "core/base/a.h", {"core/base/a.h": '#pragma once\n#include "core/crypto/k.h"\n'})
        self.complains("layers", "core/data/d.cpp", {"core/data/d.cpp": '#include "core/base/detail/inner.h"\n'})
        self.complains("layers", "core/data/d.cpp", {"core/data/d.cpp": '#include "core/base/missing.h"\n'})
        self.complains("layers", "core/data/d.cpp", {"core/data/d.cpp": '#include "d.h"\n'})
        self.complains("layers", "core/crypto/k.cpp", {"core/crypto/k.cpp": '#include "app/node/main.cpp"\n'})
        self.complains("layers", "core/layers.txt",
                       {"core/layers.txt": GOOD["core/layers.txt"].replace("storage : 1 : base", "storage : 1 : base data")})
        self.complains("layers", "core/layers.txt", {"core/new/n.cpp": "", "tests/unit/new/CMakeLists.txt": ""})
        self.complains("layers", "core/data/CMakeLists.txt",
                       {"core/data/CMakeLists.txt": "ns_library(data SOURCES d.cpp DEPS base storage)\n"})

    def test_third_party(self):
        for header in ("torch/torch.h", "ATen/ATen.h", "grpcpp/grpcpp.h", "QString", "nlohmann/json.hpp", "unistd.h", "boost/any.hpp"):
            self.complains("layers", "core/crypto/k.cpp", {"core/crypto/k.cpp": f"#include <{header}>\n"})
        self.complains("layers", "app/node/main.cpp", {"app/node/main.cpp": "#include <torch/torch.h>\n"})
        self.complains("headers", "core/crypto/k.h", {"core/crypto/k.h": "#pragma once\n#include <sodium.h>\n"})

    def test_headers(self):
        self.complains("headers", "core/base/a.h", {"core/base/a.h": "#include <vector>\n"})
        self.complains("headers", "core/base/a.h", {"core/base/a.h": "#pragma once\nusing namespace std;\n"})

    def test_size_and_markers(self):
        self.complains("size", "core/base/b.cpp", {"core/base/b.cpp": "int a;\n" * 601})
        for word in ("TO" + "DO", "FIX" + "ME", "X" + "XX", "not " + "implemented", "place" + "holder"):
            self.complains("markers", "core/data/d.cpp", {"core/data/d.cpp": f"// {word}: later\n"})
            self.complains("markers", "README.md", {"README.md": f"{word}\n"})

    def test_banned_calls(self):
        for rule, code in {
                "clock": "auto t = std::chrono::system_clock::now();", "random": "int r = rand();",
                "sleep": "std::this_thread::sleep_for(x);", "thread": "std::thread t(f);", "file": "std::ofstream out(path);",
                "console": 'printf("x");', "environment": 'getenv("HOME");', "process": "exit(1);", "signal": "signal(2, f);",
                "throw": "throw Bad{};"}.items():
            self.complains(f"banned-{rule}", "core/data/d.cpp", {"core/data/d.cpp": f"void f() {{ {code} }}\n"})
        self.complains("banned-sleep", "tests/unit/base/test_a.cpp", {"tests/unit/base/test_a.cpp": "void f() { QTest::qSleep(5); }\n"})

    def test_exceptions_need_a_reason_and_a_use(self):
        bad = {"core/data/d.cpp": "int r = rand();\n"}
        self.assertEqual(self.lint({**bad, "tests/lint/exceptions.txt": "banned-random : core/data/*.cpp : why not\n"}), [])
        self.complains("format", "tests/lint/exceptions.txt", {"tests/lint/exceptions.txt": "banned-random : core/data/d.cpp :\n"})
        self.complains("exception", "tests/lint/exceptions.txt", {"tests/lint/exceptions.txt": "size : core/data/d.cpp : old\n"})

    def test_paths_mirror_corpus(self):
        self.complains("paths", "README.md", {"README.md": "see /" + "home/ann/data\n"})
        self.complains("mirror", "tests/unit/data", {}, remove=("tests/unit/data/CMakeLists.txt",))
        self.complains("mirror", "tests/unit/extra", {"tests/unit/extra/CMakeLists.txt": ""})
        self.complains("corpus", "tests/fuzz/fuzz_k.cpp", {}, remove=("tests/fuzz/corpus/k/seed",))

    def test_links(self):
        for link in ("b.md", "../b.md", "a.md#three", "#code", "../../outside.md", "../README.md#code"):
            self.complains("links", "docs/a.md", {"docs/a.md": f"# Two words\n![x]({link})\n"})
        self.complains("links", "docs/a.md", {"docs/a.md": "# Two words\n```\ncode\n```\n[x](b.md)\n"})
        self.assertEqual(self.lint({"docs/a.md": "# Two words\n# Two words\n[x](#two-words-1)\n"}), [])

    def test_methods(self):
        many = "".join(f"  int f{i}() const;\n" for i in range(39)) + "  template <class T>\n  void g(T value) {}\n"
        head = "#pragma once\nclass A {\n public:\n"
        self.assertEqual(self.lint({"core/base/b.h": head + many + "};\n"}), [])
        self.complains("methods", "core/base/b.h", {"core/base/b.h": head + many + "  int h();\n};\n"})

    def test_format(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "core"))
            with open(os.path.join(root, ".clang-format"), "w", encoding="utf-8") as f:
                f.write("BasedOnStyle: Google\n")
            with open(os.path.join(root, "core/x.cpp"), "w", encoding="utf-8") as f:
                f.write("int   a ;\n")
            lint = Lint(root)
            lint.check_format(["core/x.cpp"])
            self.assertEqual([f.split(": ")[1] for f in lint.findings] or lint.notes, ["format"])


class CommitTest(unittest.TestCase):
    def test_subjects(self):
        for good in ("rounds: cap view skew at one", "core: give config, partition and platform their own rooms", "tests, docs: name the commit",
                     "ui/map: draw cells once", "net: embed the address", "docs: add pages for peers"):
            self.assertIsNone(commits.fault(good), good)
        for bad in ("Rounds: who is back is heard", "cap view skew at one", "rounds:cap view skew", "rounds: capped view skew",
                    "rounds: capping view skew", "rounds: cap view skew.", "rounds: cap " + "x" * 70, "Merge branch 'x'"):
            self.assertIsNotNone(commits.fault(bad), bad)
        self.assertIsNone(commits.fault("Merge branch 'x'", parents=2))


if __name__ == "__main__":
    unittest.main()
