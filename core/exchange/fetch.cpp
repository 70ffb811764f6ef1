#include "core/exchange/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/exchange/pieces.h"

namespace neuroshard::exchange {
namespace {

constexpr const char* category = "exchange";

}  // namespace

ContentFetch::ContentFetch(FetchServices services, FetchRequest request, FetchOptions options, Done done)
    : services_(std::move(services)),
      request_(std::move(request)),
      options_(options),
      done_(std::move(done)),
      gained_(services_.clock.monotonic_now()),
      results_(std::make_shared<net::Mailbox>(services_.executor)) {
  timer_ = services_.executor.post_after(Duration(0), [this] { tick(); });
}

ContentFetch::~ContentFetch() {
  results_->close();
}

std::uint64_t ContentFetch::bytes_here() const {
  if (phase_ == Phase::Choosing || phase_ == Phase::Keeping) return 0;
  return std::min(written_ * piece_bytes, groups_[group_].list->size);
}

void ContentFetch::on_disk(std::function<void()> work, std::function<void()> then) {
  const bool posted =
      services_.disk.post([work = std::move(work), then = std::move(then), results = results_] {
        work();
        results->put(then);
      });
  if (!posted) end(make_error(ErrorCode::Exhausted, "too much waits for the disk; try again"));
}

void ContentFetch::end(Expected<FetchReport> outcome) {
  if (phase_ == Phase::Over) return;
  phase_ = Phase::Over;
  timer_ = services_.executor.post_after(Duration(0), [this, outcome = std::move(outcome)] {
    const Done done = std::move(done_);
    done(outcome);  // may destroy this
  });
}

void ContentFetch::tick() {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (searched_ == MonotonicTime{} || now - searched_ >= options_.search_again) search();
  if (phase_ == Phase::Choosing) choose();
  if (phase_ == Phase::Fetching) leave_silent_group();
  if (phase_ == Phase::Fetching) schedule();
  const bool waits = phase_ == Phase::Choosing || phase_ == Phase::Fetching;
  const bool in_vain = !options_.wait_for_holders && nobody_holds_it();
  if (waits && (in_vain || now - gained_ >= options_.patience)) {
    const auto gave =
        std::count_if(holders_.begin(), holders_.end(), [](const Holder& h) { return h.given > 0; });
    return end(
        make_error(ErrorCode::Unavailable,
                   fmt::format("no other node gives it: {} were asked, {} gave a part, {} sent false data",
                               holders_.size(), gave, liars_.size())));
  }
  if (phase_ != Phase::Over) timer_ = services_.executor.post_after(options_.tick, [this] { tick(); });
}

bool ContentFetch::nobody_holds_it() const {
  return !holders_.empty() &&
         std::all_of(holders_.begin(), holders_.end(), [](const Holder& h) { return h.has_nothing; });
}

// ---- Holders.

void ContentFetch::search() {
  searched_ = services_.clock.monotonic_now();
  services_.find([this, life = lifetime_.token()](const std::vector<net::Contact>& contacts) {
    if (life.alive() && phase_ != Phase::Over) add(contacts);
  });
}

// A holder that was dropped for being absent, slow or empty is asked again when it is named again.
void ContentFetch::add(const std::vector<net::Contact>& contacts) {
  for (const net::Contact& contact : contacts) {
    if (std::find(liars_.begin(), liars_.end(), contact.id) != liars_.end()) continue;
    const auto known = std::find_if(holders_.begin(), holders_.end(),
                                    [&](const Holder& h) { return h.contact.id == contact.id; });
    if (known == holders_.end()) {
      if (holders_.size() >= options_.most_holders) return;
      holders_.emplace_back();
      holders_.back().contact = contact;
      ask_list(holders_.size() - 1);
    } else if (known->state == State::Left && known->in_flight == 0 &&
               services_.clock.monotonic_now() >= known->not_before) {
      Holder again;
      again.contact = contact;
      again.given = known->given;
      again.former = known->group != no_group ? known->group : known->former;
      *known = std::move(again);
      ask_list(static_cast<std::size_t>(known - holders_.begin()));
    }
  }
}

void ContentFetch::ask_list(std::size_t index) {
  Holder& holder = holders_[index];
  const auto busy = static_cast<std::size_t>(std::count_if(
      holders_.begin(), holders_.end(), [](const Holder& h) { return h.state != State::Left; }));
  if (busy > options_.holders) {
    holder.state = State::Left;  // asked again with the next search
    return;
  }
  if (!holder.list) holder.list = std::make_shared<PieceList>();
  const auto first = static_cast<std::uint32_t>(holder.list->hashes.size());
  Bytes request = encode_piece_request({request_.hash, first});
  ++holder.in_flight;
  const Duration deadline = net::call_deadline(options_.allowed, request.size(), piece_bytes);
  services_.caller.call(holder.contact, net::Method::ContentPieces, std::move(request), deadline,
                        [this, index, first, life = lifetime_.token()](Expected<Bytes> answer) {
                          if (life.alive() && phase_ != Phase::Over)
                            got_list(index, first, std::move(answer));
                        });
}

void ContentFetch::got_list(std::size_t index, std::uint32_t first, Expected<Bytes> answer) {
  Holder& holder = holders_[index];
  --holder.in_flight;
  if (!answer.ok()) {
    holder.state = State::Left;
    holder.has_nothing = answer.error().code == ErrorCode::NotFound;
    return;
  }
  const auto list = decode_piece_list(*answer, first);
  if (!list.ok()) return record_fault(index, "a list of pieces that can't be read");
  const bool wrong_size = request_.size && list->size != *request_.size;
  if (wrong_size || (first > 0 && list->size != holder.list->size))
    return record_fault(index, "a list of pieces of another size than the content has");
  if (list->size > request_.max_bytes) {  // the node that named this hash may have lied, not this holder
    holder.state = State::Left;
    holder.has_nothing = true;
    return;
  }
  holder.list->size = list->size;
  holder.list->hashes.insert(holder.list->hashes.end(), list->hashes.begin(), list->hashes.end());
  if (holder.list->hashes.size() < piece_count(list->size)) return ask_list(index);
  join_group(index);
  if (phase_ == Phase::Choosing) choose();
  if (phase_ == Phase::Fetching) schedule();
}

void ContentFetch::join_group(std::size_t index) {
  Holder& holder = holders_[index];
  const auto same =
      std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return *g.list == *holder.list; });
  const auto group_of_list = static_cast<std::size_t>(same - groups_.begin());
  const std::shared_ptr<PieceList> list = std::move(holder.list);  // the group's is enough
  // Each holder makes one group at most. A stranger with ever new lists would keep the fetch alive.
  if (holder.former != no_group && holder.former != group_of_list)
    return record_fault(index, "another list of pieces than before");
  holder.group = group_of_list;
  if (same == groups_.end()) {
    groups_.emplace_back();
    groups_.back().list = list;
  }
  holder.state = State::Ready;
  if (!first_list_) first_list_ = services_.clock.monotonic_now();
  const Group& group = groups_[holder.group];
  if (group.refuted) return record_fault(index, "a list of pieces that make up something else");
  if (services_.clock.monotonic_now() >= group.not_before) return;
  holder.state = State::Left;
  holder.not_before = group.not_before;
}

std::optional<std::size_t> ContentFetch::best_group(std::optional<std::size_t> except) const {
  const MonotonicTime now = services_.clock.monotonic_now();
  std::vector<std::size_t> members(groups_.size(), 0);
  for (const Holder& holder : holders_)
    if (holder.state == State::Ready) ++members[holder.group];
  // False lists without pieces behind them must not outlast the only holders, whose line is slow.
  const bool late = now - gained_ >= options_.patience / 2;
  const auto precedes = [&](std::size_t a, std::size_t b) {
    if (late && groups_[a].gave != groups_[b].gave) return groups_[a].gave;
    if (groups_[a].pause != groups_[b].pause) return groups_[a].pause < groups_[b].pause;
    return members[a] > members[b];
  };
  std::optional<std::size_t> best;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (groups_[group].refuted || now < groups_[group].not_before || group == except) continue;
    if (members[group] > 0 && (!best || precedes(group, *best))) best = group;
  }
  return best;
}

// The best group, once the asked holders have answered or timed out.
void ContentFetch::choose() {
  if (!first_list_) return;
  const bool all_answered = std::none_of(holders_.begin(), holders_.end(),
                                         [](const Holder& h) { return h.state == State::Asking; });
  if (!all_answered && services_.clock.monotonic_now() - *first_list_ < options_.gather) return;
  const std::optional<std::size_t> best = best_group(std::nullopt);
  if (!best) return;
  phase_ = Phase::Keeping;
  auto kept = std::make_shared<Expected<std::uint32_t>>(0u);
  on_disk([kept, list = groups_[*best].list, path = part(),
           &env = services_.files] { *kept = keep_matching(env, path, *list); },
          [this, kept, group = *best] { begin_group(group, *kept); });
}

void ContentFetch::begin_group(std::size_t group, Expected<std::uint32_t> kept) {
  if (!kept.ok()) return end(std::move(kept).error());
  group_ = group;
  written_ = *kept;
  if (report_.received_bytes == 0)
    report_.resumed_bytes = std::min(written_ * piece_bytes, groups_[group].list->size);
  phase_ = Phase::Fetching;
  heard_ = services_.clock.monotonic_now();
  judge_from(heard_);
  // No patience for one that was silent before, nor for any number of lists that strangers make up.
  if (groups_[group].pause == Duration(0) && patient_groups_ < options_.patient_groups) {
    ++patient_groups_;
    gained_ = heard_;
  }
  if (written_ == pieces()) return check_whole();
  schedule();
}

// A slow or broken line can be the reason, so no fault of these holders is counted.
void ContentFetch::set_aside(std::size_t index) {
  Group& group = groups_[index];
  group.pause = std::max(options_.silence, std::min(2 * group.pause, options_.patience));
  group.not_before = services_.clock.monotonic_now() + group.pause;
  for (Holder& holder : holders_) {
    if (holder.group != index) continue;
    holder.state = State::Left;
    holder.not_before = group.not_before;
  }
}

// Bytes on the disk that another list does not share.
bool ContentFetch::would_lose(const PieceList& next) const {
  const std::vector<Hash256>& ours = groups_[group_].list->hashes;
  return written_ > next.hashes.size() ||
         !std::equal(ours.begin(), ours.begin() + static_cast<std::ptrdiff_t>(written_), next.hashes.begin());
}

void ContentFetch::judge_from(MonotonicTime when) {
  judged_ = when;
  given_ = 0;
}

bool ContentFetch::gives_little(Duration window) {
  const MonotonicTime now = services_.clock.monotonic_now();
  const Duration since = now - judged_;
  if (since < options_.silence) return false;
  Group& group = groups_[group_];
  const double enough = std::ldexp(options_.least_per_second * to_seconds(since), -group.slow);
  if (static_cast<double>(given_) < enough) return since >= window;
  group.pause = Duration(0);
  judge_from(now);
  return false;
}

void ContentFetch::leave_silent_group() {
  if (writing_) return;
  const MonotonicTime now = services_.clock.monotonic_now();
  const std::optional<std::size_t> next = best_group(group_);
  const bool loses = next && would_lose(*groups_[*next].list);
  const Duration window = loses ? std::max(options_.silence, options_.patience / 2) : options_.silence;
  const bool silent = now - heard_ >= window;
  // A slow group may take as long as the bytes that would be lost need to come again at the least rate.
  const double again = loses ? static_cast<double>(bytes_here()) / options_.least_per_second : 0;
  const bool little = gives_little(std::max(window, Duration(static_cast<std::int64_t>(again * 1e9))));
  if (!next) {
    if (little) judge_from(now);  // there is nobody to compare it with
    if (holders_.size() <= options_.holders || !silent) return;
    // Others are asked in the places of these. The group remains the present one, and is judged again some
    // time after its holders are back.
    set_aside(group_);
    heard_ = groups_[group_].not_before + options_.search_again;
    judge_from(heard_);
    return;
  }
  const bool has_holders = std::any_of(holders_.begin(), holders_.end(), [this](const Holder& h) {
    return h.state == State::Ready && h.group == group_;
  });
  if (!silent && !little && (has_holders || loses)) return;
  if (little && !silent) ++groups_[group_].slow;
  set_aside(group_);
  asked_.clear();
  arrived_.clear();
  phase_ = Phase::Choosing;
  choose();
}

// Only proven faults count.
void ContentFetch::record_fault(std::size_t index, const char* what) {
  Holder& holder = holders_[index];
  holder.state = State::Left;
  if (std::find(liars_.begin(), liars_.end(), holder.contact.id) != liars_.end()) return;
  liars_.push_back(holder.contact.id);
  report_.liars = liars_.size();
  services_.logger.warning(category, fmt::format("node {} gave {}; it is not asked for {} again",
                                                 to_hex(holder.contact.id).substr(0, 16), what,
                                                 to_hex(request_.hash).substr(0, 16)));
  if (services_.conduct != nullptr)
    services_.conduct->fault(net::answerer(services_.caller, holder.contact), net::Fault::WrongContent);
}

// ---- Pieces.

void ContentFetch::schedule() {
  for (std::size_t index = 0; index < holders_.size(); ++index)
    while (give_work(index)) {
    }
}

bool ContentFetch::give_work(std::size_t index) {
  const Holder& holder = holders_[index];
  if (holder.state != State::Ready || holder.group != group_ || holder.in_flight >= holder.allowed ||
      services_.clock.monotonic_now() < holder.not_before)
    return false;
  const auto piece = next_piece(index);
  if (!piece) return false;
  ask_piece(index, *piece);
  return true;
}

// The first piece without a request; else the first whose holder needs longer than this one would. At most
// two holders are asked for one piece.
std::optional<std::uint32_t> ContentFetch::next_piece(std::size_t index) const {
  const std::uint32_t end = std::min(pieces(), written_ + options_.window);
  for (std::uint32_t piece = written_; piece < end; ++piece)
    if (arrived_.count(piece) == 0 && asked_.count(piece) == 0) return piece;
  const Duration wait = std::max(options_.least_wait, 2 * holders_[index].piece_time);
  const MonotonicTime now = services_.clock.monotonic_now();
  for (std::uint32_t piece = written_; piece < end; ++piece) {
    if (arrived_.count(piece) != 0 || asked_.count(piece) != 1) continue;
    const Asked& other = asked_.find(piece)->second;
    if (other.holder != index && now - other.since >= wait) return piece;
  }
  return std::nullopt;
}

void ContentFetch::ask_piece(std::size_t index, std::uint32_t piece) {
  Holder& holder = holders_[index];
  const MonotonicTime now = services_.clock.monotonic_now();
  if (asked_.count(piece) > 0) ++report_.asked_twice;
  asked_.insert({piece, {index, now}});
  ++holder.in_flight;
  Bytes request = encode_piece_request({request_.hash, piece});
  // Pieces in flight arrive first over the same line.
  const std::size_t bytes = holder.in_flight * piece_bytes;
  const Duration deadline = net::call_deadline(options_.allowed, request.size(), bytes);
  services_.caller.call(holder.contact, net::Method::ContentPiece, std::move(request), deadline,
                        [this, index, piece, now, life = lifetime_.token()](Expected<Bytes> answer) {
                          if (life.alive() && phase_ != Phase::Over)
                            got_piece(index, piece, now, std::move(answer));
                        });
}

void ContentFetch::got_piece(std::size_t index, std::uint32_t piece, MonotonicTime since,
                             Expected<Bytes> answer) {
  Holder& holder = holders_[index];
  --holder.in_flight;
  const auto [begin, end_of] = asked_.equal_range(piece);
  for (auto one = begin; one != end_of; ++one) {
    if (one->second.holder != index || one->second.since != since) continue;
    asked_.erase(one);
    break;
  }
  if (holder.state != State::Ready) return;  // dropped meanwhile
  if (!answer.ok()) {
    failed(index, answer.error());
  } else {
    // Checked against the sender's own list, whichever list is followed now.
    const PieceList& list = *groups_[holder.group].list;
    if (answer->size() != piece_length(list.size, piece) || crypto::sha256(*answer) != list.hashes[piece]) {
      record_fault(index, "another piece than it had listed");
    } else {
      const Duration took = services_.clock.monotonic_now() - since;
      holder.piece_time = holder.given++ == 0 ? took : (3 * holder.piece_time + took) / 4;
      holder.failures = 0;
      holder.allowed = std::min(holder.allowed + 1, options_.in_flight);
      report_.received_bytes += answer->size();
      if (holder.given == 1) ++report_.holders;
      if (phase_ == Phase::Fetching && holder.group == group_) take_piece(piece, std::move(*answer));
    }
  }
  if (phase_ == Phase::Fetching) schedule();
}

void ContentFetch::failed(std::size_t index, const Error& error) {
  Holder& holder = holders_[index];
  if (error.code == ErrorCode::Exhausted || error.code == ErrorCode::Busy) {
    holder.allowed = 1;
    holder.not_before = services_.clock.monotonic_now() + options_.busy_pause;
    return;
  }
  holder.allowed = 1;
  if (error.code == ErrorCode::NotFound || ++holder.failures >= options_.failures) holder.state = State::Left;
}

void ContentFetch::take_piece(std::uint32_t piece, Bytes bytes) {
  if (piece < written_ || arrived_.count(piece) != 0) return;  // it was received twice
  gained_ = heard_ = services_.clock.monotonic_now();
  given_ += bytes.size();
  groups_[group_].gave = true;
  arrived_[piece] = std::move(bytes);
  write();
}

// Writes the pieces that continue the file, one batch at a time.
void ContentFetch::write() {
  if (writing_ || phase_ != Phase::Fetching) return;
  auto batch = std::make_shared<std::vector<Bytes>>();
  for (std::uint32_t next = written_; arrived_.count(next) != 0; ++next)
    batch->push_back(std::move(arrived_[next]));
  if (batch->empty()) return;
  writing_ = true;
  auto outcome = std::make_shared<Expected<void>>();
  on_disk(
      [batch, outcome, path = part(), &env = services_.files] {
        *outcome = [&]() -> Expected<void> {
          NS_ASSIGN_OR_RETURN(const auto file, env.open_append(path));
          for (const Bytes& piece : *batch) NS_RETURN_IF_ERROR(file->append(piece));
          NS_RETURN_IF_ERROR(file->sync());
          return file->close();
        }();
      },
      [this, outcome, count = static_cast<std::uint32_t>(batch->size())] {
        writing_ = false;
        if (!outcome->ok()) return end(std::move(*outcome).error());
        arrived_.erase(arrived_.begin(), arrived_.lower_bound(written_ + count));
        written_ += count;
        if (written_ == pieces()) return check_whole();
        write();
        schedule();
      });
}

// ---- The end.

void ContentFetch::check_whole() {
  phase_ = Phase::Checking;
  auto right = std::make_shared<Expected<bool>>(false);
  on_disk(
      [right, list = groups_[group_].list, request = request_, path = part(), &env = services_.files] {
        *right = [&]() -> Expected<bool> {
          NS_ASSIGN_OR_RETURN(const HashedFile file, hash_file(env, path));
          if (file.pieces != *list)
            return make_error(ErrorCode::Io, path + " is not as it was written; check the disk");
          if (file.hash != request.hash) return false;
          NS_RETURN_IF_ERROR(env.rename(path, request.path));
          const std::string etag = path + ".etag";  // of a download that was begun over HTTP
          if (env.exists(etag)) NS_RETURN_IF_ERROR(env.remove_file(etag));
          const std::size_t slash = request.path.rfind('/');
          NS_RETURN_IF_ERROR(
              env.sync_directory(slash == std::string::npos ? "." : request.path.substr(0, slash)));
          return true;
        }();
      },
      [this, right] { checked(std::move(*right)); });
}

void ContentFetch::checked(Expected<bool> right) {
  if (!right.ok()) {
    if (right.error().code == ErrorCode::Io) static_cast<void>(services_.files.remove_file(part()).ok());
    return end(std::move(right).error());
  }
  if (*right) return end(report_);
  groups_[group_].refuted = true;
  for (std::size_t index = 0; index < holders_.size(); ++index)
    if (holders_[index].group == group_ && holders_[index].state == State::Ready)
      record_fault(index, "a list of pieces that make up something else");
  asked_.clear();
  arrived_.clear();
  phase_ = Phase::Choosing;
  gained_ = services_.clock.monotonic_now();
  choose();
}

}  // namespace neuroshard::exchange
