// TorchScript models across the line of the compute module: their computation graph with costs, and their
// execution in pieces. Rules of the line: stage.h. C++17.
//
// A TorchScript file is a program, not only data: whoever runs it trusts its author.
//
// Threads: one at a time per object. Spans and texts that are returned live until the object is released,
// unless said otherwise.
#pragma once

#include <cstdint>

#include "core/base/span.h"
#include "core/compute/stage.h"

namespace neuroshard::compute {

inline constexpr std::uint32_t max_script_dims = 8;
inline constexpr std::uint32_t max_script_inputs = 64;
inline constexpr std::uint32_t max_script_nodes = 100'000;  // operations of a graph, and values of a message
inline constexpr std::uint64_t max_script_file_bytes = 64ull << 30;

// Element types of tensors that enter a model or pass between blocks. The numbers stand in messages.
enum class ScriptType : std::uint32_t { F32, F64, F16, BF16, I64, I32, I16, I8, U8, Bool };

// One tensor argument of forward().
struct ScriptSample {
  ScriptType type = ScriptType::F32;
  std::uint32_t dims = 0;
  std::int64_t sizes[max_script_dims] = {};
  std::int64_t below = 2;      // integers are drawn from 0 … below − 1; reals are normally distributed
  const void* data = nullptr;  // when not null, the first micro-batch holds these values, dense and row-major
};

// Services that the host lends for the duration of a call.
class ScriptHost {
 public:
  virtual std::uint64_t file_bytes() const = 0;
  // Exactly `bytes` of the model file.
  virtual Status read(std::uint64_t offset, void* target, std::uint64_t bytes) const = 0;
  virtual std::int64_t monotonic_nanoseconds() const = 0;

 protected:
  ~ScriptHost() = default;
};

struct ScriptOptions {
  Span<const ScriptSample> samples;  // arguments of forward() in their order
  std::uint64_t seed = 1;
  std::uint32_t passes = 5;      // timed runs of the whole graph after one that is not timed
  std::uint32_t companions = 0;  // threads that run the graph as well meanwhile, as other blocks would
};

// One node of the computation graph: an operation with what was folded into it, one more output of such a
// node (no work; shares its block), or an argument of forward().
struct ScriptNode {
  const char* id = "";
  const char* op = "";
  double operations = 0;     // multiplications and additions of products and convolutions
  double traffic_bytes = 0;  // read and written
  double seconds = 0;        // median of the timed passes, with one thread
  bool timed_only = false;   // control flow: operations and traffic are not known, seconds is
  double param_bytes = 0;    // constant tensors that it reads
  double output_bytes = 0;
  Span<const std::uint32_t> inputs;  // nodes, each once
};

// The end of a link that is not a block.
inline constexpr std::uint32_t script_driver = 0xffffffffu;

// The values that one block (or the driver, with the arguments) sends to a later one (or to the driver: the
// results) for each micro-batch, as one message. Every block has an incoming link; one from the driver may
// have no values.
struct ScriptLink {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t values = 0;
  double bytes = 0;  // of the tensors, for the sample shapes
};

struct ScriptDeviation {
  double absolute = 0;  // largest |a − b|
  double relative = 0;  // largest over the tensors of max |a − b| / max(1, max |b|); infinite where a NaN
                        // meets a number
};

// A whole model, loaded, and run once with the samples.
class ScriptModel {
 public:
  virtual void release() = 0;

  // In an order in which they can run.
  virtual std::uint32_t node_count() const = 0;
  virtual ScriptNode node(std::uint32_t index) const = 0;
  // Sets of nodes that must share a block: views and in-place operations with their base, outputs of one
  // node.
  virtual std::uint32_t group_count() const = 0;
  virtual Span<const std::uint32_t> group(std::uint32_t index) const = 0;
  // As ScriptOptions says: beside how many others the operations were timed.
  virtual std::uint32_t companions() const = 0;
  // Time of an operation that does next to nothing.
  virtual double launch_seconds() const = 0;

  // Makes `count` micro-batches (other values, same shapes) and what the model as it was saved gives for
  // them.
  virtual Status make_batches(std::uint32_t count) = 0;
  // The whole model without cuts on one of them.
  virtual Status run_whole(std::uint32_t batch) = 0;

  // Cuts the model: block_of per node, blocks numbered along the pipeline (no value flows backwards).
  // Replaces an earlier cut. InvalidArgument when the assignment is not a pipeline or divides a group.
  virtual Status cut(Span<const std::uint32_t> block_of, std::uint32_t blocks) = 0;
  // Ordered by sender, then receiver; the driver's are first and last.
  virtual std::uint32_t link_count() const = 0;
  virtual ScriptLink link(std::uint32_t index) const = 0;
  // The block as a TorchScript file: its operations and parameters only. Until the next call.
  virtual Status block_file(std::uint32_t block, Span<const std::uint8_t>* file) = 0;
  // Message of a link from the driver, and check of one to it. Until the next make_batches() or cut().
  virtual Status driver_message(std::uint32_t batch, std::uint32_t link,
                                Span<const std::uint8_t>* message) = 0;
  virtual Status compare(std::uint32_t batch, std::uint32_t link, Span<const std::uint8_t> message,
                         ScriptDeviation* deviation) = 0;

 protected:
  ~ScriptModel() = default;
};

// One block of a cut model. Values are numbered: the inputs by the links that bring them, in the links'
// order, the outputs likewise.
class ScriptBlock {
 public:
  virtual void release() = 0;
  virtual std::uint32_t input_count() const = 0;
  virtual std::uint32_t output_count() const = 0;
  // Inputs first … first + count − 1 from a message, which has to stay where it is until run() returned.
  // Corrupt when the message is not what its sizes say.
  virtual Status take(std::uint32_t first, std::uint32_t count, Span<const std::uint8_t> message) = 0;
  virtual Status run() = 0;
  // The outputs first … first + count − 1 as a message, until the next give().
  virtual Status give(std::uint32_t first, std::uint32_t count, Span<const std::uint8_t>* message) = 0;

 protected:
  ~ScriptBlock() = default;
};

}  // namespace neuroshard::compute
