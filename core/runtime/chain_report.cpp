#include "core/runtime/chain_report.h"

#include <algorithm>
#include <numeric>

#include "core/runtime/standing.h"

namespace neuroshard::runtime {
namespace {

constexpr std::size_t rounds_remembered = 64;

std::size_t more_than_two_thirds(std::size_t members) {
  return 2 * members / 3 + 1;
}

const char* name_of(chain::VotersMode mode) {
  switch (mode) {
    case chain::VotersMode::Invited: return "invited";
    case chain::VotersMode::Founders: return "founders";
    case chain::VotersMode::Open: return "open";
  }
  return "unknown";
}

const char* name_of(chain::Outlook outlook) {
  switch (outlook) {
    case chain::Outlook::Certifies: return "certifies";
    case chain::Outlook::AfterStall: return "after_stall";
    case chain::Outlook::NeedsAPerson: return "needs_a_person";
  }
  return "unknown";
}

constexpr const char* other_begin =
    "The members of this network begin with other weights or another tokenizer than this node. "
    "Stop this node, give it a new data directory, and let it join with the same data as theirs, or with an "
    "invitation to their network";

// Other members' weights can never become this node's.
bool has_other_begin(const ChainMoment& now) {
  if (now.chain.wanted_tokenizer) return false;  // this node is about to have it
  return now.registry ? now.training.other_identity && !now.training.holds : now.chain.refused_anchors;
}

bool lacks_only_a_voucher(const chain::AdmissionProgress& admission) {
  return admission.needs_voucher && admission.can_vote_ever && admission.contributions >= admission.needed;
}

// Since when a condition holds without a break.
void keep_since(bool holds, MonotonicTime now, std::optional<MonotonicTime>* since) {
  if (!holds)
    since->reset();
  else if (!*since)
    *since = now;
}

std::vector<node::OtherHistory> other_histories(const chain::ChainView& chain) {
  std::vector<node::OtherHistory> others;
  for (const auto& [genesis, peers] : chain.peers.histories)
    if (genesis != chain.genesis && genesis != Hash256{})
      others.push_back({to_hex(genesis), static_cast<std::uint32_t>(peers)});
  return others;
}

std::string phase(const ChainMoment& now) {
  if (!now.registry) return "joining";
  if (now.registry->size().changing) return "changing the size of the model";
  if (!now.training.holds) return "fetching the anchor";
  if (now.training.provisional || now.chain.stalled) return "training alone until the others are back";
  if (now.registry->closed())
    return now.resting ? "agreeing on the round" : "training on while the members agree on the round";
  if (now.training.contributed)
    return now.resting ? "waiting for the other members" : "training on while the others finish the round";
  return "training";
}

}  // namespace

ChainReport::ChainReport(const std::vector<std::uint64_t>& row_values)
    : anchors_(row_values.size()),
      values_(std::accumulate(row_values.begin(), row_values.end(), std::uint64_t{0})) {}

void ChainReport::on_tip(const chain::ChainTip& tip) {
  const std::vector<chain::RowRecord>& rows = tip.registry->rows();
  for (std::size_t row = 0; row < rows.size(); ++row)
    anchors_.add(row, tip.registry->round(), rows[row].anchor);
}

void ChainReport::on_anchor(const std::string& what, const rounds::TrainingView& training) {
  if (training.left_out > left_out_) left_out_reason_ = what + " was closed without this node's work";
  left_out_ = training.left_out;
}

void ChainReport::fill(node::RoundsView& view, const ChainMoment& now) {
  view.phase = phase(now);
  view.certified = now.training.rounds;
  view.contributed = now.training.counted;
  view.left_out = now.training.left_out;
  view.left_out_reason = left_out_reason_;
  view.fetched = now.training.fetched_anchors;
  view.bytes_sent = now.chain.bytes_sent + now.training.bytes_sent;
  view.bytes_received = now.chain.bytes_received + now.training.bytes_received;
  if (!now.chain.is_writable && view.trouble.empty())
    view.trouble =
        "votes can't be saved, so this node takes no part: free some space on the disk, or look at the log";
  if (now.chain.lacks_votes && view.trouble.empty())
    view.trouble =
        "this node's record of its votes can't be read, so it does not vote on the next block. It votes "
        "after that block, or once all other voters have told what they hold of its votes. One that was "
        "started "
        "since the last block can't tell. If no block comes, stop this node, and let the others go on "
        "without "
        "it (network continue)";
  if (now.chain.runs_twice)
    view.trouble =
        "another copy of this node has its key, so this one signs nothing: stop the other copy, then restart "
        "this one";
  if (now.chain.revoked)
    view.trouble =
        "this node's wallet has revoked its key, so it takes no part any more: to go on with this computer, "
        "restore "
        "the wallet in a new data directory and start the node there";
  if (view.trouble.empty() && has_other_begin(now)) view.trouble = other_begin;
  if (!now.registry) return;
  if (view.part) fill_checks(&*view.part, now);
  watch(now);
  fill_chain(view.chain, now);
  view.round = now.registry->round();
  view.agrees = now.training.holds;
  if (const auto anchor = anchors_.of_all(view.round)) {
    view.anchor = to_hex(*anchor);
    if (view.agrees) held_[view.round] = *anchor;
  }
  while (held_.size() > rounds_remembered) held_.erase(held_.begin());
  view.member = now.chain.member && now.chain.active;
  for (const chain::MemberRecord& member : now.registry->members())
    if (is_shown(*now.registry, member)) ++view.members;
}

void ChainReport::watch(const ChainMoment& now) {
  keep_since(now.chain.voter && now.chain.outlook == chain::Outlook::NeedsAPerson, now.at,
             &person_needed_since_);
  keep_since(now.chain.member && !now.chain.voter && lacks_only_a_voucher(now.chain.admission), now.at,
             &voucher_needed_since_);
}

void ChainReport::fill_checks(node::PartView* part, const ChainMoment& now) {
  part->found_right = now.training.checks.right;
  part->found_wrong = now.training.checks.wrong;
  part->withheld = now.training.checks.withheld;
  part->checkers.clear();
  std::vector<std::optional<std::uint32_t>> checkers(part->count);
  for (const chain::OpenRow& open : now.registry->open_rows())  // ascending by round, too
    if (open.row < checkers.size() && open.contributors != Hash256{})
      checkers[open.row] =
          static_cast<std::uint32_t>(std::min(open.checkers.size(), chain::checkers_per_row));
  for (const auto& of_part : checkers) {
    if (!of_part) return part->checkers.clear();
    part->checkers.push_back(*of_part);
  }
}

void ChainReport::fill_chain(node::ChainView& view, const ChainMoment& now) const {
  const chain::ChainView& chain = now.chain;
  view.genesis = to_hex(chain.genesis);
  view.height = chain.height;
  const auto wall = static_cast<std::uint64_t>(std::max<std::int64_t>(0, to_unix_ms(now.wall)));
  view.block_age = static_cast<double>(wall - std::min(wall, now.registry->time_ms())) / 1000;
  view.block_due = chain.block_due;
  view.stalled = chain.stalled;
  view.voters_mode = name_of(now.voters);
  view.voters = static_cast<std::uint32_t>(chain.voters);
  view.committee = static_cast<std::uint32_t>(chain.committee);
  for (const chain::MemberRecord& member : now.registry->members()) {
    const std::string standing = standing_of(*now.registry, member);
    if (standing == "candidate" && is_shown(*now.registry, member)) ++view.candidates;
    if (member.id == now.self) view.standing = standing;
  }
  if (chain.revoked) view.standing = "revoked";
  view.active_units = chain.active_units;
  view.heard_units = chain.heard_units;
  view.missing_count = static_cast<std::uint32_t>(chain.missing.size());
  for (std::size_t i = 0; i < std::min(chain.missing.size(), node::max_missing); ++i)
    view.missing.push_back(to_hex(chain.missing[i]));
  if (chain.member && !chain.voter) {
    view.contributions = chain.admission.contributions;
    view.contributions_needed = chain.admission.needed;
    view.needs_voucher = chain.admission.needs_voucher;
  }
  view.outlook = name_of(chain.outlook);
  if (person_needed_since_) view.person_needed_seconds = to_seconds(now.at - *person_needed_since_);
  if (chain.asks_succession) view.asks_succession = to_hex(*chain.asks_succession);
  view.others = other_histories(chain);
}

RoundsSeen ChainReport::seen(const ChainMoment& now) const {
  RoundsSeen seen;
  for (const auto& [verdict, count] : now.training.refused)
    seen.refused.push_back({std::string(chain::to_string(verdict)), count});
  seen.anchor_of = [this](std::uint64_t round) { return anchors_.of_all(round); };
  if (!now.registry) return seen;
  seen.begun = true;
  seen.round = now.registry->round();
  for (const chain::WalletRecord& wallet : now.registry->wallets()) seen.tokens += wallet.counted_tokens;
  for (const chain::MemberRecord& member : now.registry->members())
    if (is_shown(*now.registry, member)) seen.members.insert(member.id);
  seen.contributed = now.training.counted;
  seen.failed = now.training.left_out;
  if (!held_.empty()) {
    const auto& [round, anchor] = *held_.rbegin();
    seen.held_round = round;
    if (round > 0) seen.held_anchor = anchor;
    if (const auto before = held_.find(round - 1); before != held_.end() && round > 1)
      seen.previous_anchor = before->second;
  }
  seen.exchanging = seen.members.size();
  seen.values = values_;
  if (voucher_needed_since_) seen.voucher_awaited = now.at - *voucher_needed_since_;
  for (const node::OtherHistory& other : other_histories(now.chain)) seen.others += other.peers;
  if (now.chain.asks_succession) seen.asks_succession = true;
  const bool needs_person = now.chain.outlook == chain::Outlook::NeedsAPerson;
  if ((now.training.provisional || now.chain.stalled) && now.chain.voter)
    seen.standstill =
        status::Standstill{seen.round + 1, now.chain.committee, more_than_two_thirds(now.chain.committee),
                           now.chain.missing, needs_person};
  return seen;
}

}  // namespace neuroshard::runtime
