#include "core/net/method_table.h"

#include <utility>

#include "core/base/check.h"

namespace neuroshard::net {

MethodLimits::MethodLimits(std::shared_ptr<RequestLimiter> limiter, std::size_t most_request_bytes)
    : calls(std::move(limiter)), of_strangers(calls), request_bytes(most_request_bytes) {
  NS_CHECK(calls != nullptr);
}

MethodTable::MethodTable(const Clock& clock, Conduct* conduct, const PeerRanks* ranks)
    : clock_(clock), conduct_(conduct), ranks_(ranks) {}

MethodTable::Registration MethodTable::add(const std::vector<Method>& methods, MethodLimits limits,
                                           Handler handler) {
  return add_entry(methods, {std::move(limits), std::move(handler), nullptr});
}

MethodTable::Registration MethodTable::add_stream(Method method, MethodLimits limits, StreamHandler handler) {
  return add_entry({method}, {std::move(limits), nullptr, std::move(handler)});
}

MethodTable::Registration MethodTable::add_entry(const std::vector<Method>& methods, Entry with) {
  const auto entry = std::make_shared<const Entry>(std::move(with));
  for (const Method method : methods) {
    const bool is_new = entries_->emplace(method, entry).second;
    NS_CHECK(is_new);
  }
  return {entries_, methods};
}

bool MethodTable::admit(RequestLimiter& limiter, const Caller& from, std::size_t bytes, PeerRank rank) {
  using Exceeded = RequestLimiter::Exceeded;
  const MonotonicTime now = clock_.monotonic_now();
  if (limiter.admit(from, now, bytes, rank)) return true;
  if (conduct_ == nullptr) return false;
  const Exceeded whose = limiter.exceeded(from, now, bytes, rank);
  if (whose == Exceeded::Own) conduct_->fault(from, Fault::Flood);
  if (whose == Exceeded::Group) conduct_->fault(from.endpoint.ip, Fault::Flood);
  return false;
}

void MethodTable::on_call(const Caller& from, Method method, Bytes request, Respond respond) {
  const auto found = entries_->find(method);
  if (found == entries_->end() || found->second->handler == nullptr)
    return respond(make_error(ErrorCode::Unsupported, "this node does not know that request"));
  const std::shared_ptr<const Entry> entry = found->second;  // the handler may end its registration
  const MethodLimits& limits = entry->limits;
  const PeerRank rank = ranks_ == nullptr ? PeerRank::Stranger : ranks_->of(from.id);
  const std::shared_ptr<RequestLimiter> limiter =
      rank == PeerRank::Stranger ? limits.of_strangers : limits.calls;
  const Reply reply = [conduct = conduct_, &clock = clock_, limiter, rank, from,
                       respond = std::move(respond)](Answer answer) {
    if (answer.fault && conduct != nullptr) conduct->fault(from, *answer.fault);
    if (answer.with.ok()) limiter->charge(from, clock.monotonic_now(), answer.with->size(), rank);
    respond(std::move(answer.with));
  };
  if (!admit(*limiter, from, request.size(), rank))
    return reply(make_error(ErrorCode::Exhausted, "too many requests; wait a second"));
  if (request.size() > limits.request_bytes)
    return reply(make_error(ErrorCode::InvalidArgument, "the request has more bytes than its method allows"));
  if (limits.admit) {
    if (const auto admitted = limits.admit(from); !admitted.ok()) return reply(admitted.error());
  }
  entry->handler(from, method, request, reply);
}

void MethodTable::on_stream(const Caller& from, Method method, std::shared_ptr<PeerStream> stream) {
  const auto found = entries_->find(method);
  if (found == entries_->end() || found->second->stream_handler == nullptr)
    return stream->break_off(make_error(ErrorCode::Unsupported, "this node does not know that stream"));
  const std::shared_ptr<const Entry> entry = found->second;  // the handler may end its registration
  const MethodLimits& limits = entry->limits;
  const PeerRank rank = ranks_ == nullptr ? PeerRank::Stranger : ranks_->of(from.id);
  const std::shared_ptr<RequestLimiter>& limiter =
      rank == PeerRank::Stranger ? limits.of_strangers : limits.calls;
  if (!admit(*limiter, from, 0, rank))
    return stream->break_off(make_error(ErrorCode::Exhausted, "too many streams; wait a second"));
  if (limits.admit) {
    if (const auto admitted = limits.admit(from); !admitted.ok()) return stream->break_off(admitted.error());
  }
  entry->stream_handler(from, std::move(stream));
}

MethodTable::Registration& MethodTable::Registration::operator=(Registration&& other) noexcept {
  if (this != &other) {
    end();
    entries_ = std::move(other.entries_);
    methods_ = std::move(other.methods_);
  }
  return *this;
}

void MethodTable::Registration::end() {
  if (const auto entries = entries_.lock())
    for (const Method method : methods_) entries->erase(method);
  entries_.reset();
  methods_.clear();
}

}  // namespace neuroshard::net
