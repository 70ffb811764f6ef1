// A compute module small enough to read: a bigram model, logits = embedding[token] · headᵀ, trained by AdamW
// on the CPU in plain loops. It lets the training session run for real, checkpoints and all, without
// LibTorch. All slots of the shape exist; only embedding and head learn.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/compute/module_abi.h"
#include "core/compute/slot.h"

namespace neuroshard::testing {

inline compute::Status toy_failure(ErrorCode code, const char* text) {
  compute::Status status;
  status.code = 1 + static_cast<std::int32_t>(code);
  std::snprintf(status.message, sizeof status.message, "%s", text);
  return status;
}

// Set and read by tests.
struct ToyControls {
  std::uint32_t fits = 1000;     // sequences per micro-batch before memory runs out
  std::uint64_t spoil_step = 0;  // the gradient of this step is not finite
  std::uint32_t threads = 0;
  std::uint64_t memory_limit = 0;
  std::uint64_t forwards = 0;
  std::function<void()> on_forward;
  std::size_t most_sessions = 1000;  // before memory runs out
  std::size_t sessions_dropped = 0;  // that were open when their stage was released
};

class ToyStage final : public compute::Stage {
 public:
  ToyStage(const compute::StageSpec& spec, ToyControls& controls)
      : shape_(spec.shape), gamma_(spec.router.bias_gamma), controls_(controls) {
    for (const compute::SlotId id : compute::model_slots(shape_)) {
      Slot slot;
      slot.id = id;
      const std::uint64_t count = compute::slot_parameter_count(shape_, id);
      slot.parameters.resize(count);
      if (spec.trainable) {
        slot.gradient.resize(count);
        slot.moment1.resize(count);
        slot.moment2.resize(count);
      }
      slots_.push_back(std::move(slot));
    }
    embed_ = matrix(slots_.front());
    head_ = matrix(slots_.back());
    load_.resize(std::size_t{shape_.layers} * shape_.experts);
    bias_.resize(load_.size());
  }

  void release() override {
    if (!sessions_.empty()) controls_.sessions_dropped += sessions_.size();
    delete this;
  }
  compute::Status change(const compute::StageSpec&) override {
    return toy_failure(ErrorCode::InvalidArgument, "the toy holds the whole model");
  }
  std::uint32_t slot_count() const override { return static_cast<std::uint32_t>(slots_.size()); }
  compute::SlotBuffers slot(std::uint32_t index) override {
    Slot& s = slots_[index];
    const auto pointer = [](std::vector<float>& v) { return v.empty() ? nullptr : v.data(); };
    return {s.id,
            s.parameters.size(),
            pointer(s.parameters),
            pointer(s.gradient),
            pointer(s.moment1),
            pointer(s.moment2)};
  }
  compute::Status copy_out(std::uint32_t, compute::SlotBuffer, float*) override { return {}; }
  compute::Status copy_in(std::uint32_t slot, compute::SlotBuffer buffer, const float* source) override {
    if (buffer == compute::SlotBuffer::Parameters)
      std::copy_n(source, slots_[slot].parameters.size(), slots_[slot].parameters.begin());
    return {};
  }
  void parameters_changed() override {}

  compute::Status forward(std::uint64_t id, const compute::MicroBatch& batch, float*,
                          compute::ForwardMetrics* metrics) override {
    ++controls_.forwards;
    if (controls_.on_forward) controls_.on_forward();
    if (batch.batch > controls_.fits) return toy_failure(ErrorCode::Exhausted, "the toy's memory is full");
    const std::size_t count = std::size_t{batch.batch} * batch.sequence;
    kept_[id] = {{batch.tokens, batch.tokens + count}, {batch.targets, batch.targets + count}};
    *metrics = run(batch, false);
    if (!load_.empty()) load_.front() += metrics->tokens;
    return {};
  }
  compute::Status backward(std::uint64_t id, const float* gradient_output, float* gradient_input) override {
    const compute::Status status = backward_input(id, gradient_output, gradient_input);
    return status.ok() ? backward_weights(id) : status;
  }
  compute::Status backward_input(std::uint64_t id, const float*, float*) override {
    auto kept = kept_.extract(id);
    if (kept.empty()) return toy_failure(ErrorCode::NotFound, "no such micro-batch");
    owed_.insert(std::move(kept));
    return {};
  }
  compute::Status backward_weights(std::uint64_t id) override {
    const auto kept = owed_.extract(id);
    if (kept.empty()) return toy_failure(ErrorCode::NotFound, "no such micro-batch");
    compute::MicroBatch batch;
    batch.batch = 1;
    batch.sequence = static_cast<std::uint32_t>(kept.mapped().tokens.size());
    batch.tokens = kept.mapped().tokens.data();
    batch.targets = kept.mapped().targets.data();
    run(batch, true);
    return {};
  }
  void discard(std::uint64_t id) override {
    kept_.erase(id);
    owed_.erase(id);
  }
  compute::Status evaluate(const compute::MicroBatch& batch, float*,
                           compute::ForwardMetrics* metrics) override {
    *metrics = run(batch, false);
    return {};
  }
  compute::Status step(const compute::StepOptions& options, compute::StepMetrics* metrics) override {
    const compute::SlotStep learning[] = {{0, options},
                                          {static_cast<std::uint32_t>(slots_.size() - 1), options}};
    const compute::Status status = step_slots(2, learning, metrics);
    // Something that only the checkpoint's extras can bring back.
    if (status.ok() && gamma_ > 0) bias_.front() += gamma_;
    return status;
  }
  compute::Status step_slots(std::uint32_t count, const compute::SlotStep* steps,
                             compute::StepMetrics* metrics) override {
    if (!owed_.empty()) return toy_failure(ErrorCode::InvalidArgument, "weights' gradients are due");
    for (std::uint32_t i = 0; i < count; ++i) {
      if (steps[i].options.step == controls_.spoil_step) return toy_failure(ErrorCode::Corrupt, "not finite");
    }
    double squares = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      Slot& slot = slots_[steps[i].slot];
      for (std::size_t at = 0; at < slot.gradient.size(); ++at) update(slot, at, steps[i].options, squares);
      std::fill(slot.gradient.begin(), slot.gradient.end(), 0.0f);
    }
    metrics->gradient_norm = std::sqrt(squares);
    return {};
  }
  void zero_gradients() override {
    for (Slot& slot : slots_) std::fill(slot.gradient.begin(), slot.gradient.end(), 0.0f);
  }
  compute::Status expert_forward(std::uint64_t, std::uint32_t, std::uint32_t, std::uint64_t, const float*,
                                 float*, bool) override {
    return {};
  }
  compute::Status expert_backward(std::uint64_t, const float*, float*) override { return {}; }
  void router_load(std::uint64_t* counts, bool reset) override {
    std::copy(load_.begin(), load_.end(), counts);
    if (reset) std::fill(load_.begin(), load_.end(), 0);
  }
  void router_bias(float* bias) const override { std::copy(bias_.begin(), bias_.end(), bias); }
  void set_router_bias(const float* bias) override { std::copy(bias, bias + bias_.size(), bias_.begin()); }
  compute::Status open_session(std::uint64_t session, std::uint32_t) override {
    if (sessions_.size() >= controls_.most_sessions) return toy_failure(ErrorCode::Exhausted, "no memory");
    sessions_.insert(session);
    return {};
  }
  compute::Status extend_sessions(std::uint32_t count, const compute::SessionPart* parts) override {
    const float* const head = slots_.back().parameters.data() + head_;
    for (std::uint32_t i = 0; i < count; ++i) {
      const compute::SessionPart& part = parts[i];
      for (std::size_t at = 0; part.hidden != nullptr && at < part.n; ++at) {
        const float* const row = slots_.front().parameters.data() + embed_ +
                                 static_cast<std::size_t>(part.tokens[at]) * shape_.hidden;
        std::copy(row, row + shape_.hidden, part.hidden + at * shape_.hidden);
      }
      if (part.logits == nullptr) continue;
      const float* const x = slots_.front().parameters.data() + embed_ +
                             static_cast<std::size_t>(part.tokens[part.n - 1]) * shape_.hidden;
      for (std::size_t v = 0; v < shape_.vocab; ++v) {
        part.logits[v] = 0;
        for (std::size_t h = 0; h < shape_.hidden; ++h) part.logits[v] += x[h] * head[v * shape_.hidden + h];
      }
    }
    return {};
  }
  void close_session(std::uint64_t session) override { sessions_.erase(session); }
  compute::Status logits(const compute::MicroBatch&, float*) override { return {}; }

 private:
  struct Slot {
    compute::SlotId id;
    std::vector<float> parameters, gradient, moment1, moment2;
  };
  struct Kept {
    std::vector<std::int32_t> tokens, targets;
  };

  // The place of the [V,H] matrix of embedding or head in its slot.
  std::uint64_t matrix(const Slot& slot) const {
    for (const compute::ParameterInfo& info : compute::slot_parameters(shape_, slot.id)) {
      if (info.dims.size() == 2) return info.offset;
    }
    return 0;
  }

  compute::ForwardMetrics run(const compute::MicroBatch& batch, bool backward) {
    compute::ForwardMetrics metrics;
    const std::size_t H = shape_.hidden, V = shape_.vocab;
    std::vector<double> p(V);
    for (std::size_t i = 0; i < std::size_t{batch.batch} * batch.sequence; ++i) {
      ++metrics.tokens;
      metrics.balance_sum += 1.0 + bias_.front();
      if (batch.targets[i] < 0) continue;
      const std::size_t x = embed_ + static_cast<std::size_t>(batch.tokens[i]) * H;
      const float* const embedding = slots_.front().parameters.data() + x;
      const float* const head = slots_.back().parameters.data() + head_;
      double most = -1e300, total = 0;
      for (std::size_t v = 0; v < V; ++v) {
        p[v] = 0;
        for (std::size_t h = 0; h < H; ++h) p[v] += double{embedding[h]} * head[v * H + h];
        most = std::max(most, p[v]);
      }
      for (double& value : p) total += value = std::exp(value - most);
      const auto target = static_cast<std::size_t>(batch.targets[i]);
      ++metrics.target_tokens;
      metrics.loss_sum += std::log(total) - std::log(p[target]);
      if (!backward) continue;
      for (std::size_t v = 0; v < V; ++v) {
        const double g = p[v] / total - (v == target ? 1.0 : 0.0);
        for (std::size_t h = 0; h < H; ++h) {
          slots_.front().gradient[x + h] += static_cast<float>(g * head[v * H + h]);
          slots_.back().gradient[head_ + v * H + h] += static_cast<float>(g * embedding[h]);
        }
      }
    }
    return metrics;
  }

  static void update(Slot& slot, std::size_t i, const compute::StepOptions& o, double& squares) {
    const double g = slot.gradient[i] / static_cast<double>(o.tokens);
    squares += g * g;
    const double m = o.beta1 * slot.moment1[i] + (1 - o.beta1) * g;
    const double v = o.beta2 * slot.moment2[i] + (1 - o.beta2) * g * g;
    slot.moment1[i] = static_cast<float>(m);
    slot.moment2[i] = static_cast<float>(v);
    const auto t = static_cast<double>(o.step);
    const double rate = o.learning_rate / (1 - std::pow(o.beta1, t));
    slot.parameters[i] -=
        static_cast<float>(rate * m / (std::sqrt(v / (1 - std::pow(o.beta2, t))) + o.epsilon));
  }

  const compute::ModelShape shape_;
  const float gamma_;
  ToyControls& controls_;
  std::vector<Slot> slots_;
  std::uint64_t embed_ = 0, head_ = 0;
  std::set<std::uint64_t> sessions_;
  std::map<std::uint64_t, Kept> kept_, owed_;
  std::vector<std::uint64_t> load_;
  std::vector<float> bias_;
};

class ToyModule final : public compute::Module {
 public:
  ToyControls controls;

  compute::ModuleInfo info() const override {
    compute::ModuleInfo info{};
    std::snprintf(info.device_name, sizeof info.device_name, "toy");
    info.threads = controls.threads;
    return info;
  }
  compute::Stage* create_stage(const compute::StageSpec& spec, compute::Status*) override {
    return new ToyStage(spec, controls);
  }
  compute::Status set_threads(std::uint32_t threads) override {
    controls.threads = threads;
    return {};
  }
  void set_memory_limit(std::uint64_t bytes) override { controls.memory_limit = bytes; }
  compute::MemoryUse memory(bool) override { return {}; }
  compute::Status gemm_yardstick(const char*, std::uint32_t, std::uint32_t, double*) override { return {}; }
  compute::ScriptModel* open_script(const compute::ScriptHost&, const compute::ScriptOptions&,
                                    compute::Status* status) override {
    *status = toy_failure(ErrorCode::Unsupported, "The toy module reads no models.");
    return nullptr;
  }
  compute::ScriptBlock* open_script_block(const compute::ScriptHost&, compute::Status* status) override {
    *status = toy_failure(ErrorCode::Unsupported, "The toy module reads no models.");
    return nullptr;
  }
};

}  // namespace neuroshard::testing
