"""Child processes that take turns, and the environment in which PyTorch is fastest."""
import json
import os
import subprocess
import time

OPENBLAS = "/usr/lib/x86_64-linux-gnu/openblas-openmp/libblas.so.3"
# OpenBLAS names these itself; it often takes recent processors for older ones, so all are tried.
CORE_TYPES = (None, "SkylakeX", "Cooperlake", "SapphireRapids", "Zen", "Haswell")
CAPABILITIES = ("default", "avx512")
# OpenMP threads of the contender before spin a little longer than it works.
SETTLE_SECONDS = 0.03


class Failed(Exception):
    def __init__(self, text, exit_code=1):
        super().__init__(text)
        self.exit_code = exit_code


class Child:
    """One JSON object a line in both directions."""

    def __init__(self, command, environment):
        self.command = command
        self.process = subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def ask(self, request, may_fail=False):
        time.sleep(SETTLE_SECONDS)
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self.process.wait()
            raise Failed(f"{self.command[0]} ended with exit code {code}", 77 if code == 77 else 1)
        answer = json.loads(line)
        if "error" in answer:
            if may_fail:
                return None
            raise Failed(f"{os.path.basename(self.command[0])}: {answer['error']}")
        return answer

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()


def settings_of(threads, more):
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "OPENBLAS_CORETYPE",
                                                                    "ATEN_CPU_CAPABILITY")}
    return {**environment, "OMP_NUM_THREADS": str(threads), **more}


def peer_environment(options, coretype, capability):
    more = {}
    if options.blas != "system":
        more["LD_PRELOAD"] = OPENBLAS if options.blas == "openblas" else options.blas
    if coretype:
        more["OPENBLAS_CORETYPE"] = coretype
    if capability and capability != "default":
        more["ATEN_CPU_CAPABILITY"] = capability
    return settings_of(options.threads, more)


def has_bf16_units():
    """Whether the processor multiplies bf16. Without, PyTorch does it number by number, and nobody trains so."""
    with open("/proc/cpuinfo") as file:
        flags = next((line for line in file if line.startswith("flags")), "").split()
    return any(flag in flags for flag in ("avx512_bf16", "amx_bf16"))


def rate(measure, options, environment):
    """0 for settings that this processor can't run: it kills the process for an unknown instruction."""
    try:
        return measure(options, environment)
    except Failed as failed:
        if failed.exit_code == 77:
            raise
        return 0.0


def product_rate(options, environment):
    child = Child(options.peer + ["--precision", "fp32", "--threads", str(options.threads)], environment)
    request = {"do": "gemm", "precision": "fp32", "side": options.gemm_side, "repeats": 4}
    answers = [child.ask(request) for _ in range(4)]
    child.close()
    return max(a["operations"] / a["seconds"] for a in answers)


def elementwise_rate(options, environment):
    child = Child(options.peer + ["--precision", "fp32", "--threads", str(options.threads)], environment)
    answers = [child.ask({"do": "elementwise", "repeats": 8}) for _ in range(4)]
    child.close()
    return max(a["operations"] / a["seconds"] for a in answers)


def tune(options):
    """The peer's environment with the fastest core type and vector kernels, and a line that says what was chosen."""
    if not os.path.exists(OPENBLAS):
        raise Failed("the peer needs OpenBLAS with OpenMP: install libopenblas0-openmp (or use --blas system, which "
                     "is no fair comparison)")
    tried = {}
    for coretype in [options.coretype] if options.coretype else CORE_TYPES:
        tried[coretype] = rate(product_rate, options, peer_environment(options, coretype, options.capability))
    coretype = max(tried, key=tried.get)
    speeds = {}
    for capability in [options.capability] if options.capability else CAPABILITIES:
        speeds[capability] = rate(elementwise_rate, options, peer_environment(options, coretype, capability))
    capability = max(speeds, key=speeds.get)
    if not tried[coretype] or not speeds[capability]:
        raise Failed("the peer ran with none of the settings tried")
    rates = ", ".join(f"{k or 'as detected'} {v / 1e9:.0f}" for k, v in tried.items())
    rows = ", ".join(f"{k} {v / 1e9:.2f}" for k, v in speeds.items())
    return (peer_environment(options, coretype, capability),
            f"peer: OpenBLAS core type {coretype or 'as detected'} (GFLOP/s of a product: {rates}); "
            f"vector kernels {capability} (10^9 elements per second of softmax, SwiGLU and RMSNorm: {rows})")
