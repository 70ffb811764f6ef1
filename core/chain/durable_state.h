// The state that a node of the chain keeps on its disk: its own memory, its votes, the log of blocks, the
// state after a recent block (resume.h), and evidence that no block has yet. A damaged record counts as none,
// except for the votes. The log ends before its first damaged block, and the peers have the rest.
//
// store and logger outlive it. Threads: the executor's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "core/base/lifetime.h"
#include "core/base/log.h"
#include "core/chain/agreement.h"
#include "core/chain/history.h"
#include "core/chain/membership.h"
#include "core/chain/store.h"

namespace neuroshard::chain {

struct ResumePoint;

// The votes of before the start. Where they can't be read this node abstains at the next height, at which it
// may have voted: two votes that exclude each other would be evidence against it. Once all other voters have
// told that they took no commit of it, and no vote after view 0, it votes in a later view than any of them: what it
// signed before is in no certificate, and no view has two votes of it (docs/protocol/safety.md). A voter that may have
// forgotten votes of this height can only speak against it. Threads: one.
class KeptVotes {
 public:
  explicit KeptVotes(std::optional<AgreementMemory> votes = AgreementMemory{}) : votes_(std::move(votes)) {}

  // Of a height that ends or is given up: it may be opened again.
  void keep(AgreementMemory votes) { votes_ = std::move(votes); }
  // Of any height; that of no vote where they can't be read.
  AgreementMemory memory() const { return votes_.value_or(AgreementMemory{}); }
  // Asked for every height, from the first one after the start on. A voter alone contradicts nobody.
  bool may_vote(std::uint64_t height, std::size_t voters);
  bool abstains_at(std::uint64_t height) const { return !votes_ && abstains_at_ == height; }
  // It abstains as one of several voters of the next block.
  bool is_missed_at(const ChainTip& tip, const net::NodeId& self) const;
  // Of a node at the same height.
  struct Answer {
    std::optional<Vote> newest = {};  // of this node, there; nothing: it holds none
    std::uint32_t view = 0;           // in which the answering node works
    bool is_whole = true;             // it holds all that it took of this height
  };
  // others: the other voters. Whether this node may vote from now on.
  bool on_answer(const net::NodeId& from, std::uint64_t height, const Hash256& previous, const Answer& answer,
                 const std::vector<net::NodeId>& others);
  // This node voted up to this view and does not remember it: at this height it votes in later views only.
  void begin_after(std::uint64_t height, const Hash256& previous, std::uint32_t view);

 private:
  std::optional<AgreementMemory> votes_;  // nothing: they can't be read
  std::optional<std::uint64_t> abstains_at_;
  Hash256 previous_{};                         // of the height of the answers
  std::map<net::NodeId, std::uint32_t> free_;  // that hold nothing against it, and their views
  bool is_bound_ = false;                      // somebody showed a vote that may be in a certificate
};

class DurableState {
 public:
  // changed: is_writable() says something else now.
  DurableState(ChainStore& store, Logger& logger, const Hash256& network, std::function<void()> changed);

  // Counts this start. seed: of the beacon chains, for a data directory that has none yet.
  LocalMemory begin(const Hash256& seed);
  void save(const LocalMemory& local);
  // then: they are on the disk. A vote that can't be kept does not leave: after a restart this node could
  // contradict it.
  void save_votes(Bytes votes, std::function<void()> then);
  // A log of blocks has a record of votes beside it from its first block on; one that is missing is unreadable.
  KeptVotes votes() const;
  // Nothing: no log, or none that begins well. Applies the blocks after the saved state, or all of them.
  std::optional<History> load_history(const History::Services& services);
  // A history that came whole: the log begins anew, the old one stays beside it.
  void begin_log(const History& history);
  // The newest block of the history, and now and then the state after it, once that block is on the disk.
  void append(const History& history);
  // The history's newest block in the place of the log's.
  void replace_last(const History& history);
  std::vector<Evidence> evidence() const;
  void save(const std::vector<Evidence>& evidence);
  // False: a record could not be written, and none was since. Such a node can't vote.
  bool is_writable() const { return !failed_; }

 private:
  std::function<void(Expected<void>)> noted(std::function<void()> then = {});
  // then: the block is on the disk.
  std::function<void(Expected<void>)> logged(std::function<void()> then = {});
  Expected<History> begin_history(const History::Services& services) const;
  void append(const CertifiedBlock& block, std::function<void()> then);
  void save(const ResumePoint& point);

  ChainStore& store_;
  Logger& logger_;
  const Hash256 network_;
  const std::function<void()> changed_;
  bool failed_ = false;
  Lifetime lifetime_;
};

}  // namespace neuroshard::chain
