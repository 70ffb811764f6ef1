// A worker of the study of low-communication training: it trains a whole model on characters of a text. Header
// only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/rng.h"
#include "core/compute/module.h"
#include "core/train/evaluate.h"
#include "core/train/inner_loop.h"
#include "core/train/schedule.h"

namespace neuroshard::bench {

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

inline Expected<Characters> read_characters(const std::string& path) {
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

inline compute::ModelShape shape_of(const Flags& flags, std::uint32_t vocabulary) {
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

}  // namespace neuroshard::bench
