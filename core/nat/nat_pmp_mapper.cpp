#include "core/nat/nat_pmp_mapper.h"

#include <fmt/format.h>

#include <array>

#include "core/platform/socket/udp_socket.h"

namespace neuroshard::nat {

using nat_pmp::Answer;
using nat_pmp::Operation;

Expected<Answer> NatPmpMapper::ask(const Io& io, const Bytes& request, Operation operation,
                                   std::uint16_t inside_port) {
  // A socket for each request, bound to an unpredictable port.
  const auto any = gateway_.ip.is_v4() ? platform::IpAddress::v4(0, 0, 0, 0) : platform::IpAddress{};
  NS_ASSIGN_OR_RETURN(platform::UdpSocket socket, platform::UdpSocket::open({any, 0}));
  Retransmission retransmission(rule_, io.now());
  std::array<std::uint8_t, nat_pmp::max_answer_bytes + 1> buffer{};
  while (true) {
    if (retransmission.due(io.now())) {
      const auto sent = socket.send_to(request, gateway_);
      if (!sent.ok()) return make_error(ErrorCode::NotFound, sent.error().message);
    }
    platform::SocketWait wait{socket.descriptor(), true, false, false};
    NS_ASSIGN_OR_RETURN(const bool ready,
                        wait_until(io, Span<platform::SocketWait>(&wait, 1), retransmission.next()));
    if (!ready && retransmission.expired(io.now())) {
      return make_error(ErrorCode::Timeout, fmt::format("the router {} does not answer NAT-PMP: it does not "
                                                        "know it, or it is switched off there",
                                                        to_text(gateway_.ip)));
    }
    if (!ready) continue;
    NS_ASSIGN_OR_RETURN(const auto received, socket.receive(buffer));
    if (!received || received->from != gateway_) continue;
    const auto answer = nat_pmp::parse_answer(ByteSpan(buffer.data(), received->size));
    if (!answer.ok() || answer->operation != operation) continue;
    if (answer->result == 0 && operation != Operation::OutsideAddress && answer->inside_port != inside_port)
      continue;
    const MonotonicTime now = io.now();
    if (epoch_ && nat_pmp::mapping_may_be_gone(epoch_->seconds, answer->epoch, now - epoch_->heard))
      lost_ = true;
    epoch_ = Epoch{answer->epoch, now};
    if (answer->result != 0) return nat_pmp::result_error(answer->result);
    return answer;
  }
}

Expected<PortMapping> NatPmpMapper::map(const Io& io, std::uint16_t inside_port, std::uint16_t wanted_outside,
                                        std::chrono::seconds lease) {
  const Bytes request = nat_pmp::map_request(Operation::MapTcp, inside_port, wanted_outside,
                                             static_cast<std::uint32_t>(lease.count()));
  NS_ASSIGN_OR_RETURN(const Answer answer, ask(io, request, Operation::MapTcp, inside_port));
  if (answer.outside_port == 0 || answer.lifetime == 0)
    return make_error(ErrorCode::Corrupt, "the router says it made a mapping, but to no port or for no time");
  lost_ = false;
  return PortMapping{inside_port, answer.outside_port, std::chrono::seconds(answer.lifetime)};
}

Expected<MappingState> NatPmpMapper::check(const Io& io, const PortMapping&) {
  NS_ASSIGN_OR_RETURN(const Answer answer,
                      ask(io, nat_pmp::outside_address_request(), Operation::OutsideAddress, 0));
  return MappingState{*answer.outside, lost_};
}

Expected<void> NatPmpMapper::unmap(const Io& io, const PortMapping& mapping) {
  const Bytes request = nat_pmp::map_request(Operation::MapTcp, mapping.inside_port, 0, 0);
  NS_RETURN_IF_ERROR(ask(io, request, Operation::MapTcp, mapping.inside_port));
  return {};
}

}  // namespace neuroshard::nat
