// An attacker that sends messages changed at random (tests/support/message_source.h), and the words about its run.
// NS_FUZZ_SEED=n repeats a run, NS_LONG=1 sends ten times as many. Header only.
#pragma once

#include <fmt/format.h>

#include <QtGlobal>
#include <optional>
#include <string>
#include <vector>

#include "core/base/rng.h"
#include "core/net/peer_caller.h"
#include "tests/support/fuzz_target.h"
#include "tests/support/message_source.h"

namespace neuroshard::test {

inline std::uint64_t first_seed() {
  const int seed = qEnvironmentVariableIntValue("NS_FUZZ_SEED");
  return seed == 0 ? 1 : static_cast<std::uint64_t>(seed);
}

inline std::uint64_t times(std::uint64_t in_ci) {
  return qEnvironmentVariableIntValue("NS_LONG") != 0 ? 10 * in_ci : in_ci;
}

// An attacker with a new key for every few calls, or with one that it keeps.
class Attacker {
 public:
  static constexpr std::size_t calls_of_one_id = 20;  // then it makes another key

  Attacker(const MessagePool& pool, const Clock& clock, std::uint64_t seed)
      : pool_(pool), clock_(clock), rng_(seed), mutator_(rng_) {
    take_key(random_key());
  }
  void take_key(crypto::KeyPair key, std::optional<std::uint32_t> member = std::nullopt) {
    key_.emplace(std::move(key));
    from_.id = crypto::node_id(key_->public_key());
    from_.endpoint = {platform::IpAddress::v4(static_cast<std::uint8_t>(50 + rng_.below(50)),
                                              static_cast<std::uint8_t>(rng_.below(256)),
                                              static_cast<std::uint8_t>(rng_.below(256)), 1),
                      9000};
    changes_.emplace(pool_, mutator_, *key_, clock_, member);
    source_.emplace(pool_, mutator_, *changes_);
    left_ = calls_of_one_id;
  }
  SignedChanges& changes() { return *changes_; }
  FuzzMessage next() {
    if (!keeps_key && left_-- == 0) take_key(random_key());
    return valid_only ? source_->next_valid() : source_->next();
  }
  std::vector<Message> own_messages() { return changes_->own_messages(); }
  const net::Caller& from() const { return from_; }
  Rng& rng() { return rng_; }

  bool keeps_key = false;
  bool valid_only = false;

 private:
  crypto::KeyPair random_key() {
    Hash256 seed{};
    for (std::uint8_t& byte : seed) byte = static_cast<std::uint8_t>(rng_.next());
    return crypto::KeyPair::from_seed(seed);
  }

  const MessagePool& pool_;
  const Clock& clock_;
  Rng rng_;
  Mutator mutator_;
  std::optional<crypto::KeyPair> key_;
  net::Caller from_;
  std::optional<SignedChanges> changes_;
  std::optional<MessageSource> source_;
  std::size_t left_ = 0;
};

inline std::string text_of(const FuzzTarget& target, std::uint64_t seed) {
  std::string text = fmt::format("seed {}, {} calls:", seed, target.calls());
  for (const auto& [kind, counts] : target.counts())
    text += fmt::format(" {} {} ({} answers, {} errors, {} faults);", to_string(kind), counts.calls,
                        counts.answers, counts.errors, counts.faults);
  for (const std::string& finding : target.findings()) text += "\n  FINDING: " + finding;
  return text;
}

}  // namespace neuroshard::test
