#include "core/exchange/names.h"

#include <algorithm>

namespace neuroshard::exchange {
namespace {

constexpr std::size_t longest_answer = 8 + 32 + 8 + max_note;

struct Asking {
  std::size_t left = 0;
  std::vector<Claim> claims;
  std::function<void(std::vector<Claim>)> done;
};

}  // namespace

std::vector<SharedClaim> merge_claims(const std::vector<Claim>& claims) {
  std::vector<SharedClaim> merged;
  for (const Claim& claim : claims) {
    auto same = std::find_if(merged.begin(), merged.end(),
                             [&](const SharedClaim& one) { return one.named == claim.named; });
    if (same == merged.end()) {
      merged.push_back({claim.named, {}});
      same = merged.end() - 1;
    }
    same->by.push_back(claim.by);
  }
  std::stable_sort(merged.begin(), merged.end(), [](const SharedClaim& a, const SharedClaim& b) {
    if (a.named.version != b.named.version) return a.named.version > b.named.version;
    return a.by.size() > b.by.size();
  });
  return merged;
}

void ask_names(net::PeerCaller& caller, const std::vector<net::Contact>& contacts, const std::string& name,
               Duration patience, std::function<void(const net::Contact&)> malformed,
               std::function<void(std::vector<Claim>)> done) {
  if (contacts.empty()) return done({});
  auto asking = std::make_shared<Asking>();
  asking->left = contacts.size();
  asking->done = std::move(done);
  const Bytes request = encode_name(name);
  for (const net::Contact& contact : contacts) {
    caller.call(contact, net::Method::ContentNamed, request,
                net::call_deadline(patience, request.size(), longest_answer),
                [asking, contact, malformed](const Expected<Bytes>& answer) {
                  if (answer.ok()) {
                    if (const auto named = decode_named(*answer); named.ok())
                      asking->claims.push_back({contact, *named});
                    else if (malformed)
                      malformed(contact);
                  }
                  if (--asking->left == 0) asking->done(std::move(asking->claims));
                });
  }
}

}  // namespace neuroshard::exchange
