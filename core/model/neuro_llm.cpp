#include "core/model/neuro_llm.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/model/adamw.h"
#include "core/model/products.h"
#include "core/model/tensors.h"

namespace neuroshard::model {

using compute::SlotId;
using compute::SlotKind;

NeuroLlm::NeuroLlm(const compute::StageSpec& spec, const Backend& backend)
    : context_{backend, spec.shape, spec.router, &rope_},
      rope_(spec.shape.head_dim, spec.shape.rope_theta),
      first_layer_(spec.first_layer),
      trainable_(spec.trainable),
      provider_(spec.experts),
      balance_(spec.layer_count, spec.shape.experts, spec.router.bias_gamma),
      weights_(make_stage_weights(spec, *backend.kernels, balance_, {})) {
  if (spec.layer_count > 0) rope_.reserve(spec.shape.sequence);
}

void NeuroLlm::change(const compute::StageSpec& spec) {
  RouterBalance balance = balance_.of_layers(first_layer_, spec.first_layer, spec.layer_count);
  StageWeights weights = make_stage_weights(spec, context_.kernels(), balance, weights_.slots);
  if (spec.layer_count > 0) rope_.reserve(spec.shape.sequence);
  // Nothing fails from here on.
  weights_ = std::move(weights);
  balance_ = std::move(balance);
  first_layer_ = spec.first_layer;
  provider_ = spec.experts;
}

bool NeuroLlm::holds_expert(std::uint32_t layer, std::uint32_t expert) const {
  return layer >= first_layer_ && layer - first_layer_ < weights_.blocks.size() &&
         expert < context_.shape.experts &&
         weights_.blocks[layer - first_layer_].mixture.experts[expert].held();
}

const KvCache* NeuroLlm::session(std::uint64_t id) const {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : &found->second;
}

at::Tensor NeuroLlm::enter(std::int64_t tokens, const std::int32_t* ids, const float* input) const {
  const std::int64_t hidden = context_.shape.hidden;
  if (!has_embed()) return copy_floats(input, {tokens, hidden});
  at::Tensor x = make_floats({tokens, hidden});
  context_.kernels().gather_rows(floats(weights_.embed.value), ids, tokens, hidden, floats(x));
  return x;
}

BlockRun NeuroLlm::run_of(const BlockRun& base, std::size_t block, std::uint64_t id, bool training) const {
  BlockRun run = base;
  run.capacity_factor = training ? context_.router.capacity_factor : 0.0f;
  run.remote.provider = provider_;
  run.remote.layer = first_layer_ + static_cast<std::uint32_t>(block);
  if (training) {
    const std::uint64_t layer = id * context_.shape.layers + run.remote.layer;
    run.remote.first_call = 1 + layer * context_.shape.experts;
  }
  return run;
}

at::Tensor NeuroLlm::run_blocks(const BlockRun& run, std::uint64_t id, at::Tensor x, MicroBatchState* keep,
                                compute::ForwardMetrics& metrics) {
  for (std::size_t i = 0; i < weights_.blocks.size(); ++i) {
    BlockState state;
    x = block_forward(context_, weights_.blocks[i], run_of(run, i, id, keep != nullptr), x, state);
    const Routing& routing = state.mixture.routing;
    if (context_.shape.experts > 1) {
      const auto weight = static_cast<double>(x.size(0)) / static_cast<double>(weights_.blocks.size());
      metrics.balance_sum += weight * routing.balance;
      metrics.z_sum += weight * routing.z;
    }
    if (keep == nullptr) continue;
    if (context_.shape.experts > 1) balance_.add_load(i, routing.counts);
    keep->blocks.push_back(std::move(state));
  }
  return x;
}

namespace {

void count_tokens(const compute::MicroBatch& batch, bool head, compute::ForwardMetrics& metrics) {
  metrics.tokens = std::uint64_t{batch.batch} * batch.sequence;
  if (!head) return;
  metrics.target_tokens = static_cast<std::uint64_t>(std::count_if(
      batch.targets, batch.targets + metrics.tokens, [](std::int32_t target) { return target >= 0; }));
}

void copy_to(const at::Tensor& source, float* target) {
  std::memcpy(target, source.data_ptr(), source.nbytes());
}

}  // namespace

void NeuroLlm::forward(std::uint64_t id, const compute::MicroBatch& batch, float* output,
                       compute::ForwardMetrics& metrics) {
  const std::int64_t tokens = std::int64_t{batch.batch} * batch.sequence;
  metrics = compute::ForwardMetrics();
  count_tokens(batch, has_head(), metrics);
  MicroBatchState state;
  state.run.batch = batch.batch;
  state.run.sequence = batch.sequence;
  if (has_embed()) state.tokens = copy_ints(batch.tokens, {tokens});
  const at::Tensor x = run_blocks(state.run, id, enter(tokens, batch.tokens, batch.input), &state, metrics);
  if (has_head()) {
    metrics.loss_sum =
        head_forward(context_, weights_.head, x, copy_ints(batch.targets, {tokens}), state.head);
  } else {
    copy_to(x, output);
  }
  kept_.emplace(id, std::move(state));
}

void NeuroLlm::backward_weights(std::uint64_t id) {
  WeightGradients gradients = std::move(owed_.extract(id).mapped());
  gradients.run();
}

void NeuroLlm::discard(std::uint64_t id) {
  kept_.erase(id);
  owed_.erase(id);
}

void NeuroLlm::backward(std::uint64_t id, const float* gradient_output, float* gradient_input,
                        WeightGradients::When when) {
  MicroBatchState state = std::move(kept_.extract(id).mapped());
  WeightGradients gradients(when);
  const std::int64_t tokens = state.run.batch * state.run.sequence;
  const std::int64_t hidden = context_.shape.hidden;
  ResidualGradient gradient;
  if (has_head()) {
    gradient = head_backward(context_, weights_.head, state.head, gradients);
  } else {
    gradient.sum = copy_floats(gradient_output, {tokens, hidden});
    gradient.rounded = narrowed(context_.kernels(), gradient.sum);
  }
  for (std::size_t i = weights_.blocks.size(); i-- > 0;) {
    gradients.add(
        [this, i, counts = state.blocks[i].mixture.routing.counts] { balance_.add_step_load(i, counts); });
    block_backward(context_, weights_.blocks[i], run_of(state.run, i, id, true), state.blocks[i], gradient,
                   gradients);
  }
  if (has_embed()) {
    gradients.add([this, rows = gradient.sum, ids = state.tokens] {
      context_.kernels().scatter_add_rows(floats(rows), ints(ids), rows.size(0), rows.size(1),
                                          context_.shape.vocab, floats(weights_.embed.gradient));
    });
  } else {
    copy_to(gradient.sum, gradient_input);
  }
  if (gradients.later()) owed_.emplace(id, std::move(gradients));
}

void NeuroLlm::evaluate(const compute::MicroBatch& batch, float* output, compute::ForwardMetrics& metrics) {
  const std::int64_t tokens = std::int64_t{batch.batch} * batch.sequence;
  metrics = compute::ForwardMetrics();
  count_tokens(batch, has_head(), metrics);
  BlockRun run;
  run.batch = batch.batch;
  run.sequence = batch.sequence;
  const at::Tensor x = run_blocks(run, 0, enter(tokens, batch.tokens, batch.input), nullptr, metrics);
  if (has_head()) {
    HeadState state;
    metrics.loss_sum = head_forward(context_, weights_.head, x, copy_ints(batch.targets, {tokens}), state);
  } else {
    copy_to(x, output);
  }
}

void NeuroLlm::logits(const compute::MicroBatch& batch, float* logits) {
  BlockRun run;
  run.batch = batch.batch;
  run.sequence = batch.sequence;
  compute::ForwardMetrics metrics;
  const std::int64_t tokens = run.batch * run.sequence;
  head_logits(context_, weights_.head,
              run_blocks(run, 0, enter(tokens, batch.tokens, batch.input), nullptr, metrics), logits);
}

bool NeuroLlm::step(const std::vector<compute::SlotStep>& steps, compute::StepMetrics& metrics) {
  if (!adamw_step(context_.kernels(), weights_.slots, steps, compute::model_parameter_count(context_.shape),
                  metrics))
    return false;
  for (const compute::SlotStep& step : steps) {
    const SlotId id = weights_.slots[step.slot].id;
    if (id.kind == SlotKind::Layer) balance_.step(id.layer - first_layer_);
  }
  return true;
}

void NeuroLlm::zero_gradients() {
  for (SlotState& slot : weights_.slots) {
    if (slot.gradient.defined()) slot.gradient.zero_();
  }
  balance_.drop_step_load();
}

void NeuroLlm::parameters_changed() {
  for (SlotState& slot : weights_.slots) pack_slot(context_.kernels(), slot);
}

void NeuroLlm::expert_forward(std::uint64_t call, std::uint32_t layer, std::uint32_t expert,
                              std::int64_t tokens, const float* input, float* output, bool keep) {
  ExpertCall state;
  state.block = layer - first_layer_;
  state.expert = expert;
  const Kernels& kernels = context_.kernels();
  state.x = make_activations(kernels, {tokens, context_.shape.hidden});
  kernels.narrow(input, state.x.numel(), raw(state.x));
  state.gate_up = make_activations(kernels, {tokens, 2 * std::int64_t{context_.shape.ffn}});
  experts_forward(context_.backend, {{&weights_.blocks[state.block].mixture.experts[expert], state.x,
                                      state.gate_up, make_activations(kernels, {tokens, context_.shape.ffn}),
                                      wrap_floats(output, {tokens, context_.shape.hidden})}});
  if (keep) expert_calls_.emplace(call, std::move(state));
}

void NeuroLlm::expert_backward(std::uint64_t call, const float* gradient_output, float* gradient_input) {
  const auto found = expert_calls_.find(call);
  const ExpertCall state = std::move(found->second);
  expert_calls_.erase(found);
  const std::int64_t tokens = state.x.size(0);
  const Kernels& kernels = context_.kernels();
  ExpertBackward pass{&weights_.blocks[state.block].mixture.experts[state.expert],
                      state.x,
                      state.gate_up,
                      narrowed(kernels, wrap_floats(gradient_output, state.x.sizes())),
                      make_floats({tokens}),
                      make_activations(kernels, {tokens, context_.shape.ffn}),
                      wrap_floats(gradient_input, state.x.sizes()),
                      make_floats({tokens})};
  pass.row_weight.fill_(1.0);  // the asker has applied the router's weight
  WeightGradients gradients(WeightGradients::When::AtOnce);
  experts_backward(context_.backend, {pass}, gradients);
}

void NeuroLlm::open_session(std::uint64_t session, std::int64_t capacity) {
  rope_.reserve(capacity);
  sessions_.emplace(
      session, make_kv_cache(context_.kernels(), capacity, static_cast<std::int64_t>(weights_.blocks.size()),
                             std::int64_t{context_.shape.kv_heads} * context_.shape.head_dim));
}

std::vector<SessionRows> NeuroLlm::rows_of_sessions(const std::vector<compute::SessionPart>& parts) {
  std::vector<SessionRows> rows;
  std::int64_t first = 0;
  for (const compute::SessionPart& part : parts) {
    rows.push_back({first, part.n, &sessions_.find(part.session)->second});
    first += part.n;
  }
  return rows;
}

// The logits of all sessions in one product.
void NeuroLlm::last_logits(const std::vector<compute::SessionPart>& parts,
                           const std::vector<SessionRows>& rows, const at::Tensor& x) const {
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].logits != nullptr) wanted.push_back(i);
  if (wanted.empty()) return;
  const auto count = static_cast<std::int64_t>(wanted.size());
  const std::int64_t vocab = context_.shape.vocab;
  const at::Tensor last = make_floats({count, x.size(1)});
  for (std::int64_t i = 0; i < count; ++i) {
    const SessionRows& session = rows[wanted[static_cast<std::size_t>(i)]];
    copy_to(rows_of(x, session.first + session.count - 1, 1), floats(last) + i * x.size(1));
  }
  const at::Tensor logits = make_floats({count, vocab});
  head_logits(context_, weights_.head, last, floats(logits));
  for (std::int64_t i = 0; i < count; ++i)
    copy_to(rows_of(logits, i, 1), parts[wanted[static_cast<std::size_t>(i)]].logits);
}

void NeuroLlm::answer_sessions(const std::vector<compute::SessionPart>& parts,
                               const std::vector<SessionRows>& rows, const at::Tensor& x) const {
  if (has_head()) last_logits(parts, rows, x);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const compute::SessionPart& part = parts[i];
    const at::Tensor own = rows_of(x, rows[i].first, rows[i].count);
    if (!has_head()) {
      copy_to(own, part.output);
      continue;
    }
    if (part.hidden != nullptr) head_hidden(context_, weights_.head, own, part.hidden);
    if (part.scores.targets != nullptr) head_scores(context_, weights_.head, own, part.scores);
  }
}

void NeuroLlm::extend_sessions(const std::vector<compute::SessionPart>& parts) {
  const std::vector<SessionRows> rows = rows_of_sessions(parts);
  const std::int64_t tokens = rows.back().first + rows.back().count;
  at::Tensor x = make_floats({tokens, std::int64_t{context_.shape.hidden}});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    copy_to(enter(rows[i].count, parts[i].tokens, parts[i].input),
            floats(x) + rows[i].first * context_.shape.hidden);
  }
  BlockRun run;
  run.batch = 1;
  run.sequence = tokens;
  for (std::size_t i = 0; i < weights_.blocks.size(); ++i)
    x = block_extend(context_, weights_.blocks[i], run_of(run, i, 0, false), x, rows, i);
  answer_sessions(parts, rows, x);
  for (const SessionRows& session : rows) session.cache->length += session.count;
}

}  // namespace neuroshard::model
