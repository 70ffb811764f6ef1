#!/usr/bin/env python3
"""The mechanism of the long checks bites: no exit status is lost, and nothing finished at one commit stands in for another."""
import argparse
import contextlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "bench"), str(HERE.parent / "functional")]
import builds  # noqa: E402
import growth_kills  # noqa: E402
import http_floods  # noqa: E402
import main  # noqa: E402
import parts_failures  # noqa: E402
import parts_newcomer  # noqa: E402
import reading  # noqa: E402
import rounds_throughput  # noqa: E402
import run as runs  # noqa: E402
import same_results  # noqa: E402
import target_build_times  # noqa: E402,F401
import target_generation_speed  # noqa: E402
import target_llama_cpp  # noqa: E402
import targets_attacks  # noqa: E402
import targets_checks  # noqa: E402
import targets_growth  # noqa: E402
import targets_http  # noqa: E402
import targets_network  # noqa: E402
import targets_packages  # noqa: E402
import targets_pipeline  # noqa: E402
import targets_product  # noqa: E402
import targets_speed  # noqa: E402
import targets_training  # noqa: E402


class LongChecks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name) / "tree"
        self.root.mkdir()
        self.git("init", "-q")
        (self.root / ".gitignore").write_text("build/\n")
        self.commit("one")
        self.counter = pathlib.Path(self.folder.name) / "counter"

    def tearDown(self):
        self.folder.cleanup()

    def git(self, *words):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, "-C", str(self.root), *words], check=True, capture_output=True)

    def commit(self, text):
        (self.root / "file").write_text(text)
        self.git("add", "-A")
        self.git("commit", "-qm", text)

    def new_run(self, keep=False):
        return runs.Run("check", keep=keep, root=self.root)

    def counted(self, run, script="true", **more):
        """A part that counts how often it really runs."""
        return run.part("part", ["sh", "-c", f'echo x >>"{self.counter}"; {script}'], **more)

    def times(self):
        return len(self.counter.read_text().split()) if self.counter.exists() else 0

    def result(self):
        return json.loads((self.root / "build/long/check/result.json").read_text())

    def test_result_says_where_it_comes_from(self):
        run = self.new_run()
        self.counted(run, "echo 7", read=lambda out: {"seven": int(out)})
        self.assertEqual(run.finish(), 0)
        result = self.result()
        for key in ("target", "command", "commit", "dirty", "date", "machine", "load_at_start", "exit", "verdict", "n", "figures", "parts"):
            self.assertIn(key, result)
        self.assertEqual((result["verdict"], result["dirty"], result["parts"][0]["figures"]), ("passed", False, {"seven": 7}))
        self.assertEqual(len(result["commit"]), 40)

    def test_finished_part_is_not_run_again_at_the_same_commit_only(self):
        for _ in range(2):
            run = self.new_run()
            self.counted(run)
            run.finish()
        self.assertEqual(self.times(), 1)
        first = self.result()["commit"]
        self.commit("two")
        run = self.new_run(keep=True)
        self.counted(run)
        run.finish()
        self.assertEqual(self.times(), 1)
        self.assertEqual(self.result()["kept_from_commits"], [first])
        run = self.new_run()
        self.counted(run)
        run.finish()
        self.assertEqual(self.times(), 2)
        self.assertEqual(self.result()["kept_from_commits"], [])

    def test_a_part_is_finished_with_the_files_that_it_leaves(self):
        def left(run):
            file = run.folder / "left"
            self.counted(run, f'echo >"{file}"', files=[file])
            self.assertTrue(file.exists())
            return file
        for _ in range(2):
            file = left(self.new_run())
        self.assertEqual(self.times(), 1)
        file.unlink()
        left(self.new_run())
        self.assertEqual(self.times(), 2)
        self.commit("two")
        left(self.new_run(keep=True))
        self.assertEqual(self.times(), 3)

    def test_answers_of_a_comparison_do_not_replace_each_other(self):
        """A second start after a failure finds the answer to each request."""
        run = self.new_run()
        (run.folder / "data/checkpoints/1-2").mkdir(parents=True)
        for _ in range(2):
            one = target_llama_cpp.Comparison(run, "dense", run.folder / "data", None)
            asked = []

            def answer(name, command, files):
                asked.append(name)
                if not files[0].exists():
                    files[0].write_text(command[-2].read_text())
                return unittest.mock.Mock(ok=True)
            with unittest.mock.patch.object(run, "part", answer):
                self.assertEqual([one.ours(step, {"tokens": [step]})["tokens"] for step in ("ids", "scores")], [["ids"], ["scores"]])
            self.assertEqual(len(set(asked)), 2)

    def test_a_node_that_generates_no_text_leaves_no_thread(self):
        class Silent:
            def __init__(self, *words):
                pass

            def ask(self, *words):
                return None

            def training(self):
                return {"step": 5}

            def wait_for_steps(self, step):
                pass

            def stop(self):
                pass
        before = threading.active_count()
        with unittest.mock.patch.object(target_generation_speed, "Node", Silent), self.assertRaisesRegex(runs.Broken, "no text"):
            target_generation_speed.share_of(self.new_run(), None, None, 25)
        self.assertEqual(threading.active_count(), before)

    def test_local_changes_are_other_sources(self):
        run = self.new_run()
        self.counted(run)
        (self.root / "file").write_text("changed")
        changed = self.new_run()
        self.counted(changed)
        (self.root / "untracked").write_text("new")
        added = self.new_run()
        self.counted(added)
        self.assertEqual(len({run.key, changed.key, added.key}), 3)
        self.assertEqual(self.times(), 3)
        added.finish()
        self.assertTrue(self.result()["dirty"])

    def test_failures_reach_the_exit_status(self):
        for script in ("exit 3", "kill -9 $$", "kill -SEGV $$"):
            run = self.new_run()
            part = self.counted(run, script)
            self.assertFalse(part.ok, script)
            self.assertEqual(run.finish(), 1)
            self.assertEqual((self.result()["verdict"], self.result()["exit"]), ("failed", 1))
        again = self.new_run()
        self.assertTrue(self.counted(again).ok, "what failed is run again")
        self.assertEqual(again.finish(), 0)

    def test_missing_program_bad_output_and_a_late_command_fail(self):
        run = self.new_run()
        self.assertEqual(run.part("none", ["/nonexistent/program"]).record["outcome"], "failed")
        self.assertEqual(run.part("bad", ["echo", "words"], read=lambda out: {"n": int(out)}).record["outcome"], "failed")
        self.assertEqual(run.part("late", ["sleep", "60"], limit=0.2).record["outcome"], "failed")
        self.assertEqual(run.part("crash", ["sh", "-c", "kill -9 $$"], judge=lambda status, out: "passed").record["outcome"], "failed")
        self.assertEqual(run.finish(), 1)

    def test_one_failure_among_parts_at_once(self):
        run = self.new_run()
        run.together(3, [lambda n=n: run.part(f"p{n}", ["sh", "-c", f"exit {int(n == 4)}"]) for n in range(6)])
        self.assertEqual((len(run.parts), run.finish()), (6, 1))

    def once(self, holds, action):
        """Another thread that does it once a condition holds."""
        def wait():
            end = time.monotonic() + 30
            while not holds() and time.monotonic() < end:
                time.sleep(0.01)
            action()
        thread = threading.Thread(target=wait)
        thread.start()
        self.addCleanup(thread.join)

    def test_a_command_that_is_ended_cleans_up(self):
        """The scripts of bare systems take back their mounts, which a later --fresh would look into."""
        # A shell that begins a command in the foreground just as the signal comes runs its trap after the command.
        state, tools = self.root / "state", self.root / "tools"
        state.mkdir()
        tools.mkdir()
        (tools / "debootstrap").write_text('#!/bin/sh\nmkdir -p "$3"; exec sleep 60\n')
        (tools / "debootstrap").chmod(0o755)
        run = self.new_run()
        source = 'STATE=$2; . "$1"; leave() { echo left >>"$STATE/left"; }; begin_check; sleep 60 & wait'
        self.once((state / "left").exists, lambda: run.end(*run.children))
        run.part("packages", ["sh", "-euc", source, "sh", HERE.parent / "package_system.sh", state])
        self.once((state / "chroot").exists, lambda: run.end(*run.children))
        run.part("bare", ["sh", HERE.parent / "bare_debian.sh", state, self.root], env={"PATH": f"{tools}:{os.environ['PATH']}"})
        self.assertEqual((state / "left").read_text().split(), ["left", "left"])
        self.assertTrue((state / "timings").exists())
        self.assertFalse((state / "chroot").exists())
        self.assertEqual(run.finish(), 1)

    def test_a_command_that_does_not_clean_up_in_time_is_killed(self):
        run, began = self.new_run(), self.root / "began"
        with unittest.mock.patch.object(runs, "CLEANUP_S", 0.2):
            self.once(began.exists, lambda: run.end(*run.children))
            part = run.part("stubborn", ["sh", "-c", "trap '' TERM; : >began; sleep 60; sleep 60"])
        self.assertEqual(part.record["exit"], -9)

    def test_an_interrupt_ends_all_commands(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            run, before = self.new_run(), signal.signal(number, signal.default_int_handler)
            self.once(lambda run=run: len(run.children) == 2, lambda number=number: os.kill(os.getpid(), number))
            began = time.monotonic()
            try:
                status = main.perform(lambda r: r.together(2, [lambda n=n: r.part(f"p{n}", ["sleep", "30"]) for n in range(4)]), run)
            finally:
                signal.signal(number, before)
            self.assertLess(time.monotonic() - began, 10)
            self.assertEqual((status, len(run.parts), run.children), (130, 2, set()))
            self.assertEqual((self.result()["verdict"], self.result()["reasons"]), ("failed", ["interrupted"]))

    def test_mounts_are_found_before_a_folder_is_removed(self):
        table = self.root / "mountinfo"
        table.write_text(f"1 0 0:1 / / rw - ext4 /dev/a rw\n2 1 0:2 / {self.root}/a\\040b/dev rw - devtmpfs none rw\n"
                         f"3 1 0:3 / {self.root}-other rw - tmpfs none rw\n")
        self.assertEqual(main.mounts_below(self.root, table), [self.root / "a b/dev"])
        self.assertEqual(main.mounts_below(self.root / "other", table), [])
        self.assertEqual(main.mounts_below(self.root, self.root / "none"), [])

    def test_missed_unsteady_skipped_and_nothing(self):
        run = self.new_run()
        part = run.part("missed", ["sh", "-c", "exit 2"], missed=(2,))
        self.assertEqual((part.ok, part.passed), (True, False))
        self.assertEqual(run.finish(), 2)
        run = self.new_run()
        run.part("steady", ["true"])
        run.claim("speed", "≥ 2", "1.9", False)
        self.assertEqual(run.finish(), 2)
        run = self.new_run()
        run.part("unsteady", ["true"], judge=lambda status, out: "inconclusive")
        self.assertEqual(run.finish(), 3)
        run = self.new_run()
        run.part("skipped", ["sh", "-c", "echo words; exit 77"], read=reading.last_json, judge=targets_pipeline.outcome_of_parts)
        run.part("no PyTorch", ["sh", "-c", "exit 77"], read=lambda output: {}["bytes"], judge=targets_speed.unless_unsteady)
        self.assertEqual(run.finish(), 77)
        run = self.new_run()
        busy = run.part("busy", ["echo", '{"clients": 3}'], read=reading.last_json, judge=lambda status, out: "inconclusive")
        self.assertEqual(busy.figures, {"clients": 3})
        with unittest.mock.patch.object(builds, "build"), unittest.mock.patch.object(run, "part", lambda *words, **more: busy):
            self.assertEqual(main.perform(targets_http.http_floods, run), 3)
        with self.assertRaises(AssertionError):
            self.new_run().part("unknown", ["true"], judge=lambda status, out: "could not run")
        self.assertEqual(main.perform(lambda r: r.require(False, "no root"), self.new_run()), 77)
        self.assertEqual(self.result()["reasons"], ["no root"])
        self.assertEqual(main.perform(lambda r: None, self.new_run()), 1)

    def test_an_exception_leaves_a_result_that_says_failed(self):
        with self.assertRaises(ZeroDivisionError):
            main.perform(lambda r: r.part("x", ["true"]) and 1 / 0, self.new_run())
        self.assertEqual(self.result()["verdict"], "failed")

    def test_command_line(self):
        script = str(HERE.parent / "long.sh")
        self.assertEqual(subprocess.run(["sh", script, "no-such-target"], capture_output=True, check=False).returncode, 64)
        listed = subprocess.run(["sh", script, "--list"], capture_output=True, text=True, check=False)
        self.assertEqual(listed.returncode, 0)
        names = [line.split()[0] for line in listed.stdout.splitlines()]
        for name in ("asan-ubsan", "tsan", "fuzz", "protocol-fuzz", "strangers", "tidy", "build-times", "same-results", "rounds-scale"):
            self.assertIn(name, names)

    def test_attacks_are_judged_by_the_worst(self):
        run = self.new_run()
        targets_network.judge_attacks(run, [
            "dense, 2 of 8, alie: ours +0.5 % (+0.6; on the way +4), plain mean +1.1 % (+1.3; on the way +2)",
            "dense, 2 of 8, zero: ours +4.7 % (+5.2; on the way +19), plain mean +18922.2 % (+1; on the way +2) MISSED (<= +5 %)",
            "dense, 4 of 10, f=4, zero: +7.0 % (+7.7; on the way +40)", "dense: FAILED"])
        self.assertEqual([(c["value"], c["verdict"]) for c in run.claims],
                         [("+4.7 % (zero) is the worst", "missed"), ("+7.0 % (zero) is the worst", "met")])
        run = self.new_run()
        targets_network.judge_attacks(run, [
            "dense, 2 of 8, alie: ours +0.5 % (+0.6; on the way +4), plain mean diverges",
            "dense, 2 of 8, zero: ours diverges, plain mean +18922.2 % (+1; on the way +2) MISSED (<= +5 %)",
            "dense, 4 of 10, f=4, zero: diverges MISSED (finite and falling)", "dense, clean, plain mean: +0.1 % (+0.2; on the way +1)"])
        self.assertEqual([(c["value"], c["verdict"]) for c in run.claims], [("diverges (zero) is the worst", "missed")] * 2)
        with self.assertRaisesRegex(runs.Broken, "can't be read"):
            targets_network.judge_attacks(run, ["dense, 2 of 8, zero: no words that it knows"])

    def test_memory_limits_are_judged_by_the_largest_peak(self):
        lines = ["no limit: peak resident 897 MiB, micro-batch 4", *(f"limit {limit} MiB: peak resident 9 MiB ({share} % of the limit), micro-batch 1, trained"
                                                                      for limit, share in ((2692, 33.3), (1346, 69.8), (762, 65.6)))]
        for change, verdict in ((lines, "met"), ([lines[0], lines[1].replace("33.3", "100.4"), *lines[2:]], "missed"), (lines[:3], "missed")):
            run = self.new_run()
            targets_training.judge_limits(run, runs.Part({"outcome": "passed", "figures": {"lines": change}}, ""))
            self.assertEqual([c["verdict"] for c in run.claims], [verdict])

    def test_memory_of_the_server_is_held_against_that_before_the_attacks(self):
        sizes = iter((100.0, 160.0, 150.0, 120.0, 151.0, 145.0))
        flood = http_floods.Flood(None, None, None, argparse.Namespace(clients=1, seconds=1, rounds=2))
        flood.phase = lambda attacks: {"memory_mib": next(sizes), "tokens_per_s": 1.0, "first_token_s": 1.0, "refused": []}
        figures = flood.run()
        self.assertEqual((figures["memory_more_mib"], figures["memory_growth_mib"]), (60.0, 25.0))
        self.assertEqual(len(http_floods.judge(figures, True)), 2)

    def test_two_turns_are_judged_by_their_mean(self):
        ratios = iter((0.99, 0.92))
        with unittest.mock.patch.object(rounds_throughput, "turn", lambda arguments, number: {"ratio": next(ratios)}), \
                unittest.mock.patch.object(sys, "argv", ["x", "node", "text", str(self.root / "nodes")]), \
                contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(rounds_throughput.main(), 1)
        self.assertAlmostEqual(json.loads(said.getvalue())["ratio"], 0.955)
        self.assertEqual([rounds_throughput.in_turn(("a", "b"), number) for number in (0, 1)], [("a", "b"), ("b", "a")])
        run, values = self.new_run(), iter((0.95, 0.80))
        part = lambda *words, **more: runs.Part({"outcome": "passed", "figures": {"runs": [{"delay_ms": 1.0, "efficiency": next(values)}]}}, "")
        with unittest.mock.patch.object(builds, "build"), unittest.mock.patch.object(builds, "packages"), \
                unittest.mock.patch.object(builds, "program"), unittest.mock.patch.object(run, "part", part), \
                unittest.mock.patch.object(run, "require"), unittest.mock.patch.dict(os.environ, {"PIPELINE_REPEATS": "2"}):
            targets_pipeline.pipeline_efficiency(run)
        self.assertEqual([c["value"] for c in run.claims], ["0.875 (0.800 to 0.950)"])

    def test_a_side_alone_warms_up_and_is_measured_over_as_many_steps(self):
        nodes = rounds_throughput.Nodes.__new__(rounds_throughput.Nodes)
        nodes.arguments = argparse.Namespace(alone=True, period=50, workers=4, rounds=3, batch_tokens=512)
        seen = iter([(100, 0, 7), (400, 0, 7), (700, 0, 7), (1000, 0, 7)])

        def wait(reached):
            return next((float(now[0]), now) for now in seen if reached(now))
        nodes.wait = wait
        self.assertEqual(nodes.speed(), {"seconds": 600.0, "tokens_per_s": 512.0, "rounds": 0, "parameters": 7})

    def test_simulations_with_many_seeds_are_those_of_the_build(self):
        names = targets_network.of_many_seeds()
        for name in ("test_chain_checks", "test_chain_sizes", "test_plans", "test_chain_agreement_stall", "test_protocol_fuzz", "test_member_fuzz"):
            self.assertIn(name, names)
        lists = "".join(path.read_text() for path in HERE.parent.rglob("CMakeLists.txt"))
        for name in names:
            self.assertRegex(lists, rf"ns_add_test\({name} |foreach\(name [^)]*\b{name.removeprefix('test_')}\b")

    def test_all_attacks_are_judged_by_their_control(self):
        def side(pace, most, **more):
            return {"rounds_per_minute": pace, "paces": [pace], "largest": [190.0, most], "mib": {"node0": {"most": 200.0}, "node1": {"most": most}}, "ended": [], **more}
        for pace, most, banned, torn, verdicts in ((9.1, 210.0, [], [], ["met"] * 4), (8.9, 221.0, [], [], ["missed", "missed", "met", "met"]),
                                                   (10.0, 200.0, ["node1"], [], ["met"] * 3 + ["missed"]), (10.0, 200.0, [], ["7"], ["met"] * 3 + ["missed"])):
            run = self.new_run()
            attacked = side(pace, most, banned_honest=banned, torn=torn, attacks={"fuzz": {"calls": 5, "honest_calls": 4, "honest_failed": 1}})
            figures = {"pace": pace / 10, "memory": most / 200, "control": side(10.0, 200.0), "attacked": attacked}
            targets_attacks.judge_strangers(run, figures, 60, 1)
            self.assertEqual([c["verdict"] for c in run.claims if c["gate"]], verdicts)
            self.assertEqual([c["value"] for c in run.claims if not c["gate"]], ["1 of 4"])
            self.assertIn(f"(190, {most:.0f}; 190, 200 MiB)", run.claims[1]["value"])

    def test_networks_under_all_attacks_are_judged_as_one(self):
        def side(pace, most, **more):
            return {"rounds_per_minute": pace, "mib": {"node0": {"most": most}}, "ended": [], "torn": [], **more}
        whole = targets_attacks.whole_of_strangers({
            "control": [side(10.0, 200.0)],
            "attacked": [side(8.0, 205.0, attacks={"fuzz": {"calls": 5, "kinds": {}}}),
                         side(11.0, 210.0, attacks={"fuzz": {"calls": 7}}, banned_honest=["node1"])]})
        self.assertEqual((round(whole["pace"], 2), round(whole["memory"], 2)), (0.95, 1.05))
        self.assertEqual(whole["attacked"]["attacks"], {"fuzz": {"calls": 12}})
        self.assertEqual((whole["attacked"]["paces"], whole["attacked"]["largest"]), ([8.0, 11.0], [205.0, 210.0]))
        self.assertEqual((whole["attacked"]["banned_honest"], whole["control"]["ended"]), (["node1"], []))

    def test_changed_messages_are_judged(self):
        figures = {"fuzzer": {"calls": 9, "kinds": {"Ping": []}, "identities": 2, "honest_failed": 0, "honest_calls": 3, "seed": 1}, "findings": [],
                   "nodes": {"ended": [], "rounds": {"node0": 4}, "seconds": 3600.0}, "torn": [], "banned_honest": {"node0": []}}
        for change, verdict in (({}, "met"), ({"findings": ["node0: runtime error"]}, "missed"), ({"torn": ["3"]}, "missed"),
                                ({"fuzzer": {**figures["fuzzer"], "honest_failed": 1}}, "missed"), ({"banned_honest": {"node0": ["x"]}}, "missed"),
                                ({"nodes": {**figures["nodes"], "seconds": 60.0}}, "measured")):
            run = self.new_run()
            targets_attacks.judge_fuzz(run, {**figures, **change}, 3600)
            self.assertEqual([c["verdict"] for c in run.claims], [verdict], change)

    def test_networks_with_changed_messages_are_judged_as_one(self):
        def network(seed, **more):
            return {"fuzzer": {"calls": 9, "kinds": {"Ping": [seed]}, "identities": 2, "honest_failed": 0, "honest_calls": 3, "seed": seed}, "torn": [],
                    "findings": [], "nodes": {"ended": [], "rounds": {"node0": 4 + seed}, "seconds": 1800.0}, "banned_honest": {"node0": []}, **more}
        for changes, verdict in (([{}, {}], "met"), ([{}, {"findings": ["node0: runtime error"]}], "missed"), ([{"banned_honest": {"node0": ["x"]}}, {}], "missed"),
                                 ([{}, {"fuzzer": {"honest_failed": None, "said": []}}], "missed"), ([{}], "measured")):
            run = self.new_run()
            whole = targets_attacks.whole_of_fuzz([network(seed, **change) for seed, change in enumerate(changes, 1)])
            targets_attacks.judge_fuzz(run, whole, 3600)
            self.assertEqual([c["verdict"] for c in run.claims], [verdict], changes)
        both = targets_attacks.whole_of_fuzz([network(1), network(2)])
        self.assertEqual((both["fuzzer"]["calls"], both["fuzzer"]["seed"], both["nodes"]["rounds"]), (18, "1, 2", {"node0": 5}))

    def test_failures_of_nodes_with_parts_are_judged_by_the_middle(self):
        def pair(ratio, **more):
            side = {"seconds": 600.0, "rounds": 20}
            return {"ratio": ratio, "micro_batch_ratio": ratio, "differ": 0, "anchors": 120, "away": 5.0, "share": 0.25, "clean": side,
                    "failures": {**side, "failures": [{"back": 9.0}]}, **more}
        for ratios, seconds, differ, verdicts in (([0.7, 0.86, 0.9], 1200, 0, ["met", "met"]), ([0.84, 0.84, 0.99], 1200, 0, ["missed", "met"]),
                                                  ([0.9], 1200, 0, ["measured", "met"]), ([0.9] * 3, 1200, 1, ["met", "missed"])):
            run = self.new_run()
            targets_pipeline.judge_failures(run, [pair(ratio, differ=differ) for ratio in ratios], seconds, seconds, 60)
            self.assertEqual([c["verdict"] for c in run.claims if c["gate"]], verdicts)
        self.assertEqual([targets_pipeline.outcome_of_parts(status, output) for status, output in (
            (0, '{"ratio": 1}'), (1, '{"differ": 1}'), (1, '{"error": "x"}'), (1, "Traceback"), (77, ""), (-9, ""))],
            ["passed", "missed", "failed", "failed", "skipped", "failed"])

    def test_growth_is_judged_by_its_losses(self):
        for difference, verdict in ((-9e-4, "met"), (1e-3, "met"), (1.1e-3, "missed"), (-1.1e-3, "missed")):
            run = self.new_run()
            targets_growth.judge_loss(run, {"kind": "dense", "before": 2.0, "after": 2.0 + difference, "difference": difference})
            self.assertEqual([c["verdict"] for c in run.claims], [verdict], difference)
        for last, verdict in ((1.7, "met"), (1.8, "missed"), (1.9, "missed")):
            run = self.new_run()
            targets_growth.judge_gain(run, {"grown": {"points": [[10, 2.0], [20, last]]}, "kept": {"points": [[11, 2.1], [20, 1.8]]}})
            self.assertEqual([c["verdict"] for c in run.claims], [verdict], last)

    def test_what_a_killed_node_was_at_while_the_model_changed(self):
        asked, anew, certified = growth_kills.ASKED + "larger model\n", "this node starts anew with it\n", "round 7 is certified with anchor 0a: 4 of 4\n"
        self.assertEqual([growth_kills.phase(log) for log in (certified, certified + asked + certified, asked + certified + anew, asked + anew + certified)],
                         ["before", "computes", "starts", "after"])
        change = {"to": 4, "size": "0", "sizes": ["1"] * 4, "corruptions": 0}
        self.assertEqual([growth_kills.good({**change, **more}) for more in ({}, {"size": "2"}, {"sizes": ["1", "0"]}, {"corruptions": 1})],
                         [True, False, False, False])

    def test_rounds_in_which_a_newcomer_is_registered(self):
        def block(*statements, **more):
            return {"statements": [{"kind": kind, "node": node} for kind, node in statements], **more}
        blocks = [block(), block(("register", "b")), block(result={"round": 1}), block(("register", "a"), ("vouch", "b")),
                  block(("vouch", "a"), result={"round": 2}), block(("away", "a"))]
        self.assertEqual(parts_newcomer.stated_in(blocks, "a"), {"register": 2, "vouch": 2, "away": 3})

    def test_newcomers_are_judged_by_the_slowest(self):
        for rounds, corruptions, verdicts in ((2, 0, ["met", "met"]), (3, 0, ["missed", "met"]), (2, 1, ["met", "missed"])):
            run = self.new_run()
            targets_pipeline.judge_newcomers(run, {"differ": 0, "newcomers": [
                {"rounds": of, "counted_seconds": 40.0, "computed_in": [4, 5], "corruptions": corruptions} for of in (1, rounds)]})
            self.assertEqual([c["verdict"] for c in run.claims], verdicts)

    def test_tokens_count_where_they_are_in_a_new_anchor(self):
        def close(number, *tokens):
            return {"time_ms": 0, "close": {"round": number, "contributions": [{"member": member, "tokens": of} for member, of in enumerate(tokens)]}}

        def result(number, at, *carried):
            return {"time_ms": at, "result": {"round": number, "rows": [{"row": row, "carried": row in carried} for row in (0, 1)]}}
        blocks = [close(1, 10, 20, 30, 40), result(1, 1000), close(2, 10, 20, 30, 40), result(2, 3000, 1), close(3, 10, 20, 30, 90), result(3, 5000)]
        part_of = {0: 1, 1: 1, 2: 2, 3: 2}
        contributors = {(1, 1): 2, (2, 1): 2, (1, 2): 2, (1, 3): 1, (2, 3): 2}
        results = parts_failures.counted_tokens(blocks, part_of, contributors)
        self.assertEqual(results, [(1000, 1, 50), (3000, 2, 15), (5000, 3, 65)])
        self.assertEqual(parts_failures.measured(results, 500, 4000), {"seconds": 4.0, "rounds": 2, "tokens": 80, "tokens_per_second": 20.0})

    def test_model_counts_what_holds_and_what_does_not(self):
        run = self.new_run()
        lines = "equal-4  24,585 states  holds  (34.3 s)\none-vote  1,084 states  agreement  (4.1 s)"
        real = run.part
        run.part = lambda name, command, read, **more: real(name, ["printf", lines], read)
        with unittest.mock.patch.object(builds, "packages", lambda *sections: None):
            targets_checks.model(run)
        self.assertEqual([c["value"] for c in run.claims], ["1 of 1; 24,585 states", "1 of 1; 1,084 states"])

    def test_one_program_needs_no_other_to_be_built(self):
        def entry(name, program):
            properties = [{"name": "LABELS", "value": ["ci"]}]
            return builds.Test({"name": name, "properties": properties, "command": [program] if program else []}, "tests/sim")
        found = {test.name: test for test in (entry("test_a", "/build/sim_tests"), entry("test_b", "/build/unit_net"), entry("test_c", None))}
        with unittest.mock.patch.object(builds, "tests", lambda folder: found):
            self.assertEqual([test.name for test in targets_checks.ci_tests("build", program="sim_tests")], ["test_a"])
            with self.assertRaisesRegex(runs.Broken, "not built: test_c"):
                targets_checks.ci_tests("build")
            with self.assertRaisesRegex(runs.Broken, "no ci test of a program other"):
                targets_checks.ci_tests("build", program="other")

    def test_releases_that_differ(self):
        one, other = self.root / "one", self.root / "other"
        for folder, sums in ((one, "1  a.deb\n2  b.deb\n"), (other, "1  a.deb\n3  b.deb\n4  c.deb\n")):
            folder.mkdir()
            (folder / "SHA256SUMS").write_text(sums)
        self.assertEqual(["b.deb", "c.deb"], targets_packages.differing_files(one, other))
        self.assertEqual([], targets_packages.differing_files(one, one))

    def test_readers(self):
        self.assertEqual(targets_checks.fuzz_figures("stat::number_of_executed_units: 1000000\nstat::average_exec_per_sec:     416\n")["runs"], 1000000)
        self.assertTrue(targets_checks.FINDING.search("a.cpp:3:5: warning: bad [bugprone-x]"))
        self.assertFalse(targets_checks.FINDING.search("Suppressed 3 warnings\nStack dump:\n"))
        self.assertTrue(targets_checks.NOT_INSTRUMENTED.search("libgrpc++.so.1.51 => /usr/lib/libgrpc++.so.1.51 (0x0)"))
        self.assertFalse(targets_checks.NOT_INSTRUMENTED.search("libQt6Core.so.6 => /usr/lib/libQt6Core.so.6"))
        self.assertEqual(targets_product.timings("quickstart: 909 s, exit 0\nelse\n"), {"quickstart": 909})
        self.assertIn("value 1", same_results.first_difference([1, 2], [1, 3]))


if __name__ == "__main__":
    os.environ.pop("GIT_DIR", None)
    unittest.main()
