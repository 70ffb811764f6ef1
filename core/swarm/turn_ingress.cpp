#include "core/swarm/turn_ingress.h"

#include <utility>

#include "core/dht/messages.h"

namespace neuroshard::swarm {

TurnIngress::TurnIngress(const Clock& clock, bool one_lan, std::uint64_t seed, LetIn let_in)
    : clock_(clock),
      one_lan_(one_lan),
      let_in_(std::move(let_in)),
      each_(of_one, /*one_lan=*/true, seed),
      all_(all_per_second, all_burst, clock.monotonic_now()) {}

void TurnIngress::answer(const net::Caller& from, ByteSpan request, bool has_place, const net::Reply& reply) {
  const auto at = dht::decode_endpoint(request);
  if (!at.ok()) return reply({at.error(), net::Fault::Malformed});
  if (!has_place) return reply(make_error(ErrorCode::Unsupported, "this node has no place at a TURN server"));
  if (!one_lan_ && !platform::globally_routable(at->ip))
    return reply(make_error(ErrorCode::Denied, "only public addresses are permitted"));
  const MonotonicTime now = clock_.monotonic_now();
  if (!each_.admit(from, now))
    return reply({make_error(ErrorCode::Exhausted, "asked too often; wait ten seconds"), net::Fault::Flood});
  if (!all_.try_take(1, now))
    return reply(
        make_error(ErrorCode::Exhausted, "too many requests for permissions; try again in a moment"));
  let_in_(at->ip, [reply](const Expected<void>& done) {
    reply(done.ok() ? Expected<Bytes>(Bytes()) : Expected<Bytes>(done.error()));
  });
}

}  // namespace neuroshard::swarm
