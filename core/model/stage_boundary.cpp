#include "core/model/stage_boundary.h"

#include <cstdio>
#include <cstring>
#include <functional>
#include <set>

#include "core/compute/sampling.h"
#include "core/model/stage_checks.h"
#include "core/model/tensors.h"

namespace neuroshard::model {

using compute::Status;

namespace {

// Rows are counted with 32 bits (N·k of a micro-batch).
constexpr std::uint64_t max_rows = std::uint64_t{1} << 30;

// Products with a single row are bound by memory; below this many parameters per token they take less time
// than waking a second thread for each of them, above all on a machine that others use too.
constexpr std::uint64_t least_parallel_parameters = 32u << 20;

constexpr char weights_due[] =
    "The weights' gradients of a micro-batch are due: call backward_weights for it or discard it before the "
    "step.";
constexpr char no_slot[] = "The stage has no such slot.";
constexpr char no_output[] = "A stage without the head needs room for its output activations.";

Status bad(const char* text) {
  return failure(ErrorCode::InvalidArgument, text);
}

}  // namespace

Status StageBoundary::change(const compute::StageSpec& spec) {
  return run([&] {
    if (const Status status = check_spec(spec); !status.ok()) return status;
    const Status same = check_same_model(spec, model_->shape(), model_->router(), model_->trainable());
    if (!same.ok()) return same;
    if (!model_->idle()) {
      return failure(ErrorCode::Busy,
                     "The stage is in use: finish or discard its micro-batches, finish its expert calls and "
                     "close its sessions before it changes.");
    }
    model_->change(spec);
    pool_.trim();
    return success();
  });
}

compute::SlotBuffers StageBoundary::slot(std::uint32_t index) {
  compute::SlotBuffers buffers;
  if (index >= model_->slots().size()) return buffers;
  const SlotState& state = model_->slots()[index];
  buffers.id = state.id;
  buffers.count = static_cast<std::uint64_t>(state.count());
  buffers.parameters = floats(state.parameters);
  buffers.gradient = floats(state.gradient);
  buffers.moment1 = floats(state.moment1);
  buffers.moment2 = floats(state.moment2);
  return buffers;
}

const at::Tensor* StageBoundary::buffer(std::uint32_t slot, compute::SlotBuffer which, Status& status) {
  status = bad(no_slot);
  if (slot >= model_->slots().size()) return nullptr;
  const SlotState& state = model_->slots()[slot];
  const at::Tensor* result = nullptr;
  switch (which) {
    case compute::SlotBuffer::Parameters: result = &state.parameters; break;
    case compute::SlotBuffer::Gradient: result = &state.gradient; break;
    case compute::SlotBuffer::Moment1: result = &state.moment1; break;
    case compute::SlotBuffer::Moment2: result = &state.moment2; break;
  }
  if (result == nullptr || !result->defined()) {
    status = bad("The stage was made for generation only and has no gradients or moments.");
    return nullptr;
  }
  status = success();
  return result;
}

Status StageBoundary::copy_out(std::uint32_t slot, compute::SlotBuffer which, float* target) {
  Status status;
  const at::Tensor* source = buffer(slot, which, status);
  if (source != nullptr) std::memcpy(target, source->data_ptr(), source->nbytes());
  return status;
}

Status StageBoundary::copy_in(std::uint32_t slot, compute::SlotBuffer which, const float* source) {
  Status status;
  const at::Tensor* target = buffer(slot, which, status);
  if (target == nullptr) return status;
  std::memcpy(target->data_ptr(), source, target->nbytes());
  if (which == compute::SlotBuffer::Parameters) model_->parameters_changed(slot);
  return status;
}

Status StageBoundary::check_tokens(const std::int32_t* tokens, std::uint64_t count,
                                   std::int32_t least) const {
  const auto vocab = static_cast<std::int32_t>(model_->shape().vocab);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (tokens[i] >= least && tokens[i] < vocab) continue;
    char text[160];
    std::snprintf(text, sizeof text,
                  "Token %d at position %llu is outside the vocabulary of %d; is this the model's tokenizer?",
                  tokens[i], static_cast<unsigned long long>(i), vocab);
    return bad(text);
  }
  return success();
}

Status StageBoundary::check(const compute::MicroBatch& batch, bool targets) const {
  const std::uint64_t tokens = std::uint64_t{batch.batch} * batch.sequence;
  if (tokens == 0) return bad("The micro-batch is empty.");
  if (tokens * model_->shape().experts_per_token > max_rows)
    return bad("The micro-batch is too large; cut it into smaller ones.");
  if (model_->has_embed()) {
    if (batch.tokens == nullptr)
      return bad("The stage holds the embedding and needs the micro-batch's tokens.");
    if (const Status status = check_tokens(batch.tokens, tokens, 0); !status.ok()) return status;
  } else if (batch.input == nullptr) {
    return bad("The stage has no embedding and needs the micro-batch's input activations.");
  }
  if (!targets || !model_->has_head()) return success();
  if (batch.targets == nullptr) return bad("The stage holds the head and needs the micro-batch's targets.");
  return check_tokens(batch.targets, tokens, -1);
}

Status StageBoundary::forward(std::uint64_t id, const compute::MicroBatch& batch, float* output,
                              compute::ForwardMetrics* metrics) {
  return run([&] {
    if (!model_->trainable()) return bad("The stage was made for generation only.");
    if (model_->keeps(id) || owes(id))
      return bad("This micro-batch is already in flight: run its backward pass or discard it first.");
    if (const Status status = check(batch, true); !status.ok()) return status;
    if (!model_->has_head() && output == nullptr) return bad(no_output);
    model_->forward(id, batch, output, *metrics);
    return success();
  });
}

Status StageBoundary::check_backward(std::uint64_t id, const float* gradient_output,
                                     const float* gradient_input) const {
  if (!model_->keeps(id)) {
    return failure(ErrorCode::NotFound, owes(id)
                                            ? "This micro-batch's gradient of its input is already computed; "
                                              "its weights' gradients are due."
                                            : "No forward pass of this micro-batch is kept.");
  }
  if (!model_->has_head() && gradient_output == nullptr)
    return bad("A stage without the head needs the gradient of its output.");
  if (!model_->has_embed() && gradient_input == nullptr)
    return bad("A stage without the embedding needs room for the gradient of its input.");
  return success();
}

Status StageBoundary::backward(std::uint64_t id, const float* gradient_output, float* gradient_input) {
  return run([&] {
    if (const Status status = check_backward(id, gradient_output, gradient_input); !status.ok())
      return status;
    model_->backward(id, gradient_output, gradient_input, WeightGradients::When::AtOnce);
    return success();
  });
}

Status StageBoundary::backward_input(std::uint64_t id, const float* gradient_output, float* gradient_input) {
  return run([&] {
    if (const Status status = check_backward(id, gradient_output, gradient_input); !status.ok())
      return status;
    model_->backward(id, gradient_output, gradient_input, WeightGradients::When::Later);
    return success();
  });
}

Status StageBoundary::backward_weights(std::uint64_t id) {
  return run([&] {
    if (!owes(id)) {
      return failure(ErrorCode::NotFound,
                     model_->keeps(id)
                         ? "The gradient of this micro-batch's input comes first: call backward_input."
                         : "No weights' gradients of this micro-batch are due.");
    }
    model_->backward_weights(id);
    return success();
  });
}

Status StageBoundary::evaluate(const compute::MicroBatch& batch, float* output,
                               compute::ForwardMetrics* metrics) {
  return run([&] {
    if (const Status status = check(batch, true); !status.ok()) return status;
    if (!model_->has_head() && output == nullptr) return bad(no_output);
    model_->evaluate(batch, output, *metrics);
    return success();
  });
}

Status StageBoundary::logits(const compute::MicroBatch& batch, float* logits) {
  return run([&] {
    if (!model_->has_head()) return bad("The stage has no head, and so no logits.");
    if (const Status status = check(batch, false); !status.ok()) return status;
    model_->logits(batch, logits);
    return success();
  });
}

Status StageBoundary::step(const compute::StepOptions& options, compute::StepMetrics* metrics) {
  return run([&] {
    std::vector<compute::SlotStep> all;
    for (std::uint32_t i = 0; i < slot_count(); ++i) all.push_back({i, options});
    return take(all, *metrics);
  });
}

Status StageBoundary::step_slots(std::uint32_t count, const compute::SlotStep* steps,
                                 compute::StepMetrics* metrics) {
  return run([&] { return take({steps, steps + count}, *metrics); });
}

Status StageBoundary::check_steps(const std::vector<compute::SlotStep>& steps) const {
  if (!model_->trainable()) return bad("The stage was made for generation only.");
  if (!model_->owed().empty()) return bad(weights_due);
  if (steps.empty()) return bad("No slot is named for the step.");
  std::set<std::uint32_t> slots;
  for (const compute::SlotStep& step : steps) {
    if (step.slot >= model_->slots().size()) return bad(no_slot);
    if (!slots.insert(step.slot).second) return bad("A slot may be named once in a step.");
    if (const Status status = check_step(step.options); !status.ok()) return status;
  }
  return success();
}

Status StageBoundary::take(const std::vector<compute::SlotStep>& steps, compute::StepMetrics& metrics) {
  if (const Status status = check_steps(steps); !status.ok()) return status;
  if (!model_->step(steps, metrics)) {
    return failure(ErrorCode::Corrupt,
                   "The gradients are not finite; the step was not taken and the parameters are as before.");
  }
  return success();
}

void StageBoundary::zero_gradients() {
  (void)run([&] {
    model_->zero_gradients();
    return success();
  });
}

Status StageBoundary::expert_forward(std::uint64_t call, std::uint32_t layer, std::uint32_t expert,
                                     std::uint64_t tokens, const float* input, float* output, bool keep) {
  return run([&] {
    if (!model_->holds_expert(layer, expert))
      return failure(ErrorCode::NotFound, "This expert is not held here.");
    if (tokens == 0 || tokens > max_rows)
      return bad("An expert's batch must have at least one token, and not too many.");
    if (keep && !model_->trainable()) return bad("The stage was made for generation only.");
    if (keep && model_->keeps_expert_call(call)) return bad("This call is already in flight.");
    model_->expert_forward(call, layer, expert, static_cast<std::int64_t>(tokens), input, output, keep);
    return success();
  });
}

Status StageBoundary::expert_backward(std::uint64_t call, const float* gradient_output,
                                      float* gradient_input) {
  return run([&] {
    if (!model_->keeps_expert_call(call))
      return failure(ErrorCode::NotFound, "No forward pass of this call is kept.");
    model_->expert_backward(call, gradient_output, gradient_input);
    return success();
  });
}

void StageBoundary::router_bias(float* bias) const {
  const std::vector<float>& own = model_->balance().biases();
  std::memcpy(bias, own.data(), own.size() * sizeof(float));
}

void StageBoundary::set_router_bias(const float* bias) {
  std::vector<float>& own = model_->balance().biases();
  std::memcpy(own.data(), bias, own.size() * sizeof(float));
}

Status StageBoundary::open_session(std::uint64_t session, std::uint32_t capacity) {
  return run([&] {
    if (model_->session(session) != nullptr) return bad("This session is already open.");
    if (capacity == 0) return bad("A session needs room for at least one position.");
    model_->open_session(session, capacity);
    return success();
  });
}

Status StageBoundary::check_scores(const compute::TokenScores& scores, std::uint32_t n) const {
  if (scores.targets == nullptr) return success();
  if (scores.logprobs == nullptr) return bad("Scores need room for the log-probabilities.");
  if (scores.top > compute::max_top_logprobs) return bad("Scores have at most 20 of the likeliest tokens.");
  if (scores.top > 0 && (scores.top_tokens == nullptr || scores.top_logprobs == nullptr))
    return bad("Scores need room for the likeliest tokens.");
  return check_tokens(scores.targets, n, -1);
}

Status StageBoundary::check(const compute::SessionPart& part) const {
  const KvCache* cache = model_->session(part.session);
  if (cache == nullptr) return failure(ErrorCode::NotFound, "This session is not open.");
  if (part.n == 0) return bad("A session grows by at least one position.");
  if (part.n > cache->capacity - cache->length)
    return failure(ErrorCode::Exhausted, "The session's cache is full.");
  compute::MicroBatch batch;
  batch.batch = 1;
  batch.sequence = part.n;
  batch.tokens = part.tokens;
  batch.input = part.input;
  if (const Status status = check(batch, false); !status.ok()) return status;
  if (model_->has_head()) return check_scores(part.scores, part.n);
  if (part.output == nullptr) return bad(no_output);
  const bool of_head = part.logits != nullptr || part.hidden != nullptr || part.scores.targets != nullptr;
  return of_head ? bad("The stage has no head, and so no logits, hidden states and scores.") : success();
}

Status StageBoundary::extend_sessions(std::uint32_t count, const compute::SessionPart* parts) {
  const bool alone = count == 1 && parts[0].n == 1 &&
                     compute::active_parameter_count(model_->shape()) < least_parallel_parameters;
  return guarded(alone ? 1 : threads_.load(), [&] {
    std::set<std::uint64_t> sessions;
    std::uint64_t rows = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (const Status status = check(parts[i]); !status.ok()) return status;
      if (!sessions.insert(parts[i].session).second) return bad("A session may have one part in a call.");
      rows += parts[i].n;
    }
    if (rows == 0) return bad("No session is given.");
    if (rows * model_->shape().experts_per_token > max_rows)
      return bad("The sessions grow by too many positions in one call.");
    model_->extend_sessions({parts, parts + count});
    return success();
  });
}

}  // namespace neuroshard::model
