// compute::Stage over NeuroLlm: checks what comes in, and lets no exception out.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "core/compute/stage.h"
#include "core/model/boundary.h"
#include "core/model/memory_pool.h"
#include "core/model/neuro_llm.h"

namespace neuroshard::model {

class StageBoundary final : public compute::Stage {
 public:
  // pool: of the module's tensors.
  StageBoundary(std::unique_ptr<NeuroLlm> model, const std::atomic<std::uint32_t>& threads, MemoryPool& pool)
      : model_(std::move(model)), threads_(threads), pool_(pool) {}

  void release() override { delete this; }
  compute::Status change(const compute::StageSpec& spec) override;
  std::uint32_t slot_count() const override { return static_cast<std::uint32_t>(model_->slots().size()); }
  compute::SlotBuffers slot(std::uint32_t index) override;
  compute::Status copy_out(std::uint32_t slot, compute::SlotBuffer buffer, float* target) override;
  compute::Status copy_in(std::uint32_t slot, compute::SlotBuffer buffer, const float* source) override;
  void parameters_changed() override { model_->parameters_changed(); }
  compute::Status forward(std::uint64_t id, const compute::MicroBatch& batch, float* output,
                          compute::ForwardMetrics* metrics) override;
  compute::Status backward(std::uint64_t id, const float* gradient_output, float* gradient_input) override;
  compute::Status backward_input(std::uint64_t id, const float* gradient_output,
                                 float* gradient_input) override;
  compute::Status backward_weights(std::uint64_t id) override;
  void discard(std::uint64_t id) override { model_->discard(id); }
  compute::Status evaluate(const compute::MicroBatch& batch, float* output,
                           compute::ForwardMetrics* metrics) override;
  compute::Status step(const compute::StepOptions& options, compute::StepMetrics* metrics) override;
  compute::Status step_slots(std::uint32_t count, const compute::SlotStep* steps,
                             compute::StepMetrics* metrics) override;
  void zero_gradients() override;
  compute::Status expert_forward(std::uint64_t call, std::uint32_t layer, std::uint32_t expert,
                                 std::uint64_t tokens, const float* input, float* output, bool keep) override;
  compute::Status expert_backward(std::uint64_t call, const float* gradient_output,
                                  float* gradient_input) override;
  void router_load(std::uint64_t* counts, bool reset) override { model_->balance().load(counts, reset); }
  void router_bias(float* bias) const override;
  void set_router_bias(const float* bias) override;
  compute::Status open_session(std::uint64_t session, std::uint32_t capacity) override;
  compute::Status extend_sessions(std::uint32_t count, const compute::SessionPart* parts) override;
  void close_session(std::uint64_t session) override { model_->close_session(session); }
  compute::Status logits(const compute::MicroBatch& batch, float* logits) override;

 private:
  ~StageBoundary() = default;
  const at::Tensor* buffer(std::uint32_t slot, compute::SlotBuffer which, compute::Status& status);
  compute::Status check(const compute::MicroBatch& batch, bool targets) const;
  compute::Status check(const compute::SessionPart& part) const;
  bool owes(std::uint64_t id) const { return model_->owed().count(id) != 0; }
  compute::Status check_backward(std::uint64_t id, const float* gradient_output,
                                 const float* gradient_input) const;
  compute::Status check_scores(const compute::TokenScores& scores, std::uint32_t n) const;
  compute::Status take(const std::vector<compute::SlotStep>& steps, compute::StepMetrics& metrics);
  compute::Status check_steps(const std::vector<compute::SlotStep>& steps) const;
  compute::Status check_tokens(const std::int32_t* tokens, std::uint64_t count, std::int32_t least) const;
  compute::Status run(const std::function<compute::Status()>& call) const {
    return guarded(threads_.load(), call);
  }

  std::unique_ptr<NeuroLlm> model_;
  const std::atomic<std::uint32_t>& threads_;
  MemoryPool& pool_;
};

}  // namespace neuroshard::model
