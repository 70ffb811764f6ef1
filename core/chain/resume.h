// The beginning of a node's history at its start. It goes on from the state after a recent block of the log,
// and applies only the blocks after that one. Without such a state it applies all blocks of the log.
//
// A node saves the state after each block whose height is a multiple of `resume_interval`, once the block is
// on the disk. It saves none after a succession, which another block may replace.
//
// The header of that block proves the registry, and its hash the blocks before it: their headers are read and
// hashed. Older bodies than a history keeps in memory are not read; the log has checksums of its own. The
// times of rounds rest on the record's checksum alone.
//
// "NSRP" · version u16, 1 · genesis · first height of the log u64 · height u64 · hash of the block · flag, and
// with 1 the opening time u64 · count u32, and the durations in ms, u32 each · registry · SHA-256 of
// "neuroshard/chain/resume/1" and all before. Integers are little-endian.
//
// Cost: a record has 3 KB and some 400 bytes a member. With 1000 members that is 1.6 KB a block, made on the
// executor's thread once in 256 blocks. A start reads 128 bytes of each older block.
//
// Threads: one. Errors: Corrupt, Unsupported, Denied (of another log; says why), NotFound, those of the store.
#pragma once

#include <cstdint>

#include "core/chain/history.h"
#include "core/chain/store.h"

namespace neuroshard::chain {

inline constexpr std::uint64_t resume_interval = 256;

struct ResumePoint {
  Hash256 genesis{};
  std::uint64_t first_height = 0;  // of the log
  std::uint64_t height = 0;
  Hash256 block{};
  RoundTimes times;
  Bytes registry;  // after the block, encoded
};
bool can_resume_after(const ChainTip& tip);
ResumePoint resume_point(const Hash256& genesis, std::uint64_t first_height, const ChainTip& tip);
Bytes encode_resume_point(const ResumePoint& point);
Expected<ResumePoint> decode_resume_point(ByteSpan bytes);

// Up to the block of the store's record. The same as first_history() with an append() of each block up to
// there, or an error.
Expected<History> resume_history(ChainStore& store, const History::Services& services);
// The log's first block.
Expected<History> first_history(ChainStore& store, const History::Services& services);

}  // namespace neuroshard::chain
