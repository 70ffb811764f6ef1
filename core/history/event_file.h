// TensorBoard's event files: records of length, masked CRC-32C, data, masked CRC-32C, each a protobuf message Event
// (TensorFlow's core/util/event.proto and core/framework/summary.proto). Only the few fields that scalars need are written.
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"

namespace neuroshard::history {

// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78), and the form in which the records hold it.
std::uint32_t crc32c(ByteSpan bytes);
std::uint32_t masked_crc32c(ByteSpan bytes);

struct Scalar {
  std::string_view tag;
  float value = 0;
};

// The first record of every file. wall_time: seconds since 1970.
void append_file_version(double wall_time, Bytes* file);
// One record with the scalars of a step. Readers expect ascending steps.
void append_scalars(double wall_time, std::int64_t step, const std::vector<Scalar>& scalars, Bytes* file);

}  // namespace neuroshard::history
