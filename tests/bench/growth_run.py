"""A network of real nodes whose model grows with their memory, for measurements: four nodes that hold whole models, and two sizes."""
import json
import math
import re
import shutil
import time

from parts_run import BETWEEN, Network, Node

CERTIFIED = re.compile(r"round (\d+) is certified with anchor ([0-9a-f]+): (\d+) of \d+ members")
ASKED = "the members' memory asks for a "
SMALL_OFFER, LARGE_OFFER = "1GiB", "3GiB"
SECONDS = 300  # for what takes some seconds on a quiet machine
# Bytes as tokens, so nats a token are nats a character. The decay is to be added.
BYTES = ["--head-dim", 32, "--vocab", 266, "--sequence", 64, "--peak-lr", "4e-3", "--warmup", 20, "--outer-momentum", "0.8"]
KINDS = {"dense": ["--experts", 1, "--experts-per-token", 1, "--ffn-percent", 300],
         "experts": ["--experts", 4, "--experts-per-token", 2, "--ffn-percent", 150]}


def split_text(path, folder):
    """Writes nine tenths as `text` and the rest as `held-out`."""
    content = path.read_bytes()
    (folder / "text").write_bytes(content[:len(content) * 9 // 10])
    (folder / "held-out").write_bytes(content[len(content) * 9 // 10:])


class Growing(Network):
    """The first node founds the network, and the others come by its invitations, with a vote. folder has a file `text`. The founder's wallet and the
    profile are made once in a folder, so networks of one folder, one after the other, have the same first weights. size: for --grow-to. words: of
    each node."""

    def __init__(self, programs, folder, name, port, model, size, words=()):
        self.program, self.folder, self.port, self.nodes, self.name = programs.resolve() / "neuroshardd", folder, port, [], name
        self.words, self.profile, founder = words, folder / "profile.json", folder / "founder"
        if not self.profile.exists():
            self.call("wallet", "create", "--data-dir", founder)
            self.call("network", "create", "--from", "devnet", "--name", "growth", *model, "--grow-to", size, "--block-time-s", 1, "--voters", "invited",
                      "--founder", "mine", "--data-dir", founder, "--out", self.profile)
        shutil.copytree(founder, self.data(0))

    def data(self, number):
        return self.folder / f"{self.name}-{number}"

    def start(self, memory):
        """A node with this limit of memory. A person can change it while the node runs."""
        number = len(self.nodes)
        node = Node(None, [], self.data(number), self.data(number).with_suffix(".out"), None)
        self.set_memory(node, memory)
        common = [self.program, "run", "--json", "--data-dir", node.data, "--text", self.folder / "text", "--lan", "--local-discovery", "off",
                  "--mainline-rendezvous", "off", "--open-port", "off", "--p2p-address", "127.0.0.1", "--p2p-port", self.port + number,
                  "--cpu-threads", 1, "--precision", "fp32", "--pause-on-battery", "never", "--eval-interval-steps", 0, *self.words]
        peer = ["--peer", f"127.0.0.1:{self.port}"] if number else []
        node.words = list(map(str, [*common, "--join", self.invitation(), "--yes", *peer] if number else [*common, "--profile", self.profile]))
        self.nodes.append(node)
        self.again(node)
        self.wait_for(lambda: self.rounds(node), f"node {number} does not start")
        node.words = list(map(str, [*common, "--profile", self.profile, *peer]))  # of later starts
        return node

    def start_all(self, count, memory):
        for number in range(count):
            self.start(memory)
            if number == 0:
                self.wait_for(lambda: self.rounds(self.nodes[0]).get("round", 0) >= 1, "the founder makes no round")
        self.wait_for(self.together, f"the first {count} nodes don't train together")

    def invitation(self):
        return json.loads(self.call("network", "invite", "--data-dir", self.data(0), "--json", "--with-vote").splitlines()[-1])["link"]

    def set_memory(self, node, memory):
        self.call("set", "memory_limit", memory, "--data-dir", node.data, "--profile", self.profile)

    def rounds(self, node):
        return self.status(node).get("rounds") or {}

    @staticmethod
    def layers_in(rounds):
        return ((rounds.get("memory") or {}).get("present") or {}).get("layers")

    def together(self):
        """All nodes contributed to the newest round that they know, and hold its anchor."""
        count = len(self.nodes)
        return all(seen.get("members") == count == seen.get("contributors") and seen.get("agrees") and seen.get("member")
                   for seen in map(self.rounds, self.nodes))

    def wait_for(self, done, what, seconds=SECONDS):
        began = time.monotonic()
        while not done():
            if why := self.dead():
                raise RuntimeError(f"{what}: {why}")
            if time.monotonic() - began > seconds:
                raise RuntimeError(f"{what} within {seconds} s: " + json.dumps([self.rounds(node) for node in self.nodes]))
            time.sleep(BETWEEN)
        return time.monotonic() - began

    def all_have(self, layers):
        return all(self.layers_in(self.rounds(node)) == layers for node in self.nodes)

    def log(self, node):
        return (node.data / "logs/neuroshardd.log").read_text(errors="replace")

    def certified(self, node):
        """(round, anchor, contributors) of each line of its log that says so."""
        return [(int(number), anchor, int(count)) for number, anchor, count in CERTIFIED.findall(self.log(node))]

    def differing(self):
        """Rounds of which two nodes certified different anchors, and the anchors in all."""
        anchors, differ = {}, 0
        for node in self.nodes:
            for number, anchor, _ in self.certified(node):
                differ += anchors.setdefault(number, anchor) != anchor
        return differ, len(anchors)

    def checkpoints(self, node):
        """Complete ones, the newest first."""
        listed = map(json.loads, self.call("checkpoint", "list", "--json", "--data-dir", node.data).splitlines())
        return [one for one in listed if one["complete"]]

    def save(self, node):
        """The name of a new checkpoint."""
        said = self.call("checkpoint", "save", "--json", "--data-dir", node.data)
        return json.loads(said.splitlines()[-1])["saved"]

    def held_out_loss(self, node, checkpoint):
        """In nats a token, of the text that no node trained on."""
        loss = json.loads(self.call("eval", self.folder / "held-out", "--checkpoint", checkpoint, "--cloze", 0, "--json", "--data-dir",
                                    node.data).splitlines()[-1])["model"]["loss"]
        if not math.isfinite(loss):
            raise RuntimeError(f"checkpoint {checkpoint} has a loss of {loss}")
        return loss
