#!/usr/bin/env python3
"""House rules that a machine can check.    lint.py [ROOT] [--no-format]

Prints "file:line: rule: what is wrong and what to do instead" for each finding and exits 1 if there is any. The rules:
  layers      core/ includes only what core/layers.txt allows, folders and third-party headers alike; ditto ns_library(DEPS);
              ui/ ditto by ui/layers.txt, and of core only the seam; app/gui of core only what reaches a running core
  headers     #pragma once; heavy third-party headers stay out of public headers; no "using namespace"
  size        no file over 600 lines (over 400 is listed as a note)
  methods     no class in a header declares more than 40 member functions
  markers     no unfinished work left behind
  banned      time, randomness, threads, files and the console only through their adapters
  paths       no path of somebody's machine
  blocking    the window never waits: no blocking calls in ui and app/gui
  mirror      tests/unit has exactly the folders of core, ui and app; tests/unit/ui only folders of ui
  corpus      every fuzz target has seeds
  links       relative links of documents lead to a file, and to a heading that is there
  format      clang-format 14 has nothing to change
Exceptions stand in tests/lint/exceptions.txt, each with its reason; one that is no longer needed is a finding too.
"""
import fnmatch
import os
import re
import shutil
import subprocess
import sys

from layers import Layers

MAX_LINES, NOTE_LINES = 600, 400
MAX_METHODS = 40
SKIP_DIRS = {"build", ".git", "__pycache__", "corpus"}
CODE = (".h", ".cpp")
TEXT = CODE + (".txt", ".md", ".py", ".sh", ".cmake", ".json", ".proto", ".toml")

# (name, pattern, where it may not stand, what to use instead)
BANNED = [
    ("clock", r"\b(?:system_clock|steady_clock|high_resolution_clock)::now|\b(?:clock_)?gettime(?:ofday)?\s*\(", "core app ui",
     "the Clock of core/base/clock.h"),
    ("random", r"\b(?:s?rand|drand48|random)\s*\(|std::random_device|std::mt19937|std::default_random_engine", "core app ui tests",
     "Rng of core/base/rng.h, or Entropy of core/crypto/entropy.h for secrets"),
    ("sleep", r"\bsleep_(?:for|until)\b|\b(?:u|nano)?sleep\s*\(|\bQTest::qSleep\b|\bQThread::m?sleep\b", "core app tests",
     "wait for the event itself, or move a manual clock"),
    ("thread", r"\bstd::(?:j?thread|async)\b(?!::(?:id|hardware_concurrency))|\bpthread_create\b|\bQThread\b|\bQtConcurrent\b", "core app ui", "Executor of core/base/executor.h"),
    ("file", r"\bstd::[io]?fstream\b|\bf(?:d)?open\s*\(|\bmkstemp\s*\(|\btmpfile\s*\(", "core app ui",
     "FileEnv of core/storage/file_env.h"),
    ("console", r"\bstd::c(?:out|err|log|in)\b|\bv?f?printf\s*\(|\bputs\s*\(|\bperror\s*\(", "core ui",
     "Logger of core/base/log.h, or return the text to the caller"),
    ("environment", r"\b(?:secure_)?(?:get|put|set|unset)env\s*\(", "core app ui", "core/platform"),
    ("process", r"\b(?:_?exit|quick_exit|abort)\s*\(|(?<!->)\bterminate\s*\(|\bsystem\s*\(|\bpopen\s*\(|\bfork\s*\(", "core ui",
     "return an Error; a bug is NS_CHECK"),
    ("signal", r"\bsigaction\s*\(|\bsignal\s*\(", "core app ui", "core/platform"),
    ("throw", r"\bthrow\b(?!\s*\()", "core app ui", "Expected<T>"),
    ("qt-keyword", r"^\s*(?:public|private|protected)\s+slots\s*:|^\s*signals\s*:|\bemit\s+\w", "core app ui tests",
     "Q_SLOTS, Q_SIGNALS, Q_EMIT"),
]
# In ui and app/gui: what makes the UI thread wait, and what to do instead.
BLOCKING = [
    (r"\bwaitFor(?:Started|Finished|ReadyRead|BytesWritten|Connected|Disconnected|NewConnection|Encrypted|Done)\s*\(",
     "the signal that says so"),
    (r"\bBlockingQueuedConnection\b", "a queued connection"),
    (r"\bQDBusInterface\b|\bQDBusReply\b|\.call\s*\(", "asyncCall() and a QDBusPendingCallWatcher"),
    (r"\bprocessEvents\s*\(", "a timer or a signal"),
    (r"\bstd::(?:future|promise|condition_variable|latch|binary_semaphore)\b|\bQ(?:WaitCondition|Semaphore)\b",
     "a queued call with the answer"),
]
MARKERS = re.compile(r"\b(?:TODO|FIXME|XXX)\b|\b(?:placeholder|not implemented|unimplemented|stub)\b(?!-)", re.IGNORECASE)
FENCE = re.compile(r"^( *)(```|~~~).*?^ *\2[^\S\n]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(?:work|root|home|Users|mnt|scratch)/")


class Lint:
    def __init__(self, root):
        self.root = os.path.abspath(root)
        self.findings, self.notes = [], []
        self.exceptions = self.read_exceptions()
        self.used = set()

    # ---- reporting -------------------------------------------------------------------------------------------------
    def read_exceptions(self):
        result = []
        path = os.path.join(self.root, "tests/lint/exceptions.txt")
        if not os.path.exists(path):
            return result
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                line = line.strip()
                if not line or line.startswith("#"):
                    continue
                parts = [p.strip() for p in line.split(":", 2)]
                if len(parts) != 3 or not parts[2]:
                    self.findings.append(f"tests/lint/exceptions.txt:{number}: format: write  rule : path : reason")
                else:
                    result.append((parts[0], parts[1], number))
        return result

    def report(self, path, line, rule, text):
        for exception in self.exceptions:
            if exception[0] == rule and fnmatch.fnmatch(path, exception[1]):
                self.used.add(exception)
                return
        self.findings.append(f"{path}:{line}: {rule}: {text}")

    # ---- files -----------------------------------------------------------------------------------------------------
    def files(self):
        for base, dirs, names in os.walk(self.root):
            dirs[:] = sorted(d for d in dirs if d not in SKIP_DIRS and not (d.startswith(".") and d != ".ci"))
            for name in sorted(names):
                if not name.startswith("."):
                    yield os.path.relpath(os.path.join(base, name), self.root)

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as f:
            return f.read()

    @staticmethod
    def strip_comments(text):
        """Blanks comments and the insides of strings and characters; keeps line numbers."""
        pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)

        def blank(match):
            s = match.group(0)
            if s[0] == "'" and re.match(r"'\d", s) and match.start() and text[match.start() - 1].isdigit():
                return s  # digit separators: 1'000'000
            return (s[0] if s[0] != "/" else "") + "\n" * s.count("\n") + (s[-1] if s[0] != "/" else " ")
        return pattern.sub(blank, text)

    # ---- rules -----------------------------------------------------------------------------------------------------
    def folders(self, path):
        full = os.path.join(self.root, path)
        if not os.path.isdir(full):
            return []
        return sorted(d for d in os.listdir(full) if os.path.isdir(os.path.join(full, d)) and d not in SKIP_DIRS)

    def check_code(self, path, text, stripped):
        area = path.split("/")[0]
        lines = text.splitlines()
        if path.endswith(".h"):
            first = next((l for l in lines if l.strip() and not l.lstrip().startswith("//")), "")
            if first.strip() != "#pragma once":
                self.report(path, 1, "headers", "#pragma once must be the first line of code")
            if re.search(r"^\s*using namespace\b", stripped, re.MULTILINE):
                self.report(path, 1, "headers", "no using namespace in a header")
        for number, line in enumerate(stripped.splitlines(), 1):
            if line.lstrip().startswith("#"):
                continue
            for name, pattern, areas, instead in BANNED:
                if area in areas.split() and re.search(pattern, line):
                    self.report(path, number, f"banned-{name}", f"use {instead}")
            if area == "ui" or path.startswith("app/gui/"):
                for pattern, instead in BLOCKING:
                    if re.search(pattern, line):
                        self.report(path, number, "blocking", f"the UI thread never waits: use {instead}")

    def check_text(self, path, text):
        lines = text.count("\n") + 1
        if path.endswith(CODE + (".py", ".sh")) and lines > NOTE_LINES:
            if lines > MAX_LINES:
                self.report(path, lines, "size", f"{lines} lines; split it ({MAX_LINES} at most)")
            else:
                self.notes.append(f"{path}: {lines} lines; still one concept?")
        if path.startswith("tests/lint/"):
            return  # the rules have to be named somewhere
        for number, line in enumerate(text.splitlines(), 1):
            match = MARKERS.search(line)
            if match:
                self.report(path, number, "markers", f'"{match.group(0)}": finish it, or say what is true today')
            if MACHINE_PATH.search(line):
                self.report(path, number, "paths", "a path of one machine; derive it or pass it in")

    @staticmethod
    def without_blocks(text):
        """Blanks fenced blocks of a document; keeps line numbers."""
        return FENCE.sub(lambda m: "\n" * m.group(0).count("\n"), text)

    def anchors(self, path):
        """What GitHub makes of the headings of a document."""
        found = set()
        text = self.without_blocks(self.read(path))
        for heading in re.findall(r"^#+\s+(.*?)\s*$", text, re.MULTILINE):
            name = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
            number = 0
            while (name if number == 0 else f"{name}-{number}") in found:
                number += 1
            found.add(name if number == 0 else f"{name}-{number}")
        return found

    def check_links(self, path, text):
        for number, line in enumerate(self.without_blocks(text).splitlines(), 1):
            for link in LINK.findall(re.sub(r"`[^`]*`", "", line)):
                if re.match(r"[a-z][a-z0-9+.-]*:", link):
                    continue  # another place than this repository
                name, _, anchor = link.partition("#")
                target = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
                if target.startswith("..") or not os.path.exists(os.path.join(self.root, target)):
                    self.report(path, number, "links", f"{link}: there is no {target}")
                elif anchor and target.endswith(".md") and anchor not in self.anchors(target):
                    self.report(path, number, "links", f"{link}: {target} has no such heading")

    def check_mirror(self):
        core, unit = set(self.folders("core")), set(self.folders("tests/unit"))
        for folder in sorted(core - unit):
            self.report(f"tests/unit/{folder}", 1, "mirror", f"core/{folder} has no folder of unit tests")
        for folder in sorted(unit - core - {"ui", "app"}):
            self.report(f"tests/unit/{folder}", 1, "mirror", f"there is no core/{folder}")

        for folder in sorted(set(self.folders("tests/unit/ui")) - set(self.folders("ui"))):
            self.report(f"tests/unit/ui/{folder}", 1, "mirror", f"there is no ui/{folder}")

    def check_corpus(self, paths):
        for path in paths:
            match = re.match(r"tests/fuzz/fuzz_(\w+)\.cpp$", path)
            if match:
                seeds = os.path.join(self.root, "tests/fuzz/corpus", match.group(1))
                if not os.path.isdir(seeds) or not os.listdir(seeds):
                    self.report(path, 1, "corpus", f"no seeds in tests/fuzz/corpus/{match.group(1)}")

    def check_methods(self, headers):
        tool = shutil.which("ctags")
        if not tool or "Universal" not in subprocess.run([tool, "--version"], capture_output=True, text=True, check=False).stdout:
            self.findings.append("tests/lint: methods: universal-ctags is not installed (installers/debian-packages.txt)")
            return
        if not headers:
            return
        result = subprocess.run([tool, "--language-force=C++", "--c++-kinds=fp", "--fields=Ks", "-u", "-f", "-", *headers], cwd=self.root,
                                capture_output=True, text=True, check=False)
        counts = {}
        for line in result.stdout.splitlines():
            scope = re.search(r"\t(?:class|struct):(\S+)$", line)
            if scope and not line.startswith("!"):
                key = (line.split("\t")[1], scope.group(1))
                counts[key] = counts.get(key, 0) + 1
        for (path, name), count in sorted(counts.items()):
            if count > MAX_METHODS:
                self.report(path, 1, "methods", f"{name} declares {count} member functions; compose it of parts with {MAX_METHODS} at most")
        if result.returncode:
            self.findings.append(f"tests/lint: methods: ctags failed: {result.stderr.strip()[:300]}")

    def check_format(self, paths):
        tool = shutil.which("clang-format-14") or shutil.which("clang-format")
        if not tool:
            self.findings.append("tests/lint: format: clang-format is not installed (installers/debian-packages.txt)")
            return
        version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False).stdout
        if "version 14" not in version:
            self.notes.append(f"format not checked: {version.strip()}; only version 14 decides")
            return
        if not paths:
            return
        result = subprocess.run([tool, "--dry-run", "-Werror", "--style=file"] + paths, cwd=self.root, capture_output=True,
                                text=True, check=False)
        wrong = sorted({m.group(1) for m in re.finditer(r"^(\S+?):\d+:\d+: error:", result.stderr, re.MULTILINE)})
        for path in wrong:
            self.report(path, 1, "format", f"run clang-format -i {path}")
        if result.returncode and not wrong:
            self.findings.append(f"tests/lint: format: clang-format failed: {result.stderr.strip()[:300]}")

    def run(self, check_format=True):
        layers = Layers(self)
        paths = list(self.files())
        code = [p for p in paths if p.endswith(CODE)]
        for path in paths:
            if not (path.endswith(TEXT) or path == ".ci/run"):
                continue
            text = self.read(path)
            self.check_text(path, text)
            if path.endswith(".md"):
                self.check_links(path, text)
            if path.endswith("CMakeLists.txt"):
                layers.check_cmake(path, text)
            if path in code and path.split("/")[0] in ("core", "app", "tests", "ui"):
                layers.check_includes(path, text)
                self.check_code(path, text, self.strip_comments(text))
        self.check_mirror()
        self.check_corpus(paths)
        self.check_methods([p for p in code if p.endswith(".h")])
        if check_format:
            self.check_format(code)
        for exception in self.exceptions:
            if exception not in self.used:
                self.findings.append(f"tests/lint/exceptions.txt:{exception[2]}: exception: {exception[0]} : {exception[1]} is not "
                                     "needed any more; remove it")
        return len(paths)


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    root = arguments[0] if arguments else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    lint = Lint(root)
    count = lint.run(check_format="--no-format" not in sys.argv)
    for note in lint.notes:
        print("note:", note)
    for finding in lint.findings:
        print(finding)
    print(f"{count} files, {len(lint.findings)} findings")
    return 1 if lint.findings else 0


if __name__ == "__main__":
    sys.exit(main())
