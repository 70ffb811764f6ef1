// A wallet's revocation of a node key (core/chain/statements.h). The program that has the wallet signs it, and any
// running node of the network sends it.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/bytes.h"

namespace neuroshard::node {

struct RevocationRequest {
  std::string node;    // its id, or the first 8 or more hex characters
  std::string wallet;  // public key that the node works for, 64 hex characters
  Bytes statement;     // signed; empty: asks what to sign, and whether a block has it
};
struct RevocationReply {
  std::string node;              // the whole id
  std::string network;           // its id, 64 hex characters: what the signature is for
  Bytes statement;               // to be signed; empty: a block has the revocation
  std::uint64_t height = 0;      // of the answering node's newest block
  std::uint64_t revoked_at = 0;  // height of the block that has the revocation; 0: none yet
};

}  // namespace neuroshard::node
