// The version that every call carries beside its cookie (cookies.h): it must have the same major.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "core/control/service.h"

namespace neuroshard::control::detail {

inline constexpr const char* cookie_key = "neuroshard-cookie";
inline constexpr const char* version_key = "neuroshard-control";
inline constexpr int max_request_bytes = 96 << 10;  // a prompt, or paths and a few numbers
inline constexpr int max_reply_bytes = 4 << 20;     // a page of 500 log records of 1 kB, and a margin
inline constexpr int max_metadata_bytes = 8 << 10;

std::string to_text(Version version);
// The advice for a core that speaks another major.
Error wrong_version(Version core, Version program);

// Unsupported: another major, or none.
Expected<void> check_version(const grpc::ServerContextBase& context, Version own);

// Silences gRPC's own log and leaves it no cipher of TLS 1.2, so that only 1.3 is spoken. Before the first
// use of gRPC in this process; later calls do nothing.
void prepare_grpc();

}  // namespace neuroshard::control::detail
