// SignedChanges: requests beside the chain's items, and valid messages of a stranger.
#include <fmt/format.h>

#include "core/chain/status.h"
#include "core/dht/messages.h"
#include "core/exchange/messages.h"
#include "core/rounds/pieces.h"
#include "core/rounds/round_posts.h"
#include "core/status/gossip.h"
#include "core/swarm/messages.h"
#include "tests/support/signed_changes.h"

namespace neuroshard::test {

// ---- Other methods

net::NodeRecord SignedChanges::fresh_record() {
  net::NodeRecord record;
  record.sequence = 1;
  record.made = clock_.wall_now();
  record.expires = record.made + std::chrono::hours(1);
  record.features = net::Feature::Dht | net::Feature::Peers;
  record.version = net::peer_version;
  record.endpoints = {{net::Reach::Direct, endpoint_}};
  record.program = "fuzz";
  static_cast<void>(net::sign_node_record(record, key_, pool_.network()));
  return record;
}

net::NodeRecord SignedChanges::changed_record(net::NodeRecord record) {
  Rng& rng = mutator_.rng();
  alter(record.sequence);
  alter(record.features);
  alter(record.memory_bytes);
  alter(record.upload);
  alter_list(record.endpoints);
  for (net::NodeEndpoint& at : record.endpoints)
    if (mutator_.one_in(4)) at.endpoint.ip.bytes[rng.below(16)] = static_cast<std::uint8_t>(rng.next());
  if (record.endpoints.size() > net::max_endpoints) record.endpoints.resize(net::max_endpoints);
  if (mutator_.one_in(4)) record.delegation = delegation();
  record.made = odd_time({});
  record.expires = odd_time(std::chrono::hours(1 + rng.below(30)));
  static_cast<void>(net::sign_node_record(record, key_, pool_.network()));
  return record;
}

std::optional<Bytes> SignedChanges::changed_peers_request(ByteSpan request) {
  const auto read = swarm::decode_peers_request(request);
  if (!read.ok()) return std::nullopt;
  const net::NodeRecord record = changed_record(read->own ? *read->own : fresh_record());
  return swarm::encode_peers_request(mutator_.rng().below(256), &record);
}

std::string SignedChanges::random_path() {
  Rng& rng = mutator_.rng();
  switch (rng.below(5)) {
    case 0: return "/nodes/" + to_hex(crypto::node_id(key_.public_key()));
    case 1: return fmt::format("/layers/{}", rng.below(64));
    case 2: return fmt::format("/experts/{}/{}", rng.below(64), rng.below(64));
    case 3: return fmt::format("/shards/{}", rng.below(100));
    default: return fmt::format("/values/v{}", rng.below(1000));
  }
}

std::optional<Bytes> SignedChanges::changed_store() {
  Rng& rng = mutator_.rng();
  Bytes payload(rng.below(mutator_.one_in(4) ? dht::max_payload_bytes : 100));
  for (std::uint8_t& byte : payload) byte = static_cast<std::uint8_t>(rng.next());
  std::uint64_t sequence = 1;
  alter(sequence);
  auto record = dht::make_record(key_, pool_.network(), random_path(), std::move(payload), sequence,
                                 odd_time(std::chrono::minutes(rng.below(3000))));
  if (!record.ok()) return std::nullopt;
  dht::Request request;
  request.port = static_cast<std::uint16_t>(rng.next());
  request.record = std::move(*record);
  return dht::encode_request(net::Method::DhtStore, request);
}

status::StatusReport SignedChanges::report(status::OwnStatus status) {
  std::optional<crypto::Delegation> wallet;
  if (mutator_.one_in(4)) wallet = delegation();
  return status::sign_report(status, odd_time({}), wallet, key_, pool_.network());
}

std::optional<Bytes> SignedChanges::changed_pull(ByteSpan request) {
  auto pull = status::decode_pull(request);
  if (!pull.ok()) return std::nullopt;
  status::OwnStatus own = pull->own ? pull->own->status : status::OwnStatus{};
  alter(own.round);
  alter(own.anchor);
  alter(own.previous_anchor);
  own.steps = mutator_.rng().next() >> (1 + mutator_.rng().below(63));
  if (mutator_.one_in(2)) own.loss = static_cast<double>(mutator_.rng().below(4'000'000)) / 1e6;
  alter(own.tokens_per_second);
  alter(own.contributed);
  pull->own = report(own);
  if (mutator_.one_in(4)) alter(pull->first);
  if (mutator_.one_in(4)) alter(pull->last);
  return status::encode_pull(*pull);
}

std::optional<Bytes> SignedChanges::changed_status_request(ByteSpan bytes) {
  auto request = chain::decode_status_request(bytes);
  if (!request.ok() || !request->asker) return std::nullopt;
  request->asks_signed = mutator_.one_in(2);
  chain::Heartbeat& asker = *request->asker;
  asker.node = key_.public_key();
  alter(asker.tip.height);
  alter(asker.boot);
  alter(asker.incarnation);
  chain::sign_heartbeat(asker, key_, pool_.network());
  return chain::encode_status_request(*request);
}

std::optional<Bytes> SignedChanges::change(const Message& message) {
  using net::Method;
  Rng& rng = mutator_.rng();
  switch (message.method) {
    case Method::ChainPost: {
      auto changed = changed_item(message.request, 0);
      if (!changed.ok()) return std::nullopt;
      return std::move(*changed);
    }
    case Method::ChainStatus: return changed_status_request(message.request);
    case Method::ChainBlocks: {
      auto from = chain::decode_blocks_request(message.request);
      if (!from.ok()) return std::nullopt;
      alter(*from);
      return chain::encode_blocks_request(*from);
    }
    case Method::ChainRegistry: {
      auto request = chain::decode_registry_request(message.request);
      if (!request.ok()) return std::nullopt;
      alter(request->block);
      alter(request->offset);
      return chain::encode_registry_request(*request);
    }
    case Method::RoundPiece: {
      auto request = rounds::decode_piece_request(message.request);
      if (!request.ok()) return std::nullopt;
      alter(request->row);
      request->what = static_cast<rounds::PieceRequest::What>(1 + rng.below(4));
      alter(request->hash);
      alter(request->place);
      return rounds::encode_piece_request(*request);
    }
    case Method::Peers: return changed_peers_request(message.request);
    case Method::TrackerRegister: return net::encode_node_record(changed_record(fresh_record()));
    case Method::DhtStore: return changed_store();
    case Method::StatusPull: return changed_pull(message.request);
    case Method::ContentPieces:
    case Method::ContentPiece: {
      auto request = exchange::decode_piece_request(message.request);
      if (!request.ok()) return std::nullopt;
      alter(request->hash);
      alter(request->piece);
      return exchange::encode_piece_request(*request);
    }
    default: return std::nullopt;
  }
}

std::vector<Message> SignedChanges::own_messages() {
  using net::Method;
  Rng& rng = mutator_.rng();
  std::vector<Message> all;
  const auto add = [&](Method method, Bytes request) { all.push_back({method, std::move(request)}); };
  const net::NodeRecord record = fresh_record();
  add(Method::Ping, Bytes(8, 1));
  add(Method::Peers, swarm::encode_peers_request(20, &record));
  add(Method::AddressEcho, {});
  add(Method::DialBack, swarm::encode_port(9));
  add(Method::RelayReserve, {});
  add(Method::Punch, dht::encode_endpoint({platform::IpAddress::v4(127, 0, 0, 1), 2}));
  add(Method::LetIn, dht::encode_endpoint({platform::IpAddress::v4(127, 0, 0, 1), 2}));
  add(Method::TrackerRegister, net::encode_node_record(record));
  add(Method::TrackerHeartbeat, {});
  add(Method::TrackerPeers, swarm::encode_count(20));
  dht::Request request;
  request.target = pool_.any_hash(rng);
  for (const Method method : {Method::DhtPing, Method::DhtFindNode, Method::DhtFindValue})
    add(method, dht::encode_request(method, request));
  if (auto store = changed_store()) add(Method::DhtStore, std::move(*store));
  status::PullRequest pull;
  pull.own = report({});
  add(Method::StatusPull, status::encode_pull(pull));
  for (const char* name : {"manifest", "checkpoint", "tokenizer"})
    add(Method::ContentNamed, exchange::encode_name(name));
  add(Method::ContentPieces, exchange::encode_piece_request({pool_.any_hash(rng), 0}));
  add(Method::ContentPiece, exchange::encode_piece_request({pool_.any_hash(rng), 0}));
  const chain::CertifiedBlock* newest = pool_.newest();
  const std::uint64_t height = newest == nullptr ? 0 : newest->block->header.height;
  const Hash256 tip = newest == nullptr ? Hash256{} : newest->block->hash;
  const auto now = static_cast<std::uint64_t>(to_unix_ms(clock_.wall_now()));
  chain::Heartbeat heartbeat{key_.public_key(), {height, tip}, now, 1, 1, {}};
  chain::sign_heartbeat(heartbeat, key_, pool_.network());
  add(Method::ChainPost, chain::encode_item(heartbeat));
  add(Method::ChainPost,
      chain::encode_item(chain::RelayedPost{chain::RelayPath::Row, {chain::encode_item(heartbeat)}}));
  add(Method::ChainStatus, chain::encode_status_request({true, heartbeat}));
  add(Method::ChainBlocks, chain::encode_blocks_request(0));
  add(Method::ChainRegistry, chain::encode_registry_request({tip, 0}));
  add(Method::RoundPiece, rounds::encode_piece_request({0, rounds::PieceRequest::What::Payload, tip, 0}));
  chain::Statement statement;
  statement.node = key_.public_key();
  statement.reference = {height, tip};
  chain::Register joins;
  joins.delegation = delegation();
  joins.beacon = {tip, 1, 100};
  statement.what = joins;
  chain::sign_statement(statement, key_, pool_.network());
  add(Method::ChainPost, chain::encode_item(chain::StatementPost{statement}));
  chain::Contribution contribution;
  contribution.node = key_.public_key();
  contribution.round = 1;
  contribution.opening = newest == nullptr ? Hash256{} : newest->block->opening;
  contribution.rows = {{0, 1, 64, pool_.any_hash(rng)}};
  chain::sign_contribution(contribution, key_, pool_.network());
  add(Method::ChainPost, chain::encode_item(chain::RoundsPost{
                             rounds::contribution_kind, rounds::encode_contribution_post(contribution, {})}));
  const chain::SignedVote vote =
      chain::sign_vote({chain::VoteStep::Prepare, height + 1, tip, 0, tip}, voter(), key_, pool_.network());
  add(Method::ChainPost, chain::encode_item(vote));
  const chain::SignedVote other =
      chain::sign_vote({chain::VoteStep::Prepare, height + 1, tip, 0, {}}, vote.voter, key_, pool_.network());
  add(Method::ChainPost,
      chain::encode_item(chain::EvidencePost{chain::evidence_of(key_.public_key(), vote, other)}));
  add(Method::ChainPost, chain::encode_item(chain::GenesisSignature{tip, key_.public_key(), vote.signature}));
  chain::HeldVoucher held;
  held.voucher = {key_.public_key(), key_.public_key(), 1, ~std::uint64_t{0} >> 2, {}};
  chain::sign_voucher(held.voucher, key_, pool_.network());
  add(Method::ChainPost, chain::encode_item(chain::VoucherOffer{held}));
  return all;
}

}  // namespace neuroshard::test
