#include "core/chain/detail/quorum_rules.h"

#include <utility>

namespace neuroshard::chain {

bool QuorumRules::stall() {
  return std::exchange(rule_, Rule::Stalled) == Rule::Normal;
}

Verdict QuorumRules::place_of(std::uint64_t height, const Hash256& previous) const {
  if (height != place_.height) return height < place_.height ? Verdict::Past : Verdict::Later;
  return previous == place_.previous ? Verdict::Taken : Verdict::OtherHistory;
}

bool QuorumRules::suffices(std::uint64_t units) const {
  return is_full(units) || (is_stalled() && committee_->is_stall_quorum(units));
}

std::uint64_t QuorumRules::units_of(const Quorum& quorum) const {
  return quorum_units(quorum, *committee_).value_or(0);
}

bool QuorumRules::signatures_hold(const Quorum& quorum) const {
  return check_quorum(quorum, *committee_, place_.network, checks_).ok();
}

QuorumPtr QuorumRules::full_lock(const Lock& held, const Hash256& block) const {
  if (!held.prepares || held.prepares->block != block) return nullptr;
  return is_full(units_of(*held.prepares)) ? held.prepares : held.full;
}

std::optional<Lock> QuorumRules::lock_of(const Quorum& prepares, const BlockPtr& block,
                                         const Lock& held) const {
  const std::uint64_t units = units_of(prepares);
  if (!suffices(units)) return std::nullopt;
  Lock lock{std::make_shared<const Quorum>(prepares), nullptr, block};
  if (is_full(units) || block->body.is_presence_only()) return lock;
  lock.full = full_lock(held, block->hash);
  if (!lock.full) return std::nullopt;
  return lock;
}

std::optional<Certificate> QuorumRules::certificate_of(const Quorum& commits, const Block& block,
                                                       const Lock& held) const {
  const std::uint64_t units = units_of(commits);
  if (!suffices(units)) return std::nullopt;
  Certificate certificate{commits, std::nullopt};
  if (is_full(units) || block.body.is_presence_only()) return certificate;
  const QuorumPtr full = full_lock(held, block.hash);
  if (!full || full->view > commits.view) return std::nullopt;
  certificate.lock = *full;
  return certificate;
}

Verdict QuorumRules::check(const Quorum& prepares, const std::optional<Quorum>& full, const BlockPtr& block,
                           const Lock& held, std::optional<Lock>* usable) const {
  if (const Verdict verdict = place_of(prepares.height, prepares.previous); verdict != Verdict::Taken)
    return verdict;
  if (prepares.step != VoteStep::Prepare || prepares.block != block->hash) return Verdict::BadCertificate;
  const std::uint64_t units = units_of(prepares);
  const bool needs_full = !is_full(units) && !block->body.is_presence_only();
  if (!is_full(units) && !committee_->is_stall_quorum(units)) return Verdict::BadCertificate;
  if (needs_full && (!full || full->step != VoteStep::Prepare || full->height != prepares.height ||
                     full->previous != prepares.previous || full->block != prepares.block ||
                     full->view >= prepares.view || !is_full(units_of(*full))))
    return Verdict::BadCertificate;
  if (held.prepares && held.prepares->view >= prepares.view) return Verdict::Taken;
  if (!suffices(units)) return Verdict::Later;
  if (!signatures_hold(prepares)) return Verdict::BadCertificate;
  Lock lock{std::make_shared<const Quorum>(prepares), nullptr, block};
  if (needs_full) {
    lock.full = full_lock(held, block->hash);
    if (!lock.full && !signatures_hold(*full)) return Verdict::BadCertificate;
    if (!lock.full) lock.full = std::make_shared<const Quorum>(*full);
  }
  *usable = std::move(lock);
  return Verdict::Taken;
}

}  // namespace neuroshard::chain
