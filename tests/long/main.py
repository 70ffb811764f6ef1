"""The long checks, one at a time; see tests/long.sh."""
import argparse
import pathlib
import re
import shutil
import signal
import sys

import targets_attacks  # noqa: F401  (each registers its targets)
import targets_checks  # noqa: F401
import targets_growth  # noqa: F401
import targets_http  # noqa: F401
import targets_network  # noqa: F401
import targets_packages  # noqa: F401
import targets_pipeline  # noqa: F401
import targets_plans  # noqa: F401
import targets_product  # noqa: F401
import targets_speed  # noqa: F401
import targets_training  # noqa: F401
import target_build_times  # noqa: F401
import target_formats  # noqa: F401
import target_generation_speed  # noqa: F401
import target_llama_cpp  # noqa: F401
import target_openai_client  # noqa: F401
import target_same_results  # noqa: F401
from facts import ROOT
from registry import TARGETS
from run import Broken, Run, Skip

DESCRIPTION = """Long checks, one at a time. Each writes build/long/NAME/result.json: command, commit, machine, load, exit
status, figures. What a start finishes is not done again at the same commit. No tracked file changes."""


def listing():
    width = max(len(name) for name in TARGETS)
    return "\n".join(f"{name:<{width}}  {text}" for name, (_, text) in TARGETS.items())


def mounts_below(folder, table=pathlib.Path("/proc/self/mountinfo")):
    """The places below a folder where another file system is mounted."""
    if not table.exists():
        return []
    fields = [line.split(" ")[4] for line in table.read_text(errors="surrogateescape").splitlines()]
    points = [pathlib.Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)) for field in fields]
    return [point for point in points if folder.resolve() in point.parents]


def perform(function, run):
    """Runs a target to its result, whatever happens on the way."""
    try:
        function(run)
    except Skip as reason:
        return run.finish("skipped", str(reason))
    except Broken as reason:
        return run.finish("failed", str(reason))
    except KeyboardInterrupt:
        run.stop()
        run.finish("failed", "interrupted")
        return 130
    except Exception as error:  # the result says failed, and the trace is shown
        run.finish("failed", f"{type(error).__name__}: {error}")
        raise
    return run.finish()


def main(words):
    parser = argparse.ArgumentParser(prog="sh tests/long.sh", description=DESCRIPTION, epilog="targets:\n" + listing(),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="names all targets")
    parser.add_argument("--fresh", action="store_true", help="forgets what the target has finished")
    parser.add_argument("--keep", action="store_true", help="takes finished parts of other commits, too, if no later part needs their files; the result names those commits")
    parser.add_argument("name", nargs="?")
    parser.add_argument("argument", nargs="?", default="")
    options = parser.parse_args(words)
    if options.list:
        print(listing())
        return 0
    if options.name not in TARGETS:
        print(f"error: no target {options.name}; sh tests/long.sh --list names them" if options.name else parser.format_help(), file=sys.stderr)
        return 64
    if options.fresh:
        folder = ROOT / "build/long" / options.name
        mounted = mounts_below(folder)
        if mounted:
            print(f"error: --fresh would remove what is mounted at {mounted[0]}; first: umount --lazy '{mounted[0]}'", file=sys.stderr)
            return 1
        shutil.rmtree(folder, ignore_errors=True)
    # These get the same cleanup as Ctrl-C. A command has a session of its own, and would outlive this one.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, signal.default_int_handler)
    return perform(TARGETS[options.name][0], Run(options.name, options.argument, options.keep))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
