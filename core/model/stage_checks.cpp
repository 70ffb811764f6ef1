#include "core/model/stage_checks.h"

#include <cmath>

#include "core/compute/module.h"
#include "core/model/boundary.h"

namespace neuroshard::model {

using compute::Status;

namespace {

Status bad(const char* text) {
  return failure(ErrorCode::InvalidArgument, text);
}

Status check_router(const compute::RouterOptions& router) {
  if (!(router.balance_coefficient >= 0) || !(router.z_coefficient >= 0)) {
    return bad("The router's loss coefficients must not be negative.");
  }
  if (!(router.capacity_factor >= 0) || !(router.bias_gamma >= 0)) {
    return bad("The router's capacity factor and bias gamma must not be negative.");
  }
  return success();
}

bool share(double value) {
  return value >= 0 && value < 1;
}

bool same(const compute::ModelShape& a, const compute::ModelShape& b) {
  return a.layers == b.layers && a.hidden == b.hidden && a.head_dim == b.head_dim && a.heads == b.heads &&
         a.kv_heads == b.kv_heads && a.ffn == b.ffn && a.experts == b.experts &&
         a.experts_per_token == b.experts_per_token && a.vocab == b.vocab && a.sequence == b.sequence &&
         a.rope_theta == b.rope_theta && a.rms_epsilon == b.rms_epsilon;
}

bool same(const compute::RouterOptions& a, const compute::RouterOptions& b) {
  return a.balance_coefficient == b.balance_coefficient && a.z_coefficient == b.z_coefficient &&
         a.capacity_factor == b.capacity_factor && a.bias_gamma == b.bias_gamma;
}

}  // namespace

Status check_spec(const compute::StageSpec& spec) {
  if (const Expected<void> valid = compute::validate(spec.shape); !valid.ok()) {
    return failure(valid.error().code, valid.error().message.c_str());
  }
  if (const Status router = check_router(spec.router); !router.ok()) return router;
  if (std::uint64_t{spec.first_layer} + spec.layer_count > spec.shape.layers) {
    return bad("The stage's layers reach beyond the model's last layer.");
  }
  if (spec.layer_count == 0 && !spec.embed && !spec.head)
    return bad("The stage holds nothing: no layer, no embedding, no head.");
  if (spec.expert_held != nullptr && spec.experts == nullptr) {
    const std::uint64_t count = std::uint64_t{spec.layer_count} * spec.shape.experts;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (spec.expert_held[i] == 0) return bad("The stage lacks experts and was given no provider for them.");
    }
  }
  return success();
}

Status check_same_model(const compute::StageSpec& spec, const compute::ModelShape& shape,
                        const compute::RouterOptions& router, bool trainable) {
  if (same(spec.shape, shape) && same(spec.router, router) && spec.trainable == trainable) return success();
  return bad(
      "A stage changes its layers, ends and experts only: make a new one for another shape, router or "
      "trainable.");
}

Status check_step(const compute::StepOptions& options) {
  if (options.tokens == 0 || options.step == 0)
    return bad("A step needs its number, from 1, and its tokens.");
  if (!std::isfinite(options.learning_rate) || !(options.learning_rate >= 0))
    return bad("The learning rate must be a number, 0 or above.");
  if (!share(options.beta1) || !share(options.beta2) || !(options.epsilon > 0) ||
      !std::isfinite(options.epsilon)) {
    return bad("AdamW needs betas from 0 to below 1 and an epsilon above 0.");
  }
  if (!(options.weight_decay >= 0) || !std::isfinite(options.weight_decay) || !(options.clip >= 0) ||
      !std::isfinite(options.clip)) {
    return bad("Weight decay and clipping must be numbers, 0 or above.");
  }
  return success();
}

}  // namespace neuroshard::model
