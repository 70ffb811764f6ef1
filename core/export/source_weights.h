// The weights of a checkpoint, read for an export: first all of them against the checkpoint's hash, then tensor by tensor
// in any order. The second reading must have the hashes of the first, so damage on the way is noticed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/checkpoint/catalogue.h"
#include "core/checkpoint/loader.h"
#include "core/compute/slot.h"
#include "core/storage/file_env.h"
#include "core/tensor/safetensors.h"

namespace neuroshard::exporting {

// Bytes read of a known total, for the progress of an export.  Threads: one.
class ExportMeter {
 public:
  ExportMeter(const checkpoint::Progress& progress, const CancelToken& cancel)
      : progress_(progress), cancel_(cancel) {}
  void set_total(std::uint64_t bytes) { total_ = bytes; }
  // Cancelled when the token says so. Reports about every 16 MiB.
  Expected<void> add(std::uint64_t bytes);

 private:
  const checkpoint::Progress& progress_;
  const CancelToken& cancel_;
  std::uint64_t total_ = 0, done_ = 0, reported_ = 0;
};

// Threads: one.
class SourceWeights {
 public:
  using Use = std::function<Expected<void>(Span<const float>)>;

  // Reads the whole file once. The meter's total becomes twice the file: every tensor is expected to be read again.
  // Corrupt: the file differs from its hash, or is not the model of the manifest. InvalidArgument: the checkpoint has
  // only a part of the model, or a state that other programs do not know (balancing biases of the router).
  static Expected<SourceWeights> open(storage::FileEnv& env, const checkpoint::Entry& entry,
                                      ExportMeter& meter);

  const compute::ModelShape& shape() const { return shape_; }
  // A parameter of compute::slot_parameters(), in pieces of a multiple of `unit` floats, about a megabyte each or one unit.
  // unit divides the parameter's count.
  Expected<void> read(const compute::ParameterInfo& parameter, std::uint64_t unit, const Use& use);

 private:
  SourceWeights(compute::ModelShape shape, ExportMeter& meter) : shape_(shape), meter_(&meter) {}
  Expected<void> check_layout();
  Expected<void> verify(const Hash256& expected);

  compute::ModelShape shape_;
  ExportMeter* meter_;
  std::unique_ptr<tensor::ByteSource> file_;
  tensor::SafetensorsHeader header_;
  std::vector<Hash256> hashes_;  // of each tensor, as in the header
};

}  // namespace neuroshard::exporting
