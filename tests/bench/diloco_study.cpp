// One run of the study of low-communication training (tests/bench/diloco_study.py makes the table): K workers
// with the real compute module train on characters of a text, H inner steps a round, and an outer step joins
// their deltas as core/outer does it. All workers take turns in this process; what a round would send is
// encoded and decoded as for a peer.
//
//   diloco_study --text FILE --mode diloco|data-parallel [--workers K] [--steps N] [--period H] …
//
// --sync as a profile has it: with delayed-1 and fragments=P a new anchor comes --delay steps after the
// deltas that it is made of, and what was trained meanwhile goes along onto it. With --mix the worker's own
// weights keep that share there instead (Streaming DiLoCo's alpha). With --drop a worker's contribution
// misses its round that often and counts in none, as docs/protocol/chain.md has it; its next one starts from
// the round's anchor. With --carry the worker goes on from the anchor with that work on top, so that it is in
// its next contribution.
//
// data-parallel: one worker with K times the batch. "One worker with a Kth of the tokens" is data-parallel
// with --workers 1, plain averaging is diloco with --outer-lr 1 --outer-mu 0. Prints one JSON object: the
// loss over the whole validation text (the last tenth) at the end and on the way, of the first worker's
// weights and of the anchors, and the bytes of all payloads.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/bench/diloco_outer.h"
#include "tests/bench/diloco_worker.h"

namespace neuroshard::bench {
namespace {

// Of the first worker's weights, and of the anchors, each fragment's own.
Expected<nlohmann::ordered_json> look(Worker& worker, const Outer* outer, std::uint32_t step) {
  NS_ASSIGN_OR_RETURN(const double loss, worker.held_out_loss());
  nlohmann::ordered_json seen{{"step", step}, {"loss", loss}};
  if (outer == nullptr) return seen;
  std::vector<float> own;
  worker.copy_weights(own);
  worker.set_weights(outer->anchor());
  NS_ASSIGN_OR_RETURN(const double anchor_loss, worker.held_out_loss());
  worker.set_weights(own);
  seen["anchor_loss"] = anchor_loss;
  return seen;
}

Expected<nlohmann::ordered_json> run(const Flags& flags) {
  NS_ASSIGN_OR_RETURN(const Characters text, read_characters(flags.text));
  if (text.held_out.size() < 2 * flags.sequence)
    return make_error(ErrorCode::InvalidArgument, flags.text + " is too short");
  NS_ASSIGN_OR_RETURN(const outer::Codec codec, outer::codec_from_name(flags.codec));
  const SystemClock clock;
  NullLogger logger;
  compute::ModuleOptions module_options;
  module_options.threads = flags.threads;
  NS_ASSIGN_OR_RETURN(const compute::LoadedModule loaded,
                      compute::load_module("cpu", module_options, logger));
  const bool rounds = flags.mode == "diloco";
  const std::uint32_t batch = rounds ? flags.batch : flags.batch * flags.workers;
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::uint32_t i = 0; i < (rounds ? flags.workers : 1); ++i) {
    NS_ASSIGN_OR_RETURN(auto worker, Worker::create(loaded, flags, text, i, batch, clock, logger));
    workers.push_back(std::move(worker));
  }
  const auto sync = rounds::sync_choice(flags.sync);
  const bool late = sync && sync->each != rounds::RoundSync::Plain;
  if (!sync || (late && flags.delay >= flags.period) || sync->fragments > flags.period)
    return make_error(ErrorCode::InvalidArgument,
                      "--sync is plain, delayed-1 or fragments=P, --delay and P less than --period");
  Outer outer(flags, *sync, codec, *workers[0]);
  nlohmann::ordered_json curve = nlohmann::ordered_json::array();
  const std::uint32_t every = std::max(1u, flags.steps / std::max(1u, flags.evaluations));
  for (std::uint32_t step = 1; step <= flags.steps; ++step) {
    for (std::size_t i = 0; i < workers.size(); ++i)
      // A slow worker does a quarter of the steps and sends what it has.
      if (!rounds || i >= flags.slow || step % 4 == 0) NS_RETURN_IF_ERROR(workers[i]->step(step));
    if (rounds) NS_RETURN_IF_ERROR(outer.stepped(step, workers));
    if (step % every == 0 || step == flags.steps) {
      NS_ASSIGN_OR_RETURN(auto seen, look(*workers[0], rounds ? &outer : nullptr, step));
      curve.push_back(std::move(seen));
    }
  }
  std::uint64_t tokens = 0;
  for (const auto& worker : workers) tokens += worker->tokens();
  nlohmann::ordered_json result{
      {"loss", curve.back()["loss"]},
      {"parameters", workers[0]->parameters()},
      {"tokens", tokens},
      {"rounds", outer.rounds()},
      {"bytes_per_parameter", static_cast<double>(outer.payload_bytes()) /
                                  static_cast<double>(std::max<std::uint64_t>(1, outer.payload_values()))},
      {"curve", curve}};
  if (flags.drop > 0) result["dropped"] = outer.dropped();
  if (rounds) result["anchor_loss"] = curve.back()["anchor_loss"];
  return result;
}

}  // namespace
}  // namespace neuroshard::bench

int main(int argc, char** argv) {
  using namespace neuroshard::bench;
  Flags flags;
  CLI::App app("One run of the study of low-communication training");
  app.add_option("--text", flags.text)->required();
  app.add_option("--mode", flags.mode)->check(CLI::IsMember({"diloco", "data-parallel"}));
  app.add_option("--workers", flags.workers)->check(CLI::Range(1, 64));
  app.add_option("--steps", flags.steps, "inner steps of a worker")->check(CLI::Range(1, 10000000));
  app.add_option("--period", flags.period, "inner steps between two rounds")->check(CLI::Range(1, 1000000));
  app.add_option("--batch", flags.batch, "sequences of a worker and step")->check(CLI::Range(1, 4096));
  app.add_option("--sequence", flags.sequence)->check(CLI::Range(8, 1024));
  app.add_option("--layers", flags.layers)->check(CLI::Range(1, 64));
  app.add_option("--hidden", flags.hidden, "a multiple of 32")->check(CLI::Range(32, 4096));
  app.add_option("--kv-heads", flags.kv_heads, "a divisor of hidden / 32; 0 = as many as query heads");
  app.add_option("--ffn", flags.ffn, "width of the feed-forward part; 0 = 8/3 of hidden");
  app.add_option("--lr", flags.lr);
  app.add_option("--warmup", flags.warmup, "steps until the learning rate is reached");
  app.add_option("--final-rate", flags.final_rate, "of the learning rate, at the end of its cosine");
  app.add_option("--outer-lr", flags.outer_lr);
  app.add_option("--outer-mu", flags.outer_mu);
  app.add_option("--codec", flags.codec);
  app.add_option("--sync", flags.sync, "plain, delayed-1 or fragments=P");
  app.add_option("--delay", flags.delay, "steps from the deltas until their anchor comes; not with plain");
  app.add_option("--mix", flags.mix,
                 "share of a worker's own weights in those that it goes on from; not with plain")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--k", flags.k, "values of each 4096 that topk keeps");
  app.add_option("--beta", flags.beta, "of the error feedback; 0 = off");
  app.add_option("--dense-rounds", flags.dense_rounds, "first rounds in int8, of the sparse codecs");
  app.add_option("--drop", flags.drop, "share of contributions that miss their round")
      ->check(CLI::Range(0.0, 1.0));
  app.add_flag("--carry", flags.carry, "what missed its round is in the next contribution");
  app.add_option("--slow", flags.slow, "workers that are four times slower");
  app.add_option("--evaluations", flags.evaluations, "on the way");
  app.add_option("--seed", flags.seed);
  app.add_option("--threads", flags.threads)->check(CLI::Range(1, 1024));
  CLI11_PARSE(app, argc, argv);
  const auto result = run(flags);
  if (!result.ok()) {
    std::fprintf(stderr, "error: %s\n", result.error().describe().c_str());
    return 1;
  }
  std::printf("%s\n", result->dump().c_str());
  return 0;
}
