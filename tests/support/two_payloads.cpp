#include "tests/support/two_payloads.h"

#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <vector>

#include "core/crypto/hash.h"
#include "core/outer/codec.h"
#include "core/rounds/messages.h"

namespace neuroshard::test {
namespace {

class TwoPayloads final : public net::PeerCaller {
 public:
  TwoPayloads(net::PeerCaller& out, const crypto::KeyPair& key, const Hash256& network)
      : out_(out), key_(key), network_(network) {}

  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    if (method == net::Method::RoundPost) {
      auto item = rounds::decode_item(request);
      auto* const post = item.ok() ? std::get_if<rounds::ContributionPost>(&*item) : nullptr;
      if (post != nullptr && post->contribution.key == key_.public_key() && hears_the_other(peer.id)) {
        forge(*post);
        request = rounds::encode_item(*post);
      }
    }
    out_.call(peer, method, std::move(request), deadline, std::move(done));
  }

 private:
  bool hears_the_other(const net::NodeId& id) {
    return told_.try_emplace(id, told_.size() % 2 == 1).first->second;
  }

  // The opposite, where the payload goes with it; else one that nobody will ever see.
  void forge(rounds::ContributionPost& post) const {
    rounds::Contribution& c = post.contribution;
    const auto header = outer::read_codec_header(post.payload);
    std::vector<float> delta(header.ok() ? static_cast<std::size_t>(header->count) : 0);
    if (header.ok() && outer::decode(post.payload, delta).ok()) {
      for (float& value : delta) value = -value;
      if (auto other = outer::encode(header->options, delta); other.ok()) post.payload = std::move(*other);
      c.payload_bytes = post.payload.size();
      c.payload = crypto::sha256(post.payload);
    } else {
      c.payload[0] ^= 1;
    }
    rounds::sign_contribution(c, key_, network_);
    fmt::print(stderr, "{{\"lied\": {}, \"attack\": \"two-payloads\"}}\n", c.round);
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
