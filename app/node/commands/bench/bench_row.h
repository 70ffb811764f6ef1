// The rows of `neuroshardd bench`. A row is one or more contenders beside one yardstick, in interleaved
// rounds (core/base/interleaved.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/interleaved.h"
#include "core/base/log.h"
#include "core/base/span.h"
#include "core/storage/file_env.h"

namespace neuroshard::app {

struct BenchContext {
  const Clock& clock;
  storage::FileEnv& files;
  Logger& logger;
  const CancelToken& stop;
  InterleavedOptions rounds;
  std::string text_file;  // for the tokenizer; empty: generated text
  std::string scratch;    // an existing directory that is ours
  unsigned threads = 0;   // for computing; 0 = all
  std::string precision;  // for computing: "fp32", "bf16", "auto"
};

// A speed as people read it: units per second divided by scale.
struct BenchUnit {
  std::string name;  // "MB/s"
  double scale = 1;
};

// The targets of a contender: the aim for now, and the later one. In units (ratio false) or to the
// yardstick.
struct BenchTarget {
  std::string contender;
  bool ratio = false;
  double first = 0;
  double goal = 0;
};

struct BenchReport {
  BenchUnit unit;
  BenchUnit yardstick_unit;
  InterleavedResult result;
  std::vector<BenchTarget> targets;
  // Facts that the figures need to be understood: sizes, what was measured on. Name and value.
  std::vector<std::pair<std::string, std::string>> notes;
};

struct BenchRow {
  const char* name;
  const char* description;
  Expected<BenchReport> (*run)(BenchContext& context);
};

// Every row, in the order in which they run.
Span<const BenchRow> bench_rows();

// The yardstick of most rows: copying 32 MiB, in bytes copied.  The buffers live as long as the contender.
Contender memcpy_yardstick();
// Text for the tokenizer: words of syllables with Zipf's distribution, sentences, numbers; always the same.
std::string generated_prose(std::size_t bytes);

Expected<BenchReport> bench_memory(BenchContext& context);
Expected<BenchReport> bench_tokenizer(BenchContext& context);
Expected<BenchReport> bench_merge_learning(BenchContext& context);
Expected<BenchReport> bench_safetensors(BenchContext& context);
Expected<BenchReport> bench_startup(BenchContext& context);
Expected<BenchReport> bench_gemm(BenchContext& context);
Expected<BenchReport> bench_nanogpt(BenchContext& context);
Expected<BenchReport> bench_dense25m(BenchContext& context);
Expected<BenchReport> bench_training(BenchContext& context);
Expected<BenchReport> bench_moe_layer(BenchContext& context);
Expected<BenchReport> bench_halves(BenchContext& context);
Expected<BenchReport> bench_halves_of_solo(BenchContext& context);
Expected<BenchReport> bench_optimizer(BenchContext& context);
Expected<BenchReport> bench_generation(BenchContext& context);
Expected<BenchReport> bench_checkpoint(BenchContext& context);

}  // namespace neuroshard::app
