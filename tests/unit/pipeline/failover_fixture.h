// Two holders of each part of a small model, for tests in which nodes fail or lie. Header only; needs the compute module.
#pragma once

#include "tests/support/pipeline_lab.h"
#include "tests/support/time.h"

namespace neuroshard::test::failover {

using Node = PipelineLab::Node;

inline constexpr std::uint32_t sequences = 2;
inline const std::vector<std::uint32_t> three_stages = {0, 1, 3, 4};

inline compute::ModelShape four_layers() {
  compute::ModelShape shape = model_test::small_shape(1);
  shape.layers = 4;
  return shape;
}

inline pipeline::StageSchedule::Limits limits_of(std::uint64_t micro_batches_a_step) {
  pipeline::StageSchedule::Limits limits;
  limits.batch_tokens = micro_batches_a_step * sequences * four_layers().sequence;
  return limits;
}

inline std::uint64_t applied(const Node& node) {
  std::uint64_t tokens = node.worker->schedule().counted().tokens;
  for (const std::uint64_t step : node.steps) tokens += step;
  return tokens / (sequences * four_layers().sequence);
}

// Two holders of each part of a model, and who answers for one that is lost.
struct Fixture {
  const compute::ModelShape shape = four_layers();
  PipelineLab lab;
  std::vector<Node*> first, second;

  Fixture(compute::Module& module, std::uint64_t micro_batches_a_step)
      : lab(module, shape, 10 * millisecond),
        first(lab.add_stages(three_stages, limits_of(micro_batches_a_step))),
        second(lab.add_stages(three_stages, limits_of(micro_batches_a_step))) {}
  std::unique_ptr<LabDriver> drive(std::uint64_t seed, std::uint64_t count, std::uint32_t window = 6) {
    auto driver = std::make_unique<LabDriver>(lab, lab.add_node(), lab.route(first, sequences, window), shape,
                                              seed, count);
    driver->holders = [this](const auto& range) { return lab.holders(range); };
    return driver;
  }
};

}  // namespace neuroshard::test::failover
