// A stage without mathematics for tests of the loop around it: it records what it is asked, in order, and
// fails on demand. Its loss for a token is the token's value, its gradient the sum of the targets, its
// optimizer one subtraction.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/compute/stage.h"

namespace neuroshard::test {

inline compute::Status failure(ErrorCode code, const char* message) {
  compute::Status status;
  status.code = 1 + static_cast<std::int32_t>(code);
  std::snprintf(status.message, sizeof status.message, "%s", message);
  return status;
}

class FakeStage final : public compute::Stage {
 public:
  // Read by tests.
  std::vector<std::string> calls;  // "forward 4", "backward", "step 20", "zero", "discard"
  std::vector<std::int32_t> seen;  // tokens of completed backward passes since the last zeroing, in order
  std::map<std::uint64_t, compute::MicroBatch> kept;
  std::map<std::uint64_t, compute::MicroBatch> owed;  // between the halves of their backward pass
  double weight = 1.0;
  double gradient = 0.0;
  std::uint64_t steps = 0;
  std::size_t sessions = 0;  // open
  // Set by tests.
  std::uint32_t fits = 1000;      // sequences per micro-batch before memory runs out
  bool fail_in_backward = false;  // memory runs out in the backward pass instead of the forward pass
  double loss_value = 0;          // added to every micro-batch's loss; NaN to spoil it
  bool spoil_gradient = false;
  std::function<void()> on_forward;
  std::function<void(const compute::SessionPart& part)> on_extend;

  void release() override {}
  compute::Status change(const compute::StageSpec&) override {
    return failure(ErrorCode::InvalidArgument, "the fake has no slots");
  }
  std::uint32_t slot_count() const override { return 0; }
  compute::SlotBuffers slot(std::uint32_t) override { return {}; }
  compute::Status copy_out(std::uint32_t, compute::SlotBuffer, float*) override { return {}; }
  compute::Status copy_in(std::uint32_t, compute::SlotBuffer, const float*) override { return {}; }
  void parameters_changed() override {}

  compute::Status forward(std::uint64_t id, const compute::MicroBatch& batch, float*,
                          compute::ForwardMetrics* metrics) override {
    calls.push_back("forward " + std::to_string(batch.batch));
    if (on_forward) on_forward();
    if (batch.batch > fits && !fail_in_backward) return failure(ErrorCode::Exhausted, "out of memory");
    kept[id] = batch;
    *metrics = measure(batch);
    metrics->loss_sum += loss_value;
    return {};
  }
  compute::Status backward(std::uint64_t id, const float*, float*) override {
    calls.push_back("backward");
    const auto found = kept.find(id);
    if (found == kept.end()) return failure(ErrorCode::NotFound, "no such micro-batch");
    const compute::MicroBatch batch = found->second;
    if (batch.batch > fits) return failure(ErrorCode::Exhausted, "out of memory");
    kept.erase(found);
    add(batch);
    return {};
  }
  compute::Status backward_input(std::uint64_t id, const float*, float*) override {
    calls.push_back("backward input");
    const auto found = kept.extract(id);
    if (found.empty()) return failure(ErrorCode::NotFound, "no such micro-batch");
    owed[id] = found.mapped();
    return {};
  }
  compute::Status backward_weights(std::uint64_t id) override {
    calls.push_back("backward weights");
    const auto found = owed.extract(id);
    if (found.empty()) return failure(ErrorCode::NotFound, "no such micro-batch");
    add(found.mapped());
    return {};
  }
  void discard(std::uint64_t id) override {
    calls.push_back("discard");
    kept.erase(id);
    owed.erase(id);
  }
  compute::Status evaluate(const compute::MicroBatch& batch, float*,
                           compute::ForwardMetrics* metrics) override {
    calls.push_back("evaluate " + std::to_string(batch.batch));
    if (batch.batch > fits) return failure(ErrorCode::Exhausted, "out of memory");
    *metrics = measure(batch);
    metrics->loss_sum += loss_value;
    return {};
  }
  compute::Status step(const compute::StepOptions& options, compute::StepMetrics* metrics) override {
    calls.push_back("step " + std::to_string(options.tokens));
    if (spoil_gradient) {
      return failure(ErrorCode::Corrupt, "gradient is not finite");
    }
    if (!owed.empty()) return failure(ErrorCode::InvalidArgument, "weights' gradients are due");
    metrics->gradient_norm = std::abs(gradient) / static_cast<double>(options.tokens);
    weight -= options.learning_rate * gradient / static_cast<double>(options.tokens);
    gradient = 0;
    seen.clear();
    ++steps;
    return {};
  }
  compute::Status step_slots(std::uint32_t, const compute::SlotStep*, compute::StepMetrics*) override {
    return failure(ErrorCode::InvalidArgument, "the fake has no slots");
  }
  void zero_gradients() override {
    calls.push_back("zero");
    gradient = 0;
    seen.clear();
  }
  compute::Status expert_forward(std::uint64_t, std::uint32_t, std::uint32_t, std::uint64_t, const float*,
                                 float*, bool) override {
    return {};
  }
  compute::Status expert_backward(std::uint64_t, const float*, float*) override { return {}; }
  void router_load(std::uint64_t*, bool) override {}
  void router_bias(float*) const override {}
  void set_router_bias(const float*) override {}
  compute::Status open_session(std::uint64_t, std::uint32_t) override {
    ++sessions;
    return {};
  }
  compute::Status extend_sessions(std::uint32_t count, const compute::SessionPart* parts) override {
    for (std::uint32_t i = 0; on_extend && i < count; ++i) on_extend(parts[i]);
    return {};
  }
  void close_session(std::uint64_t) override { --sessions; }
  compute::Status logits(const compute::MicroBatch&, float*) override { return {}; }

 private:
  void add(const compute::MicroBatch& batch) {
    for (std::uint32_t i = 0; i < batch.batch * batch.sequence; ++i) {
      seen.push_back(batch.tokens[i]);
      if (batch.targets[i] >= 0) gradient += batch.targets[i];
    }
  }

  static compute::ForwardMetrics measure(const compute::MicroBatch& batch) {
    compute::ForwardMetrics metrics;
    for (std::uint32_t i = 0; i < batch.batch * batch.sequence; ++i) {
      ++metrics.tokens;
      metrics.balance_sum += 1.5;
      metrics.z_sum += 0.25;
      if (batch.targets[i] < 0) continue;
      ++metrics.target_tokens;
      metrics.loss_sum += batch.tokens[i];
    }
    return metrics;
  }
};

}  // namespace neuroshard::test
