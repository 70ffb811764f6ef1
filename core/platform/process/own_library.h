// Libraries of this program that are opened on demand: lib/neuroshard/FILE beside the program's folder. Each
// has one extern "C" entry that takes a build id and gives what the library offers, or null to another build.
#pragma once

#include <string>

#include "core/base/expected.h"

namespace neuroshard::platform {

struct OwnLibrary {
  std::string path;
  void* entry = nullptr;  // null: the library has no such symbol
};

// Never closed again. `what` is missing without it, for the message ("the control service").
// Unavailable: the file is missing or can't be loaded.  Threads: any.
Expected<OwnLibrary> open_own_library(const char* file, const char* entry, const char* what);

Error other_build(const OwnLibrary& library);

// The entry's table, as a copy.  Unavailable: as above, or the library is of another build.
template <class Offer>
Expected<Offer> load_own_library(const char* file, const char* entry, const char* build_id,
                                 const char* what) {
  NS_ASSIGN_OR_RETURN(const OwnLibrary library, open_own_library(file, entry, what));
  const auto enter = reinterpret_cast<const Offer* (*)(const char*)>(library.entry);
  const Offer* const offer = enter != nullptr ? enter(build_id) : nullptr;
  if (offer == nullptr) return other_build(library);
  return *offer;
}

}  // namespace neuroshard::platform
