// NeuroLLM (docs/protocol/model.md): the layers of a stage, with or without embedding and head, and what they
// keep between calls. Speaks in exceptions; stage_boundary.cpp turns them into Status.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/compute/stage.h"
#include "core/model/block.h"
#include "core/model/head.h"
#include "core/model/kv_cache.h"
#include "core/model/router_balance.h"
#include "core/model/slot_state.h"
#include "core/model/stage_weights.h"
#include "core/model/weight_gradients.h"

namespace neuroshard::model {

class NeuroLlm {
 public:
  // The spec has been validated. Throws OutOfMemory.
  NeuroLlm(const compute::StageSpec& spec, const Backend& backend);
  NeuroLlm(const NeuroLlm&) = delete;
  NeuroLlm& operator=(const NeuroLlm&) = delete;

  // The spec has been validated, is of the same model, and the stage is idle. Strong guarantee: throws OutOfMemory.
  void change(const compute::StageSpec& spec);
  // Nothing is in flight: no micro-batch, expert call or session.
  bool idle() const { return kept_.empty() && owed_.empty() && expert_calls_.empty() && sessions_.empty(); }

  const compute::ModelShape& shape() const { return context_.shape; }
  const compute::RouterOptions& router() const { return context_.router; }
  std::uint32_t first_layer() const { return first_layer_; }
  std::uint32_t layer_count() const { return static_cast<std::uint32_t>(weights_.blocks.size()); }
  bool has_embed() const { return weights_.embed.value.defined(); }
  bool has_head() const { return weights_.head.logits.value.defined(); }
  bool trainable() const { return trainable_; }
  std::vector<SlotState>& slots() { return weights_.slots; }
  bool keeps(std::uint64_t id) const { return kept_.count(id) != 0; }
  // By micro-batches between the halves of their backward pass.
  const std::map<std::uint64_t, WeightGradients>& owed() const { return owed_; }
  bool keeps_expert_call(std::uint64_t call) const { return expert_calls_.count(call) != 0; }
  bool holds_expert(std::uint32_t layer, std::uint32_t expert) const;
  const KvCache* session(std::uint64_t id) const;

  // See compute::Stage for these; ids, sessions and sizes have been checked.
  void forward(std::uint64_t id, const compute::MicroBatch& batch, float* output,
               compute::ForwardMetrics& metrics);
  // Later: the first half.
  void backward(std::uint64_t id, const float* gradient_output, float* gradient_input,
                WeightGradients::When when);
  void backward_weights(std::uint64_t id);
  void discard(std::uint64_t id);
  void evaluate(const compute::MicroBatch& batch, float* output, compute::ForwardMetrics& metrics);
  void logits(const compute::MicroBatch& batch, float* logits);
  bool step(const std::vector<compute::SlotStep>& steps, compute::StepMetrics& metrics);
  void zero_gradients();
  void parameters_changed();  // in all slots
  void parameters_changed(std::size_t slot) { pack_slot(context_.kernels(), weights_.slots[slot]); }

  void expert_forward(std::uint64_t call, std::uint32_t layer, std::uint32_t expert, std::int64_t tokens,
                      const float* input, float* output, bool keep);
  void expert_backward(std::uint64_t call, const float* gradient_output, float* gradient_input);

  RouterBalance& balance() { return balance_; }

  void open_session(std::uint64_t session, std::int64_t capacity);
  void extend_sessions(const std::vector<compute::SessionPart>& parts);
  void close_session(std::uint64_t session) { sessions_.erase(session); }

 private:
  struct MicroBatchState {
    BlockRun run;
    at::Tensor tokens;  // [N] int32, with the embedding
    std::vector<BlockState> blocks;
    HeadState head;
  };
  struct ExpertCall {
    std::size_t block = 0;
    std::uint32_t expert = 0;
    at::Tensor x;
    at::Tensor gate_up;
  };

  std::vector<SessionRows> rows_of_sessions(const std::vector<compute::SessionPart>& parts);
  void answer_sessions(const std::vector<compute::SessionPart>& parts, const std::vector<SessionRows>& rows,
                       const at::Tensor& x) const;
  void last_logits(const std::vector<compute::SessionPart>& parts, const std::vector<SessionRows>& rows,
                   const at::Tensor& x) const;
  at::Tensor enter(std::int64_t tokens, const std::int32_t* ids, const float* input) const;
  BlockRun run_of(const BlockRun& base, std::size_t block, std::uint64_t id, bool training) const;
  // Blocks only; drops each block's state at once unless `keep`.
  at::Tensor run_blocks(const BlockRun& run, std::uint64_t id, at::Tensor x, MicroBatchState* keep,
                        compute::ForwardMetrics& metrics);

  BlockContext context_;
  RopeTable rope_;
  std::uint32_t first_layer_;
  bool trainable_;
  compute::ExpertProvider* provider_;
  std::map<std::uint64_t, MicroBatchState> kept_;
  std::map<std::uint64_t, WeightGradients> owed_;
  std::map<std::uint64_t, ExpertCall> expert_calls_;
  std::map<std::uint64_t, KvCache> sessions_;
  RouterBalance balance_;
  StageWeights weights_;  // reads balance_
};

}  // namespace neuroshard::model
