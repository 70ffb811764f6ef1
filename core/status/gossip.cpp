#include "core/status/gossip.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/net/peer_channel.h"

namespace neuroshard::status {
namespace {

constexpr std::size_t pull_head = 2, range_bytes = 8 + 8 + 2, entry_bytes = 16;
constexpr std::size_t largest_answer = 1 + max_pulled * max_report_bytes;

Error corrupt(const char* what) {
  return make_error(ErrorCode::Corrupt, what);
}

std::uint64_t prefix_of(const net::NodeId& id) {
  return net::detail::big_endian_word(id, 0);
}

std::uint64_t date_of(const StatusReport& report) {
  return static_cast<std::uint64_t>(to_unix_ms(report.made));
}

}  // namespace

Bytes encode_pull(const PullRequest& request) {
  NS_CHECK(request.known.size() <= max_listed);
  const Bytes own = request.own ? encode_report(*request.own) : Bytes();
  Bytes bytes;
  append_le(bytes, static_cast<std::uint16_t>(own.size()));
  bytes.insert(bytes.end(), own.begin(), own.end());
  append_le(bytes, request.first);
  append_le(bytes, request.last);
  append_le(bytes, static_cast<std::uint16_t>(request.known.size()));
  for (const Listed& one : request.known) {
    append_le(bytes, one.prefix);
    append_le(bytes, one.made);
  }
  return bytes;
}

Expected<PullRequest> decode_pull(ByteSpan bytes) {
  if (bytes.size() < pull_head) return corrupt("the request for reports ends early");
  const std::size_t own = load_le<std::uint16_t>(bytes.data());
  if (own > max_report_bytes || bytes.size() < pull_head + own + range_bytes)
    return corrupt("the request for reports ends early");
  PullRequest request;
  if (own > 0) {
    NS_ASSIGN_OR_RETURN(request.own, decode_report(bytes.subspan(pull_head, own)));
  }
  const std::uint8_t* at = bytes.data() + pull_head + own;
  request.first = load_le<std::uint64_t>(at);
  request.last = load_le<std::uint64_t>(at + 8);
  const std::size_t count = load_le<std::uint16_t>(at + 16);
  if (count > max_listed || request.first > request.last ||
      bytes.size() != pull_head + own + range_bytes + count * entry_bytes)
    return corrupt("the request for reports has a list of another length than it says");
  at += range_bytes;
  for (std::size_t i = 0; i < count; ++i, at += entry_bytes) {
    const Listed one{load_le<std::uint64_t>(at), load_le<std::uint64_t>(at + 8)};
    if (one.prefix < request.first || one.prefix > request.last ||
        (!request.known.empty() && one.prefix <= request.known.back().prefix))
      return corrupt("the request for reports has a list that is not in order");
    request.known.push_back(one);
  }
  return request;
}

Bytes encode_reports(const std::vector<const StatusReport*>& reports) {
  NS_CHECK(reports.size() <= max_pulled);
  Bytes bytes{static_cast<std::uint8_t>(reports.size())};
  for (const StatusReport* report : reports) {
    const Bytes one = encode_report(*report);
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  return bytes;
}

Expected<std::vector<StatusReport>> decode_reports(ByteSpan bytes) {
  if (bytes.empty() || bytes[0] > max_pulled)
    return corrupt("the answer has more reports than were asked for");
  const std::size_t count = bytes[0];
  std::vector<StatusReport> reports;
  ByteSpan rest = bytes.subspan(1);
  for (std::size_t i = 0; i < count; ++i) {
    NS_ASSIGN_OR_RETURN(const std::size_t length, report_length(rest));
    if (length > rest.size()) return corrupt("the answer's reports end early");
    NS_ASSIGN_OR_RETURN(StatusReport report, decode_report(rest.first(length)));
    reports.push_back(std::move(report));
    rest = rest.subspan(length);
  }
  if (!rest.empty()) return corrupt("bytes follow the answer's reports");
  return reports;
}

StatusGossip::StatusGossip(GossipServices services, const Hash256& network,
                           std::optional<crypto::Delegation> delegation, GossipOptions options,
                           std::uint64_t seed)
    : services_(std::move(services)),
      network_(network),
      delegation_(std::move(delegation)),
      options_(options),
      self_(crypto::node_id(services_.key.public_key())),
      rng_(seed),
      table_(network, options.table) {}

StatusGossip::~StatusGossip() = default;

void StatusGossip::start() {
  timer_ = services_.executor.post_after(options_.tick, [this] { tick(); });
}

void StatusGossip::set_own(const OwnStatus& status) {
  const bool another_round = !own_ || own_->round != status.round || own_->anchor != status.anchor;
  own_ = status;
  const Duration since = services_.clock.monotonic_now() - reported_;
  if (!report_ || since >= options_.report_period || (another_round && since >= options_.least_between))
    renew_own();
}

void StatusGossip::renew_own() {
  reported_ = services_.clock.monotonic_now();
  const WallTime now = services_.clock.wall_now();
  WallTime made = now;
  if (report_ && made <= report_->made) {
    // The clock was set back. Others may have the report before and take only a later one. They have none
    // with a date that is too far ahead.
    if (report_->made < now + clock_skew)
      made = report_->made + std::chrono::milliseconds(1);
    else
      table_.drop(self_);
  }
  // Nobody takes a report with a delegation that has expired.
  if (!delegation_lasts(delegation_, now)) delegation_.reset();
  report_ = sign_report(*own_, made, delegation_, services_.key, network_);
  table_.take(*report_, now);
}

void StatusGossip::tick() {
  table_.drop_old(services_.clock.wall_now());
  if (own_ && report_) {
    const Duration since = services_.clock.monotonic_now() - reported_;
    const bool another_round = report_->status.round != own_->round || report_->status.anchor != own_->anchor;
    if (since >= options_.report_period || (another_round && since >= options_.least_between)) renew_own();
  }
  for (const net::Contact& contact : services_.some(options_.asked_at_a_time)) pull(contact);
  timer_ = services_.executor.post_after(options_.tick, [this] { tick(); });
}

PullRequest StatusGossip::request() {
  PullRequest request;
  request.own = report_;
  std::vector<Listed> all;  // ascending, as the ids are
  for (const auto& [id, report] : table_.all()) {
    const Listed one{prefix_of(id), date_of(report)};
    if (all.empty() || all.back().prefix != one.prefix) all.push_back(one);
  }
  if (all.size() > max_listed) {
    // A range that begins anywhere and wraps around at the end.
    const std::size_t begin = rng_.below(all.size());
    const std::size_t end = std::min(begin + max_listed, all.size());
    request.first = begin == 0 ? 0 : all[begin].prefix;
    request.last = end == all.size() ? ~std::uint64_t{0} : all[end].prefix - 1;
    all = {all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end)};
  }
  request.known = std::move(all);
  return request;
}

void StatusGossip::pull(const net::Contact& from) {
  Bytes bytes = encode_pull(request());
  counts_.sent += bytes.size();
  const Duration deadline = net::call_deadline(options_.patience, bytes.size(), largest_answer);
  services_.caller.call(from, net::Method::StatusPull, std::move(bytes), deadline,
                        [this, life = lifetime_.token()](const Expected<Bytes>& answer) {
                          if (!life.alive() || !answer.ok()) return;
                          counts_.received += answer->size();
                          const auto reports = decode_reports(*answer);
                          if (!reports.ok()) return;
                          const WallTime now = services_.clock.wall_now();
                          for (const StatusReport& report : *reports) {
                            // Only this node reports on itself.
                            if (report.id() == self_) continue;
                            // The rest of an answer with an invalid report is ignored.
                            if (table_.take(report, now) == Taken::Denied) return;
                          }
                        });
}

std::vector<const StatusReport*> StatusGossip::wanted(const PullRequest& request) const {
  struct Found {
    const StatusReport* report;
    bool is_member;
  };
  std::vector<Found> found;
  for (const auto& [id, report] : table_.all()) {
    const std::uint64_t prefix = prefix_of(id);
    if (prefix < request.first || prefix > request.last) continue;
    const auto known =
        std::lower_bound(request.known.begin(), request.known.end(), prefix,
                         [](const Listed& one, std::uint64_t value) { return one.prefix < value; });
    const bool has =
        known != request.known.end() && known->prefix == prefix && known->made >= date_of(report);
    if (!has) found.push_back({&report, table_.is_member(id)});
  }
  // Members first, then the newest; the rest is requested next time.
  const auto end = found.begin() + static_cast<std::ptrdiff_t>(std::min(found.size(), max_pulled));
  std::partial_sort(found.begin(), end, found.end(), [](const Found& a, const Found& b) {
    return a.is_member != b.is_member ? a.is_member : a.report->made > b.report->made;
  });
  std::vector<const StatusReport*> first;
  for (auto at = found.begin(); at != end; ++at) first.push_back(at->report);
  return first;
}

void StatusGossip::on_call(const net::Caller& from, ByteSpan bytes, const net::Respond& respond) {
  counts_.received += bytes.size();
  const auto request = decode_pull(bytes);
  if (!request.ok()) {
    ++counts_.refused_requests;
    respond(request.error());
    return;
  }
  const WallTime now = services_.clock.wall_now();
  table_.drop_old(now);
  // The own report must be the caller's.
  if (request->own && request->own->id() == from.id) table_.take(*request->own, now);
  Bytes answer = encode_reports(wanted(*request));
  counts_.sent += answer.size();
  respond(std::move(answer));
}

}  // namespace neuroshard::status
