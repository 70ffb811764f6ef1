#include "core/platform/process/own_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "core/platform/file/paths.h"

namespace neuroshard::platform {

Expected<OwnLibrary> open_own_library(const char* file, const char* entry, const char* what) {
  NS_ASSIGN_OR_RETURN(const std::string program, executable_path());
  const std::string path =
      (std::filesystem::path(program).parent_path() / "../lib/neuroshard" / file).string();
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    return make_error(ErrorCode::Unavailable, fmt::format("{} can't be loaded: {}; reinstall NeuroShard",
                                                          what, reason != nullptr ? reason : path));
  }
  return OwnLibrary{path, dlsym(library, entry)};
}

Error other_build(const OwnLibrary& library) {
  return make_error(
      ErrorCode::Unavailable,
      fmt::format("{} belongs to another build of NeuroShard: restart this program", library.path));
}

}  // namespace neuroshard::platform
