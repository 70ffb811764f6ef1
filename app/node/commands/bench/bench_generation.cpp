// Generating one token after another with a model that no cache holds: each token reads every weight once, so
// the memory's reading speed is the limit.
#include <fmt/format.h>

#include <algorithm>

#include "app/node/commands/bench/bench_compute.h"
#include "app/node/commands/bench/bench_streams.h"

namespace neuroshard::app {
namespace {

constexpr std::uint32_t tokens_a_turn = 4;
constexpr std::uint32_t context_length = 2048;

class Generation {
 public:
  static Expected<std::unique_ptr<Generation>> make(compute::Module& module, const compute::ModelShape& shape,
                                                    double bytes_per_weight) {
    std::unique_ptr<Generation> made(new Generation(shape, bytes_per_weight));
    compute::StageSpec spec;
    spec.shape = shape;
    spec.layer_count = shape.layers;
    spec.embed = spec.head = true;
    spec.trainable = false;
    NS_ASSIGN_OR_RETURN(made->stage_, compute::make_stage(module, spec));
    NS_RETURN_IF_ERROR(made->initialise());
    NS_RETURN_IF_ERROR(checked(made->stage_->open_session(1, context_length)));
    return made;
  }

  // Weights read, in bytes: all but the embedding table.
  double bytes_per_token() const { return bytes_per_token_; }

  Expected<double> extend() {
    std::int32_t token = 1;
    for (std::uint32_t i = 0; i < tokens_a_turn; ++i) {
      if (position_ == context_length) {
        stage_->close_session(1);
        NS_RETURN_IF_ERROR(checked(stage_->open_session(1, context_length)));
        position_ = 0;
      }
      NS_RETURN_IF_ERROR(checked(stage_->extend_session(1, 1, &token, nullptr, nullptr, logits_.data())));
      token = static_cast<std::int32_t>(std::max_element(logits_.begin(), logits_.end()) - logits_.begin());
      ++position_;
    }
    return tokens_a_turn * bytes_per_token_;
  }

 private:
  Generation(const compute::ModelShape& shape, double bytes_per_weight)
      : shape_(shape),
        bytes_per_token_(bytes_per_weight * static_cast<double>(compute::active_parameter_count(shape))),
        logits_(shape.vocab) {}
  static Expected<void> checked(const compute::Status& status) {
    if (status.ok()) return {};
    return compute::to_error(status);
  }
  // One layer's initial values serve all layers: the values do not matter for the speed.
  Expected<void> initialise() {
    std::vector<std::vector<float>> made(4);
    for (std::uint32_t i = 0; i < stage_->slot_count(); ++i) {
      const compute::SlotBuffers slot = stage_->slot(i);
      std::vector<float>& values = made[static_cast<std::size_t>(slot.id.kind)];
      if (values.empty()) {
        values.resize(slot.count);
        compute::initialise_slot(shape_, slot.id, Hash256{1}, {values.data(), values.size()});
      }
      NS_RETURN_IF_ERROR(checked(stage_->copy_in(i, compute::SlotBuffer::Parameters, values.data())));
    }
    stage_->parameters_changed();
    return {};
  }

  compute::ModelShape shape_;
  double bytes_per_token_;
  std::vector<float> logits_;
  compute::StagePtr stage_;
  std::uint32_t position_ = 0;
};

}  // namespace

Expected<BenchReport> bench_generation(BenchContext& context) {
  const compute::ModelShape shape = bench_shape(12, 1024, 16, 4, 2816, 4096, 256);
  NS_ASSIGN_OR_RETURN(compute::LoadedModule loaded, load_bench_module(context, "fp32"));
  NS_ASSIGN_OR_RETURN(const auto single, Generation::make(*loaded.module, shape, 4));
  std::vector<Contender> contenders = {{"fp32", [&] { return single->extend(); }}};
  BenchReport report{{"GB/s", 1e9}, {"GB/s", 1e9}, {}, {{"fp32", true, 0.5, 0.8}}, {}};
  std::unique_ptr<Generation> half;
  auto with_bf16 = load_bench_module(context, "bf16");
  if (with_bf16.ok()) {
    loaded = *with_bf16;
    NS_ASSIGN_OR_RETURN(half, Generation::make(*loaded.module, shape, 2));
    contenders.push_back({"bf16", [&] { return half->extend(); }});
    report.targets.push_back({"bf16", true, 0.5, 0.8});
  } else {
    report.notes.emplace_back("bf16", "no units in this processor");
  }
  NS_ASSIGN_OR_RETURN(report.result, run_interleaved(context.clock, read_contender(loaded.info.threads),
                                                     contenders, context.rounds, context.stop));
  for (const Speed& speed : report.result.contenders) {
    const double bytes = speed.name == "bf16" ? half->bytes_per_token() : single->bytes_per_token();
    report.notes.emplace_back("tokens_per_s_" + speed.name, fmt::format("{:.1f}", speed.median / bytes));
  }
  report.notes.emplace_back("parameters", std::to_string(compute::model_parameter_count(shape)));
  add_compute_notes(loaded, report);
  return report;
}

}  // namespace neuroshard::app
