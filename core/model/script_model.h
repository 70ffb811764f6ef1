// compute::ScriptModel over a TorchScript module, and compute::ScriptBlock over one of its pieces.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/compute/script.h"
#include "core/model/script_cut.h"
#include "core/model/script_file.h"
#include "core/model/script_profile.h"
#include "core/model/script_units.h"

namespace neuroshard::model {

class LoadedScript final : public compute::ScriptModel {
 public:
  // Throws ScriptError and what LibTorch throws.
  LoadedScript(const compute::ScriptHost& host, const compute::ScriptOptions& options);

  void release() override { delete this; }
  std::uint32_t node_count() const override { return static_cast<std::uint32_t>(units_.nodes.size()); }
  compute::ScriptNode node(std::uint32_t index) const override;
  std::uint32_t group_count() const override { return static_cast<std::uint32_t>(units_.groups.size()); }
  Span<const std::uint32_t> group(std::uint32_t index) const override { return units_.groups[index]; }
  std::uint32_t companions() const override { return companions_; }
  double launch_seconds() const override { return profile_.launch_seconds; }
  compute::Status make_batches(std::uint32_t count) override;
  compute::Status run_whole(std::uint32_t batch) override;
  compute::Status cut(Span<const std::uint32_t> block_of, std::uint32_t blocks) override;
  std::uint32_t link_count() const override { return static_cast<std::uint32_t>(cut_.links.size()); }
  compute::ScriptLink link(std::uint32_t index) const override;
  compute::Status block_file(std::uint32_t block, Span<const std::uint8_t>* file) override;
  compute::Status driver_message(std::uint32_t batch, std::uint32_t link,
                                 Span<const std::uint8_t>* message) override;
  compute::Status compare(std::uint32_t batch, std::uint32_t link, Span<const std::uint8_t> message,
                          compute::ScriptDeviation* deviation) override;

 private:
  using Values = std::vector<c10::IValue>;
  void check_arguments() const;
  Values make_arguments(std::uint64_t batch) const;
  void check_batch(std::uint32_t batch, std::uint32_t link) const;

  torch::jit::Module module_;  // as it was saved: the reference
  std::vector<compute::ScriptSample> samples_;
  std::uint64_t seed_;
  std::uint32_t companions_;
  ScriptStructure structure_;
  ScriptProfile profile_;
  ScriptUnits units_;
  ScriptProgram whole_;
  ScriptCut cut_;
  std::string block_file_;
  std::vector<Values> arguments_, expected_;  // by micro-batch; tensors and numbers of the results
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint8_t>> messages_;
};

class LoadedBlock final : public compute::ScriptBlock {
 public:
  explicit LoadedBlock(const compute::ScriptHost& host);

  void release() override { delete this; }
  std::uint32_t input_count() const override { return static_cast<std::uint32_t>(inputs_.size()); }
  std::uint32_t output_count() const override { return output_count_; }
  compute::Status take(std::uint32_t first, std::uint32_t count, Span<const std::uint8_t> message) override;
  compute::Status run() override;
  compute::Status give(std::uint32_t first, std::uint32_t count, Span<const std::uint8_t>* message) override;

 private:
  ScriptGraph graph_;
  ScriptProgram program_;
  std::uint32_t output_count_;
  std::vector<c10::IValue> inputs_, outputs_;
  std::vector<bool> taken_;
  std::vector<std::uint8_t> message_;
};

// The largest deviation of what came from what was expected.
void add_deviation(const c10::IValue& value, const c10::IValue& expected, compute::ScriptDeviation& worst);

}  // namespace neuroshard::model
