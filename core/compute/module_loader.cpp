// Opens a compute module: the one place that knows dlopen.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "core/base/clock.h"
#include "core/compute/module.h"

namespace neuroshard::compute {
namespace {

constexpr std::size_t max_path_bytes = 4096;

// Services that the module may use while it starts; its log line must not outlive the logger, so it is not
// kept beyond that.
class StartServices final : public HostServices {
 public:
  explicit StartServices(Logger& logger) : logger_(logger) {}
  ~StartServices() = default;
  void log(std::uint32_t level, const char* text) override {
    constexpr auto highest = static_cast<std::uint32_t>(LogLevel::Error);
    logger_.write({static_cast<LogLevel>(level < highest ? level : highest), "compute", text});
  }
  std::int64_t monotonic_nanoseconds() override { return clock_.monotonic_now().time_since_epoch().count(); }

 private:
  Logger& logger_;
  SystemClock clock_;
};

Expected<std::string> own_directory() {
  std::array<char, max_path_bytes> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0 || static_cast<std::size_t>(length) >= path.size()) {
    return make_error(
        ErrorCode::Io,
        "The program's own path can't be read (/proc/self/exe), so its compute module can't be found.");
  }
  const std::string text(path.data(), static_cast<std::size_t>(length));
  return text.substr(0, text.find_last_of('/'));
}

// A kind becomes part of a file name: letters, digits and underscores only.
bool is_plain_name(const std::string& kind) {
  if (kind.empty() || kind.size() > 32) return false;
  for (const char c : kind) {
    if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_') return false;
  }
  return true;
}

Expected<ModuleEntry> open_entry(const std::string& path) {
  if (access(path.c_str(), R_OK) != 0) {
    return make_error(
        ErrorCode::NotFound,
        fmt::format("The compute module {} was not found or can't be read; reinstall NeuroShard, or build it "
                    "with NS_COMPUTE_MODULE=ON.",
                    path));
  }
  // LOCAL: LibTorch's hundreds of libraries stay out of the program's own symbols. Never closed: LibTorch
  // can't be.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return make_error(ErrorCode::Unavailable, fmt::format("The compute module {} can't be loaded: {}", path,
                                                          reason != nullptr ? reason : "unknown reason"));
  }
  void* entry = dlsym(library, module_entry_name);
  if (entry == nullptr) {
    return make_error(ErrorCode::Unsupported, fmt::format("{} is not a compute module of NeuroShard.", path));
  }
  return reinterpret_cast<ModuleEntry>(entry);
}

// A thread that waits for the others spins before it sleeps. The OpenMP runtime's default (milliseconds)
// burns the cores that other programs need: on a machine shared with other work, training took five times as
// long. Read once, while the runtime loads; what the user has chosen stays.
void limit_spinning() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "2000", 0);
}

// LibTorch reads this once, while it loads.
void limit_torch(const char* max_isa) {
  if (std::strcmp(max_isa, "avx2") == 0) setenv("ATEN_CPU_CAPABILITY", "avx2", 1);
  if (std::strcmp(max_isa, "sse4") == 0) setenv("ATEN_CPU_CAPABILITY", "default", 1);
}

}  // namespace

const char* module_build_id() {
  return NS_COMPUTE_BUILD_ID;
}

Expected<LoadedModule> load_module_file(const std::string& path, const ModuleOptions& options, Logger& logger,
                                        std::uint32_t abi_version, const std::string& build_id) {
  limit_torch(options.max_isa);
  limit_spinning();
  NS_ASSIGN_OR_RETURN(const ModuleEntry entry, open_entry(path));
  StartServices services(logger);
  Status status;
  LoadedModule loaded;
  loaded.module = entry(abi_version, build_id.c_str(), &services, &options, &status);
  if (loaded.module == nullptr) {
    Error error = to_error(status);
    if (error.code == ErrorCode::Unsupported && abi_version == module_abi_version &&
        build_id == module_build_id()) {
      return error;
    }
    if (error.code == ErrorCode::Unsupported) {
      error.message =
          fmt::format("{} ({}) NeuroShard was updated while it ran: restart it.", error.message, path);
    }
    return error;
  }
  loaded.info = loaded.module->info();
  return loaded;
}

Expected<LoadedModule> load_module(const std::string& kind, const ModuleOptions& options, Logger& logger) {
  if (!is_plain_name(kind)) {
    return make_error(ErrorCode::InvalidArgument,
                      "The compute module's kind must be a plain word such as \"cpu\" or \"cuda\".");
  }
  NS_ASSIGN_OR_RETURN(const std::string directory, own_directory());
  const std::string path = fmt::format("{}/../lib/neuroshard/compute_{}.so", directory, kind);
  return load_module_file(path, options, logger, module_abi_version, module_build_id());
}

Error to_error(const Status& status) {
  constexpr auto last = static_cast<std::int32_t>(ErrorCode::Internal);
  const std::int32_t code = status.code - 1;
  return make_error(code >= 0 && code <= last ? static_cast<ErrorCode>(code) : ErrorCode::Internal,
                    status.message);
}

Expected<StagePtr> make_stage(Module& module, const StageSpec& spec) {
  Status status;
  StagePtr stage(module.create_stage(spec, &status));
  if (stage == nullptr) return to_error(status);
  return stage;
}

Expected<ScriptModelPtr> open_script(Module& module, const ScriptHost& host, const ScriptOptions& options) {
  Status status;
  ScriptModelPtr model(module.open_script(host, options, &status));
  if (model == nullptr) return to_error(status);
  return model;
}

Expected<ScriptBlockPtr> open_script_block(Module& module, const ScriptHost& host) {
  Status status;
  ScriptBlockPtr block(module.open_script_block(host, &status));
  if (block == nullptr) return to_error(status);
  return block;
}

}  // namespace neuroshard::compute
