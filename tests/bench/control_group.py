#!/usr/bin/env python3
"""A control group that a measurement makes for programs of its own and removes: a share of one core, and a limit of memory."""
import os
import subprocess
import time


class Group:
    """Of version 2 or 1. OSError: there is none that we may make. share: of one core; period_us: in which the share is given out;
    memory: bytes, beyond which the kernel ends the programs."""

    def __init__(self, name, share=None, period_us=100_000, memory=None):
        self.version = 2 if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else 1
        name = f"neuroshard-{name}-{os.getpid()}"
        self.paths = [os.path.join("/sys/fs/cgroup", *folder, name) for folder in
                      ([[]] if self.version == 2 else [["cpu"]] * (share is not None) + [["memory"]] * (memory is not None))]
        for path in self.paths:
            if os.path.isdir(path):
                os.rmdir(path)  # of a run that was killed; in a process namespace, numbers repeat
            os.mkdir(path)
        if share is not None:
            self.limit_processor(int(share * period_us), period_us)
        if memory is not None:
            self.write(self.paths[-1], "memory.max" if self.version == 2 else "memory.limit_in_bytes", memory)

    def limit_processor(self, quota_us, period_us):
        if self.version == 2:
            self.write(self.paths[0], "cpu.max", f"{quota_us} {period_us}")
        else:
            self.write(self.paths[0], "cpu.cfs_period_us", period_us)
            self.write(self.paths[0], "cpu.cfs_quota_us", quota_us)

    @staticmethod
    def write(path, name, value):
        with open(os.path.join(path, name), "w", encoding="ascii") as file:
            file.write(str(value))

    def command(self, command):
        """The shell moves itself inside and becomes the program."""
        move = "".join(f"echo $$ >{path}/cgroup.procs && " for path in self.paths)
        return ["sh", "-c", move + 'exec "$@"', "sh", *map(str, command)]

    def enter(self):
        """Of the calling process; a child calls it before it becomes the program."""
        for path in self.paths:
            self.write(path, "cgroup.procs", os.getpid())

    def start(self, command, out):
        return subprocess.Popen(self.command(command), stdout=out, stderr=subprocess.STDOUT)

    def used_seconds(self):
        name, words = ("cpu.stat", 1e6) if self.version == 2 else ("cpuacct.usage", 1e9)
        path = os.path.join(self.paths[0], name)
        if self.version == 1 and not os.path.exists(path):
            return None  # accounted for elsewhere
        with open(path, encoding="ascii") as file:
            return int(file.read().split()[1 if self.version == 2 else 0]) / words

    def peak_memory(self):
        name = "memory.peak" if self.version == 2 else "memory.max_usage_in_bytes"
        with open(os.path.join(self.paths[-1], name), encoding="ascii") as file:
            return int(file.read())

    def remove(self):
        for path in self.paths:
            for _ in range(50):
                try:
                    os.rmdir(path)
                    break
                except OSError:
                    time.sleep(0.1)
