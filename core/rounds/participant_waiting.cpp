// RoundParticipant: how long a closed round waits for what is on its way. Lines are as slow as they are: what
// moves is waited for as long as most others needed for theirs and a quarter more, and who comes back and
// fetches the state for once, because nobody catches up with rounds that fill a line (ARCHITECTURE.md).
#include <fmt/format.h>

#include <algorithm>

#include "core/rounds/participant.h"

namespace neuroshard::rounds {
namespace {

constexpr std::uint64_t slowest_line = 1000;  // bytes a millisecond, of those that are always waited for
// Who asks for nothing so long fetches no more: what a state needs at 1 Mbit/s, at most this.
constexpr Duration longest_silence = std::chrono::seconds(15);
constexpr std::uint64_t least_line = 125;
constexpr std::uint64_t returner_rounds = 3, returner_pause = 8;

}  // namespace

std::uint64_t RoundParticipant::state_bytes() const {
  return sizeof(float) * (2 * common_.rules.values + common_.bias_values);
}

// Of this node's contribution, or of all others' to this node.
std::uint64_t RoundParticipant::bytes_to_all() const {
  return group().size() * outer::max_payload_bytes(common_.rules.codec, common_.rules.values);
}

// Looks, with every tick, whether pieces have come, and when more than half of the group's work was here.
void RoundParticipant::note_progress() {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (const std::uint64_t fetched = fetcher_.bytes_received(); fetched != fetched_bytes_) {
    fetched_bytes_ = fetched;
    fetched_at_ = now;
  }
  if (closed_ && !enough_at_ && 2 * contributions_->usable_count() > group().size()) enough_at_ = now;
}

// Whether a piece of something has come within this time, or within what pieces take at the moment.
bool RoundParticipant::pieces_come(Duration within) {
  note_progress();
  return services_.clock.monotonic_now() - fetched_at_ < std::max(within, 2 * fetcher_.piece_took());
}

// Nothing more is on its way, or has been for too long: nobody holds a round up by dripping.
bool RoundParticipant::contributions_are_late() {
  const MonotonicTime now = services_.clock.monotonic_now();
  const bool coming = pieces_come(common_.grace);
  const Duration waited = now - closed_at_;
  if (waited < common_.grace) return false;
  const Duration least =
      std::max<Duration>(deadline(), std::chrono::milliseconds(bytes_to_all() / slowest_line));
  const Duration most = enough_at_ ? (*enough_at_ - closed_at_) * 5 / 4 : common_.first_deadline;
  const bool moving = contributions_->announced() > contributions_->usable_count() && coming &&
                      waited < std::max(least, most);
  return !moving && !waits_for_returner(waited);
}

// A member that has contributed nothing asks for pieces of what a round begins with.
void RoundParticipant::note_fetch(const net::NodeId& from, ByteSpan bytes) {
  if (!is_in(from) || !contributions_ || contributions_->find(from) != nullptr) return;
  const auto request = decode_fetch_request(bytes);
  if (!request.ok() || request->slot != common_.rules.slot ||
      request->what == FetchRequest::What::Contribution)
    return;
  Returner& returner = returners_[from];
  if (returner.since == 0 || round_ - returner.since >= returner_pause) returner.since = round_;
  returner.asked = services_.clock.monotonic_now();
}

// Only now and then, and as long as a line of 8 Mbit/s, or such as most others have, needs for the state and
// for what this member has made of it: who never keeps up holds up three rounds of eight at most.
bool RoundParticipant::waits_for_returner(Duration waited) {
  if (returners_.empty()) return false;
  const std::uint64_t bytes = state_bytes() + bytes_to_all();
  Duration most = std::max<Duration>(deadline(), std::chrono::milliseconds(bytes / slowest_line));
  if (enough_at_) {
    const double share = static_cast<double>(bytes) / static_cast<double>(bytes_to_all());
    const std::chrono::duration<double> theirs = *enough_at_ - closed_at_;
    most = std::max(most, std::chrono::duration_cast<Duration>(theirs * share * 1.25));
  }
  if (waited >= most) return false;
  const bool coming = pieces_come(common_.grace);
  const Duration silence = std::clamp<Duration>(std::chrono::milliseconds(state_bytes() / least_line),
                                                common_.grace, std::max(common_.grace, longest_silence));
  const MonotonicTime now = services_.clock.monotonic_now();
  return std::any_of(group().begin(), group().end(), [&](const RoundMember& member) {
    const auto at = returners_.find(member.id);
    if (at == returners_.end() || round_ - at->second.since >= returner_rounds) return false;
    if (contributions_->usable(member.id) || contributions_->excluded(member.id)) return false;
    // Up to its contribution it asks; after that it gives.
    const bool gives = contributions_->find(member.id) != nullptr && coming;
    return gives || now - at->second.asked < silence;
  });
}

void RoundParticipant::forget_returners() {
  for (auto at = returners_.begin(); at != returners_.end();)
    at = round_ - std::min(round_, at->second.since) >= returner_pause ? returners_.erase(at) : std::next(at);
}

void RoundParticipant::go_provisional() {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (provisional_ || !closed_ || now - closed_at_ < common_.provisional_after) return;
  // Over slow lines it takes so long until all is here.
  if (pieces_come(common_.grace)) return;
  provisional_ = true;
  ++counters_.provisional;
  services_.logger.info("rounds", fmt::format("round {}: more than a third of {} members are out of reach; "
                                              "this node trains on by itself until they are back",
                                              round_, member_count()));
  services_.learner.go_on();
}

}  // namespace neuroshard::rounds
