"""An internet of its own for a measurement: hosts with public addresses, each in a network namespace, and a router between them.

The program that calls enter() runs again as the first process of network, mount and process namespaces of its own. Whatever it makes
there ends with it. Nothing leaves them.
"""
import os
import pathlib
import subprocess
import sys

INSIDE = "NS_INSIDE_INTERNET"


def enter():
    """Comes back inside. OSError: this system gives no namespaces, for example without root."""
    unshare = ["unshare", "-m", "-n", "-p", "-f", "--kill-child", "--mount-proc"]
    if os.environ.get(INSIDE) != "1":
        if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode != 0:
            raise OSError("no network namespaces")
        os.environ[INSIDE] = "1"
        os.execvp(unshare[0], [*unshare, sys.executable, "-B", *sys.argv])
    os.environ[INSIDE] = "0"  # of further programs
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    pathlib.Path("/run/netns").mkdir()
    ip("link", "set", "lo", "up")
    pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Internet:
    """Hosts by name. Each has a prefix of its own, of 24 bits."""

    def __init__(self):
        self.addresses = {}

    def address(self, name):
        """Of the host, which is made if it is new."""
        if name not in self.addresses:
            number = len(self.addresses)
            router, host = f"20.1.{number}.1", f"20.1.{number}.2"
            ip("netns", "add", name)
            ip("link", "add", f"to{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("address", "add", f"{router}/24", "dev", f"to{number}")
            ip("link", "set", f"to{number}", "up")
            ip("-n", name, "address", "add", f"{host}/24", "dev", "eth0")
            for link in ("lo", "eth0"):
                ip("-n", name, "link", "set", link, "up")
            ip("-n", name, "route", "add", "default", "via", router)
            self.addresses[name] = host
        return self.addresses[name]

    def on(self, name, command):
        """The command that runs another one on this host."""
        self.address(name)
        return ["ip", "netns", "exec", name, *map(str, command)]
