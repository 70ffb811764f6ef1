#include "tests/support/two_payloads.h"

#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <vector>

#include "core/chain/rules.h"
#include "core/rounds/round_posts.h"

namespace neuroshard::test {
namespace {

class TwoPayloads final : public net::PeerCaller {
 public:
  TwoPayloads(net::PeerCaller& out, const crypto::KeyPair& key, const Hash256& network)
      : out_(out), key_(key), network_(network) {}

  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    if (method == net::Method::ChainPost && !request.empty() && request[0] == rounds::contribution_kind) {
      auto post = rounds::decode_contribution_post(ByteSpan(request).subspan(1), chain::max_rows);
      if (post && post->contribution.node == key_.public_key() && hears_the_other(peer.id))
        request = forged(std::move(*post));
    }
    out_.call(peer, method, std::move(request), deadline, std::move(done));
  }

 private:
  bool hears_the_other(const net::NodeId& id) {
    return told_.try_emplace(id, told_.size() % 2 == 1).first->second;
  }

  // Another number of tokens is another contribution.
  Bytes forged(rounds::PostedContribution post) const {
    std::vector<rounds::Payload> payloads;
    for (auto& [row, payload] : post.payloads) payloads.push_back(in_memory(std::move(payload)));
    chain::Contribution& c = post.contribution;
    for (chain::RowWork& row : c.rows) row.tokens = std::max<std::uint64_t>(1, row.tokens / 2);
    chain::sign_contribution(c, key_, network_);
    fmt::print(stderr, "{{\"lied\": {}, \"attack\": \"two-payloads\"}}\n", c.round);
    Bytes bytes{rounds::contribution_kind};
    const Bytes content = rounds::encode_contribution_post(c, payloads);
    bytes.insert(bytes.end(), content.begin(), content.end());
    return bytes;
  }

  net::PeerCaller& out_;
  const crypto::KeyPair& key_;
  const Hash256 network_;
  std::map<net::NodeId, bool> told_;
};

}  // namespace

std::unique_ptr<net::PeerCaller> make_two_payloads(net::PeerCaller& out, const crypto::KeyPair& key,
                                                   const Hash256& network) {
  return std::make_unique<TwoPayloads>(out, key, network);
}

}  // namespace neuroshard::test
