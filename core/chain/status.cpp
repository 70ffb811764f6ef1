#include "core/chain/status.h"

#include "core/chain/detail/formats.h"

namespace neuroshard::chain {
namespace {

// Those before the parts of the asking node.
auto status_fields(auto& status) {
  return std::tie(status.genesis, status.height, status.tip, status.round, status.first_height, status.view,
                  status.awaits_genesis);
}

// Before the vote.
constexpr std::uint8_t has_vote = 1, has_forgotten = 2;

}  // namespace

Bytes encode_status_request(const StatusRequest& request) {
  if (!request.asker) return {};
  Bytes bytes;
  append_flag(bytes, request.asks_signed);
  append_array(bytes, encode_heartbeat(*request.asker));
  return bytes;
}

Expected<StatusRequest> decode_status_request(ByteSpan bytes) {
  StatusRequest request;
  if (bytes.empty()) return request;
  ByteReader in(bytes);
  request.asks_signed = in.flag();
  const ByteSpan heartbeat = in.rest();
  if (!in.good()) return corrupt("a request for a status can't be read");
  NS_ASSIGN_OR_RETURN(request.asker, decode_heartbeat(heartbeat));
  return request;
}

Bytes encode_status(const ChainStatus& status) {
  const auto& [vote, contribution, vector] = status.of_asker;
  Bytes bytes = bytes_of(status_fields(status));
  append_flag(bytes, status.asker.has_value());
  if (status.asker) append_array(bytes, encode_heartbeat(*status.asker));
  bytes.push_back(
      static_cast<std::uint8_t>((vote ? has_vote : 0) | (status.forgot_votes ? has_forgotten : 0)));
  if (vote) append_array(bytes, encode_vote(*vote));
  append_flag(bytes, contribution.has_value());
  if (contribution) append_record(bytes, entry_fields(*contribution));
  append_flag(bytes, vector.has_value());
  if (vector) append_record(bytes, std::tie(vector->content, vector->signature));
  return bytes;
}

Expected<ChainStatus> decode_status(ByteSpan bytes) {
  ByteReader in(bytes);
  ChainStatus status;
  auto& [vote, contribution, vector] = status.of_asker;
  in.read(status_fields(status));
  if (in.flag()) {
    NS_ASSIGN_OR_RETURN(status.asker, decode_heartbeat(in.bytes(heartbeat_bytes)));
  }
  const auto votes = in.number<std::uint8_t>();
  if (votes > (has_vote | has_forgotten)) in.fail();
  status.forgot_votes = (votes & has_forgotten) != 0;
  if ((votes & has_vote) != 0) {
    NS_ASSIGN_OR_RETURN(vote, decode_vote(in.bytes(signed_vote_bytes)));
  }
  if (in.flag()) in.read(entry_fields(contribution.emplace()));
  if (in.flag()) {
    vector.emplace();
    in.read(std::tie(vector->content, vector->signature));
  }
  if (!in.at_end()) return corrupt("the status of a chain can't be read");
  return status;
}

}  // namespace neuroshard::chain
