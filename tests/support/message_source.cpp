#include "tests/support/message_source.h"

#include "core/chain/messages.h"

namespace neuroshard::test {

std::string_view to_string(Change change) {
  switch (change) {
    case Change::None: return "none";
    case Change::Fields: return "fields";
    case Change::Bytes: return "bytes";
    case Change::Both: return "both";
  }
  return "unknown";
}

FuzzMessage MessageSource::next() {
  Rng& rng = mutator_.rng();
  FuzzMessage next{pool_.any(rng), Change::None};
  Message& message = next.message;
  const std::uint64_t choice = rng.below(20);
  if (choice < 1) return next;
  const bool fields = choice < 11;
  if (fields) {
    if (auto changed = changes_.change(message)) {
      message.request = std::move(*changed);
      next.change = Change::Fields;
    }
  }
  if (next.change == Change::None || mutator_.one_in(8)) {
    const Message& other = mutator_.one_in(2) ? pool_.any(rng) : message;
    message.request = mutator_.mutate(Bytes(message.request), Bytes(other.request));
    next.change = next.change == Change::None ? Change::Bytes : Change::Both;
  }
  // The same bytes as another method's.
  if (mutator_.one_in(64)) message.method = pool_.any(rng).method;
  // In the relay's envelope, where another path leads to the same reader.
  if (message.method == net::Method::ChainPost && !message.request.empty() && mutator_.one_in(16))
    message.request = chain::encode_item(
        chain::RelayedPost{static_cast<chain::RelayPath>(rng.below(3)), {message.request}});
  return next;
}

}  // namespace neuroshard::test
