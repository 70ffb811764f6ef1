// Records of the distributed hash table: small, signed values that any member may hold and nobody can forge
// (docs/protocol/dht.md). A record has a path, a publisher and an expiry. Several records may share a path: a
// key is a set by publisher, with the highest sequence of each publisher.
//
// Paths and who may publish there:
//   /nodes/{id}          the node with this id only
//   /layers/{l}          the holders of layer l
//   /experts/{l}/{e}     the holders of the expert
//   /checkpoints/{id}    the holders of the checkpoint (64 hex characters)
//   /shards/{i}          the nodes that cache shard i
//   /values/{name}       any small value; [a-z0-9._-], 1 … 64 characters
//
//   offset  size  content, little-endian
//   0       4     "NSDR"
//   4       2     version, 1
//   6       2     length of the whole record
//   8       32    publisher: its public key
//   40      8     sequence: higher replaces lower
//   48      8     expiry, milliseconds since 1970 UTC
//   56      2     length of the path, p
//   58      2     length of the payload, q
//   60      p     path
//   60+p    q     payload
//   60+p+q  64    signature by the publisher, purpose DhtRecord, over all before it
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/crypto/keys.h"
#include "core/net/node_id.h"

namespace neuroshard::dht {

inline constexpr std::size_t max_record_bytes = 4096;
inline constexpr std::size_t max_path_bytes = 80;
inline constexpr std::size_t max_payload_bytes = max_record_bytes - 60 - max_path_bytes - 64;

struct Record {
  std::string path;
  crypto::PublicKey publisher{};
  std::uint64_t sequence = 0;
  WallTime expires{};
  Bytes payload;
  crypto::Signature signature{};

  friend bool operator==(const Record&, const Record&) = default;
};

// The key of a path: SHA-256 of a domain mark, the network id and the path.
net::NodeId key_of(const Hash256& network_id, std::string_view path);

// InvalidArgument: the message says what is wrong with the path, and how paths are written.
Expected<void> check_path(std::string_view path);

// Signs. InvalidArgument: the path, a payload over max_payload_bytes, or a path that this publisher may not
// use.
Expected<Record> make_record(const crypto::KeyPair& publisher, const Hash256& network_id, std::string path,
                             Bytes payload, std::uint64_t sequence, WallTime expires);

Bytes encode_record(const Record& record);
// Reads one record from the front of `bytes` without checking its signature; `used` gets its length. Corrupt,
// Unsupported.
Expected<Record> decode_record(ByteSpan bytes, std::size_t& used);

// Whether its publisher made the record for this network, at any time: path, publisher and signature. Denied:
// the message names the check that failed. Costs one signature check, done last.
Expected<void> check_signed(const Record& record, const Hash256& network_id);
// Whether a record may be stored or used: now < expires ≤ now + a day, and check_signed().
Expected<void> check_record(const Record& record, const Hash256& network_id, WallTime now);

}  // namespace neuroshard::dht
