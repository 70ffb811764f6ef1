// Asks several nodes at once what is behind a name at present.
#pragma once

#include <functional>
#include <vector>

#include "core/exchange/messages.h"

namespace neuroshard::exchange {

struct Claim {
  net::Contact by;
  NamedContent named;
};

// `done` once, later (at once when there is nobody to ask), with what was answered in time; nothing of it is
// proven. Who has nothing behind that name is left out; whose answer can't be read is told to `malformed`,
// which may be null.  caller: outlives the answers. Threads: the caller's executor.
void ask_names(net::PeerCaller& caller, const std::vector<net::Contact>& contacts, const std::string& name,
               Duration patience, std::function<void(const net::Contact&)> malformed,
               std::function<void(std::vector<Claim>)> done);

}  // namespace neuroshard::exchange
