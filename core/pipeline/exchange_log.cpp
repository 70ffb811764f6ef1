#include "core/pipeline/exchange_log.h"

#include <vector>

#include "core/base/byte_reader.h"
#include "core/crypto/hash.h"
#include "core/crypto/merkle.h"

namespace neuroshard::pipeline {
namespace {

Hash256 leaf(const Exchange& exchange, const Hash256& payload) {
  Bytes bytes;
  append_array(bytes, exchange.session);
  append_le(bytes, exchange.index);
  append_le(bytes, static_cast<std::uint8_t>(exchange.direction));
  append_array(bytes, exchange.sender);
  append_array(bytes, exchange.receiver);
  append_array(bytes, payload);
  return crypto::merkle_leaf(bytes);
}

}  // namespace

void ExchangeLog::note(const Exchange& exchange, ByteSpan payload) {
  if (unfinished_.contains(exchange) || finished_.contains(exchange)) return;
  if (unfinished_.size() + finished_.size() >= max_entries) {
    ++left_out_;
    return;
  }
  unfinished_.emplace(exchange, crypto::sha256(payload));
}

void ExchangeLog::finished_below(const SessionId& session, std::uint64_t index) {
  const auto begin = unfinished_.lower_bound({session, 0, Direction::Work, {}, {}});
  auto end = begin;
  for (; end != unfinished_.end() && end->first.session == session && end->first.index < index; ++end)
    finished_.insert(*end);
  unfinished_.erase(begin, end);
}

void ExchangeLog::ended(const SessionId& session) {
  std::erase_if(unfinished_, [&](const auto& entry) { return entry.first.session == session; });
}

Hash256 ExchangeLog::root_if(const net::NodeId* other) const {
  std::vector<Hash256> leaves;
  for (const auto& [exchange, payload] : finished_)
    if (other == nullptr || exchange.sender == *other || exchange.receiver == *other)
      leaves.push_back(leaf(exchange, payload));
  if (leaves.empty()) return {};
  return crypto::merkle_root(Span<const Hash256>(leaves.data(), leaves.size()));
}

Hash256 ExchangeLog::root_with(const net::NodeId& other) const {
  return root_if(&other);
}
Hash256 ExchangeLog::root() const {
  return root_if(nullptr);
}

void ExchangeLog::clear() {
  finished_.clear();
  left_out_ = 0;
}

}  // namespace neuroshard::pipeline
