// Decides who may ask the local HTTP server. Host and Origin keep web pages out, whose names may resolve to this computer
// (DNS rebinding); the key keeps out other users of the computer. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace neuroshard::serve {

// "127.0.0.1", "localhost" or "[::1]", with the server's port; the port 80 may be left out.
bool is_own_host(std::string_view host, std::uint16_t port);
// A page of this server itself; empty (no such header) counts as one.
bool is_own_origin(std::string_view origin, std::uint16_t port);
// "Bearer KEY"; compared in constant time. An empty key matches nothing.
bool has_key(std::string_view authorization, std::string_view key);

}  // namespace neuroshard::serve
