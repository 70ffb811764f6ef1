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

MAX_LINES, NOTE_LINES = 600, 400
MAX_METHODS = 40
SKIP_DIRS = {"build", ".git", "__pycache__", "corpus"}
CODE = (".h", ".cpp")
TEXT = CODE + (".txt", ".md", ".py", ".sh", ".cmake", ".json", ".proto", ".toml")

# Key in layers.txt -> how its headers begin.
THIRD_PARTY = {
    "spdlog": ["spdlog/"], "sodium": ["sodium.h", "sodium/"], "qrencode": ["qrencode.h"], "libtorrent": ["libtorrent/"], "sqlite3": ["sqlite3.h"], "nlohmann": ["nlohmann/"],
    "curl": ["curl/"], "zip": ["zip.h", "zipconf.h"], "utf8proc": ["utf8proc.h"], "torch": ["torch/", "ATen/", "c10/", "caffe2/"],
    "dnnl": ["oneapi/dnnl/", "dnnl"], "omp": ["omp.h"], "httplib": ["httplib.h"], "boost": ["boost/"], "tomlplusplus": ["toml++/"],
    "libsecret": ["libsecret/"], "libsystemd": ["systemd/"], "grpc": ["grpc/", "grpcpp/", "google/protobuf/", "proto/"], "cli11": ["CLI/"], "fmt": ["fmt/"],
    "openssl": ["openssl/"], "miniupnpc": ["miniupnpc/"], "cuda": ["cuda", "cublas"],
    "os": ["sys/", "unistd.h", "fcntl.h", "dlfcn.h", "signal.h", "pthread.h", "sched.h", "termios.h", "poll.h", "dirent.h",
           "pwd.h", "windows.h", "mach", "link.h", "malloc.h", "netinet/", "arpa/", "netdb.h", "execinfo.h", "ucontext.h",
           "linux/", "ifaddrs.h", "net/if.h", "syslog.h", "spawn.h", "features.h", "gnu/"],
}
ISA = ["cpuid.h", "immintrin.h", "x86intrin.h", "arm_neon.h"]  # intrinsics are part of the compiler
STD_C = {"assert.h", "errno.h", "float.h", "inttypes.h", "limits.h", "math.h", "stdarg.h", "stddef.h", "stdint.h", "stdio.h",
         "stdlib.h", "string.h", "time.h", "locale.h"}
HEAVY = {"spdlog", "nlohmann", "torch", "curl", "zip", "sqlite3", "tomlplusplus", "httplib", "boost", "sodium", "cli11", "grpc",
         "libsecret", "libsystemd", "utf8proc", "dnnl", "omp", "fmt", "openssl"}
APP_THIRD_PARTY = {"cli11", "nlohmann", "fmt", "qrencode"}
# The parts of core that ui and app/gui may see: the seam and its values; the app also what finds, starts and reaches a core,
# and what looks for releases.
UI_CORE = {"base", "node"}
GUI_CORE = UI_CORE | {"control", "network_module", "platform", "release", "storage"}
CORE_ALWAYS = {"fmt"}

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
    def load_layers(self):
        self.layers = self.load_layers_of("core")
        self.ui_layers = self.load_layers_of("ui") if os.path.isdir(os.path.join(self.root, "ui")) else {}

    def load_layers_of(self, area):
        layers, name = {}, f"{area}/layers.txt"
        if not os.path.exists(os.path.join(self.root, name)):
            self.findings.append(f"{name}:1: layers: the allow-list is missing")
            return layers
        for number, line in enumerate(self.read(name).splitlines(), 1):
            line = line.split("#")[0].strip() if line.lstrip().startswith("#") else line.strip()
            if not line:
                continue
            parts = [p.strip() for p in line.split(":")]
            if len(parts) != 4 or not parts[1].isdigit():
                self.findings.append(f"{name}:{number}: layers: write  folder : level : folders : third party")
                continue
            layers[parts[0]] = (int(parts[1]), parts[2].split(), set(parts[3].split()), number)
        for folder, (level, allowed, third, number) in layers.items():
            for other in allowed:
                if other not in layers:
                    self.findings.append(f"{name}:{number}: layers: {folder} allows the unknown folder {other}")
                elif layers[other][0] >= level:
                    self.findings.append(f"{name}:{number}: layers: {folder} (level {level}) may not include {other} "
                                         f"(level {layers[other][0]}); includes go downward only")
            for key in third - set(THIRD_PARTY):
                self.findings.append(f"{name}:{number}: layers: unknown third party {key}; name its headers in lint.py")
        for folder in self.folders(area):
            if folder not in layers:
                self.findings.append(f"{name}:1: layers: {area}/{folder} has no line")
        return layers

    def folders(self, path):
        full = os.path.join(self.root, path)
        if not os.path.isdir(full):
            return []
        return sorted(d for d in os.listdir(full) if os.path.isdir(os.path.join(full, d)) and d not in SKIP_DIRS)

    def check_includes(self, path, text):
        parts = path.split("/")
        area, folder = parts[0], parts[1] if len(parts) > 2 else ""
        header = path.endswith(".h")
        public = header and "detail" not in parts
        for number, line in enumerate(text.splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if not match:
                continue
            kind, name = match.groups()
            if kind == '"':
                self.check_own_include(path, number, area, folder, name)
            else:
                self.check_third_party(path, number, area, folder, name, public)

    def check_own_include(self, path, number, area, folder, name):
        target = name.split("/")
        if area in ("tests", "ui", "app") and name.endswith(".moc"):
            return
        if target[0] == "core" and len(target) > 2:
            other = target[1]
            if not os.path.exists(os.path.join(self.root, name)):
                self.report(path, number, "layers", f"{name} does not exist; includes are written from the root")
            if "detail" in target and not (area == "core" and folder == other) and area != "tests":
                self.report(path, number, "layers", f"{name} is private to core/{other}")
            if area == "core" and other != folder:
                allowed = self.layers.get(folder, (0, [], set(), 0))[1]
                if other not in allowed:
                    self.report(path, number, "layers", f"core/{folder} may not include core/{other} (core/layers.txt)")
            if area == "app" and other == "model":
                self.report(path, number, "layers", "the compute module is loaded, not linked: use core/compute")
            if area == "ui" and other not in UI_CORE:
                self.report(path, number, "layers", f"ui/ sees only the seam (core/node, core/base), not core/{other}")
            if path.startswith("app/gui/") and other not in GUI_CORE:
                self.report(path, number, "layers", f"app/gui may include only {' '.join(sorted(GUI_CORE))} of core, not {other}")
        elif target[0] in ("app", "tests", "ui") and len(target) > 1:
            other = target[1]
            if area == "core" or (area in ("app", "ui") and target[0] == "tests") or (area == "ui" and target[0] == "app"):
                self.report(path, number, "layers", f"{area}/ may not include {target[0]}/")
            elif area == "app" and target[0] == "ui" and not path.startswith("app/gui/"):
                self.report(path, number, "layers", "only app/gui has windows")
            elif area == "ui" and other != folder and other not in self.ui_layers.get(folder, (0, [], set(), 0))[1]:
                self.report(path, number, "layers", f"ui/{folder} may not include ui/{other} (ui/layers.txt)")
            elif not os.path.exists(os.path.join(self.root, name)):
                self.report(path, number, "layers", f"{name} does not exist; includes are written from the root")
        else:
            self.report(path, number, "layers", f'"{name}": write own includes from the root ("core/…"), foreign ones as <…>')

    def check_third_party(self, path, number, area, folder, name, public):
        if name in STD_C or ("." not in name and "/" not in name and not re.match(r"Q[A-Z]|Qt", name)):
            return
        if any(name.startswith(p) for p in ISA):
            return
        if re.match(r"Q[A-Z]|Qt[A-Z]", name):
            if area in ("core", "app") and not path.startswith("app/gui"):
                self.report(path, number, "layers", f"<{name}>: Qt only in ui, app/gui and tests")
            return
        keys = [k for k, prefixes in THIRD_PARTY.items() if any(name.startswith(p) for p in prefixes)]
        if not keys:
            if area != "tests":
                self.report(path, number, "layers", f"<{name}>: unknown third party; name it in layers.txt and lint.py")
            return
        if area == "core":
            allowed = self.layers.get(folder, (0, [], set(), 0))[2] | CORE_ALWAYS
            if not allowed.intersection(keys):
                self.report(path, number, "layers", f"core/{folder} may not include <{name}> ({keys[0]}; core/layers.txt)")
            # Torch is the language of core/model; its public face is core/compute.
            if public and HEAVY.intersection(keys) and not (folder == "model" and "torch" in keys):
                self.report(path, number, "headers", f"<{name}> belongs in a .cpp or a detail/ header, not in a public one")
        elif area == "ui" and keys not in (["fmt"], ["qrencode"]):
            self.report(path, number, "layers", f"<{name}> ({keys[0]}) does not belong in ui/; Qt or core/ has it")
        elif area == "app" and not APP_THIRD_PARTY.intersection(keys):
            self.report(path, number, "layers", f"<{name}> ({keys[0]}) does not belong in app/; core/ has an adapter")

    def check_cmake(self, path, text):
        match = re.match(r"core/(\w+)/CMakeLists\.txt$", path)
        if not match:
            return
        folder = match.group(1)
        allowed = set(self.layers.get(folder, (0, [], set(), 0))[1])
        for block in re.finditer(r"ns_library\(\s*(\w+)(.*?)\)", text, re.DOTALL):
            deps = re.search(r"\bDEPS\b(.*?)(?:\bLIBS\b|\bSTD\b|\bSOURCES\b|$)", block.group(2), re.DOTALL)
            line = text[:block.start()].count("\n") + 1
            for dep in (deps.group(1).split() if deps else []):
                if dep not in allowed:
                    self.report(path, line, "layers", f"DEPS {dep}: core/{folder} may not depend on it (core/layers.txt)")

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
        self.load_layers()
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
                self.check_cmake(path, text)
            if path in code and path.split("/")[0] in ("core", "app", "tests", "ui"):
                self.check_includes(path, text)
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
