#!/bin/sh
# Long checks, one at a time:   sh tests/long.sh NAME [ARGUMENT]      sh tests/long.sh --list
# Each is resumable: what it has finished stands under build/long/NAME and is not done again (--fresh NAME starts over).
# Each ends with an entry to paste into tests/MEASUREMENTS.md: command, commit, machine, figures. It changes no tracked file.
set -eu
ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT"
. installers/debian.sh
BIN=$ROOT/build/release/bin
NODE=$BIN/neuroshardd
MILLION=${FUZZ_RUNS:-1000000}

list() {
  cat <<'TXT'
asan-ubsan      all ci tests under the address and undefined-behaviour sanitizers
tsan            all ci tests that do not need Torch under the thread sanitizer
fuzz [TARGET]   a million runs of every fuzz target, or of one (FUZZ_RUNS changes the number)
tidy            clang-tidy over every unit that does not see Torch
kill            50 kill -9 at random moments; the losses must equal an uninterrupted run's
memory          the memory limit at three values, under a watchdog and, where possible, in a cgroup
shakespeare     the small nanoGPT setting on Tiny Shakespeare, dense and mixture of experts, 2000 steps
partition       the partitioner: 10,000 graphs against brute force, public and generated graphs, cost by size
nat-product     real nodes in eight kinds of home behind real routers, and routers that restart (root)
dht             lookups in the hash table at 100 to 10,000 simulated members, with loss, churn and liars
bench           neuroshardd bench, row by row (half an hour, most of it the row checkpoint; BENCH_ROWS: some rows only)
aggregation     robust aggregation of 8 deltas of 10M values beside the plain mean and memcpy, interleaved
attacks         liars in outer rounds: every attack, dense and top-k deltas, three seeds, all rules (half an hour)
bench-peers     training beside a well-configured PyTorch, interleaved, with the losses of both (BENCH_ROWS: some rows only; BENCH_OPTIONS: of compare.py, as --coretype Zen)
codecs          delta codecs beside memcpy and torch.topk, interleaved: time and bytes per value
rounds          outer rounds on the simulated network: every fault and scenario with ten and twenty times the seeds
rounds-scale    what outer rounds cost by the number of nodes, 8 to 10,000 (SIZES: some only; 10,000 takes 11 minutes of a processor and 9 GB)
waiting         share of time that training waits for rounds at 100 and 10 Mbit/s, plain and delayed-1 (ten minutes)
diloco          low-communication training on Tiny Shakespeare: workers, outer steps, codecs, against data-parallel, 160 rounds (hours; DILOCO_STEPS, DILOCO_PERIOD)
diloco-processes  the same with real processes over loopback sockets: 4 and 8 nodes, a slow one, two liars of 8, beside one process, 160 rounds (an hour; DILOCO_ROUNDS)
bf16-loss       what bf16 does to the loss after 100 steps: several texts and first weights, ours and PyTorch (needs bf16 units)
app             the desktop app with the real core (test_app_*), each ten times beside a busy processor
screenshots     every page of the app as PNG: light, dark, 100 and 200 %, normal, narrow, English, pseudo-locale, mirrored; and dialogs, set-up, an empty node
gui             the window's budgets under Xvfb: start, page switch, longest event, idle, memory, 10,000 log lines/s
bare-debian     both commands of the README in a bare Debian 12 made by debootstrap (root)
TXT
}

# once STAMP COMMAND…: runs the command unless the stamp exists; keeps its output beside it.
once() {
  stamp=$STATE/$1; shift
  if [ -e "$stamp" ]; then echo "(done before: $(basename "$stamp"))"; return 0; fi
  if "$@" >"$stamp.log" 2>&1; then mv "$stamp.log" "$stamp"; else
    tail -n 60 "$stamp.log"; die "$NAME: $(basename "$stamp") failed; the whole output is in $stamp.log"; fi
}

# A command whose output should be seen while it runs.
loud_once() {
  stamp=$STATE/$1; shift
  if [ -e "$stamp" ]; then echo "(done before: $(basename "$stamp"))"; return 0; fi
  "$@" || die "$NAME: failed: $*"
  date -u +%FT%TZ >"$stamp"
}

entry_head() {
  say "Entry for tests/MEASUREMENTS.md"
  commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
  git diff --quiet HEAD 2>/dev/null || commit="$commit + local changes"
  model=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
  printf '### %s, %s\n\n- Command: `sh tests/long.sh %s`\n- Commit: %s\n- Machine: %s, %s cores, %s GB, %s\n' \
    "$NAME" "$(date -u +%F)" "$NAME${ARGUMENT:+ $ARGUMENT}" "$commit" "${model:-unknown processor}" "$(nproc)" \
    "$(awk '/^MemTotal/ { printf "%.0f", $2 / 1048576 }' /proc/meminfo)" \
    "$(. /etc/os-release 2>/dev/null; echo "${PRETTY_NAME:-unknown system}")"
}

build() {  # build PRESET [cmake options]; all targets
  preset=$1; shift
  mkdir -p build
  cmake --preset "$preset" "$@" >"$STATE/configure.log" 2>&1 || { cat "$STATE/configure.log"; die "configuring $preset failed"; }
  cmake --build --preset "$preset" --parallel "$(build_jobs)"
}

build_release() { build ci -DNS_BUILD_TESTS=ON; }

ctest_summary() { sed -n '/tests passed\|tests failed\|Total Test time/p' "$1" | tr '\n' ' '; }

run_sanitized() {  # PRESET ENVIRONMENT-ASSIGNMENTS CTEST-OPTIONS…
  preset=$1; environment=$2; shift 2
  install_packages build test
  build "$preset" -DNS_BUILD_TESTS=ON "$@"
  # Tests that passed stay passed: ctest keeps the list of failures, so a second start runs only those.
  again=
  [ ! -e "$STATE/started" ] || again=--rerun-failed
  : >"$STATE/started"
  status=0
  # shellcheck disable=SC2086
  env $environment ctest --test-dir "build/$preset" -L '^ci$' -E '^lint' --timeout 900 --output-on-failure $again \
    >"$STATE/ctest.log" 2>&1 || status=$?
  tail -n 30 "$STATE/ctest.log"
  entry_head
  echo "- Result: $(ctest_summary "$STATE/ctest.log")"
  return $status
}

target_asan_ubsan() {
  # Torch and its many libraries keep allocations until exit: leaks are looked for in our Torch-free programs by `fuzz`.
  run_sanitized asan-ubsan "ASAN_OPTIONS=detect_leaks=0:alloc_dealloc_mismatch=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1"
}

target_tsan() {
  # The OpenMP runtime is not instrumented and would drown real findings: the module stays out, its tests too.
  run_sanitized tsan "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1" -DNS_COMPUTE_MODULE=OFF
}

target_fuzz() {
  install_packages build long
  cmake --preset fuzz >"$STATE/configure.log" 2>&1 || { cat "$STATE/configure.log"; die "configuring failed"; }
  cmake --build --preset fuzz --parallel "$(build_jobs)" --target fuzzers
  for program in build/fuzz/fuzz/fuzz_*; do
    [ -x "$program" ] || continue
    target=$(basename "$program" | sed 's/^fuzz_//')
    [ -z "$ARGUMENT" ] || [ "$ARGUMENT" = "$target" ] || continue
    mkdir -p "$STATE/corpus/$target" "$STATE/artifacts"
    echo "$target: $MILLION runs"
    once "$target-$MILLION" nice "$program" -runs="$MILLION" -seed=1 -max_len=65536 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="$STATE/artifacts/$target-" "$STATE/corpus/$target" "tests/fuzz/corpus/$target"
  done
  entry_head
  for log in "$STATE"/*-"$MILLION"; do
    [ -e "$log" ] || continue
    echo "- $(basename "$log"): $(sed -n 's/^stat::number_of_executed_units: */runs /p; s/^stat::average_exec_per_sec: */, per second /p; s/^stat::peak_rss_mb: */, peak MB /p' "$log" | tr -d '\n'), no finding"
  done
}

target_tidy() {
  install_packages build test long
  cmake --preset ci -DNS_BUILD_TESTS=ON >"$STATE/configure.log" 2>&1 || { cat "$STATE/configure.log"; die "configuring failed"; }
  for unit in $(find core app -name '*.cpp' ! -path 'core/model/*' | sort); do
    # A finished unit is looked at again when it changes.
    stamp=$(printf '%s' "$unit" | tr '/' '_')-$(cksum <"$unit" | cut -d' ' -f1)
    if [ ! -e "$STATE/$stamp" ]; then
      nice clang-tidy --quiet -p build/release "$unit" >"$STATE/$stamp.new" 2>/dev/null || true
      mv "$STATE/$stamp.new" "$STATE/$stamp"
    fi
    cat "$STATE/$stamp"
  done >"$STATE/report.txt"
  findings=$(grep -hE '(warning|error): .*\[' "$STATE/report.txt" | sort -u)
  printf '%s\n' "$findings"
  entry_head
  echo "- Units: $(find core app -name '*.cpp' ! -path 'core/model/*' | wc -l), findings: $(printf '%s' "$findings" | grep -c . || true)"
  [ -z "$findings" ]
}

# A functional test of tests/functional, at full length. The program prints a line "MEASURED ..." for each figure.
run_functional() {
  install_packages build test
  build_release
  status=0
  # Readable by a person while it runs, and kept.
  { env NS_LONG=1 NS_BIN_DIR="$BIN" NS_SOURCE_DIR="$ROOT" NS_SHARED_DATA="$ROOT/../shared/data" \
      "build/release/tests/$1" -maxwarnings 0 || echo "exit $?" >"$STATE/failed"; } 2>&1 | tee "$STATE/$1.log"
  if [ -e "$STATE/failed" ]; then rm -f "$STATE/failed"; status=1; fi
  entry_head
  sed -n 's/^.*MEASURED /- /p' "$STATE/$1.log"
  echo "- $(grep '^Totals' "$STATE/$1.log" | tail -n 1)"
  return $status
}

target_kill() { run_functional test_kill_resume; }
target_memory() { run_functional test_memory_limit; }

# study NAME OPTIONS…: a profile, its run in the foreground and the last evaluation over the whole held-out split.
study() {
  study=$1; shift
  dir=$STATE/$study
  mkdir -p "$dir"
  if [ ! -e "$dir/profile.json" ]; then
    "$NODE" network create --from solo --name "$study" --layers 4 --hidden 128 --head-dim 32 --vocab 266 --sequence 64 \
      --batch-tokens 768 --peak-lr 1e-3 --warmup 100 --decay-steps 2000 --out "$dir/profile.json" "$@"
  fi
  # Goes on from its checkpoint when it was interrupted. Each evaluation covers the whole held-out tenth.
  "$NODE" train --text "$TEXT" --data-dir "$dir/data" --profile "$dir/profile.json" --until-step 2000 --json \
    --eval-interval-steps 250 --eval-tokens 1000000000 >>"$dir/steps.jsonl"
}

study_result() {
  python3 - "$STATE/$1/steps.jsonl" <<'PY'
import json, math, sys
rows = [json.loads(l) for l in open(sys.argv[1]) if l.startswith("{")]
steps = [r for r in rows if "loss" in r]
evaluated = [r for r in rows if r.get("val_loss") is not None]
last = evaluated[-1]
best = min(evaluated, key=lambda r: r["val_loss"])
print(f"{last['val_loss']:.4f}")
print(f"final val loss {last['val_loss']:.4f} nats per character = {last['val_loss'] / math.log(2):.4f} bits per byte at step "
      f"{last['step']}; best seen {best['val_loss']:.4f} at {best['step']}; training loss {steps[-1]['loss']:.4f}; "
      f"{sorted(r['tokens_per_s'] for r in steps)[len(steps) // 2]:.0f} tokens/s median")
PY
}

target_shakespeare() {
  install_packages build test
  TEXT=$ROOT/../shared/data/tinyshakespeare.txt
  if [ ! -e "$TEXT" ]; then echo "skipped: $TEXT is not here"; return 0; fi
  build_release
  # Vocabulary 266 = the ten reserved ids and the bytes: nats per token are nats per character.
  study dense --experts 1 --experts-per-token 1 --ffn-percent 300
  study moe --experts 8 --experts-per-token 2 --ffn-percent 150
  entry_head
  dense=$(study_result dense | head -n 1); moe=$(study_result moe | head -n 1)
  echo "- Dense: $(study_result dense | tail -n 1)"
  echo "- MoE at equal active parameters: $(study_result moe | tail -n 1)"
  echo "- Gate: dense <= 1.88 and MoE <= dense"
  awk -v d="$dense" -v m="$moe" 'BEGIN { ok = d <= 1.88 && m <= d; print ok ? "- Passed" : "- FAILED"; exit !ok }'
}

target_partition() {
  install_packages build test
  build_release
  measure=build/release/tests/measure_partition
  once oracle env NS_LONG=1 build/release/tests/test_partition_oracle
  [ ! -d ../shared/data/mtpp ] || once public "$measure" public ../shared/data/mtpp
  once families "$measure" families 0.9
  once layered-models "$measure" layered-models 0.9
  once curve "$measure" curve
  entry_head
  echo "- Brute force: $(grep '^Totals' "$STATE/oracle" | tail -n 1)"
  for part in public families layered-models; do
    [ ! -e "$STATE/$part" ] || sed -n 's/^SUMMARY /- /p' "$STATE/$part"
  done
  for part in public curve; do
    [ ! -e "$STATE/$part" ] || { echo; grep -v '^SUMMARY' "$STATE/$part" | sed 's/^/    /'; }
  done
}

target_dht() {
  install_packages build test
  build_release
  measure=build/release/tests/measure_dht
  for members in 100 1000 10000; do
    once "quiet-$members" "$measure" --members $members
    once "loss-$members" "$measure" --members $members --loss 0.2 --churn 0.3
    for attack in poison stale invent; do
      once "$attack-$members" "$measure" --members $members --hostile 0.2 --attack $attack
    done
    once "single-path-$members" "$measure" --members $members --hostile 0.2 --attack poison --single-path
  done
  entry_head
  python3 - "$STATE" <<'PY'
import json, math, pathlib, sys
failed = False
for path in sorted(pathlib.Path(sys.argv[1]).iterdir(), key=lambda p: (p.name.rsplit("-", 1)[0], p.name)):
    row = json.loads(path.read_text().splitlines()[-1])
    lookup, name = row["lookup"], path.name
    limit = math.log2(row["members"]) / 2 + 2
    control = row["single_path"]
    gate = 0.999 if row["hostile"] == 0 else 0.99
    ok = lookup["right"] < gate if control else lookup["right"] >= gate and lookup["hops"] <= limit and lookup["messages"] <= 30
    failed |= not ok
    print(f"- {name}: {100 * lookup['right']:.2f} % right, {lookup['wrong']} wrong, {lookup['missing']} missing of {lookup['lookups']}; "
          f"{lookup['messages']:.1f} messages (95 %: {lookup['messages_95']:.0f}), {lookup['hops']:.2f} hops (limit {limit:.1f}); "
          f"{row['wall_seconds']:.0f} s, {row['peak_mib']} MiB{'; control: has to fail' if control else ''}{'' if ok else ' MISSED'}")
print("- FAILED" if failed else "- Passed")
sys.exit(failed)
PY
}

target_aggregation() {
  install_packages build test
  build_release
  status=0
  build/release/tests/bench_aggregation >"$STATE/table" || status=$?
  for codec in int8 topk; do build/release/tests/bench_outer_step 8 10 5 "$codec" >>"$STATE/table"; done
  [ "$status" = 0 ] || [ "$status" = 2 ] || die "aggregation: the bench failed"
  entry_head
  echo
  cat "$STATE/table"
  return $status
}

target_attacks() {
  install_packages build test
  build_release
  status=0
  # Each finished seed is a file: a second start goes on.
  for codec in dense top-k; do
    for seed in 1 2 3; do
      [ -e "$STATE/$codec-$seed" ] && continue
      build/release/tests/measure_attacks "$codec" --rules "$seed" >"$STATE/$codec-$seed.log" || [ $? = 1 ] \
        || die "attacks: $codec, seed $seed failed"
      mv "$STATE/$codec-$seed.log" "$STATE/$codec-$seed"
    done
  done
  entry_head
  for part in "$STATE"/dense-? "$STATE"/top-k-?; do
    sed -n "s/^SUMMARY /- seed ${part##*-}: /p" "$part"
    if grep -q MISSED "$part"; then status=1; fi
  done
  return $status
}

# row NAME COMMAND…: measures a row unless that was done. What proves nothing for want of a steady machine is printed, but measured
# again by the next start. False when it failed.
row() {
  done_row=$STATE/row-$1 unsteady=$STATE/unsteady-$1; shift
  if [ -e "$done_row" ]; then echo "(done before: $(basename "$done_row"))"; return 0; fi
  # Other rows may have been measured at other times.
  echo "$(date -u +%FT%TZ), commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)" >"$unsteady.log"
  if "$@" >>"$unsteady.log" 2>&1; then failed=0; else failed=1; fi
  cat "$unsteady.log"
  if [ "$failed" = 0 ] && ! grep -q 'inconclusive' "$unsteady.log"; then rm -f "$unsteady"; mv "$unsteady.log" "$done_row"
  else mv "$unsteady.log" "$unsteady"; fi
  return $failed
}

# The entry of all rows measured so far, given in order.
rows_entry() {
  entry_head
  for name in "$@"; do
    for file in "$STATE/row-$name" "$STATE/unsteady-$name"; do
      [ ! -e "$file" ] || { echo; sed 's/^/    /' "$file"; }
    done
  done
}

target_bench() {
  install_packages build test
  build_release
  status=0
  rows=${BENCH_ROWS:-$("$NODE" bench --list | cut -d' ' -f1)}
  for name in $rows; do
    seconds=30
    [ "$name" != checkpoint ] || seconds=1200  # a round is two minutes
    row "$name" "$NODE" bench --rows "$name" --seconds "$seconds" || status=1
  done
  # shellcheck disable=SC2086
  rows_entry $rows
  return $status
}

target_bench_peers() {
  install_packages build test long
  build_release
  status=0
  rows=${BENCH_ROWS:-nanogpt dense25m solo moe-layer adamw}
  for name in $rows; do
    # shellcheck disable=SC2086
    row "$name" python3 tests/bench/compare.py --ours build/release/tests/bench_ours_server --json "$STATE/$name.json" --rows "$name" \
      ${BENCH_OPTIONS:-} || status=1
  done
  # shellcheck disable=SC2086
  rows_entry $rows
  return $status
}

target_waiting() {
  install_packages build test
  build_release
  # Each size is a file: a second start goes on.
  for members in 4 8; do once "members-$members" build/release/tests/measure_waiting --members "$members"; done
  entry_head
  for members in 4 8; do echo; cat "$STATE/members-$members"; done
}

target_rounds() {
  install_packages build test
  build_release
  for part in rounds_sim rounds_scenarios rounds_sync rounds_fragments; do once "$part" env NS_LONG=1 QTEST_FUNCTION_TIMEOUT=7200000 "build/release/tests/test_$part"; done
  entry_head
  for part in rounds_sim rounds_scenarios rounds_sync rounds_fragments; do echo "- $part: $(grep '^Totals' "$STATE/$part")"; done
}

target_rounds_scale() {
  install_packages build test
  build_release
  # Each size is a file: a second start goes on.
  # shellcheck disable=SC2086
  python3 tests/bench/rounds_scale.py "$NODE" "$STATE/runs" ${SIZES:-} | tee "$STATE/table.md"
  entry_head
  cat "$STATE/table.md"
}

target_diloco() {
  install_packages build test
  TEXT=$ROOT/../shared/data/tinyshakespeare.txt
  if [ ! -e "$TEXT" ]; then echo "skipped: $TEXT is not here"; return 0; fi
  build_release
  # 160 rounds: what rounds cost is time, and after 80 the gates are not reached yet (MEASUREMENTS.md).
  steps=${DILOCO_STEPS:-4000}; period=${DILOCO_PERIOD:-25}
  # Each finished run is a file: a second start goes on.
  python3 tests/bench/diloco_study.py build/release/tests/diloco_study "$TEXT" "$STATE/$steps-$period" --steps "$steps" \
    --period "$period" --jobs "$(nproc)" >"$STATE/table.md"
  entry_head
  cat "$STATE/table.md"
}

target_diloco_processes() {
  install_packages build test
  TEXT=$ROOT/../shared/data/tinyshakespeare.txt
  if [ ! -e "$TEXT" ]; then echo "skipped: $TEXT is not here"; return 0; fi
  build_release
  # Each finished run is a file: a second start goes on. The outer rate 0.7 itself, not the table by contributors.
  common="--rounds ${DILOCO_ROUNDS:-160} --outer-lr 0.7001"
  for run in "alone-4 --workers 4 --alone --lr 2e-3" "rounds-4 --workers 4" "rounds-4-slow --workers 4 --slow 1" \
      "rounds-4-killed --workers 4 --kill 10" \
      "rounds-8 --workers 8 --batch 6" "liars-ipm --workers 8 --batch 6 --liars 2 --attack inner-product" \
      "liars-alie --workers 8 --batch 6 --liars 2 --attack alie"; do
    # shellcheck disable=SC2086
    set -- $run $common; name=$1; shift
    [ -e "$STATE/$name.json" ] && continue
    rm -rf "${STATE:?}/$name"
    python3 tests/bench/diloco_processes.py "$NODE" "$TEXT" "$STATE/$name" "$@" >"$STATE/$name.part"
    mv "$STATE/$name.part" "$STATE/$name.json"
  done
  entry_head
  for run in "$STATE"/*.json; do echo "- $(basename "$run" .json): $(cat "$run")"; done
}

target_codecs() {
  install_packages build test
  build_release
  status=0
  { python3 tests/bench/compare_codecs.py --ours build/release/tests/bench_codec_server --json "$STATE/codecs.json" \
      || echo "exit $?" >"$STATE/failed"; } 2>&1 | tee "$STATE/codecs.log"
  if [ -e "$STATE/failed" ]; then rm -f "$STATE/failed"; status=1; fi
  entry_head
  cat "$STATE/codecs.log"
  return $status
}

target_bf16_loss() {
  if ! grep -qE '^flags.* (avx512_bf16|amx_bf16)( |$)' /proc/cpuinfo; then
    die "bf16-loss: this processor has no bf16 units (AVX512_BF16 or AMX), so the study can't run here"
  fi
  install_packages build test long
  build_release
  # Each finished run is a file: a second start goes on.
  status=0
  { python3 tests/bench/loss_study.py --ours build/release/tests/bench_ours_server --state "$STATE/runs" \
      || echo "exit $?" >"$STATE/failed"; } 2>&1 | tee "$STATE/study.log"
  if [ -e "$STATE/failed" ]; then rm -f "$STATE/failed"; status=1; fi
  entry_head
  sed -n '/^[a-z0-9]*: /,$p' "$STATE/study.log" | sed 's/^/    /'
  return $status
}

target_nat_product() {
  install_packages build test
  build_release
  status=0
  NS_NAT_FULL=1 QTEST_FUNCTION_TIMEOUT=1200000 NS_BIN_DIR=$BIN build/release/tests/test_nat_product >"$STATE/output" 2>&1 || status=1
  tail -n 40 "$STATE/output"
  entry_head
  return $status
}

target_app() {
  install_packages build test
  build_release
  nice sh -c 'while :; do :; done' & burner=$!
  trap 'kill $burner' EXIT INT TERM
  status=0
  ctest --test-dir build/release -R '^test_app_' --repeat until-fail:10 --output-on-failure || status=1
  kill $burner; trap - EXIT INT TERM
  entry_head
  return $status
}

target_screenshots() {
  install_packages build test
  build_release
  for language in en pseudo pseudo-rtl; do
    for scale in 1 2; do
      once "$language-$scale" env QT_QPA_PLATFORM=offscreen "QT_SCALE_FACTOR=$scale" TZ=UTC DBUS_SESSION_BUS_ADDRESS=disabled: \
        build/release/tests/ns_screenshots "$STATE/pictures" "$language" build/release/bin/neuroshardd
    done
  done
  say "$(find "$STATE/pictures" -name '*.png' | wc -l) pictures are in build/long/screenshots/pictures: look at them"
}

target_gui() {
  install_packages build test
  build_release
  status=0
  { env -u DBUS_SESSION_BUS_ADDRESS QT_QPA_PLATFORM=xcb xvfb-run -a -s "-screen 0 1600x1000x24" \
      build/release/tests/bench_gui --json "$STATE/gui.json" || echo "exit $?" >"$STATE/failed"; } 2>&1 | tee "$STATE/gui.log"
  if [ -e "$STATE/failed" ]; then rm -f "$STATE/failed"; status=1; fi
  entry_head
  sed 's/^/    /' "$STATE/gui.log"
  return $status
}

target_bare_debian() {
  [ "$(id -u)" = 0 ] || die "bare-debian needs root (debootstrap, chroot)"
  install_packages long
  sh tests/bare_debian.sh "$STATE" "$ROOT"
  entry_head
  sed 's/^/- /' "$STATE/timings"
}

[ $# -ge 1 ] || { echo "usage: sh tests/long.sh NAME [ARGUMENT]; names:"; list; exit 64; }
case $1 in
  --list) list; exit 0 ;;
  --fresh) [ $# -ge 2 ] || die "--fresh needs a name"; rm -rf "build/long/$2"; shift ;;
esac
NAME=$1
ARGUMENT=${2:-}
list | awk '{ print $1 }' | grep -qx "$NAME" || { echo "error: no target $NAME; sh tests/long.sh --list" >&2; exit 64; }
STATE=$ROOT/build/long/$NAME
mkdir -p "$STATE"
"target_$(echo "$NAME" | tr - _)"
