#include "core/chain/status.h"

#include "core/chain/detail/formats.h"

namespace neuroshard::chain {

Bytes encode_status_request(const StatusRequest& request) {
  if (!request.asker) return {};
  Bytes bytes = {static_cast<std::uint8_t>(request.asks_signed ? 1 : 0)};
  append_array(bytes, encode_heartbeat(*request.asker));
  return bytes;
}

Expected<StatusRequest> decode_status_request(ByteSpan bytes) {
  StatusRequest request;
  if (bytes.empty()) return request;
  Reader in(bytes);
  request.asks_signed = in.flag();
  const ByteSpan heartbeat = in.rest();
  if (!in.good()) return corrupt("a request for a status can't be read");
  NS_ASSIGN_OR_RETURN(request.asker, decode_heartbeat(heartbeat));
  return request;
}

Bytes encode_status(const ChainStatus& status) {
  Bytes bytes;
  const auto append_flag = [&bytes](bool flag) { bytes.push_back(flag ? 1 : 0); };
  append_array(bytes, status.genesis);
  append_le(bytes, status.height);
  append_array(bytes, status.tip);
  append_le(bytes, status.round);
  append_le(bytes, status.first_height);
  append_le(bytes, status.view);
  append_flag(status.awaits_genesis);
  append_flag(status.asker.has_value());
  if (status.asker) append_array(bytes, encode_heartbeat(*status.asker));
  append_flag(status.of_asker.vote.has_value());
  if (status.of_asker.vote) append_array(bytes, encode_vote(*status.of_asker.vote));
  append_flag(status.of_asker.contribution.has_value());
  if (status.of_asker.contribution) append_entry(bytes, *status.of_asker.contribution);
  append_flag(status.of_asker.vector.has_value());
  if (const auto& vector = status.of_asker.vector) {
    append_array(bytes, vector->content);
    append_array(bytes, vector->signature);
  }
  return bytes;
}

Expected<ChainStatus> decode_status(ByteSpan bytes) {
  Reader in(bytes);
  ChainStatus status;
  status.genesis = in.array<Hash256>();
  status.height = in.number<std::uint64_t>();
  status.tip = in.array<Hash256>();
  status.round = in.number<std::uint64_t>();
  status.first_height = in.number<std::uint64_t>();
  status.view = in.number<std::uint32_t>();
  status.awaits_genesis = in.flag();
  if (in.flag()) {
    NS_ASSIGN_OR_RETURN(status.asker, decode_heartbeat(in.bytes(heartbeat_bytes)));
  }
  if (in.flag()) {
    NS_ASSIGN_OR_RETURN(status.of_asker.vote, decode_vote(in.bytes(signed_vote_bytes)));
  }
  if (in.flag()) status.of_asker.contribution = read_entry(in);
  if (in.flag()) {
    status.of_asker.vector.emplace();
    status.of_asker.vector->content = in.array<Hash256>();
    status.of_asker.vector->signature = in.array<crypto::Signature>();
  }
  if (!in.at_end()) return corrupt("the status of a chain can't be read");
  return status;
}

}  // namespace neuroshard::chain
