// One run of the study of low-communication training (tests/bench/diloco_study.py makes the table): K workers
// with the real compute module train on characters of a text, H inner steps a round, and an outer step joins
// their deltas as core/outer does it. All workers take turns in this process; what a round would send is
// encoded and decoded as for a peer.
//
//   diloco_study --text FILE --mode diloco|data-parallel [--workers K] [--steps N] [--period H] …
//
// data-parallel: one worker with K times the batch. "One worker with a Kth of the tokens" is data-parallel
// with --workers 1, plain averaging is diloco with --outer-lr 1 --outer-mu 0. Prints one JSON object: the
// loss over the whole validation text (the last tenth) at the end and on the way, and the bytes of all
// payloads.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/rng.h"
#include "core/compute/module.h"
#include "core/outer/aggregate.h"
#include "core/outer/codec.h"
#include "core/outer/error_feedback.h"
#include "core/outer/outer_optimizer.h"
#include "core/train/evaluate.h"
#include "core/train/inner_loop.h"
#include "core/train/schedule.h"

namespace neuroshard::bench {
namespace {

struct Flags {
  std::string text, mode = "diloco", codec = "fp32";
  std::uint32_t workers = 4, steps = 2000, period = 25, batch = 12, sequence = 64, layers = 4, hidden = 128;
  std::uint32_t evaluations = 4, slow = 0, dense_rounds = 0, threads = 1;
  std::uint32_t warmup = 20, kv_heads = 0, ffn = 0;
  double lr = 2e-3, final_rate = 0.1, outer_lr = 0.7, outer_mu = 0.9, beta = 0.95;
  std::uint16_t k = 64;
  std::uint64_t seed = 1;
};

// The text as numbers of its distinct characters; nine tenths to train on.
struct Characters {
  std::vector<std::int32_t> train, held_out;
  std::uint32_t vocabulary = 0;
};

Expected<Characters> read_characters(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return make_error(ErrorCode::NotFound, path + " can't be read");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::map<char, std::int32_t> numbers;
  for (const char c : text) numbers[c] = 0;
  Characters characters;
  for (auto& [c, number] : numbers) number = static_cast<std::int32_t>(characters.vocabulary++);
  const std::size_t split = text.size() / 10 * 9;
  for (std::size_t i = 0; i < text.size(); ++i)
    (i < split ? characters.train : characters.held_out).push_back(numbers[text[i]]);
  return characters;
}

compute::ModelShape shape_of(const Flags& flags, std::uint32_t vocabulary) {
  compute::ModelShape shape;
  shape.layers = flags.layers;
  shape.hidden = flags.hidden;
  shape.head_dim = 32;
  shape.heads = flags.hidden / 32;
  shape.kv_heads = flags.kv_heads != 0 ? flags.kv_heads : shape.heads;
  // Three matrices: as many parameters as two of four times hidden.
  shape.ffn = flags.ffn != 0 ? flags.ffn : flags.hidden * 8 / 3 / 8 * 8;
  shape.experts = shape.experts_per_token = 1;
  shape.vocab = vocabulary;
  shape.sequence = flags.sequence;
  return shape;
}

// A node with a whole model: weights, moments and its own stream of windows of the text.
class Worker {
 public:
  static Expected<std::unique_ptr<Worker>> create(const compute::LoadedModule& loaded, const Flags& flags,
                                                  const Characters& text, std::uint32_t index,
                                                  std::uint32_t batch, const Clock& clock, Logger& logger) {
    std::unique_ptr<Worker> worker(new Worker(flags, text, index, batch));
    compute::StageSpec spec;
    spec.shape = shape_of(flags, text.vocabulary);
    spec.layer_count = spec.shape.layers;
    spec.embed = spec.head = true;
    NS_ASSIGN_OR_RETURN(worker->stage_, compute::make_stage(*loaded.module, spec));
    for (std::uint32_t i = 0; i < worker->stage_->slot_count(); ++i) {
      const compute::SlotBuffers slot = worker->stage_->slot(i);
      compute::initialise_slot(spec.shape, slot.id, Hash256{static_cast<std::uint8_t>(flags.seed)},
                               {slot.parameters, slot.count});
      worker->parameters_ += slot.count;
    }
    worker->stage_->parameters_changed();
    worker->loop_ = std::make_unique<train::InnerLoop>(*worker->stage_, clock, logger, batch);
    return worker;
  }

  std::size_t parameters() const { return parameters_; }
  std::uint64_t tokens() const { return tokens_; }  // since the last take_tokens()
  std::uint64_t take_tokens() { return std::exchange(tokens_, 0); }

  Expected<void> step(std::uint32_t global_step) {
    draw();
    compute::StepOptions options;
    options.learning_rate =
        train::learning_rate({flags_.lr, flags_.warmup, flags_.steps, flags_.final_rate}, global_step);
    options.step = global_step;
    const train::BatchView view{batch_, flags_.sequence, inputs_.data(), targets_.data()};
    NS_ASSIGN_OR_RETURN(const train::InnerStep done, loop_->step(view, options, {}));
    tokens_ += done.target_tokens;
    return {};
  }

  // weights: [P], slots in order.
  void copy_weights(std::vector<float>& weights) const {
    weights.resize(parameters_);
    float* at = weights.data();
    for (std::uint32_t i = 0; i < stage_->slot_count(); ++i) {
      const compute::SlotBuffers slot = stage_->slot(i);
      at = std::copy_n(slot.parameters, slot.count, at);
    }
  }
  void set_weights(const std::vector<float>& weights) {
    const float* at = weights.data();
    for (std::uint32_t i = 0; i < stage_->slot_count(); ++i) {
      const compute::SlotBuffers slot = stage_->slot(i);
      std::copy_n(at, slot.count, slot.parameters);
      at += slot.count;
    }
    stage_->parameters_changed();
  }

  Expected<double> held_out_loss() {
    const std::uint32_t length = flags_.sequence;
    const std::size_t windows = (text_.held_out.size() - 1) / length;
    std::size_t next = 0;
    std::vector<std::int32_t> targets;
    const train::EvaluationSource source = [&]() -> Expected<train::EvaluationPart> {
      const std::size_t count = std::min<std::size_t>(64, windows - next);
      if (count == 0) return train::EvaluationPart{};
      const std::int32_t* const first = text_.held_out.data() + next * length;
      targets.assign(first + 1, first + 1 + count * length);
      next += count;
      return train::EvaluationPart{{static_cast<std::uint32_t>(count), length, first, targets.data()}, 0};
    };
    NS_ASSIGN_OR_RETURN(const train::Evaluation result, train::evaluate(*stage_, source, 64, {}));
    return result.loss;
  }

 private:
  Worker(const Flags& flags, const Characters& text, std::uint32_t index, std::uint32_t batch)
      : flags_(flags), text_(text), batch_(batch), rng_(flags.seed * 1000 + index) {}

  void draw() {
    const std::size_t length = flags_.sequence;
    inputs_.clear();
    targets_.clear();
    for (std::uint32_t i = 0; i < batch_; ++i) {
      const auto at = static_cast<std::ptrdiff_t>(rng_.below(text_.train.size() - length));
      const auto first = text_.train.begin() + at;
      inputs_.insert(inputs_.end(), first, first + static_cast<std::ptrdiff_t>(length));
      targets_.insert(targets_.end(), first + 1, first + static_cast<std::ptrdiff_t>(length) + 1);
    }
  }

  const Flags& flags_;
  const Characters& text_;
  const std::uint32_t batch_;
  Rng rng_;
  compute::StagePtr stage_;
  std::unique_ptr<train::InnerLoop> loop_;
  std::size_t parameters_ = 0;
  std::uint64_t tokens_ = 0;
  std::vector<std::int32_t> inputs_, targets_;
};

// The outer side: anchor and momentum, and what each worker's codec keeps back.
class Outer {
 public:
  Outer(const Flags& flags, outer::Codec codec, const Worker& first)
      : flags_(flags), codec_(codec), momentum_(first.parameters(), 0.0f), aggregate_(first.parameters()) {
    first.copy_weights(anchor_);
    for (std::uint32_t i = 0; i < flags.workers; ++i)
      feedback_.emplace_back(first.parameters(), static_cast<float>(flags.beta));
  }

  std::uint64_t payload_bytes() const { return payload_bytes_; }

  Expected<void> round(std::vector<std::unique_ptr<Worker>>& workers, std::uint32_t number) {
    std::vector<std::vector<float>> deltas(workers.size());
    std::vector<outer::Contribution> contributions;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      std::vector<float>& delta = deltas[i];
      workers[i]->copy_weights(delta);
      for (std::size_t p = 0; p < delta.size(); ++p) delta[p] = anchor_[p] - delta[p];
      NS_RETURN_IF_ERROR(through_codec(i, number, delta));
      Hash256 id{};
      id[0] = static_cast<std::uint8_t>(i);
      contributions.push_back({id, workers[i]->take_tokens(), {delta.data(), delta.size()}});
    }
    outer::AggregationOptions options;
    options.choice = outer::RuleChoice{outer::Rule::WeightedMean, false, false};
    options.f = 0;
    NS_ASSIGN_OR_RETURN(const outer::AggregateReport report,
                        outer::aggregate(options, {contributions.data(), contributions.size()},
                                         std::uint64_t{1} << 40, {aggregate_.data(), aggregate_.size()}));
    if (report.counted != workers.size())
      return make_error(ErrorCode::Corrupt, "a delta does not count: the run has diverged");
    NS_RETURN_IF_ERROR(
        outer::outer_step({static_cast<float>(flags_.outer_lr), static_cast<float>(flags_.outer_mu)},
                          {aggregate_.data(), aggregate_.size()}, {momentum_.data(), momentum_.size()},
                          {anchor_.data(), anchor_.size()}));
    for (auto& worker : workers) worker->set_weights(anchor_);
    return {};
  }

 private:
  Expected<void> through_codec(std::size_t worker, std::uint32_t round, std::vector<float>& delta) {
    outer::CodecOptions options{codec_, flags_.k};
    const bool sparse = codec_ == outer::Codec::TopK || codec_ == outer::Codec::SeedTopK;
    if (sparse && round <= flags_.dense_rounds) options.codec = outer::Codec::Int8;
    const Span<const float> values(delta.data(), delta.size());
    NS_ASSIGN_OR_RETURN(const Bytes payload,
                        sparse ? feedback_[worker].encode(options, values) : outer::encode(options, values));
    payload_bytes_ += payload.size();
    return outer::decode(options, {payload.data(), payload.size()}, {delta.data(), delta.size()});
  }

  const Flags& flags_;
  const outer::Codec codec_;
  std::vector<float> anchor_, momentum_, aggregate_;
  std::vector<outer::ErrorFeedback> feedback_;
  std::uint64_t payload_bytes_ = 0;
};

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
  Outer outer(flags, codec, *workers[0]);
  nlohmann::ordered_json curve = nlohmann::ordered_json::array();
  const std::uint32_t look = std::max(1u, flags.steps / std::max(1u, flags.evaluations));
  double loss = 0;
  std::uint64_t tokens = 0;
  for (std::uint32_t step = 1; step <= flags.steps; ++step) {
    for (std::size_t i = 0; i < workers.size(); ++i) {
      // A slow worker does a quarter of the steps and sends what it has.
      if (rounds && i < flags.slow && step % 4 != 0) continue;
      const std::uint64_t before = workers[i]->tokens();
      NS_RETURN_IF_ERROR(workers[i]->step(step));
      tokens += workers[i]->tokens() - before;
    }
    if (rounds && step % flags.period == 0) NS_RETURN_IF_ERROR(outer.round(workers, step / flags.period));
    if (step % look == 0 || step == flags.steps) {
      NS_ASSIGN_OR_RETURN(loss, workers[0]->held_out_loss());
      curve.push_back({{"step", step}, {"loss", loss}});
    }
  }
  const double payloads = rounds ? double(flags.workers) * (flags.steps / flags.period) : 0;
  return nlohmann::ordered_json{
      {"loss", loss},
      {"parameters", workers[0]->parameters()},
      {"tokens", tokens},
      {"rounds", rounds ? flags.steps / flags.period : 0},
      {"bytes_per_parameter", payloads > 0 ? static_cast<double>(outer.payload_bytes()) / payloads /
                                                 static_cast<double>(workers[0]->parameters())
                                           : 0},
      {"curve", curve}};
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
  app.add_option("--k", flags.k, "values of each 4096 that topk keeps");
  app.add_option("--beta", flags.beta, "of the error feedback; 0 = off");
  app.add_option("--dense-rounds", flags.dense_rounds, "first rounds in int8, of the sparse codecs");
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
