// One block's effect on the registry (registry.h). Sections change a draft; nothing of it is seen when the block
// does not hold. First everything that costs no signature, for all sections; then the signatures; then the
// reveals, whose hashing a forged entry must not cause; then the draft's root.
//
// One object, one block. Threads: one. Errors: Denied says what does not hold.
#pragma once

#include <memory>
#include <string>

#include "core/chain/committee.h"
#include "core/chain/detail/statement_checks.h"
#include "core/chain/registry.h"

namespace neuroshard::chain {

class BlockApplication {
 public:
  // All outlive it. checks: null where only applicable() is called.
  // height: of the block.
  BlockApplication(const ChainRules& rules, const Registry& before, const Hash256& before_hash,
                   std::uint64_t height, std::uint64_t time_ms, SignatureChecks* checks);

  Expected<RegistryPtr> apply(const BlockBody& body);
  // The body without the evidence and the statements that do not apply.
  BlockBody applicable(const BlockBody& body);
  // Of an application to the empty registry: the first block.
  Expected<RegistryPtr> apply_genesis(const BlockBody& body);

 private:
  friend class Supposition;  // supposed.cpp
  Expected<void> check_structure(const BlockBody& body) const;
  Expected<void> check_signatures(const BlockBody& body) const;
  Expected<void> check_end(const BlockBody& body) const;
  RegistryPtr finish();

  // apply_rounds.cpp
  Expected<void> check_close(const CloseSection& close) const;
  Expected<void> check_vectors(const CloseSection& close, std::size_t rows) const;
  Expected<void> check_contributions(const CloseSection& close, const std::vector<std::uint32_t>& rows) const;
  Expected<void> check_close_signatures(const CloseSection& close) const;
  Expected<void> check_reveals(const CloseSection& close) const;
  void apply_close(const CloseSection& close);
  void count_contributions(const CloseSection& close);
  Expected<void> check_result(const ResultSection& result) const;
  void apply_result(const ResultSection& result);
  void update_epoch(bool round_ended);

  // apply_members.cpp
  void end_expired(std::uint64_t time_ms);
  Expected<void> apply_evidence(const Evidence& evidence);
  Expected<void> apply_silent(const std::vector<std::uint32_t>& silent);
  Expected<void> apply_statement(const Statement& statement);
  void apply(const Statement& statement, const Register& what);
  void apply(const Statement& statement, const Vouch& what);
  void apply(const Statement& statement, const Away& what);
  void apply(const Statement& statement, const Back& what);
  void apply(const Statement& statement, const Leave& what);
  template <class Plain>  // changes the member's record, and nothing else
  void apply(const Statement& statement, const Plain& what);
  void apply(const Statement& statement, const Revoke& what);
  void apply(const Statement& statement, const Move& what);
  void use_voucher_of(const Voucher& voucher, WalletRecord& wallet);
  void set_presence(MemberRecord& member, Presence presence);
  WalletRecord& wallet_of(const crypto::PublicKey& key);  // a new one, if need be
  void add_member(const crypto::PublicKey& key, std::uint32_t wallet, const Register& registration);
  template <class Ends>
  void end_memberships(const Ends& ends);
  void settle_wallets();
  Expected<void> apply_succession(const SuccessionSection& succession);

  MemberRecord& member(const MemberRecord& record);  // of the draft, to be changed
  WalletRecord& wallet(std::uint32_t number);
  KeyIndex& index(std::shared_ptr<const KeyIndex>& shared);  // a copy, to be changed

  const ChainRules& rules_;
  const Registry& before_;
  const Hash256 before_hash_;
  const Hash256 opening_;       // of the round in progress
  const std::uint64_t height_;  // the block's
  const std::uint64_t time_ms_;
  const bool restricted_;
  SignatureChecks* checks_;
  CommitteePtr committee_;  // of the block; made for a close only
  std::shared_ptr<Registry> draft_;
  std::shared_ptr<KeyIndex> ids_, wallet_keys_;  // the draft's indexes, once they are copies
  bool members_left_ = false;                    // indexes and wallets have to follow
};

}  // namespace neuroshard::chain
