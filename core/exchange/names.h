// Asks several nodes at once for the content of a name.
#pragma once

#include <functional>
#include <vector>

#include "core/exchange/messages.h"

namespace neuroshard::exchange {

struct Claim {
  net::Contact by;
  NamedContent named;
};

// A claim, and all who make it.
struct SharedClaim {
  NamedContent named;
  std::vector<net::Contact> by;
};

// Claims that agree in everything become one. The newest version first; of one version, the claim that most
// nodes make.
std::vector<SharedClaim> merge_claims(const std::vector<Claim>& claims);

// `done` gets the answers that came in time, once, later (at once if there is nobody to ask); none of them is
// proven. Nodes without content for the name are left out. `malformed` gets the nodes whose answers can't be
// read; it may be null.
// caller: outlives the answers. Threads: the caller's executor.
void ask_names(net::PeerCaller& caller, const std::vector<net::Contact>& contacts, const std::string& name,
               Duration patience, std::function<void(const net::Contact&)> malformed,
               std::function<void(std::vector<Claim>)> done);

}  // namespace neuroshard::exchange
