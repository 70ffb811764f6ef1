#include "tests/support/mutator.h"

#include <algorithm>
#include <array>

namespace neuroshard::test {
namespace {

constexpr std::size_t longest = 256u << 10;  // a mutation makes nothing longer

template <class T>
void store_near(Mutator& mutator, std::uint8_t* at) {
  store_le<T>(at, static_cast<T>(mutator.odd_number(load_le<T>(at))));
}

}  // namespace

std::uint64_t Mutator::odd_number(std::uint64_t near) {
  switch (rng_.below(6)) {
    case 0: return near + 1;
    case 1: return near - 1;
    case 2: return rng_.below(3);
    case 3: return ~std::uint64_t{0} >> rng_.below(64);
    case 4: return (std::uint64_t{1} << rng_.below(64)) - rng_.below(2);
    default: return rng_.next();
  }
}

void Mutator::flip_bit(Bytes& bytes) {
  bytes[rng_.below(bytes.size())] ^= static_cast<std::uint8_t>(1u << rng_.below(8));
}

void Mutator::change_field(Bytes& bytes) {
  const std::size_t width = std::size_t{1} << rng_.below(4);
  if (bytes.size() < width) return flip_bit(bytes);
  // Most fields that matter stand in the head.
  const std::size_t places = bytes.size() - width + 1;
  const std::size_t place = rng_.below(one_in(2) ? places : std::min<std::size_t>(places, 64));
  std::uint8_t* const at = bytes.data() + place;
  switch (width) {
    case 1: return store_near<std::uint8_t>(*this, at);
    case 2: return store_near<std::uint16_t>(*this, at);
    case 4: return store_near<std::uint32_t>(*this, at);
    default: return store_near<std::uint64_t>(*this, at);
  }
}

void Mutator::cut(Bytes& bytes) {
  if (one_in(2)) return bytes.resize(rng_.below(bytes.size() + 1));
  const std::size_t begin = rng_.below(bytes.size());
  const std::size_t most = std::min<std::size_t>(bytes.size() - begin, 64);
  const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(begin);
  bytes.erase(at, at + static_cast<std::ptrdiff_t>(1 + rng_.below(most)));
}

void Mutator::repeat_part(Bytes& bytes) {
  const std::size_t begin = rng_.below(bytes.size());
  const std::size_t size = 1 + rng_.below(std::min<std::size_t>(bytes.size() - begin, 256));
  const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(begin);
  const Bytes part(at, at + static_cast<std::ptrdiff_t>(size));
  const std::size_t times = one_in(8) ? 64 : 1;
  for (std::size_t i = 0; i < times && bytes.size() < longest; ++i)
    bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(begin), part.begin(), part.end());
}

void Mutator::splice(Bytes& bytes, ByteSpan other) {
  const std::size_t begin = rng_.below(other.size());
  const ByteSpan part = other.subspan(begin, 1 + rng_.below(other.size() - begin));
  const std::size_t place = rng_.below(bytes.size() + 1);
  if (one_in(2)) {  // over what is there
    bytes.resize(std::max(bytes.size(), place + part.size()));
    std::copy(part.begin(), part.end(), bytes.begin() + static_cast<std::ptrdiff_t>(place));
    return;
  }
  if (one_in(2)) bytes.resize(place);
  bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(place), part.begin(), part.end());
}

void Mutator::change_once(Bytes& bytes, ByteSpan other) {
  if (bytes.empty()) {
    bytes.resize(1 + rng_.below(40));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(rng_.next());
    return;
  }
  switch (rng_.below(other.empty() ? 7 : 9)) {
    case 0:
    case 1: return flip_bit(bytes);
    case 2:
    case 3:
    case 4: return change_field(bytes);
    case 5: return cut(bytes);
    case 6: return repeat_part(bytes);
    default: return splice(bytes, other);
  }
}

Bytes Mutator::mutate(Bytes message, ByteSpan other) {
  for (std::uint64_t left = 1 + rng_.below(4); left > 0; --left) change_once(message, other);
  if (message.size() > longest) message.resize(longest);
  return message;
}

}  // namespace neuroshard::test
