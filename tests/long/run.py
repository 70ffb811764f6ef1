"""One long check: its parts, what is kept of them, and the result file.

A target is a function that takes a Run and asks it for parts. A part is one command. Run.part() runs it, keeps its
whole output in build/long/NAME/KEY/PART.log and its outcome in PART.json beside it, and returns a Part. KEY names the
sources (facts.source_state), so a part that is finished is not run again at the same commit and never stands in for
another one; --keep lifts the latter, and the part then names the commit that it was made at.

Run.finish() writes build/long/NAME/result.json (result-ARGUMENT.json). Outcomes, the worst of which is the target's:
  passed        measured, all gates met                                    exit status 0
  failed        a command failed, crashed, or ran past its limit           1
  missed        measured, a gate missed                                    2
  inconclusive  the machine was too unsteady                               3
  skipped       this machine can't run it, the reason is in the result     77
A part is run again unless it passed or missed its gate.

Parts may run on several threads (Run.together); all else belongs to the thread that made the Run. An interrupt ends all commands
(Run.stop): they get SIGTERM and a while for their cleanup, then SIGKILL.
"""
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import facts
from facts import ROOT

EXIT = {"passed": 0, "failed": 1, "missed": 2, "inconclusive": 3, "skipped": 77}
SEVERITY = ["passed", "skipped", "inconclusive", "missed", "failed"]
FINISHED = ("passed", "missed")
CLEANUP_S = 30  # what a command has after SIGTERM


class Skip(Exception):
    """This machine can't run the target; the text says why."""


class Broken(Exception):
    """The target can't go on; the text says why."""


def send(child, number):
    """A signal to a command and all that it started."""
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        pass


def runs(child):
    """Whether a command has not ended. Its exit status stays for the thread that waits for it."""
    try:
        return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


class Part:
    def __init__(self, record, output):
        self.record, self.output = record, output

    @property
    def ok(self):
        """It measured something, met or not."""
        return self.record["outcome"] in FINISHED

    @property
    def passed(self):
        return self.record["outcome"] == "passed"

    @property
    def figures(self):
        return self.record["figures"]


class Run:
    def __init__(self, name, argument="", keep=False, folder=None, root=ROOT):
        self.name, self.argument, self.keep, self.root = name, argument, keep, root
        self.source = facts.source_state(root)
        self.base = folder or root / "build/long" / name
        # Without history nothing says which sources a finished part is of: then each start has a key of its own.
        self.key = self.source["key"] or "unknown-" + facts.now().replace(":", "")
        self.folder = self.base / self.key
        self.folder.mkdir(parents=True, exist_ok=True)
        self.began, self.load, self.clock = facts.now(), facts.load(), time.monotonic()
        self.parts, self.claims, self.figures, self.tests, self.reasons = [], [], {}, [], []
        self.n = None
        self.lock = threading.Lock()
        self.children, self.stopping = set(), False

    # ---- commands --------------------------------------------------------------------------------------------------
    def part(self, name, command, read=None, env=None, missed=(), limit=None, loud=False, append=False, judge=None, files=()):
        """Runs a command unless it is finished. read(output) gives its figures, judge(status, output) its outcome where
        the exit status alone does not say it; `missed` lists exit statuses that mean a missed gate. `files` are what it
        leaves for later parts: without them it is not finished, and the part of another key left them elsewhere."""
        command = [str(word) for word in command]
        kept = self.finished(name, command, files)
        if kept:
            print(f"({name}: done before)", flush=True)
        else:
            kept = self.execute(name, command, read, env, missed, limit, loud, append, judge)
        with self.lock:
            self.parts.append(kept.record)
        return kept

    def finished(self, name, command, files=()):
        if not all(path.exists() for path in files):
            return None
        folders = [self.folder]
        if self.keep and not files:
            others = [f for f in self.base.iterdir() if f.is_dir() and f != self.folder]
            folders += sorted(others, key=lambda f: f.stat().st_mtime, reverse=True)
        for folder in folders:
            try:
                record = json.loads((folder / f"{name}.json").read_text())
            except (OSError, ValueError):
                continue
            if record["outcome"] in FINISHED and record["command"] == self.neutral(command):
                output = (folder / f"{name}.log").read_text(errors="replace")
                return Part(dict(record, done_before=True), output)
        return None

    def neutral(self, command):
        """The command as text, without this checkout's place and the folder of the key."""
        return " ".join(map(str, command)).replace(str(self.folder), "STATE").replace(str(self.root) + "/", "")

    def execute(self, name, command, read, env, missed, limit, loud, append, judge):
        log_path = self.folder / f"{name}.log"
        print(f"{name}: {self.neutral(command)}", flush=True)
        record = {"name": name, "command": self.neutral(command), "commit": self.source["commit"],
                  "dirty": self.source["dirty"], "date": facts.now(), "load": facts.load()}
        started = time.monotonic()
        status, processor, late = self.wait_for(command, env, limit, loud, log_path, append)
        output = log_path.read_text(errors="replace")
        outcome = "passed" if status == 0 else "missed" if status in missed else "failed"
        figures = {}
        if judge and not late and status >= 0:
            outcome = judge(status, output)
        assert outcome in SEVERITY, outcome
        if late:
            record["reason"] = f"ran past {limit} s"
            outcome = "failed"
        if read and outcome not in ("failed", "skipped"):
            try:
                figures = read(output)
            except (OSError, ValueError, KeyError, IndexError, AttributeError) as error:
                outcome, record["reason"] = "failed", f"no figures in its output: {error!r}"
        record.update(exit=status, seconds=round(time.monotonic() - started, 1), processor_seconds=round(processor, 1),
                      outcome=outcome, figures=figures)
        if outcome == "failed":
            print("\n".join(output.splitlines()[-60:]))
            print(f"{name}: FAILED, exit status {status}; the whole output is in {log_path}", flush=True)
        path = self.folder / f"{name}.json"
        path.with_suffix(".part").write_text(json.dumps(record, indent=1))
        os.replace(path.with_suffix(".part"), path)
        return Part(record, output)

    def wait_for(self, command, env, limit, loud, log_path, append):
        """Exit status (negative: the signal that ended it), processor seconds with all children, whether it was late."""
        with open(log_path, "ab" if append else "wb") as log:
            out = subprocess.PIPE if loud else log
            try:
                child = subprocess.Popen(command, cwd=self.root, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                                         stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
            except OSError as error:
                log.write(f"{error}\n".encode())
                return 127, 0.0, False
            late = threading.Event()

            def end():
                late.set()
                self.end(child)
            timer = threading.Timer(limit, end) if limit else None
            with self.lock:
                self.children.add(child)
            try:
                if self.stopping:
                    raise Broken("interrupted")
                if timer:
                    timer.start()
                if loud:
                    for line in child.stdout:
                        log.write(line)
                        log.flush()
                        sys.stdout.write(line.decode(errors="replace"))
                        sys.stdout.flush()
                _, status, usage = os.wait4(child.pid, 0)
                child.returncode = os.waitstatus_to_exitcode(status)
            except BaseException:
                self.end(child)
                raise
            finally:
                with self.lock:
                    self.children.discard(child)
                if timer:
                    timer.cancel()
            return child.returncode, usage.ru_utime + usage.ru_stime, late.is_set()

    @staticmethod
    def end(*children):
        """Ends commands with all that they started: each has a session of its own. A script takes back first what it has mounted."""
        try:
            for child in children:
                send(child, signal.SIGTERM)
            limit = time.monotonic() + CLEANUP_S
            while time.monotonic() < limit and any(map(runs, children)):
                time.sleep(0.02)
        finally:
            for child in children:
                send(child, signal.SIGKILL)

    def stop(self):
        """Ends all commands, and no part begins any more."""
        with self.lock:
            self.stopping = True
            children = list(self.children)
        self.end(*children)

    def together(self, jobs, calls):
        """Runs calls (functions without arguments that ask for parts), so many at a time."""
        if jobs <= 1:
            for call in calls:
                call()
            return
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            try:
                for future in [pool.submit(call) for call in calls]:
                    future.result()
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                self.stop()
                raise

    # ---- what comes of it ------------------------------------------------------------------------------------------
    def claim(self, claim, gate, value, ok, n=""):
        """A row of docs/measurements.md. ok None: nothing to hold it to."""
        verdict = "measured" if ok is None else "met" if ok else "missed"
        self.claims.append({"claim": claim, "gate": gate, "value": value, "n": str(n), "verdict": verdict})

    def require(self, condition, reason):
        if not condition:
            raise Skip(reason)

    def verdict(self, broken=None):
        outcomes = [part["outcome"] for part in self.parts]
        if any(c["verdict"] == "missed" for c in self.claims):
            outcomes.append("missed")
        if broken:
            outcomes.append(broken)
        if not outcomes:
            outcomes = ["failed"]
            self.reasons.append("nothing was run")
        return max(outcomes, key=SEVERITY.index)

    def finish(self, broken=None, reason=None):
        """Writes the result file, prints it in short, and returns the exit status."""
        if reason:
            self.reasons.append(reason)
        verdict = self.verdict(broken)
        command = f"sh tests/long.sh {self.name}" + (f" {self.argument}" if self.argument else "")
        commits = sorted({part["commit"] or "unknown" for part in self.parts} - {self.source["commit"] or "unknown"})
        result = {
            "target": self.name, "command": command, "commit": self.source["commit"], "dirty": self.source["dirty"],
            "kept_from_commits": commits, "sources_changed_meanwhile": facts.source_state(self.root)["key"] != self.source["key"],
            "date": self.began, "machine": facts.machine(), "load_at_start": self.load, "exit": EXIT[verdict],
            "verdict": verdict, "reasons": self.reasons, "seconds": round(time.monotonic() - self.clock, 1),
            "n": len(self.parts) if self.n is None else self.n, "figures": self.figures, "claims": self.claims,
            "tests": self.tests, "parts": sorted(self.parts, key=lambda part: part["name"]),
        }
        # A result of one part of a target (fuzz keystore) does not replace that of the whole.
        plain = re.fullmatch(r"[\w.-]+", self.argument)
        path = self.base / (f"result-{self.argument}.json" if plain else "result.json")
        path.with_suffix(".part").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
        os.replace(path.with_suffix(".part"), path)
        self.show(result, path)
        return EXIT[verdict]

    @staticmethod
    def show(result, path):
        commit = (result["commit"] or "unknown")[:7] + (" with local changes" if result["dirty"] else "")
        print(f"\n{result['target']}: {result['verdict']}, commit {commit}, load {result['load_at_start']} at the start, "
              f"{result['seconds']:.0f} s, {result['n']} measured; {path}")
        for reason in result["reasons"]:
            print("  " + reason)
        for part in result["parts"]:
            if part["outcome"] != "passed":
                print(f"  {part['name']}: {part['outcome']}" + (f" ({part['reason']})" if "reason" in part else ""))
        for name, value in result["figures"].items():
            print(f"  {name}: {value}")
        for c in result["claims"]:
            print(f"  {c['claim']}: {c['value']} (gate {c['gate'] or 'none'}, n {c['n']}): {c['verdict']}")
