#include "core/swarm/table_membership.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace neuroshard::swarm {
namespace {

// Of the table's calls; an answer has up to 16 records.
constexpr net::RequestLimits request_limits{
    .per_second = 20, .burst = 100, .bytes_per_second = 256u << 10, .bytes_burst = 4u << 20};
constexpr std::size_t max_request = 16u << 10;
// Between two joins of a table that has members. Each calls the members nearest to this node several times.
constexpr Duration join_pause = std::chrono::seconds(10);
constexpr std::size_t most_waiting = 64;  // more than one answer names

}  // namespace

TableMembership::TableMembership(const MemberContext& context, net::MethodTable& methods,
                                 Advertiser& advertiser, const Reachability& reach,
                                 std::function<void()> joined)
    : context_(context), advertiser_(advertiser), reach_(reach), joined_(std::move(joined)) {
  replace();
  methods_ = methods.add(
      {net::Method::DhtPing, net::Method::DhtFindNode, net::Method::DhtFindValue, net::Method::DhtStore},
      net::MethodLimits(
          std::make_shared<net::RequestLimiter>(request_limits, context.options.one_lan, context.table_seed),
          max_request),
      [this](const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply) {
        table_->handle(from, method, request, reply);
      });
}

void TableMembership::replace() {
  ++tables_;
  advertiser_.table_replaced();
  dht::DhtConfig config;
  config.member_port = reach_.advertised() ? reach_.advertised()->port : 0;
  config.one_lan = context_.options.one_lan;
  table_ =
      std::make_unique<dht::DhtNode>(context_.options.network_id, config,
                                     dht::DhtServices{context_.services.key, context_.pool,
                                                      context_.services.executor, context_.services.clock},
                                     context_.rng.next());
}

void TableMembership::join_by(const std::vector<net::Contact>& contacts) {
  if (contacts.empty()) return;
  const bool none_waited = waiting_.empty();
  for (const net::Contact& contact : contacts) {
    if (std::find(waiting_.begin(), waiting_.end(), contact) != waiting_.end()) continue;
    if (waiting_.size() < most_waiting)
      waiting_.push_back(contact);
    else
      waiting_[context_.rng.below(waiting_.size())] = contact;
  }
  const MonotonicTime now = context_.services.clock.monotonic_now();
  if (is_empty() || now >= due_) return join();
  if (none_waited)
    timer_ = context_.services.executor.post_after(due_ - now, [this, life = lifetime_.token()] {
      if (life.alive()) join();
    });
}

// Strangers decide when contacts become known. If each led to a join, the members would count this node's calls as a
// flood.
void TableMembership::join() {
  if (waiting_.empty()) return;
  due_ = context_.services.clock.monotonic_now() + join_pause;
  table_->join(std::exchange(waiting_, {}), [this, life = lifetime_.token()](std::size_t known) {
    if (!life.alive()) return;
    if (std::exchange(known_, known) != known)
      context_.services.logger.info("swarm", fmt::format("the hash table knows {} member(s)", known));
    if (known == 0) return;
    joined_();
    advertiser_.publish(*table_);
  });
}

}  // namespace neuroshard::swarm
