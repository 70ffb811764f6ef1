#include "core/swarm/turn_door.h"

#include <utility>

#include "core/dht/messages.h"

namespace neuroshard::swarm {

TurnDoor::TurnDoor(const Clock& clock, bool one_lan, net::Conduct* conduct, LetIn let_in)
    : clock_(clock),
      one_lan_(one_lan),
      conduct_(conduct),
      let_in_(std::move(let_in)),
      each_(of_one, /*one_lan=*/true),
      all_(all_per_second, all_burst, clock.monotonic_now()) {}

void TurnDoor::answer(const net::Caller& from, ByteSpan request, bool has_place,
                      const net::Respond& respond) {
  const auto fault = [&](net::Fault what) {
    if (conduct_ != nullptr) conduct_->fault(from, what);
  };
  const auto at = dht::decode_endpoint(request);
  if (!at.ok()) {
    fault(net::Fault::Malformed);
    return respond(at.error());
  }
  if (!has_place)
    return respond(make_error(ErrorCode::Unsupported, "this node has no place at a TURN server"));
  if (!one_lan_ && !platform::globally_routable(at->ip))
    return respond(make_error(ErrorCode::Denied, "only addresses of the internet are let in"));
  const MonotonicTime now = clock_.monotonic_now();
  if (!each_.admit(from, now)) {
    fault(net::Fault::Flood);
    return respond(make_error(ErrorCode::Exhausted, "asked too often; wait ten seconds"));
  }
  if (!all_.try_take(1, now))
    return respond(make_error(ErrorCode::Exhausted, "too many ask to be let in; try again in a moment"));
  let_in_(at->ip, [respond](const Expected<void>& done) {
    respond(done.ok() ? Expected<Bytes>(Bytes()) : Expected<Bytes>(done.error()));
  });
}

}  // namespace neuroshard::swarm
