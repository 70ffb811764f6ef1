"""npm's OpenAI client, unchanged, against a real node over local HTTP."""
import shutil
import subprocess

import builds
from facts import ROOT
from registry import target
from run import Broken

PACKAGE = "openai@4.104.0"  # the newest major version that runs on Node 18 and 20
CHECKS = 10


@target("openai-client", "npm's OpenAI client, unchanged, against a real node: list, complete, chat, stream, stop, logprobs, embeddings, abort, errors")
def openai_client(run):
    run.require(shutil.which("npm") is not None, "needs node and npm")
    builds.build(run, "ci", targets=("neuroshardd", "neuroshard_network", "compute_cpu"))
    folder = run.folder / "client"
    folder.mkdir(exist_ok=True)
    shutil.copy(ROOT / "tests/long/openai_client.mjs", folder)
    (folder / "package.json").write_text('{"private": true}')
    install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", PACKAGE]
    if subprocess.run(install, cwd=folder, check=False).returncode != 0:
        raise Broken(f"npm can't install {PACKAGE}")
    part = run.part("client", ["python3", "-B", ROOT / "tests/functional/local_http.py", ROOT, builds.BIN, "node",
                               folder / "openai_client.mjs"], limit=600, env={"NS_RECORD": str(folder / "exchanges.json")},
                    read=lambda output: {"held": sum(line.startswith("held: ") for line in output.splitlines())})
    held = part.figures.get("held", 0)
    if held == CHECKS:
        run.reasons.append(f"recorded: {folder / 'exchanges.json'}; CI replays tests/functional/openai_exchanges.json")
    run.figures = {"held": held, "package": PACKAGE}
    run.claim("npm's OpenAI client works unchanged over local HTTP", f"{CHECKS} of {CHECKS} checks hold", f"{held} of {CHECKS} hold",
              held == CHECKS, PACKAGE)
