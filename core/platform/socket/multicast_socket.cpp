#include "core/platform/socket/multicast_socket.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/platform/socket/detail/socket_address.h"

namespace neuroshard::platform {
namespace {

constexpr int hop_limit = 255;
constexpr std::size_t most_interfaces = 32;

std::uint32_t v4_of(const IpAddress& address) {
  std::uint32_t value = 0;
  std::memcpy(&value, address.bytes.data() + 12, sizeof value);
  return value;
}

IpAddress address_of(std::uint32_t value) {
  std::uint8_t bytes[4];
  std::memcpy(bytes, &value, sizeof bytes);
  return IpAddress::v4(bytes[0], bytes[1], bytes[2], bytes[3]);
}

template <class T>
bool set(int descriptor, int level, int option, const T& value) {
  return ::setsockopt(descriptor, level, option, &value, sizeof value) == 0;
}

ip_mreqn request_of(const IpAddress& group, int index) {
  ip_mreqn request{};
  request.imr_multiaddr.s_addr = v4_of(group);
  request.imr_ifindex = index;
  return request;
}

}  // namespace

Expected<MulticastSocket> MulticastSocket::open(const Endpoint& group) {
  NS_ASSIGN_OR_RETURN(const int descriptor, detail::open_socket(group.ip, detail::Transport::Udp, false));
  MulticastSocket socket(descriptor, group);
  const int on = 1;
  if (!set(descriptor, SOL_SOCKET, SO_REUSEADDR, on) || !set(descriptor, SOL_SOCKET, SO_REUSEPORT, on) ||
      !set(descriptor, IPPROTO_IP, IP_MULTICAST_TTL, hop_limit) ||
      !set(descriptor, IPPROTO_IP, IP_MULTICAST_LOOP, on) ||
      !set(descriptor, IPPROTO_IP, IP_MULTICAST_ALL, 0))
    return detail::socket_error("preparing a multicast socket", errno);
  NS_RETURN_IF_ERROR(detail::bind_socket(descriptor, {IpAddress::v4(0, 0, 0, 0), group.port}));
  return socket;
}

MulticastSocket::MulticastSocket(MulticastSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      group_(other.group_),
      interfaces_(std::move(other.interfaces_)),
      joined_(std::move(other.joined_)) {}

MulticastSocket::~MulticastSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::size_t MulticastSocket::join() {
  ifaddrs* list = nullptr;
  interfaces_.clear();
  if (::getifaddrs(&list) != 0) return 0;
  constexpr unsigned needed = IFF_UP | IFF_MULTICAST;
  for (const ifaddrs* at = list; at != nullptr && interfaces_.size() < most_interfaces; at = at->ifa_next) {
    if ((at->ifa_flags & needed) != needed || at->ifa_addr == nullptr || at->ifa_netmask == nullptr ||
        at->ifa_addr->sa_family != AF_INET)
      continue;
    sockaddr_in own{}, mask{};
    std::memcpy(&own, at->ifa_addr, sizeof own);
    std::memcpy(&mask, at->ifa_netmask, sizeof mask);
    interfaces_.push_back(
        {static_cast<int>(::if_nametoindex(at->ifa_name)), own.sin_addr.s_addr, mask.sin_addr.s_addr});
  }
  ::freeifaddrs(list);
  for (const Interface& one : interfaces_) {
    if (std::find(joined_.begin(), joined_.end(), one.index) != joined_.end()) continue;
    if (set(descriptor_, IPPROTO_IP, IP_ADD_MEMBERSHIP, request_of(group_.ip, one.index)))
      joined_.push_back(one.index);
  }
  // One that went and comes back has to be joined anew.
  std::erase_if(joined_, [this](int index) {
    return std::none_of(interfaces_.begin(), interfaces_.end(),
                        [index](const Interface& one) { return one.index == index; });
  });
  return interfaces_.size();
}

void MulticastSocket::send(const std::function<Bytes(const IpAddress&)>& make) {
  const detail::SocketAddress to = detail::to_socket_address(group_);
  for (const Interface& one : interfaces_) {
    if (!set(descriptor_, IPPROTO_IP, IP_MULTICAST_IF, request_of(group_.ip, one.index))) continue;
    const Bytes bytes = make(address_of(one.address));
    static_cast<void>(::sendto(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL, to.get(), to.size));
  }
}

std::optional<MulticastSocket::Received> MulticastSocket::receive(MutableByteSpan target) {
  // The number of dropped datagrams is bounded, so that a flood does not hold the caller.
  for (int tries = 0; tries < 32; ++tries) {
    detail::SocketAddress from;
    from.size = sizeof from.storage;
    const ssize_t size = ::recvfrom(descriptor_, target.data(), target.size(), 0, from.get(), &from.size);
    if (size < 0) return std::nullopt;
    const Endpoint endpoint = detail::from_socket_address(from);
    const std::uint32_t address = v4_of(endpoint.ip);
    const bool local = endpoint.ip.is_v4() &&
                       std::any_of(interfaces_.begin(), interfaces_.end(), [address](const Interface& one) {
                         return (one.address & one.mask) == (address & one.mask);
                       });
    if (local) return Received{static_cast<std::size_t>(size), endpoint};
  }
  return std::nullopt;
}

}  // namespace neuroshard::platform
