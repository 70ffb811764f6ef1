// The boundary between the host program and a compute module (a shared library that links LibTorch). C++17.
// One extern "C" entry; ABI version and build id must match, else the host says "restart" instead of
// guessing.
#pragma once

#include <cstdint>

#include "core/compute/script.h"
#include "core/compute/stage.h"

namespace neuroshard::compute {

// Raise on any change of module_abi.h, script.h, stage.h, slot.h or model_shape.h.
inline constexpr std::uint32_t module_abi_version = 5;
inline constexpr char module_entry_name[] = "neuroshard_compute_module";

// Services that the host lends the module for the duration of the entry's call.
class HostServices {
 public:
  // level as LogLevel. The text need not outlive the call. Threads: any.
  virtual void log(std::uint32_t level, const char* text) = 0;
  virtual std::int64_t monotonic_nanoseconds() = 0;

 protected:
  ~HostServices() = default;
};

struct ModuleOptions {
  std::uint32_t threads = 0;       // 0 = all the process may use
  std::uint64_t memory_limit = 0;  // bytes that the module's tensors may hold together; 0 = no limit.
                                   // Exceeding it fails the call with Exhausted and leaves the stage usable
  char device[16] = "cpu";         // "cpu", "cuda:0"
  char precision[8] = "fp32";      // "fp32"; "bf16": activations and products in bf16 with fp32 sums, fp32
                                   // parameters, gradients and moments; "auto": bf16 where the processor has
                                   // units for it. Of the stages made from then on
  char max_isa[16] = "";           // force a lower kernel level: "", "avx512", "avx2", "sse4"; for tests
};

// For the line that the program prints at start. NUL-terminated.
struct ModuleInfo {
  char torch_version[32];
  char device_name[96];
  char gemm[96];  // what serves matrix products: "oneDNN 2.6.3 sgemm"
  char isa[32];   // what it dispatches to: "avx512_core_bf16"
  char precision[8];
  std::uint32_t threads;
};

class Module {
 public:
  virtual ModuleInfo info() const = 0;
  // The stage's parameters are zero: initialise them with initialise_slot or copy_in. Null and *status on
  // failure.
  virtual Stage* create_stage(const StageSpec& spec, Status* status) = 0;
  virtual Status set_threads(std::uint32_t threads) = 0;
  virtual void set_memory_limit(std::uint64_t bytes) = 0;
  virtual MemoryUse memory(bool reset_peak) = 0;
  // `repeats` products of side × side in "fp32" or "bf16" through the same path as the model's, adding their
  // operations: what the model's speed is measured by. Unsupported where the processor has no units for it.
  virtual Status gemm_yardstick(const char* precision, std::uint32_t side, std::uint32_t repeats,
                                double* operations) = 0;
  // A TorchScript model, run with the samples to see its graph and costs; or one block of a cut one. Always
  // fp32 as the file says and one thread. The host is used during the call only. Null and *status on failure.
  virtual ScriptModel* open_script(const ScriptHost& host, const ScriptOptions& options, Status* status) = 0;
  virtual ScriptBlock* open_script_block(const ScriptHost& host, Status* status) = 0;

 protected:
  ~Module() = default;
};

// The entry. Null and *status on failure. LibTorch can't be unloaded: the module
// lives as long as the process, and a later call returns the same one with the new thread count and memory
// limit.
using ModuleEntry = Module* (*)(std::uint32_t abi_version, const char* build_id, HostServices* host,
                                const ModuleOptions* options, Status* status);

}  // namespace neuroshard::compute
