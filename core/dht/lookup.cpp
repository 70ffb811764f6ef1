#include "core/dht/lookup.h"

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard::dht {

Lookup::Lookup(const net::NodeId& self, const net::NodeId& target, net::Method method, bool one_lan,
               LookupOptions options, std::vector<net::Contact> first, std::vector<net::Contact> anchors,
               const net::NodeId& order, Services services)
    : self_(self),
      target_(target),
      method_(method),
      one_lan_(one_lan),
      options_(options),
      first_(std::move(first)),
      anchors_(std::move(anchors)),
      order_(order),
      services_(std::move(services)) {
  std::sort(anchors_.begin(), anchors_.end(),
            [&](const net::Contact& a, const net::Contact& b) { return net::closer(order_, a.id, b.id); });
  NS_CHECK(options.paths > 0 && options.max_paths >= options.paths && options.width > 0);
}

void Lookup::start() {
  open_paths(options_.paths);
  if (paths_.empty()) finish();
}

void Lookup::stop() {
  over_ = true;
  services_ = {};
}

void Lookup::open_paths(std::size_t count) {
  const std::size_t before = paths_.size();
  for (std::size_t i = 0; i < count && paths_.size() < options_.max_paths; ++i) {
    Path path;
    path.sources.emplace_back();
    path.sources.front().answered = true;  // the own table has verified contacts
    if (!begin_at_anchors(path)) {
      for (std::size_t at = paths_.size(); at < first_.size(); at += options_.max_paths)
        add(path, first_[at], 1, 0);
    }
    if (path.candidates.empty()) break;
    paths_.push_back(std::move(path));
  }
  const std::size_t after = paths_.size();
  for (std::size_t i = before; i < after && !over_; ++i) advance(i);
}

// False: this path does not begin at an anchor, or no anchor is left.
bool Lookup::begin_at_anchors(Path& path) {
  const std::size_t each = options_.anchored, number = paths_.size();
  if (each == 0 || number % each != each - 1) return false;
  for (std::size_t at = number / each; at < anchors_.size(); at += options_.max_paths / each)
    add(path, anchors_[at], 1, 0);
  return !path.candidates.empty();
}

void Lookup::add(Path& path, const net::Contact& contact, std::size_t hop, std::size_t source) {
  if (contact.id == self_) return;
  auto at = std::lower_bound(path.candidates.begin(), path.candidates.end(), contact.id,
                             [&](const Candidate& candidate, const net::NodeId& id) {
                               return net::closer(target_, candidate.contact.id, id);
                             });
  for (; at != path.candidates.end() && at->contact.id == contact.id; ++at)
    if (at->contact.endpoint == contact.endpoint) return;
  path.candidates.insert(at, {contact, Status::Fresh, hop, source, 0});
}

bool Lookup::may_ask(const Path& path, const Candidate& candidate) const {
  const Source& source = path.sources[candidate.source];
  if (!source.answered && source.failures >= options_.source_failures) return false;
  if (answered_.count(candidate.contact.id) != 0 || was_called(candidate.contact)) return false;
  if (one_lan_ || options_.per_group == 0) return true;
  const auto group = asked_in_group_.find(platform::prefix_group(candidate.contact.endpoint.ip));
  return group == asked_in_group_.end() || group->second < options_.per_group;
}

bool Lookup::was_called(const net::Contact& contact) const {
  const auto at = called_at_.find(contact.id);
  return at != called_at_.end() &&
         std::find(at->second.begin(), at->second.end(), contact.endpoint) != at->second.end();
}

// Whether a member is as near to the target as the holders of its records. Byzantine members are rarer than
// members at large, so those that they name mostly lie farther out, and do not end a path however many
// answer.
bool Lookup::near(const net::NodeId& id) const {
  return net::distance_share(id, target_) <= options_.radius;
}

// The next member to call; null when enough of the nearest have answered, or none is left. Members near the
// target are called in an order that others can't foresee: any of them should hold the records, and an
// attacker can search for the very nearest ids. Farther out, the nearest first.
Lookup::Candidate* Lookup::next(Path& path) {
  std::size_t answered = 0;
  Candidate* chosen = nullptr;
  for (Candidate& candidate : path.candidates) {
    const bool close = near(candidate.contact.id);
    if (!close && chosen != nullptr) break;
    if (candidate.status == Status::Answered && close && ++answered == options_.width) return nullptr;
    if (candidate.status != Status::Fresh || !may_ask(path, candidate)) continue;
    if (chosen == nullptr || net::closer(order_, candidate.contact.id, chosen->contact.id))
      chosen = &candidate;
    if (!close || method_ == net::Method::DhtFindNode) break;
  }
  return chosen;
}

// A member that did not answer is called once more before the path fails.
Lookup::Candidate* Lookup::again(Path& path) {
  std::size_t answered = 0;
  for (Candidate& candidate : path.candidates) {
    if (candidate.status == Status::Answered && near(candidate.contact.id) && ++answered == options_.width)
      return nullptr;
    const Source& source = path.sources[candidate.source];
    const bool invented = !source.answered && source.failures >= options_.source_failures;
    if (candidate.status == Status::Failed && candidate.tries < options_.tries && !invented &&
        answered_.count(candidate.contact.id) == 0)
      return &candidate;
  }
  return nullptr;
}

void Lookup::advance(std::size_t index) {
  Path& path = paths_[index];
  const bool spent = path.holder || path.calls == options_.path_calls;
  Candidate* candidate = spent ? nullptr : next(path);
  if (candidate == nullptr && !spent) candidate = again(path);
  if (candidate == nullptr) return end(index);
  ask(index, *candidate);
}

void Lookup::ask(std::size_t index, Candidate& candidate) {
  candidate.status = Status::Waiting;
  ++candidate.tries;
  ++paths_[index].calls;
  if (!was_called(candidate.contact)) called_at_[candidate.contact.id].push_back(candidate.contact.endpoint);
  ++asked_in_group_[platform::prefix_group(candidate.contact.endpoint.ip)];
  ++result_.messages;
  services_.ask(candidate.contact,
                [self = shared_from_this(), index, id = candidate.contact.id](Expected<Bytes> answer) {
                  if (!self->over_) self->answered(index, id, answer);
                });
}

void Lookup::answered(std::size_t index, const net::NodeId& id, const Expected<Bytes>& answer) {
  Path& path = paths_[index];
  const auto candidate = std::find_if(
      path.candidates.begin(), path.candidates.end(),
      [&](const Candidate& one) { return one.contact.id == id && one.status == Status::Waiting; });
  NS_CHECK(candidate != path.candidates.end());
  Expected<Found> found =
      answer.ok() ? decode_found(method_, *answer, one_lan_) : Expected<Found>(answer.error());
  if (answered_.count(id) != 0) {
    candidate->status = Status::Failed;  // it answered another path at another address
  } else if (!found.ok()) {
    candidate->status = Status::Failed;
    ++path.sources[candidate->source].failures;
    ++result_.failures;
  } else {
    candidate->status = Status::Answered;
    answered_.insert(id);
    path.sources[candidate->source].answered = true;
    members_.push_back(*candidate);
    take(path, Candidate(*candidate), std::move(*found));
  }
  if (!path.ended) return advance(index);
  --confirming_;
  if (!confirm()) finish();
}

void Lookup::take(Path& path, const Candidate& from, Found found) {
  for (Record& record : found.records) {
    const auto known = records_.find(record.publisher);
    const bool older = known != records_.end() && known->second.sequence > record.sequence;
    const bool same = known != records_.end() && known->second == record;
    if (!older && !same && !services_.valid(record)) continue;
    if (known != records_.end() && !same) agree_ = false;
    if (older) continue;
    if (!path.holder) ++result_.holders;
    path.holder = true;
    result_.hops = std::max(result_.hops, from.hop);
    records_[record.publisher] = std::move(record);
  }
  path.sources.emplace_back();
  for (const net::Contact& contact : found.contacts)
    add(path, contact, from.hop + 1, path.sources.size() - 1);
}

void Lookup::end(std::size_t index) {
  if (over_ || paths_[index].ended) return;
  paths_[index].ended = true;
  const auto open = static_cast<std::size_t>(
      std::count_if(paths_.begin(), paths_.end(), [](const Path& path) { return !path.ended; }));
  std::size_t wanted = options_.least_paths - std::min(options_.least_paths, paths_.size());
  if (method_ == net::Method::DhtFindValue && result_.holders + open < options_.quorum)
    wanted = std::max(wanted, options_.quorum - result_.holders - open);
  const std::size_t before = paths_.size();
  if (open < options_.paths) open_paths(std::min(wanted, options_.paths - open));
  if (over_ || open != 0 || paths_.size() > before) return;
  if (!confirm()) finish();
}

// One after the other, in an order that others can't foresee. True while one is called.
bool Lookup::confirm() {
  if (confirming_ != 0) return true;
  if (method_ != net::Method::DhtFindValue || records_.empty() || !agree_) return false;
  if (confirmed_ == options_.confirm) return false;
  std::size_t on = 0;
  Candidate* chosen = nullptr;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    for (Candidate& candidate : paths_[i].candidates) {
      if (!near(candidate.contact.id)) break;
      if (candidate.status != Status::Fresh || !may_ask(paths_[i], candidate)) continue;
      if (chosen != nullptr && !net::closer(order_, candidate.contact.id, chosen->contact.id)) continue;
      on = i;
      chosen = &candidate;
    }
  }
  if (chosen == nullptr) return false;
  ++confirmed_;
  ++confirming_;
  ask(on, *chosen);
  return true;
}

void Lookup::collect_known() {
  constexpr std::size_t unproven = 3;  // of an answer whose contacts have not answered
  std::size_t sources = 0;
  std::unordered_set<net::NodeId, net::NodeIdHash> seen;
  for (const Path& path : paths_) {
    std::vector<std::size_t> taken(path.sources.size());
    for (const Candidate& candidate : path.candidates) {
      const Source& source = path.sources[candidate.source];
      if (candidate.status == Status::Failed) continue;
      if (candidate.status == Status::Fresh && answered_.count(candidate.contact.id) != 0) continue;
      if (candidate.status == Status::Fresh && !source.answered) {
        if (source.failures >= options_.source_failures || ++taken[candidate.source] > unproven) continue;
      }
      if (!seen.insert(candidate.contact.id).second) continue;
      result_.known.push_back({candidate.contact, sources + candidate.source});
    }
    sources += path.sources.size();
  }
  std::sort(result_.known.begin(), result_.known.end(), [&](const KnownContact& a, const KnownContact& b) {
    return net::closer(target_, a.contact.id, b.contact.id);
  });
  if (result_.known.size() > max_known) result_.known.resize(max_known);
}

void Lookup::finish() {
  over_ = true;
  std::sort(members_.begin(), members_.end(), [&](const Candidate& a, const Candidate& b) {
    return net::closer(target_, a.contact.id, b.contact.id);
  });
  for (const Candidate& member : members_) result_.answered.push_back(member.contact);
  collect_known();
  if (result_.holders == 0 && !members_.empty()) result_.hops = members_.front().hop;
  for (auto& [publisher, record] : records_) result_.records.push_back(std::move(record));
  result_.paths = paths_.size();
  const auto done = std::move(services_.done);
  services_ = {};
  done(std::move(result_));
}

}  // namespace neuroshard::dht
