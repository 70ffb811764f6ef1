// Loading a compute module on demand. No program links LibTorch; the first need to compute opens it.
#pragma once

#include <memory>
#include <string>

#include "core/base/expected.h"
#include "core/base/log.h"
#include "core/compute/module_abi.h"

namespace neuroshard::compute {

// Finds "<directory of the executable>/../lib/neuroshard/compute_<kind>.so" (kind: "cpu", "cuda"), checks ABI
// version and build id, starts it. The module stays loaded until the process ends; a second call with the
// same kind returns the same module.  Errors: NotFound (names the path), Unsupported (other build: restart),
// what the module reports. Threads: any, one at a time.  Cost: about 0.7 s the first time.
struct LoadedModule {
  Module* module = nullptr;  // lives as long as the process
  ModuleInfo info{};
};
Expected<LoadedModule> load_module(const std::string& kind, const ModuleOptions& options, Logger& logger);

// The same with everything spelled out; for tests and tools.
Expected<LoadedModule> load_module_file(const std::string& path, const ModuleOptions& options, Logger& logger,
                                        std::uint32_t abi_version, const std::string& build_id);
// Names the project version, the compiler and the contents of the headers that host and module share.
const char* module_build_id();

// A failed Status as an Error.
Error to_error(const Status& status);

// Owns a stage.
struct StageDeleter {
  void operator()(Stage* stage) const { stage->release(); }
};
using StagePtr = std::unique_ptr<Stage, StageDeleter>;
Expected<StagePtr> make_stage(Module& module, const StageSpec& spec);

// Owns what a script's open call returned.
struct ScriptDeleter {
  void operator()(ScriptModel* model) const { model->release(); }
  void operator()(ScriptBlock* block) const { block->release(); }
};
using ScriptModelPtr = std::unique_ptr<ScriptModel, ScriptDeleter>;
using ScriptBlockPtr = std::unique_ptr<ScriptBlock, ScriptDeleter>;
Expected<ScriptModelPtr> open_script(Module& module, const ScriptHost& host, const ScriptOptions& options);
Expected<ScriptBlockPtr> open_script_block(Module& module, const ScriptHost& host);

// Checks a shape before anything is allocated for it: bounds, divisibility. InvalidArgument names the field.
Expected<void> validate(const ModelShape& shape);

}  // namespace neuroshard::compute
