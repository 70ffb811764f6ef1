// Changes a valid message field by field, where bytes at random would be refused unread: what the sender signs
// is signed again, and a block gets the root of its changed body. The result passes the first checks of a
// node.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/chain/messages.h"
#include "core/crypto/keys.h"
#include "core/net/node_record.h"
#include "core/status/report.h"
#include "tests/support/message_pool.h"
#include "tests/support/mutator.h"

namespace neuroshard::test {

// Threads: one. All outlive it.
class SignedChanges {
 public:
  // key: signs. member: its number in the registry; nothing: a stranger, which claims any number.
  SignedChanges(const MessagePool& pool, Mutator& mutator, const crypto::KeyPair& key, const Clock& clock,
                std::optional<std::uint32_t> member = std::nullopt)
      : pool_(pool), mutator_(mutator), key_(key), clock_(clock), member_(member) {}

  // Nothing: messages of this kind have no fields to change, or these bytes can't be read.
  std::optional<Bytes> change(const Message& message);
  // Of a proposal of the key's own: its place stays right, so that nodes judge the changed body. Nothing: it
  // is none.
  std::optional<Bytes> change_body(ByteSpan proposal);
  // A valid message of each kind that a stranger may send, without a change: to begin with where none was
  // recorded.
  std::vector<Message> own_messages();
  // That the own records name from now on; a victim's, for example.
  void set_endpoint(const platform::Endpoint& endpoint) { endpoint_ = endpoint; }

 private:
  Expected<Bytes> changed_item(ByteSpan item, int depth);
  void alter(std::uint64_t& value);
  void alter(std::uint32_t& value);
  void alter(Hash256& hash);
  void alter(chain::Vote& vote);
  void alter(chain::Quorum& quorum);
  void alter(chain::Statement& statement);
  void alter(chain::BlockBody& body);
  template <class T>
  void alter_list(std::vector<T>& list);
  std::uint32_t voter();
  chain::BlockPtr altered(const chain::Block& block);
  chain::CertifiedBlock altered(const chain::CertifiedBlock& block);
  Bytes changed_contribution(ByteSpan post);
  Bytes changed_vector(ByteSpan post);
  Bytes changed_relayed(chain::RelayedPost post, int depth);
  net::NodeRecord changed_record(net::NodeRecord record);
  net::NodeRecord fresh_record();
  std::optional<Bytes> changed_peers_request(ByteSpan request);
  std::optional<Bytes> changed_store();
  std::optional<Bytes> changed_pull(ByteSpan request);
  std::optional<Bytes> changed_status_request(ByteSpan request);
  status::StatusReport report(status::OwnStatus status);
  std::string random_path();
  crypto::Delegation delegation();
  WallTime odd_time(Duration from_now);

  const MessagePool& pool_;
  Mutator& mutator_;
  const crypto::KeyPair& key_;
  const Clock& clock_;
  const std::optional<std::uint32_t> member_;
  platform::Endpoint endpoint_{platform::IpAddress::v4(127, 0, 0, 1), 9};
};

template <class T>
void SignedChanges::alter_list(std::vector<T>& list) {
  if (list.empty() || mutator_.one_in(2)) return;
  Rng& rng = mutator_.rng();
  const std::size_t at = rng.below(list.size()), other = rng.below(list.size());
  switch (rng.below(3)) {
    case 0: list.erase(list.begin() + static_cast<std::ptrdiff_t>(at)); break;
    case 1: list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), T(list[other])); break;
    default: std::swap(list[at], list[other]);
  }
}

}  // namespace neuroshard::test
