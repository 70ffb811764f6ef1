// The records of a node as files and lists: part of the seam (node.h), with its rules about threads and errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/node/node.h"

namespace neuroshard::node {

// One side of an evaluation: the model, or the n-gram baseline beside it.
struct EvaluationScore {
  double loss = 0;           // nats per token of the checkpoint's tokenizer
  double bits_per_byte = 0;  // of the text
  std::uint32_t cloze_right = 0;
};
// `neuroshardd eval` measured one checkpoint on one text.
struct EvaluationEntry {
  WallTime at{};
  std::string checkpoint, checkpoint_hash;  // name; hex of its manifest
  std::uint64_t step = 0;
  std::string text, text_hash;  // name of the file; hex of its bytes
  std::uint64_t text_bytes = 0, text_tokens = 0;
  EvaluationScore model, baseline;
  std::string baseline_text;  // what the n-grams were learned from
  std::uint32_t cloze_questions = 0, cloze_choices = 0;
};
struct EvaluationQuery {
  std::size_t limit = 100;  // the newest; 1 … max_page
};
struct EvaluationPage {
  std::vector<EvaluationEntry> entries;  // newest first
  bool more = false;
};

class Records {
 public:
  virtual ~Records() = default;
  // All series to a new file ("csv", "jsonl") or a new folder ("tensorboard": event files) on the node's machine. path:
  // absolute. InvalidArgument: the format or the path. AlreadyExists: something has that name.
  virtual Expected<CommandId> export_history(const std::string& format, const std::string& path) = 0;
  virtual Expected<void> query_evaluations(const EvaluationQuery& query, Reply<EvaluationPage> reply) = 0;
};

}  // namespace neuroshard::node
