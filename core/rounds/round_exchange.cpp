#include "core/rounds/round_exchange.h"

#include <algorithm>
#include <utility>

#include "core/chain/ascending.h"
#include "core/rounds/learner.h"
#include "core/rounds/round_roles.h"

namespace neuroshard::rounds {
namespace {

constexpr std::size_t most_holders = 16;  // asked for one item
// Of a payload that could not be fetched. The first one is short: a contributor that does not have this node's
// contribution yet gives no payload.
constexpr Duration first_pause = std::chrono::milliseconds(500), most_pause = std::chrono::minutes(1);

// A payload, or the leaves of its root.
Expected<Bytes> piece_of_payload(const ContributionBook::Entry& entry, std::size_t place,
                                 const PieceRequest& request) {
  const Payload& payload = entry.payloads[place];
  if (request.what == PieceRequest::What::Payload)
    return answer_from(*payload, 0, payload->size(), request.place);
  const PayloadLeaves& leaves = entry.leaves[place];
  if (leaves == nullptr) return answer_from(ByteSpan(entry.rows()[place].payload), request.place);
  return answer_from(ByteSpan(leaves->front().data(), leaves->size() * sizeof(Hash256)), request.place);
}

}  // namespace

RoundExchange::RoundExchange(Services services, const chain::ChainRules& rules, FetchOptions options,
                             const net::NodeId& self, Events events)
    : services_(services), rules_(rules), options_(options), self_(self), events_(std::move(events)) {}

void RoundExchange::open() {
  earlier_.push_front(services_.book.retire());
  if (earlier_.size() > (rules_.has_holders() ? chain::rounds_to_settle : 1)) earlier_.pop_back();
  payloads_.clear();
  contributions_.clear();
  closed_ = all_certified_ = false;
}

void RoundExchange::ask(const chain::ChainTip& tip, bool payloads, bool behind) {
  tip_ = tip;
  // From the close on, the voters that have a payload are asked for it, too.
  if (tip.registry->closed() && !std::exchange(closed_, true)) payloads_.clear();
  ask_for_contributions(tip, behind);
  if (payloads || tip.registry->closed()) ask_for_payloads(tip);
}

// The contributor first, then voters that have its contribution: each time others of a large committee.
std::vector<net::NodeId> RoundExchange::holders(std::uint32_t member, std::optional<std::uint32_t> row,
                                                const chain::ChainTip& tip) {
  std::vector<net::NodeId> ids;
  const auto add = [&](std::uint32_t number) {
    const chain::MemberRecord* record = tip.registry->find(number);
    if (record != nullptr && record->id != self_ && (!row || record->rows.has(*row)))
      ids.push_back(record->id);
  };
  add(member);
  if (services_.vectors.count() > 0) {
    for (const std::uint32_t voter : services_.vectors.holders(member, questions_, most_holders))
      if (voter != member) add(voter);
  } else if (tip.registry->closed()) {
    const auto& voters = tip.committee->members();
    const std::size_t first = voters.size() <= most_holders ? 0 : (self_[0] | self_[1] << 8) + questions_;
    for (std::size_t i = 0; i < std::min(voters.size(), most_holders); ++i)
      if (const std::uint32_t voter = voters[(first + i) % voters.size()].number; voter != member) add(voter);
  }
  return ids;
}

void RoundExchange::ask_for_payloads(const chain::ChainTip& tip) {
  const std::vector<std::uint32_t> incomplete(services_.book.incomplete().begin(),
                                              services_.book.incomplete().end());
  std::vector<WantedPayload> of_candidates;
  for (const std::uint32_t member : incomplete) {
    const ContributionBook::Entry& entry = *services_.book.find(member);
    const bool is_limited = is_candidate(*tip.registry, member);
    for (std::size_t i = 0; i < entry.payloads.size(); ++i) {
      if (!services_.book.wants(entry, i)) continue;
      if (is_limited)
        of_candidates.push_back({member, entry.rows()[i]});
      else
        ask_for_payload({member, entry.rows()[i]}, tip);
    }
  }
  ask_for_some(std::move(of_candidates), tip);
}

// Those that failed least come first, so silent candidates keep nobody's payload out.
void RoundExchange::ask_for_some(std::vector<WantedPayload> wanted, const chain::ChainTip& tip) {
  std::size_t room = most_candidates_at_once(*tip.registry);
  for (const WantedPayload& one : wanted)
    if (room > 0 && payloads_[one.key()].under_way) --room;
  std::stable_sort(wanted.begin(), wanted.end(), [this](const WantedPayload& a, const WantedPayload& b) {
    return payloads_[a.key()].pause < payloads_[b.key()].pause;
  });
  for (auto one = wanted.begin(); one != wanted.end() && room > 0; ++one)
    if (ask_for_payload(*one, tip)) --room;
}

bool RoundExchange::ask_for_payload(const WantedPayload& wanted, const chain::ChainTip& tip) {
  if (checking_.count(wanted.key()) != 0) return false;
  AskedPayload& asked = payloads_[wanted.key()];
  if (asked.under_way || services_.clock.monotonic_now() < asked.next) return false;
  asked.under_way = true;
  PieceRequest request;
  request.row = wanted.work.row;
  request.what = PieceRequest::What::Payload;
  request.hash = wanted.work.payload;
  const net::NodeId& contributor = services_.book.find(wanted.member)->held->id();
  const auto reading = std::make_shared<PayloadReading>();  // the check's until it is done
  services_.fetcher.payload(request, wanted.work.payload_bytes, holders(wanted.member, wanted.work.row, tip),
                            services_.book.check_of(contributor, wanted.work, reading),
                            [this, life = lifetime_.token(), wanted, reading,
                             opening = services_.book.opening()](Expected<ByteSourcePtr> payload) {
                              if (life.alive() && opening == services_.book.opening())
                                got_payload(wanted, std::move(payload), *reading);
                            });
  return true;
}

void RoundExchange::take_own(std::uint32_t member, const std::vector<Payload>& payloads,
                             const std::vector<PayloadReading>& readings) {
  const ContributionBook::Entry& entry = *services_.book.find(member);
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    const WantedPayload own{member, entry.rows()[i]};
    if (!readings.empty())
      services_.book.take_payload(member, own.work.row, payloads[i], readings[i]);
    else if (services_.book.wants(entry, i))
      check_own(own, entry.held->id(), payloads[i]);
  }
}

void RoundExchange::check_own(const WantedPayload& wanted, const net::NodeId& contributor,
                              const Payload& payload) {
  checking_.insert(wanted.key());
  const auto reading = std::make_shared<PayloadReading>();  // the job's until it is done, as `holds`
  const auto holds = std::make_shared<bool>(false);
  run_reading(
      services_.work, payload->size(),
      [check = services_.book.check_of(contributor, wanted.work, reading), payload, holds] {
        *holds = check(*payload);
      },
      [this, life = lifetime_.token(), wanted, payload, reading, holds, opening = services_.book.opening()] {
        if (!life.alive()) return;
        checking_.erase(wanted.key());
        if (opening != services_.book.opening()) return;
        if (*holds) return got_payload(wanted, payload, *reading);
        got_payload(wanted, make_error(ErrorCode::Unavailable, "the kept payload is damaged"), *reading);
      });
}

void RoundExchange::got_payload(const WantedPayload& wanted, Expected<ByteSourcePtr> payload,
                                const PayloadReading& reading) {
  if (payload.ok()) {
    payloads_.erase(wanted.key());
    services_.book.take_payload(wanted.member, wanted.work.row, std::move(*payload), reading);
    return events_.arrived();
  }
  AskedPayload& asked = payloads_[wanted.key()];
  asked.under_way = false;
  asked.pause = std::clamp(2 * asked.pause, first_pause, most_pause);
  asked.next = services_.clock.monotonic_now() + asked.pause;
  if (payload.error().code != ErrorCode::Unavailable) events_.cannot(payload.error());
}

bool RoundExchange::is_certified(const HeldContribution& held, std::uint32_t member,
                                 const chain::ChainTip& tip) {
  const auto& closed = tip.registry->closed();
  const chain::ContributionEntry* one =
      closed ? find_by(closed->contributions, &chain::ContributionEntry::member, member) : nullptr;
  return one != nullptr && is_entry_of(*one, held);
}

// Before the close those that must be in it; after it those that it names.
void RoundExchange::ask_for_contributions(const chain::ChainTip& tip, bool behind) {
  if (const auto& closed = tip.registry->closed()) {
    if (all_certified_) return;
    all_certified_ = true;
    for (const chain::ContributionEntry& entry : closed->contributions) {
      const ContributionBook::Entry* known = services_.book.find(entry.member);
      if (known != nullptr && is_entry_of(entry, *known->held)) continue;
      all_certified_ = false;
      ask_for_contribution(entry.member, tip);
    }
  } else if (behind || tip.committee->is_quorum(services_.vectors.units(*tip.committee))) {
    for (const std::uint32_t member :
         services_.vectors.missing(*tip.committee, services_.book, *tip.registry))
      ask_for_contribution(member, tip);
  }
}

void RoundExchange::ask_for_contribution(std::uint32_t member, const chain::ChainTip& tip) {
  const chain::MemberRecord* record = tip.registry->find(member);
  if (record == nullptr || contributions_.count(member) != 0) return;
  std::vector<net::NodeId> sources = holders(member, std::nullopt, tip);
  if (sources.empty()) return;
  const auto contact = services_.peers.find(sources[questions_++ % sources.size()]);
  if (!contact) return;
  contributions_.insert(member);
  PieceRequest request;
  request.what = PieceRequest::What::Contribution;
  request.hash = record->id;
  request.place = services_.book.round();
  services_.caller.call(*contact, net::Method::RoundPiece, encode_piece_request(request), options_.allowed,
                        [this, life = lifetime_.token(), member, id = record->id,
                         opening = services_.book.opening()](Expected<Bytes> answer) {
                          if (!life.alive() || opening != services_.book.opening()) return;
                          contributions_.erase(member);
                          if (!answer.ok()) return;
                          const auto piece = decode_piece_answer(*answer);
                          if (!piece.ok()) return;
                          auto contribution = chain::decode_contribution(piece->bytes, rules_.rows);
                          if (!contribution.ok()) return;
                          take(member, id,
                               std::make_shared<const HeldContribution>(std::move(*contribution)));
                        });
}

void RoundExchange::take(std::uint32_t member, const net::NodeId& id, const HeldContributionPtr& held) {
  if (const auto& closed = tip_->registry->closed()) {
    if (const chain::ContributionEntry* entry =
            find_by(closed->contributions, &chain::ContributionEntry::member, member))
      services_.book.take_certified(held, *entry, id);
  } else if (const auto taken = services_.book.take(held, *tip_); taken.evidence) {
    events_.found_evidence(*taken.evidence);
  }
  events_.arrived();
}

// A certified close may have something else of a member than this node was sent: together they are evidence. Both
// signatures were checked, so equal ones are under the same content.
void RoundExchange::compare(const chain::ChainTip& before, const chain::CloseSection& close) {
  for (const chain::ContributionEntry& entry : close.contributions) {
    const ContributionBook::Entry* own = services_.book.find(entry.member);
    if (own == nullptr || own->held->get().signature == entry.signature) continue;
    chain::ContributionEntry known = own->held->entry_of(entry.member);
    known.signature = entry.signature;  // only what is signed counts
    if (!(known == entry)) events_.found_evidence(chain::evidence_of(own->held->get(), entry));
  }
  for (const chain::Vector& vector : close.vectors) {
    const HeldVector* own = services_.vectors.find(vector.voter);
    if (own == nullptr || own->get().signature == vector.signature) continue;
    const chain::MemberRecord* voter = before.registry->find(vector.voter);
    if (voter != nullptr && own->claim().content != chain::claim_of(vector).content)
      events_.found_evidence(chain::evidence_of(voter->key, own->get(), vector));
  }
}

Expected<Bytes> RoundExchange::piece(const net::NodeId& from, const PieceRequest& request,
                                     const chain::ChainTip& tip) const {
  // Only members that check a row need leaves, and only where there are such members they are kept.
  const bool is_checked = rules_.has_holders() && tip.registry->find(from) != nullptr;
  if (request.what == PieceRequest::What::PayloadLeaves && !is_checked) return piece_not_held();
  std::vector<const ContributionBook*> books = {&services_.book};
  for (const ContributionBook& book : earlier_) books.push_back(&book);
  for (const ContributionBook* book : books) {
    if (request.what == PieceRequest::What::Contribution) {
      const ContributionBook::Entry* entry =
          book->round() == request.place ? book->find(request.hash, tip) : nullptr;
      if (entry == nullptr) continue;
      const Bytes whole = chain::encode_contribution(entry->held->get());
      return encode_piece_answer(whole.size(), whole);
    }
    // Until the close, payloads are for those that can't copy them any more.
    const bool open = book == &services_.book && !tip.registry->closed();
    if (open && book->find(from, tip) == nullptr) continue;
    for (const auto& [member, entry] : book->all()) {
      for (std::size_t i = 0; i < entry.payloads.size(); ++i) {
        if (entry.rows()[i].payload != request.hash || !entry.payloads[i]) continue;
        return piece_of_payload(entry, i, request);
      }
    }
  }
  return piece_not_held();
}

}  // namespace neuroshard::rounds
