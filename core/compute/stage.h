// A stage: a contiguous range of a model's layers on one device, with or without embedding and head. The
// pipeline, the single node and remote experts are all users of this interface. It crosses the boundary of
// the compute module: plain structs, pointers and pure-virtual calls only; no exceptions, containers, strings
// or RTTI (docs/protocol/compute-module.md). C++17.
//
// Legend: B sequences, T positions, H hidden, V vocabulary, E experts, k experts per token, N = B·T tokens.
// All arrays are dense and row-major; all reals fp32 little-endian.
//
// Threads: one at a time; the caller's compute thread. Buffers handed in need to live for the call only.
#pragma once

#include <cstdint>

#include "core/base/span.h"
#include "core/compute/model_shape.h"
#include "core/compute/slot.h"

namespace neuroshard::compute {

// code 0 = success, else 1 + the value of an ErrorCode. The text is NUL-terminated, in English, for a person.
struct Status {
  std::int32_t code = 0;
  char message[300] = {};
  bool ok() const { return code == 0; }
};

// The slot's flat buffers, owned by the stage, valid until it is released. All have `count` floats.
// moment1 and moment2 are AdamW's; gradient holds sums over tokens since the last step. Host memory for a CPU
// device; for other devices the pointers are null and copy_out / copy_in are the way.
struct SlotBuffers {
  SlotId id;
  std::uint64_t count = 0;
  float* parameters = nullptr;
  float* gradient = nullptr;
  float* moment1 = nullptr;
  float* moment2 = nullptr;
};
enum class SlotBuffer : std::uint32_t { Parameters, Gradient, Moment1, Moment2 };

struct MicroBatch {
  std::uint32_t batch = 0;               // B
  std::uint32_t sequence = 0;            // T
  const std::int32_t* tokens = nullptr;  // [B,T], needed by the stage with the embedding
  const std::int32_t* targets =
      nullptr;  // [B,T], needed by the stage with the head; -1 = no loss there. Already shifted:
                // targets[b,t] is the token that follows tokens[b,t]
  const float* input = nullptr;  // [B,T,H], needed by a stage without the embedding
};

// Sums over tokens, never means: adding up the results of micro-batches is all a caller has to do.
struct ForwardMetrics {
  std::uint64_t tokens = 0;         // N
  std::uint64_t target_tokens = 0;  // targets ≠ -1
  double loss_sum = 0;              // next-token cross-entropy, nats; 0 without the head
  double balance_sum =
      0;  // N · mean over this stage's layers of the load-balance loss (minimum 1), no coefficient
  double z_sum = 0;  // N · mean over this stage's layers of mean(logsumexp²), no coefficient
};

struct StepOptions {
  double learning_rate = 0;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double weight_decay = 0.1;  // decoupled; only where ParameterInfo::decay
  double clip = 1.0;          // a slot is clipped at clip·sqrt(P_slot / P_model); 0 = off
  std::uint64_t tokens = 0;   // the step's tokens: gradients are divided by it
  std::uint64_t step = 0;     // 1-based, for AdamW's bias correction
};

// A slot that steps, with options of its own: slots of one stage may be at different steps.
struct SlotStep {
  std::uint32_t slot = 0;  // index
  StepOptions options;
};

struct StepMetrics {
  double gradient_norm = 0;  // of all slots that stepped, after division by tokens, before clipping
  std::uint32_t clipped_slots = 0;
};

// Experts that this stage does not hold, in one batch per expert and call. Implemented by the expert
// exchange. forward: input_NH → output_NH; backward: gradient of the output → gradient of the input, and the
// holder accumulates the expert's own gradient. `call` identifies a (micro-batch, layer, expert); each is
// applied exactly once.
// A forward pass that no backward pass follows (evaluation, generation) has the call 0: nothing need be kept.
inline constexpr std::uint64_t call_without_backward = 0;
class ExpertProvider {
 public:
  virtual Status forward(std::uint64_t call, std::uint32_t layer, std::uint32_t expert, std::uint64_t tokens,
                         const float* input_NH, float* output_NH) = 0;
  virtual Status backward(std::uint64_t call, std::uint32_t layer, std::uint32_t expert, std::uint64_t tokens,
                          const float* gradient_output_NH, float* gradient_input_NH) = 0;

 protected:
  ~ExpertProvider() = default;
};

struct StageSpec {
  ModelShape shape;
  RouterOptions router;
  std::uint32_t first_layer = 0;
  std::uint32_t layer_count = 0;
  bool embed = false;
  bool head = false;
  bool trainable = true;                      // false: no gradient and moment buffers (generation only)
  const std::uint8_t* expert_held = nullptr;  // [layer_count·E], 1 = local; null = all local
  ExpertProvider* experts = nullptr;          // for the others; may be null when all are local
};

// How likely the model holds given tokens: with the logits after position i, the probability of targets[i]. All in
// natural logarithms, of the softmax of the unchanged logits. The logits exist for a few positions at a time only.
struct TokenScores {
  const std::int32_t* targets = nullptr;  // [n]; −1: not scored, its outputs stay as they are. Null: none is
  double* logprobs = nullptr;             // [n]
  std::uint32_t top = 0;               // the likeliest tokens beside, at most max_top_logprobs of sampling.h
  std::uint32_t vocabulary = 0;        // they are among the first tokens of the vocabulary
  std::int32_t* top_tokens = nullptr;  // [n,top], the likeliest first; −1 where too few logits are finite
  double* top_logprobs = nullptr;      // [n,top]
};

// A part of a call that extends sessions: what one session appends, and the results it asks for. Null: not wanted.
struct SessionPart {
  std::uint64_t session = 0;
  std::uint32_t n = 0;                   // positions, at least 1
  const std::int32_t* tokens = nullptr;  // [n], needed with the embedding
  const float* input = nullptr;          // [n,H], needed without
  float* output = nullptr;               // [n,H], needed without the head
  float* logits = nullptr;               // [V] of the last position; only with the head, as the rest
  float* hidden = nullptr;               // [n,H] after the final norm
  TokenScores scores{};
};
// So many sessions that append one position each are computed as alone.
inline constexpr std::uint32_t alike_sessions = 16;

struct MemoryUse {
  std::uint64_t live_bytes = 0;  // allocated by the module's tensors now
  std::uint64_t peak_bytes = 0;  // most since the last reset
};

class Stage {
 public:
  // Frees everything; the pointer is dead afterwards. The module allocates and the module releases.
  virtual void release() = 0;

  // Another range of layers, other ends or experts of the same model, while the stage lives: shape, router and trainable
  // must be as before, and the precision stays. Slots that both specs have keep parameters, gradients and moments, and
  // layers their router's counts and biases; nothing is copied. Other new slots start as zeros: write them, then call
  // parameters_changed. Dropped slots give their memory back at once; new ones exist before that, so that at a failure
  // (Exhausted) the stage is as before. Indices of slots and SlotBuffers from before are invalid afterwards.
  // Busy while a micro-batch, an expert call or a session is kept.
  virtual Status change(const StageSpec& spec) = 0;

  virtual std::uint32_t slot_count() const = 0;
  virtual SlotBuffers slot(std::uint32_t index) = 0;
  virtual Status copy_out(std::uint32_t slot, SlotBuffer buffer, float* target) = 0;
  virtual Status copy_in(std::uint32_t slot, SlotBuffer buffer, const float* source) = 0;
  // Must follow direct writes to SlotBuffers::parameters (restore, outer step): packed copies are rebuilt.
  virtual void parameters_changed() = 0;

  // Forward of one micro-batch, keeping what its backward needs under `id`.  output_BTH: [B,T,H], null with
  // the head.
  virtual Status forward(std::uint64_t id, const MicroBatch& batch, float* output_BTH,
                         ForwardMetrics* metrics) = 0;
  // Backward of a kept micro-batch; adds to the gradient buffers, once, and drops what was kept.
  // gradient_output_BTH: d(loss sum)/d(output), null with the head. gradient_input_BTH: null with the
  // embedding. Router losses of this stage's layers enter here, weighted by the micro-batch's tokens.
  // Each layer adds coefficient · N · router loss (Fedus et al. 2021), however many layers or stages there
  // are. After a failure the gradients are incomplete: zero_gradients() and repeat the step.
  virtual Status backward(std::uint64_t id, const float* gradient_output_BTH, float* gradient_input_BTH) = 0;
  // The two halves of backward (Qi et al. 2024, arXiv:2401.10241). A pipeline sends the result of the first half to the
  // stage before, and runs the second half while it would wait. The gradients have the same bits as after backward if
  // each half runs in the order in which backward would.
  // First half: gradient_input_BTH, as of backward. It leaves the gradient buffers as they are and keeps the factors of
  // the weights' gradients (estimate_deferred_bytes of memory_estimate.h). An ExpertProvider is asked in this half, so
  // that the holders of remote experts add to their gradients. After a failure the micro-batch is dropped.
  virtual Status backward_input(std::uint64_t id, const float* gradient_output_BTH,
                                float* gradient_input_BTH) = 0;
  // Second half: adds to the gradient buffers, once, and drops the factors. Until then step is refused, and
  // zero_gradients leaves the factors alone. After a failure as of backward.
  virtual Status backward_weights(std::uint64_t id) = 0;
  // Drops a kept micro-batch, also between the halves: this stage's gradients then hold nothing of it.
  virtual void discard(std::uint64_t id) = 0;
  // Forward without keeping anything; dropless whatever the capacity factor.
  virtual Status evaluate(const MicroBatch& batch, float* output_BTH, ForwardMetrics* metrics) = 0;

  // Divides by tokens, clips per slot, applies AdamW, zeroes the gradients, updates balancing biases. Refused while a
  // micro-batch is between the halves of its backward pass.
  virtual Status step(const StepOptions& options, StepMetrics* metrics) = 0;
  // The same for the named slots only, each at most once; gradients of the others stay. All of them or none: Corrupt,
  // with nothing changed, when a gradient of any is not finite. step is the case of all slots with the same options.
  // The balancing biases of a layer are updated when its Layer slot steps.
  virtual Status step_slots(std::uint32_t count, const SlotStep* steps, StepMetrics* metrics) = 0;
  virtual void zero_gradients() = 0;

  // Local experts of this stage for somebody else's tokens: what an ExpertProvider calls at the holder.
  // keep: remember for expert_backward under `call`.
  virtual Status expert_forward(std::uint64_t call, std::uint32_t layer, std::uint32_t expert,
                                std::uint64_t tokens, const float* input_NH, float* output_NH, bool keep) = 0;
  virtual Status expert_backward(std::uint64_t call, const float* gradient_output_NH,
                                 float* gradient_input_NH) = 0;

  // Tokens routed to each expert since the last reset. counts: [layer_count·E]; zeros for a dense model.
  virtual void router_load(std::uint64_t* counts, bool reset) = 0;
  // Selection-only balancing biases, [layer_count·E]; all zero unless RouterOptions::bias_gamma > 0.
  virtual void router_bias(float* bias) const = 0;
  virtual void set_router_bias(const float* bias) = 0;

  // Generation with a KV cache of `capacity` positions. One sequence per session.
  virtual Status open_session(std::uint64_t session, std::uint32_t capacity) = 0;
  // Appends to `count` different sessions at once: the weights are read once for all of them. Absolute positions
  // continue from what each cache holds. Up to alike_sessions parts of one position each: every part's outputs are
  // the same bits as of a call of its own. After a failure no session has grown.
  virtual Status extend_sessions(std::uint32_t count, const SessionPart* parts) = 0;
  // One session.
  Status extend_session(std::uint64_t session, std::uint32_t n, const std::int32_t* tokens,
                        const float* input_nH, float* output_nH, float* logits_V) {
    SessionPart part;
    part.session = session;
    part.n = n;
    part.tokens = tokens;
    part.input = input_nH;
    part.output = output_nH;
    part.logits = logits_V;
    return extend_sessions(1, &part);
  }
  virtual void close_session(std::uint64_t session) = 0;
  // Logits of every position without a cache, [B,T,V]; the oracle of the cached path. Only with the head.
  virtual Status logits(const MicroBatch& batch, float* logits_BTV) = 0;

 protected:
  ~Stage() = default;
};

}  // namespace neuroshard::compute
