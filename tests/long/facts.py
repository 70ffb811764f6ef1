"""The origin of a result: the commit, the machine, its load."""
import datetime
import hashlib
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def git(*arguments, root=ROOT):
    """The output of git, or None where there is no history or no git."""
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def source_state(root=ROOT):
    """The commit, whether the tree differs from it, and a key that is equal only for equal sources.

    The key of a tree without history is None: nothing can be said about which sources it stands for."""
    head = git("rev-parse", "HEAD", root=root)
    if head is None:
        return {"commit": None, "dirty": None, "key": None}
    commit = head.decode().strip()
    difference = git("diff", "HEAD", "--binary", root=root) or b""
    digest = hashlib.sha256(difference)
    others = (git("ls-files", "-z", "--others", "--exclude-standard", root=root) or b"").split(b"\0")
    for name in sorted(name for name in others if name):
        digest.update(name)
        path = root / os.fsdecode(name)
        digest.update(path.read_bytes() if path.is_file() else b"")
    dirty = bool(difference) or any(others)
    return {"commit": commit, "dirty": dirty, "key": commit[:12] + ("-" + digest.hexdigest()[:8] if dirty else "")}


def first_field(path, name):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith(name):
                    return line.split(":" if ":" in line else "=", 1)[1].strip().strip('"')
    except OSError:
        pass
    return None


def has_bf16():
    """Whether the processor computes in bf16."""
    return bool({"avx512_bf16", "amx_bf16"} & set((first_field("/proc/cpuinfo", "flags") or "").split()))


def processor():
    """Model, family and the units that decide how fast training is: a virtual machine often hides the model's number."""
    flags = (first_field("/proc/cpuinfo", "flags") or "").split()
    units = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else ""
    words = [first_field("/proc/cpuinfo", "model name") or "unknown processor", "family " + (first_field("/proc/cpuinfo", "cpu family") or "unknown"),
             units, "bf16" if "avx512_bf16" in flags else "", "AMX" if "amx_bf16" in flags else ""]
    return ", ".join(word for word in words if word)


def compiler():
    try:
        done = subprocess.run(["c++", "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return done.stdout.partition("\n")[0] or "unknown"


def machine():
    kib = (first_field("/proc/meminfo", "MemTotal") or "0").split()[0]
    kernel = ".".join(os.uname().release.split("-")[0].split(".")[:2])
    return {
        "processor": processor(), "cores": os.cpu_count(), "memory_gib": round(int(kib) / 1048576, 1),
        "system": (first_field("/etc/os-release", "PRETTY_NAME") or "unknown system") + ", Linux " + kernel, "compiler": compiler(),
    }


def load():
    return round(os.getloadavg()[0], 2)


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
