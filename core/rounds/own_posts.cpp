#include "core/rounds/own_posts.h"

#include <utility>

#include "core/rounds/round_posts.h"

namespace neuroshard::rounds {

void OwnPosts::open() {
  for (const std::uint64_t key : {contribution_key, vector_key, attestation_key}) port_->drop_post(key);
  for (const std::uint32_t member : std::exchange(shown_to_, {})) port_->drop_post(candidate_key(member));
}

void OwnPosts::closed() {
  port_->drop_post(vector_key);
}

void OwnPosts::contribution(const chain::Contribution& contribution, const std::vector<Payload>& payloads) {
  port_->post(contribution_key, {contribution_kind, encode_contribution_post(contribution, payloads)},
              chain::ChainPort::Reach::AskedFor, {});
}

void OwnPosts::contribution_to(std::uint32_t member, const net::NodeId& id,
                               const chain::Contribution& contribution) {
  if (!shown_to_.insert(member).second) return;
  port_->post(candidate_key(member), {contribution_kind, encode_contribution_post(contribution, {})},
              chain::ChainPort::Reach::Only, {id});
}

void OwnPosts::vector(const chain::Vector& vector) {
  port_->post(vector_key, {vector_kind, chain::encode_vector(vector)}, chain::ChainPort::Reach::Voters, {});
}

void OwnPosts::attestation(const chain::Attestation& attestation) {
  port_->post(attestation_key, {attestation_kind, chain::encode_attestation(attestation)},
              chain::ChainPort::Reach::Voters, {});
}

}  // namespace neuroshard::rounds
