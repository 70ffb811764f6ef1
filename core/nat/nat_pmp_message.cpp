#include "core/nat/nat_pmp_message.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/nat/detail/big_endian.h"

namespace neuroshard::nat::nat_pmp {
namespace {

using detail::load_be16;
using detail::load_be32;
using detail::store_be16;
using detail::store_be32;

constexpr std::uint8_t answer_bit = 128;
constexpr std::size_t refusal_bytes = 8, address_bytes = 12, mapping_bytes = 16, map_request_bytes = 12;

// Like in upnp_mapper.cpp.
constexpr const char* no_internet_address =
    "the router has no public address: its line is down, or there is another router in front of it";

Error corrupt(const char* what) {
  return make_error(ErrorCode::Corrupt, fmt::format("this is not a NAT-PMP answer: {}", what));
}

}  // namespace

Bytes outside_address_request() {
  return {0, static_cast<std::uint8_t>(Operation::OutsideAddress)};
}

Bytes map_request(Operation operation, std::uint16_t inside_port, std::uint16_t wanted_outside,
                  std::uint32_t lifetime) {
  Bytes bytes(map_request_bytes);
  bytes[1] = static_cast<std::uint8_t>(operation);
  store_be16(bytes.data() + 4, inside_port);
  store_be16(bytes.data() + 6, wanted_outside);
  store_be32(bytes.data() + 8, lifetime);
  return bytes;
}

Expected<Answer> parse_answer(ByteSpan bytes) {
  if (bytes.size() < refusal_bytes || bytes.size() > max_answer_bytes) return corrupt("its length is wrong");
  if (bytes[0] != 0) return corrupt("its version is not 0");
  const int operation = bytes[1] - answer_bit;
  if (operation < 0 || operation > 2) return corrupt("its operation is unknown");
  Answer answer;
  answer.operation = static_cast<Operation>(operation);
  answer.result = load_be16(bytes.data() + 2);
  answer.epoch = load_be32(bytes.data() + 4);
  if (answer.result != 0) return answer;
  if (answer.operation == Operation::OutsideAddress) {
    if (bytes.size() != address_bytes) return corrupt("its length is wrong");
    answer.outside = platform::IpAddress::v4(bytes[8], bytes[9], bytes[10], bytes[11]);
  } else {
    if (bytes.size() != mapping_bytes) return corrupt("its length is wrong");
    answer.inside_port = load_be16(bytes.data() + 8);
    answer.outside_port = load_be16(bytes.data() + 10);
    answer.lifetime = load_be32(bytes.data() + 12);
  }
  return answer;
}

Error result_error(std::uint16_t result) {
  switch (result) {
    case 1: return make_error(ErrorCode::Unsupported, "the router speaks another version of NAT-PMP");
    case 2:
      return make_error(
          ErrorCode::Denied,
          "the router refuses to open a port: allow NAT-PMP or UPnP in its settings, or forward the "
          "port there by hand");
    case 3: return make_error(ErrorCode::Unavailable, no_internet_address);
    case 4: return make_error(ErrorCode::Exhausted, "the router has no place for another port mapping");
    case 5: return make_error(ErrorCode::Unsupported, "the router does not open TCP ports by NAT-PMP");
    default:
      return make_error(ErrorCode::Denied, fmt::format("the router refuses with NAT-PMP result {}", result));
  }
}

bool mapping_may_be_gone(std::uint32_t before, std::uint32_t now, Duration elapsed) {
  const double least = before + 0.875 * to_seconds(elapsed) - 2;
  const double most = before + 1.125 * to_seconds(elapsed) + 2;
  return now < least || now > most;
}

}  // namespace neuroshard::nat::nat_pmp
