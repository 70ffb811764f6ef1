// The common parts of the rows that compute: the module in one precision, small models, a training step, and
// the matrix product that is their yardstick.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/node/commands/bench/bench_row.h"
#include "core/compute/module.h"

namespace neuroshard::app {

// The module in the wanted precision ("auto": what it chooses). Stages made from then on have it.
Expected<compute::LoadedModule> load_bench_module(const BenchContext& context, const std::string& precision);

// Products of the side in the precision, in operations. This is the upper limit for the model's products.
Contender gemm_contender(compute::Module& module, const std::string& name, const std::string& precision,
                         std::uint32_t side);

// A decoder of `layers` layers with heads of 64 or less; k experts of `experts` per token.
compute::ModelShape bench_shape(std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads,
                                std::uint32_t kv_heads, std::uint32_t ffn, std::uint32_t vocab,
                                std::uint32_t sequence);

// Forward and backward: six operations per active parameter and token (Kaplan et al. 2020), and the
// attention's two products over half of the positions on average.
double operations_per_token(const compute::ModelShape& shape);

// A stage with its initial weights and one batch that it is trained on again and again.
class TrainingStep {
 public:
  // With embedding and head, or the layers alone.
  static Expected<std::unique_ptr<TrainingStep>> make(compute::Module& module,
                                                      const compute::ModelShape& shape,
                                                      const compute::RouterOptions& router,
                                                      std::uint32_t sequences, bool whole);

  Expected<void> forward_backward();
  // Its parts. A forward pass drops the micro-batch before, wherever that one is.
  Expected<void> forward();
  Expected<void> backward();
  Expected<void> backward_input();
  Expected<void> backward_weights();
  // The optimizer's step alone; it zeroes the gradients.
  Expected<void> update();
  // One step of one micro-batch: a lower bound, since real steps accumulate several.
  Expected<void> whole_step();
  void zero_gradients() { stage_->zero_gradients(); }
  // Gradients as after a backward pass, for update() alone.
  Expected<void> fill_gradients();

  double tokens() const { return static_cast<double>(std::uint64_t{sequences_} * shape_.sequence); }
  const compute::ModelShape& shape() const { return shape_; }
  std::uint64_t parameters() const;

 private:
  TrainingStep(const compute::ModelShape& shape, std::uint32_t sequences, bool whole);
  Expected<void> initialise();

  compute::ModelShape shape_;
  std::uint32_t sequences_;
  bool whole_;
  compute::StagePtr stage_;
  std::vector<std::int32_t> tokens_, targets_;
  std::vector<float> input_, output_, upstream_, gradient_;
  std::uint64_t id_ = 0;
  std::uint64_t step_ = 0;
};

// gemm, isa, precision, threads.
void add_compute_notes(const compute::LoadedModule& loaded, BenchReport& report);

}  // namespace neuroshard::app
