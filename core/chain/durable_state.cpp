#include "core/chain/durable_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/byte_reader.h"
#include "core/chain/resume.h"

namespace neuroshard::chain {

DurableState::DurableState(ChainStore& store, Logger& logger, const Hash256& network,
                           std::function<void()> changed)
    : store_(store), logger_(logger), network_(network), changed_(std::move(changed)) {}

std::function<void(Expected<void>)> DurableState::noted(std::function<void()> then) {
  return [this, life = lifetime_.token(), then = std::move(then)](Expected<void> saved) {
    if (!life.alive()) return;
    const bool failed = !saved.ok();
    if (failed != std::exchange(failed_, failed)) {
      if (failed)
        logger_.error("chain", fmt::format("this node does not vote: its votes could not be saved: {}",
                                           saved.error().message));
      else
        logger_.info("chain", "votes can be saved again");
      changed_();
    }
    if (!failed && then) then();
  };
}

// The store keeps a block that it could not write, and writes it before the next one.
std::function<void(Expected<void>)> DurableState::logged(std::function<void()> then) {
  return [this, life = lifetime_.token(), then = std::move(then)](Expected<void> saved) {
    if (!life.alive()) return;
    if (!saved.ok())
      logger_.error("chain", fmt::format("a block could not be saved: {}", saved.error().message));
    else if (then)
      then();
  };
}

void DurableState::save_votes(Bytes votes, std::function<void()> then) {
  store_.save(ChainStore::Record::Votes, std::move(votes), noted(std::move(then)));
}

LocalMemory DurableState::begin(const Hash256& seed) {
  LocalMemory local;
  local.beacon_seed = seed;
  if (auto kept = store_.load(ChainStore::Record::Local); kept.ok()) {
    if (auto memory = decode_local(*kept); memory.ok())
      local = *memory;
    else
      logger_.warning("chain", memory.error().message);
  }
  ++local.boots;
  save(local);
  return local;
}

void DurableState::save(const LocalMemory& local) {
  store_.save(ChainStore::Record::Local, encode_local(local), noted());
}

KeptVotes DurableState::votes() const {
  const auto kept = store_.load(ChainStore::Record::Votes);
  const bool missing = !kept.ok() && kept.error().code == ErrorCode::NotFound;
  if (missing && store_.block_count() == 0) return KeptVotes();
  auto memory =
      kept.ok() ? decode_agreement_memory(*kept, network_) : Expected<AgreementMemory>(kept.error());
  if (missing) memory = make_error(ErrorCode::NotFound, "this node's record of its votes is missing");
  if (memory.ok()) return KeptVotes(std::move(*memory));
  logger_.error("chain",
                fmt::format("{}. So that it contradicts none of them, this node leaves the next block "
                            "to the other voters, or waits until all of them have told what they hold of it",
                            memory.error().message));
  return KeptVotes(std::nullopt);
}

bool KeptVotes::may_vote(std::uint64_t height, std::size_t voters) {
  if (votes_) return true;
  if (!abstains_at_) abstains_at_ = height;
  return height != *abstains_at_ || voters == 1;
}

bool KeptVotes::is_missed_at(const ChainTip& tip, const net::NodeId& self) const {
  return abstains_at(tip.height() + 1) && tip.committee->size() > 1 && tip.committee->position(self);
}

bool KeptVotes::on_answer(const net::NodeId& from, std::uint64_t height, const Hash256& previous,
                          const Answer& answer, const std::vector<net::NodeId>& others) {
  if (!abstains_at(height)) return false;
  if (previous_ != previous) {
    free_.clear();
    is_bound_ = false;
  }
  previous_ = previous;
  // A vote of a later view may hide a commit of an earlier one. It binds also when its holder forgets it.
  const auto& newest = answer.newest;
  is_bound_ = is_bound_ || (newest && (newest->step != VoteStep::Prepare || newest->view > 0));
  // Votes of views that are far behind are forgotten.
  if (answer.is_whole && answer.view <= views_kept) free_[from] = answer.view;
  if (is_bound_) return false;
  std::uint32_t view = 0;
  for (const net::NodeId& id : others) {
    const auto told = free_.find(id);
    if (told == free_.end()) return false;
    view = std::max(view, told->second);
  }
  votes_.emplace();
  begin_after(height, previous, view);
  return true;
}

void KeptVotes::begin_after(std::uint64_t height, const Hash256& previous, std::uint32_t view) {
  if (!votes_) return;
  if (votes_->height != height || votes_->previous != previous) {
    votes_.emplace();
    votes_->height = height;
    votes_->previous = previous;
  }
  if (votes_->view > view) return;
  votes_->view = view + 1;
  votes_->prepared.reset();
}

Expected<History> DurableState::begin_history(const History::Services& services) const {
  auto resumed = resume_history(store_, services);
  if (resumed.ok()) return resumed;
  const std::uint64_t count = store_.block_count();
  // A new log has few blocks and no saved state yet.
  if (count > resume_interval || resumed.error().code != ErrorCode::NotFound)
    logger_.info("chain", fmt::format("this start applies all {} blocks of the log again: {}", count,
                                      resumed.error().message));
  return first_history(store_, services);
}

std::optional<History> DurableState::load_history(const History::Services& services) {
  if (store_.block_count() == 0) return std::nullopt;
  auto begun = begin_history(services);
  if (!begun.ok()) return std::nullopt;
  History& history = *begun;
  const std::uint64_t begin = history.tip().height();
  const std::uint64_t end = store_.first_block() + store_.block_count();
  for (std::uint64_t height = begin + 1; height < end; ++height) {
    const auto bytes = store_.load_block(height);
    if (!bytes.ok()) break;
    const auto block = decode_certified(*bytes, network_, services.cache);
    if (!block.ok() || !history.append(*block, History::Origin::OwnDisk).ok()) break;
  }
  // Else a start before the next height that is due would apply them again.
  const ChainTip& tip = history.tip();
  if (tip.height() - begin >= resume_interval && can_resume_after(tip))
    save(resume_point(history.genesis(), history.first_height(), tip));
  return std::move(history);
}

void DurableState::begin_log(const History& history) {
  if (const auto votes = store_.load(ChainStore::Record::Votes);
      !votes.ok() && votes.error().code == ErrorCode::NotFound)
    store_.save(ChainStore::Record::Votes, encode_agreement_memory({}), noted());
  store_.begin_log(history.first_height(), logged());
  for (std::uint64_t height = history.first_height(); height <= history.tip().height(); ++height)
    if (const CertifiedBlock* block = history.find(height)) append(*block, {});
}

void DurableState::append(const CertifiedBlock& block, std::function<void()> then) {
  store_.append_block(block.block->header.height, block.bytes, logged(std::move(then)));
}

void DurableState::append(const History& history) {
  const ChainTip& tip = history.tip();
  std::function<void()> then;
  if (tip.height() % resume_interval == 0 && can_resume_after(tip))
    then = [this, genesis = history.genesis(), first = history.first_height(), tip = tip] {
      save(resume_point(genesis, first, tip));
    };
  append(*history.find(tip.height()), std::move(then));
}

void DurableState::replace_last(const History& history) {
  store_.drop_last(logged());
  append(history);
}

void DurableState::save(const ResumePoint& point) {
  store_.save(ChainStore::Record::Resume, encode_resume_point(point),
              [this, life = lifetime_.token()](Expected<void> saved) {
                if (life.alive() && !saved.ok())
                  logger_.warning("chain",
                                  fmt::format("the state of the chain could not be saved, so the next "
                                              "start takes longer: {}",
                                              saved.error().message));
              });
}

std::vector<Evidence> DurableState::evidence() const {
  std::vector<Evidence> all;
  const auto kept = store_.load(ChainStore::Record::Evidence);
  if (!kept.ok()) return all;
  ByteReader reader(*kept);
  while (reader.good() && !reader.at_end())
    if (auto one = decode_evidence(reader.part()); one.ok()) all.push_back(std::move(*one));
  return all;
}

void DurableState::save(const std::vector<Evidence>& evidence) {
  Bytes bytes;
  for (const Evidence& one : evidence) append_part(bytes, encode_evidence(one));
  store_.save(ChainStore::Record::Evidence, std::move(bytes), noted());
}

}  // namespace neuroshard::chain
