// Conversions that snapshots and events share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <proto/control.pb.h>
#include "core/node/node.h"

namespace neuroshard::control::detail {

namespace wire = ::neuroshard::control::v1;

// An enumeration of one byte keeps a number that it has no name for.
template <class Enum>
Enum small_enum(std::uint32_t number) {
  return static_cast<Enum>(std::min<std::uint32_t>(number, std::numeric_limits<std::uint8_t>::max()));
}

inline WallTime wall_time(std::int64_t unix_ms) {
  return WallTime(std::chrono::milliseconds(unix_ms));
}

void encode(const node::StepView& from, wire::Step* to);
node::StepView decode(const wire::Step& from);
void encode(const node::EvaluationView& from, wire::Evaluation* to);
node::EvaluationView decode(const wire::Evaluation& from);
void encode(const node::Alert& from, wire::Alert* to);
node::Alert decode(const wire::Alert& from);
void encode(const node::RoundsView& from, wire::Rounds* to);
node::RoundsView decode(const wire::Rounds& from);
void encode_memory(const node::NetworkMemoryView& from, wire::NetworkMemory* to);
node::NetworkMemoryView decode_memory(const wire::NetworkMemory& from);
void encode(const node::CheckpointEntry& from, wire::CheckpointEntry* to);
node::CheckpointEntry decode(const wire::CheckpointEntry& from);
void encode(const Error& from, wire::Error* to);
Error decode(const wire::Error& from);

}  // namespace neuroshard::control::detail
