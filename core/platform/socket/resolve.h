// From names of machines to their addresses, as the system's resolver knows them.
#pragma once

#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::platform {

// "tracker.example.org:8765", or an address as parse_endpoint takes it. In the order of the system's
// preference, 8 at most. Blocks, for seconds when no server of names answers.  Errors: InvalidArgument (not
// of this form), NotFound (no such name), Unavailable (no answer now).
Expected<std::vector<Endpoint>> resolve(const std::string& text);

// Whether the text has the form that resolve() takes; nothing is looked up.  InvalidArgument.
Expected<void> check_place(const std::string& text);

}  // namespace neuroshard::platform
