"""The rule "layers" of lint.py, and the part of "headers" that is about third parties: which folder may include which, and which
headers of others.
"""
import os
import re

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


class Layers:
    """Reads the allow-lists of a tree. lint: gives the tree's files and takes the findings."""

    def __init__(self, lint):
        self.lint = lint
        self.layers = self.load_layers_of("core")
        self.ui_layers = self.load_layers_of("ui") if os.path.isdir(os.path.join(lint.root, "ui")) else {}

    def load_layers_of(self, area):
        layers, name = {}, f"{area}/layers.txt"
        if not os.path.exists(os.path.join(self.lint.root, name)):
            self.lint.findings.append(f"{name}:1: layers: the allow-list is missing")
            return layers
        for number, line in enumerate(self.lint.read(name).splitlines(), 1):
            line = line.split("#")[0].strip() if line.lstrip().startswith("#") else line.strip()
            if not line:
                continue
            parts = [p.strip() for p in line.split(":")]
            if len(parts) != 4 or not parts[1].isdigit():
                self.lint.findings.append(f"{name}:{number}: layers: write  folder : level : folders : third party")
                continue
            layers[parts[0]] = (int(parts[1]), parts[2].split(), set(parts[3].split()), number)
        for folder, (level, allowed, third, number) in layers.items():
            for other in allowed:
                if other not in layers:
                    self.lint.findings.append(f"{name}:{number}: layers: {folder} allows the unknown folder {other}")
                elif layers[other][0] >= level:
                    self.lint.findings.append(f"{name}:{number}: layers: {folder} (level {level}) may not include {other} "
                                              f"(level {layers[other][0]}); includes go downward only")
            for key in third - set(THIRD_PARTY):
                self.lint.findings.append(f"{name}:{number}: layers: unknown third party {key}; name its headers in layers.py")
        for folder in self.lint.folders(area):
            if folder not in layers:
                self.lint.findings.append(f"{name}:1: layers: {area}/{folder} has no line")
        return layers

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
            if not os.path.exists(os.path.join(self.lint.root, name)):
                self.lint.report(path, number, "layers", f"{name} does not exist; includes are written from the root")
            if "detail" in target and not (area == "core" and folder == other) and area != "tests":
                self.lint.report(path, number, "layers", f"{name} is private to core/{other}")
            if area == "core" and other != folder:
                allowed = self.layers.get(folder, (0, [], set(), 0))[1]
                if other not in allowed:
                    self.lint.report(path, number, "layers", f"core/{folder} may not include core/{other} (core/layers.txt)")
            if area == "app" and other == "model":
                self.lint.report(path, number, "layers", "the compute module is loaded, not linked: use core/compute")
            if area == "ui" and other not in UI_CORE:
                self.lint.report(path, number, "layers", f"ui/ sees only the seam (core/node, core/base), not core/{other}")
            if path.startswith("app/gui/") and other not in GUI_CORE:
                self.lint.report(path, number, "layers", f"app/gui may include only {' '.join(sorted(GUI_CORE))} of core, not {other}")
        elif target[0] in ("app", "tests", "ui") and len(target) > 1:
            other = target[1]
            if area == "core" or (area in ("app", "ui") and target[0] == "tests") or (area == "ui" and target[0] == "app"):
                self.lint.report(path, number, "layers", f"{area}/ may not include {target[0]}/")
            elif area == "app" and target[0] == "ui" and not path.startswith("app/gui/"):
                self.lint.report(path, number, "layers", "only app/gui has windows")
            elif area == "ui" and other != folder and other not in self.ui_layers.get(folder, (0, [], set(), 0))[1]:
                self.lint.report(path, number, "layers", f"ui/{folder} may not include ui/{other} (ui/layers.txt)")
            elif not os.path.exists(os.path.join(self.lint.root, name)):
                self.lint.report(path, number, "layers", f"{name} does not exist; includes are written from the root")
        else:
            self.lint.report(path, number, "layers", f'"{name}": write own includes from the root ("core/…"), foreign ones as <…>')

    def check_third_party(self, path, number, area, folder, name, public):
        if name in STD_C or ("." not in name and "/" not in name and not re.match(r"Q[A-Z]|Qt", name)):
            return
        if any(name.startswith(p) for p in ISA):
            return
        if re.match(r"Q[A-Z]|Qt[A-Z]", name):
            if area in ("core", "app") and not path.startswith("app/gui"):
                self.lint.report(path, number, "layers", f"<{name}>: Qt only in ui, app/gui and tests")
            return
        keys = [k for k, prefixes in THIRD_PARTY.items() if any(name.startswith(p) for p in prefixes)]
        if not keys:
            if area != "tests":
                self.lint.report(path, number, "layers", f"<{name}>: unknown third party; name it in layers.txt and layers.py")
            return
        if area == "core":
            allowed = self.layers.get(folder, (0, [], set(), 0))[2] | CORE_ALWAYS
            if not allowed.intersection(keys):
                self.lint.report(path, number, "layers", f"core/{folder} may not include <{name}> ({keys[0]}; core/layers.txt)")
            # Torch is the language of core/model; its public face is core/compute.
            if public and HEAVY.intersection(keys) and not (folder == "model" and "torch" in keys):
                self.lint.report(path, number, "headers", f"<{name}> belongs in a .cpp or a detail/ header, not in a public one")
        elif area == "ui" and keys not in (["fmt"], ["qrencode"]):
            self.lint.report(path, number, "layers", f"<{name}> ({keys[0]}) does not belong in ui/; Qt or core/ has it")
        elif area == "app" and not APP_THIRD_PARTY.intersection(keys):
            self.lint.report(path, number, "layers", f"<{name}> ({keys[0]}) does not belong in app/; core/ has an adapter")

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
                    self.lint.report(path, line, "layers", f"DEPS {dep}: core/{folder} may not depend on it (core/layers.txt)")
