#include "core/chain/sync.h"

#include <algorithm>
#include <utility>

#include "core/platform/socket/ip_address.h"

namespace neuroshard::chain {
namespace {

constexpr Duration answers_live = std::chrono::minutes(2);
constexpr Duration compare_again_after = std::chrono::minutes(1);
constexpr Duration believe_again_after = std::chrono::minutes(1);
constexpr Duration look_again_after = std::chrono::minutes(1);

}  // namespace

ChainSync::ChainSync(History::Services services, net::PeerCaller& caller, Peers& peers, Executor& executor,
                     const Clock& clock, SyncOptions options, TrustAnchor trust, const net::NodeId& self,
                     std::uint64_t seed, StrangerFetches& strangers, Host host)
    : services_(services),
      caller_(caller),
      peers_(peers),
      executor_(executor),
      clock_(clock),
      options_(options),
      trust_(std::move(trust)),
      self_(self),
      rng_(seed),
      strangers_(strangers),
      host_(std::move(host)) {}

void ChainSync::tick() {
  const MonotonicTime now = clock_.monotonic_now();
  if (now < next_poll_) return;
  next_poll_ = now + options_.poll;
  for (auto at = answers_.begin(); at != answers_.end();)
    at = now - at->second.at > answers_live ? answers_.erase(at) : std::next(at);
  std::vector<net::Contact> contacts = peers_.some();
  for (std::size_t i = contacts.size(); i > 1; --i) std::swap(contacts[i - 1], contacts[rng_.below(i)]);
  for (const net::Contact& contact : contacts) {
    if (counted(asked_) >= options_.asked_at_once) break;
    if (contact.id != self_) ask_status(contact);
  }
}

void ChainSync::call(const net::Contact& contact, net::Method method, Bytes request, net::CallDone done) {
  caller_.call(contact, method, std::move(request), options_.allowed,
               [this, life = lifetime_.token(), contact, done = std::move(done)](Expected<Bytes> answer) {
                 if (!life.alive()) return;
                 const History* own = host_.history();
                 if (answer.ok() && own != nullptr && own->tip().registry->find(contact.id) == nullptr)
                   strangers_.answered(contact, answer->size());
                 done(std::move(answer));
               });
}

void ChainSync::ask_status(const net::Contact& contact) {
  if (!asked_.insert(contact.id).second) return;
  call(contact, net::Method::ChainStatus, encode_status_request(host_.status_request()),
       [this, contact](Expected<Bytes> answer) {
         asked_.erase(contact.id);
         if (answer.ok())
           if (const auto status = decode_status(*answer); status.ok()) got_status(contact, *status);
         free_stranger();
       });
}

void ChainSync::got_status(const net::Contact& contact, const ChainStatus& status) {
  answers_[contact.id] = {contact, status, clock_.monotonic_now()};
  if (!first_answer_) first_answer_ = clock_.monotonic_now();
  host_.on_status(contact, status);
  consider(contact, status);
}

void ChainSync::consider(const net::Contact& contact, const ChainStatus& status) {
  if (status.genesis == Hash256{}) return;
  const History* own = host_.history();
  if (own != nullptr && own->genesis() == status.genesis) {
    if (status.height > own->tip().height()) fetch_blocks(contact);
  } else if (wants_foreign(status)) {
    fetch_foreign(contact, status.genesis);
  }
}

// A claim decides only whether to ask: everything that comes of it is verified beside the own history.
bool ChainSync::wants_foreign(const ChainStatus& status) const {
  if (trust_.genesis && *trust_.genesis != status.genesis) return false;
  const auto compared = compared_.find(status.genesis);
  if (compared != compared_.end() && answering(status.genesis) <= compared->second.second &&
      clock_.monotonic_now() - compared->second.first < compare_again_after)
    return false;
  const History* own = host_.history();
  if (own == nullptr) {
    const bool asked_long_enough =
        first_answer_ && clock_.monotonic_now() - *first_answer_ >= options_.ask_for;
    return !trust_.is_open() || groups_asked() >= options_.address_groups || asked_long_enough;
  }
  // Two open starts that meet. Later only a person decides.
  return trust_.is_open() && !own->is_partial() && own->tip().registry->round() < most_rounds_to_merge;
}

std::size_t ChainSync::groups_asked() const {
  std::set<std::uint64_t> groups;
  for (const auto& [id, answer] : answers_) groups.insert(platform::prefix_group(answer.contact.endpoint.ip));
  return groups.size();
}

void ChainSync::catch_up(const net::NodeId& from) {
  if (const auto contact = peers_.find(from)) catch_up(*contact);
}

void ChainSync::catch_up(const net::Contact& from) {
  if (host_.history() != nullptr) fetch_blocks(from);
  ask_status(from);
}

void ChainSync::catch_up_stranger(const net::Caller& from) {
  const MonotonicTime now = clock_.monotonic_now();
  std::erase_if(gave_none_, [now](const auto& one) { return now - one.second >= believe_again_after; });
  const bool is_asked = asked_.count(from.id) != 0 || fetching_.count(from.id) != 0;
  if (stranger_ || is_asked || gave_none_.count(from.id) != 0 || !strangers_.admit(from)) return;
  const auto contact = peers_.find(from.id);
  if (!contact) return;
  stranger_ = from.id;
  catch_up(*contact);
}

bool ChainSync::begins_fetch(const net::NodeId& id) {
  if (stranger_ != id && counted(fetching_) >= options_.asked_at_once) return false;
  return fetching_.insert(id).second;
}

std::size_t ChainSync::counted(const std::set<net::NodeId>& ids) const {
  return ids.size() - (stranger_ ? ids.count(*stranger_) : 0);
}

void ChainSync::free_stranger() {
  if (stranger_ && asked_.count(*stranger_) == 0 && fetching_.count(*stranger_) == 0) stranger_.reset();
}

void ChainSync::ask(const net::NodeId& peer) {
  if (const auto contact = peers_.find(peer)) ask_status(*contact);
}

void ChainSync::fetch_blocks(const net::Contact& contact) {
  const History* own = host_.history();
  if (own == nullptr) return;
  const MonotonicTime now = clock_.monotonic_now();
  const bool rare =
      host_.waits_for_person() && stranger_ != contact.id;  // strangers have a limit of their own
  if (rare && now < look_again_) return;
  // The blocks of a large network are large: one source at a time, the others after it if it has too few.
  const bool one_by_one = own->tip().committee->is_collected();
  if (one_by_one && stranger_ != contact.id && counted(fetching_) > 0) {
    constexpr std::size_t most_waiting = 8;
    if (others_.size() < most_waiting && fetching_.count(contact.id) == 0) others_.push_back(contact);
    return;
  }
  if (!begins_fetch(contact.id)) return;
  if (rare) look_again_ = now + look_again_after;
  // A certified block may take the place of a succession.
  const bool replaceable = own->tip().block->body.succession.has_value();
  const std::uint64_t from = own->tip().height() + (replaceable ? 0 : 1);
  call(contact, net::Method::ChainBlocks, encode_blocks_request(from),
       [this, contact](Expected<Bytes> answer) {
         fetching_.erase(contact.id);
         const bool gave = got_blocks(contact, std::move(answer));
         if (!gave && stranger_ == contact.id) gave_none_[contact.id] = clock_.monotonic_now();
         free_stranger();
         if (counted(fetching_) > 0) return;
         for (const net::Contact& other : std::exchange(others_, {})) ask_status(other);
       });
}

bool ChainSync::got_blocks(const net::Contact& contact, Expected<Bytes> answer) {
  const History* own = host_.history();
  if (!answer.ok() || own == nullptr) return false;
  const auto blocks = decode_blocks_answer(*answer);
  if (!blocks.ok()) return false;
  bool advanced = false;
  for (const ByteSpan bytes : blocks->blocks) {
    const auto block = decode_certified(bytes, services_.rules.network, services_.cache);
    if (!block.ok()) return advanced;
    const bool known =
        block->block->header.height < own->tip().height() || block->block->hash == own->tip().block->hash;
    if (known) continue;
    if (!host_.append(*block).ok()) return advanced;
    advanced = true;
  }
  if (blocks->more && advanced) fetch_blocks(contact);
  return advanced;
}

void ChainSync::fetch_foreign(const net::Contact& contact, const Hash256& genesis) {
  if (!begins_fetch(contact.id)) return;
  auto found = foreign_.find(genesis);
  if (found == foreign_.end()) {
    constexpr std::size_t most_foreign = 4;
    if (foreign_.size() >= most_foreign) return void(fetching_.erase(contact.id));
    found = foreign_.emplace(genesis, Foreign{ForeignChain(services_, trust_), {}}).first;
  }
  found->second.sources.insert(contact.id);
  call(contact, net::Method::ChainBlocks, encode_blocks_request(found->second.chain.next_height()),
       [this, contact, genesis](Expected<Bytes> answer) {
         fetching_.erase(contact.id);
         got_foreign(contact, genesis, std::move(answer));
         free_stranger();
       });
}

void ChainSync::got_foreign(const net::Contact& contact, const Hash256& genesis, Expected<Bytes> answer) {
  const auto found = foreign_.find(genesis);
  if (found == foreign_.end()) return;
  if (!answer.ok()) return did_not_show(contact.id, genesis);
  const auto blocks = decode_blocks_answer(*answer);
  if (!blocks.ok() || blocks->blocks.empty()) return did_not_show(contact.id, genesis);
  std::vector<CertifiedBlock> taken;
  for (const ByteSpan bytes : blocks->blocks) {
    auto block = decode_certified(bytes, services_.rules.network);
    if (!block.ok()) return did_not_show(contact.id, genesis);
    taken.push_back(std::move(*block));
  }
  ForeignChain& chain = found->second.chain;
  // Nothing that this peer gives speaks against the genesis that it named: another one may have the true blocks.
  const bool begins_right = chain.history() != nullptr || taken.front().block->hash == genesis;
  if (!begins_right) return did_not_show(contact.id, genesis);
  if (const auto accepted = chain.take(taken); !accepted.ok()) {
    refused_ = accepted.error().message;
    return did_not_show(contact.id, genesis);
  }
  unshown_.erase(contact.id);
  const bool is_enough = host_.history() == nullptr && chain.is_certain();
  if (blocks->more && !is_enough) return fetch_foreign(contact, genesis);
  finish_foreign(genesis);
  const History* own = host_.history();
  if (own != nullptr && own->genesis() == genesis && (blocks->more || own->is_partial()))
    fetch_blocks(contact);
}

std::size_t ChainSync::answering(const Hash256& genesis) const {
  return static_cast<std::size_t>(std::count_if(answers_.begin(), answers_.end(), [&](const auto& entry) {
    return entry.second.status.genesis == genesis;
  }));
}

bool ChainSync::is_believed(const net::NodeId& id) const {
  constexpr std::size_t enough = 5;  // messages get lost
  const auto found = unshown_.find(id);
  return found == unshown_.end() || found->second < enough;
}

void ChainSync::did_not_show(const net::NodeId& source, const Hash256& genesis) {
  constexpr std::size_t most_noted = 1024;
  if (unshown_.size() >= most_noted) unshown_.clear();
  ++unshown_[source];
  const auto found = foreign_.find(genesis);
  if (found == foreign_.end()) return;
  found->second.sources.erase(source);
  if (found->second.sources.empty()) foreign_.erase(found);
}

MeetingSide ChainSync::side(const History& history) const {
  MeetingSide side;
  side.genesis = history.genesis();
  side.rounds = history.tip().registry->round();
  std::set<std::uint32_t> wallets;
  const auto count = [&](const net::NodeId& id) {
    if (const MemberRecord* member = history.tip().registry->find(id)) wallets.insert(member->wallet);
  };
  for (const auto& [id, answer] : answers_)
    if (answer.status.genesis == side.genesis) count(id);
  if (const History* own = host_.history(); own != nullptr && own->genesis() == side.genesis) count(self_);
  side.answering_wallets = wallets.size();
  return side;
}

void ChainSync::finish_foreign(const Hash256& genesis) {
  const auto found = foreign_.find(genesis);
  const History* own = host_.history();
  const bool wins = own == nullptr || prefers_other(side(*own), side(*found->second.chain.history()));
  if (wins) {
    Foreign shown = std::move(found->second);
    foreign_.clear();
    Expected<History> history = std::move(shown.chain).finish();
    if (history.ok()) return host_.adopt(std::move(*history));
    refused_ = history.error().message;
    // These peers may have a part of the right chain. Others that have more may be right.
    for (const net::NodeId& source : shown.sources) did_not_show(source, genesis);
  }
  constexpr std::size_t most_noted = 64;
  if (compared_.size() >= most_noted) compared_.clear();
  compared_[genesis] = {clock_.monotonic_now(), answering(genesis)};
  foreign_.erase(genesis);
}

bool ChainSync::finds_no_history() const {
  for (const auto& [genesis, foreign] : foreign_)
    for (const net::NodeId& source : foreign.sources)
      if (is_believed(source)) return false;
  return std::none_of(answers_.begin(), answers_.end(), [this](const auto& entry) {
    const Hash256& genesis = entry.second.status.genesis;
    return genesis != Hash256{} && is_believed(entry.first);
  });
}

ChainSync::Seen ChainSync::seen() const {
  Seen seen;
  seen.answering = answers_.size();
  seen.refused = refused_;
  const History* own = host_.history();
  for (const auto& [id, answer] : answers_) {
    if (answer.status.genesis == Hash256{}) continue;
    ++seen.histories[answer.status.genesis];
    if (own != nullptr && answer.status.genesis == own->genesis())
      seen.highest = std::max(seen.highest, answer.status.height);
  }
  return seen;
}

}  // namespace neuroshard::chain
