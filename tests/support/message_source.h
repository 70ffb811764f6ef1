// Chooses the next message of a fuzzer: a valid one, or one that is changed byte by byte, spliced with another, or
// changed field by field and signed again. The same seed and the same pool give the same messages.
#pragma once

#include <functional>

#include "tests/support/message_pool.h"
#include "tests/support/mutator.h"
#include "tests/support/signed_changes.h"

namespace neuroshard::test {

enum class Change : std::uint8_t { None, Fields, Bytes, Both };
std::string_view to_string(Change change);

struct FuzzMessage {
  Message message;
  Change change = Change::None;
};

// Threads: one. All outlive it.
class MessageSource {
 public:
  MessageSource(const MessagePool& pool, Mutator& mutator, SignedChanges& changes)
      : pool_(pool), mutator_(mutator), changes_(changes) {}
  // The pool is not empty.
  FuzzMessage next();
  // Valid messages only: the control.
  FuzzMessage next_valid() { return {pool_.any(mutator_.rng()), Change::None}; }

 private:
  const MessagePool& pool_;
  Mutator& mutator_;
  SignedChanges& changes_;
};

}  // namespace neuroshard::test
