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
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/rng.h"
#include "core/base/spool.h"
#include "core/compute/module.h"
#include "core/outer/aggregate.h"
#include "core/outer/codec.h"
#include "core/outer/error_feedback.h"
#include "core/outer/outer_optimizer.h"
#include "core/rounds/fragments.h"
#include "core/rounds/sync.h"
#include "core/train/evaluate.h"
#include "core/train/inner_loop.h"
#include "core/train/schedule.h"

namespace neuroshard::bench {
namespace {

struct Flags {
  std::string text, mode = "diloco", codec = "fp32", sync = "plain";
  std::uint32_t workers = 4, steps = 2000, period = 25, batch = 12, sequence = 64, layers = 4, hidden = 128;
  std::uint32_t evaluations = 4, slow = 0, dense_rounds = 0, threads = 1;
  std::uint32_t warmup = 20, kv_heads = 0, ffn = 0, delay = 5;
  double lr = 2e-3, final_rate = 0.1, outer_lr = 0.7, outer_mu = 0.9, beta = 0.95, mix = 0, drop = 0;
  std::uint16_t k = 64;
  std::uint64_t seed = 1;
  bool carry = false;
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
  std::uint64_t tokens() const { return tokens_; }  // trained on

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

// The outer side: anchor and momentum, and what each worker's codec keeps back; of each fragment.
class Outer {
 public:
  Outer(const Flags& flags, const rounds::SyncChoice& sync, outer::Codec codec, const Worker& first)
      : flags_(flags),
        codec_(codec),
        delay_(sync.each == rounds::RoundSync::Plain ? 0 : flags.delay),
        momentum_(first.parameters(), 0.0f),
        luck_(flags.seed * 1000 + 999) {
    first.copy_weights(anchor_);
    for (const rounds::Fragment& fragment :
         rounds::cut_fragments(anchor_.size(), sync.fragments, flags.period)) {
      parts_.push_back({fragment, {}, {}, {}, {}});
      parts_.back().tokens.resize(flags.workers);
      for (std::uint32_t i = 0; i < flags.workers; ++i)
        parts_.back().feedback.emplace_back(fragment.count, static_cast<float>(flags.beta), spool_);
    }
  }

  const std::vector<float>& anchor() const { return anchor_; }
  std::uint64_t payload_bytes() const { return payload_bytes_; }
  std::uint64_t payload_values() const { return payload_values_; }
  std::uint32_t rounds() const { return rounds_; }  // of the last fragment
  std::uint64_t dropped() const { return dropped_; }

  // After each step: rounds that end with it, and anchors that come.
  Expected<void> stepped(std::uint32_t step, std::vector<std::unique_ptr<Worker>>& workers) {
    for (Part& part : parts_) {
      const std::uint32_t first = part.fragment.first_steps;
      if (step >= first && (step - first) % flags_.period == 0)
        NS_RETURN_IF_ERROR(boundary(part, (step - first) / flags_.period + 1, workers));
      if (step >= first + delay_ && (step - first - delay_) % flags_.period == 0) arrive(part, workers);
    }
    return {};
  }

 private:
  struct Part {
    rounds::Fragment fragment;
    std::vector<std::vector<float>> sent;     // each worker's weights that its delta was made of
    std::vector<std::vector<float>> carried;  // each worker's delta that goes along onto the next anchor
    std::vector<std::uint64_t> tokens;        // of each worker, that are in anchors
    std::vector<outer::ErrorFeedback> feedback;
  };

  Expected<void> boundary(Part& part, std::uint32_t number, std::vector<std::unique_ptr<Worker>>& workers) {
    const std::size_t first = part.fragment.first, count = part.fragment.count;
    std::vector<std::vector<float>> deltas(workers.size());
    std::vector<outer::Contribution> contributions;
    std::vector<float> weights, aggregate(count);
    part.sent.assign(workers.size(), {});
    part.carried.assign(workers.size(), {});
    for (std::size_t i = 0; i < workers.size(); ++i) {
      workers[i]->copy_weights(weights);
      const auto own = weights.begin() + static_cast<std::ptrdiff_t>(first);
      part.sent[i].assign(own, own + static_cast<std::ptrdiff_t>(count));
      std::vector<float>& delta = deltas[i] = part.sent[i];
      for (std::size_t p = 0; p < count; ++p) delta[p] = anchor_[first + p] - delta[p];
      const bool dropped = flags_.drop > 0 && luck_.uniform() < flags_.drop;
      const bool carried = dropped && flags_.carry;
      if (carried) part.carried[i] = delta;
      const std::uint64_t tokens = workers[i]->tokens() - part.tokens[i];
      if (!carried) part.tokens[i] = workers[i]->tokens();
      NS_RETURN_IF_ERROR(through_codec(part.feedback[i], number, dropped, delta));
      if (dropped) {
        ++dropped_;
        continue;
      }
      Hash256 id{};
      id[0] = static_cast<std::uint8_t>(i);
      contributions.push_back({id, tokens, {delta.data(), delta.size()}});
    }
    if (&part == &parts_.back()) ++rounds_;
    if (contributions.empty()) return {};  // no step, and the momentum stays
    outer::AggregationOptions options;
    options.choice = outer::RuleChoice{outer::Rule::WeightedMean, false, false};
    options.f = 0;
    NS_ASSIGN_OR_RETURN(const outer::AggregateReport report,
                        outer::aggregate(options, {contributions.data(), contributions.size()},
                                         std::uint64_t{1} << 40, {aggregate.data(), count}));
    if (report.counted != contributions.size())
      return make_error(ErrorCode::Corrupt, "a delta does not count: the run has diverged");
    return outer::outer_step({static_cast<float>(flags_.outer_lr), static_cast<float>(flags_.outer_mu)},
                             {aggregate.data(), count}, {momentum_.data() + first, count},
                             {anchor_.data() + first, count});
  }

  void arrive(Part& part, std::vector<std::unique_ptr<Worker>>& workers) {
    const auto mix = static_cast<float>(flags_.mix);
    std::vector<float> weights;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      workers[i]->copy_weights(weights);
      for (std::size_t p = 0; p < part.fragment.count; ++p) {
        float& own = weights[part.fragment.first + p];
        const float anchor = anchor_[part.fragment.first + p];
        if (!part.carried[i].empty()) own -= part.carried[i][p];
        own = mix > 0 ? mix * own + (1 - mix) * anchor : anchor - (part.sent[i][p] - own);
      }
      workers[i]->set_weights(weights);
    }
  }

  // dropped: sent, and back in the feedback where there is one.
  Expected<void> through_codec(outer::ErrorFeedback& feedback, std::uint32_t round, bool dropped,
                               std::vector<float>& delta) {
    outer::CodecOptions options{codec_, flags_.k};
    const bool sparse = codec_ == outer::Codec::TopK || codec_ == outer::Codec::SeedTopK;
    if (sparse && round <= flags_.dense_rounds) options.codec = outer::Codec::Int8;
    const Span<const float> values(delta.data(), delta.size());
    Bytes payload;
    if (sparse) {
      NS_ASSIGN_OR_RETURN(const ByteSourcePtr sent, feedback.encode(options, outer::values_of(values)));
      if (dropped) NS_RETURN_IF_ERROR(feedback.roll_back(options, sent));
      NS_ASSIGN_OR_RETURN(payload, read_all(*sent));
    } else {
      NS_ASSIGN_OR_RETURN(payload, outer::encode(options, values));
    }
    payload_bytes_ += payload.size();
    payload_values_ += delta.size();
    return outer::decode(options, payload, {delta.data(), delta.size()});
  }

  const Flags& flags_;
  const outer::Codec codec_;
  const std::uint32_t delay_;
  MemorySpool spool_;
  std::vector<float> anchor_, momentum_;
  std::vector<Part> parts_;
  Rng luck_;
  std::uint64_t payload_bytes_ = 0, payload_values_ = 0, dropped_ = 0;
  std::uint32_t rounds_ = 0;
};

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
