// The key of the local HTTP server, for Node::http_key(). Plain values.
#pragma once

#include <cstdint>
#include <string>

namespace neuroshard::node {

enum class HttpKeyAction : std::uint8_t {
  Show,    // nothing changes
  Renew,   // a new key, which the running server asks for at once; the old one is worth nothing any more
  Remove,  // no key until the server is switched on again; refused while it is on
};

struct HttpKey {
  std::string key;   // a secret; empty: there is none
  std::string file;  // that holds it, on the node's machine
};

}  // namespace neuroshard::node
