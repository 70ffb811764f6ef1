#include "core/chain/height.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/chain/keys.h"

namespace neuroshard::chain {
namespace {

using outbox_key::HeightItem;

HeightItem kind_of(const AgreementItem& item) {
  if (std::holds_alternative<Proposal>(item)) return HeightItem::Proposal;
  if (std::holds_alternative<NewView>(item)) return HeightItem::NewView;
  if (std::holds_alternative<Locked>(item)) return HeightItem::Locked;
  return std::get<SignedVote>(item).vote.step == VoteStep::Prepare ? HeightItem::Prepare : HeightItem::Commit;
}

ChainItem chain_item(const AgreementItem& item) {
  return std::visit([](const auto& one) -> ChainItem { return one; }, item);
}

std::size_t position_of(const Committee& committee, const crypto::KeyPair& key) {
  const auto position = committee.position(crypto::node_id(key.public_key()));
  NS_CHECK(position.has_value());
  return *position;
}

}  // namespace

Height::Height(HeightServices services, ChainTip tip, AgreementOptions options, AgreementMemory memory,
               FoundEvidence evidence, Certified certified)
    : services_(services),
      tip_(std::move(tip)),
      self_(position_of(*tip_.committee, services_.key)),
      on_evidence_(std::move(evidence)),
      on_certified_(std::move(certified)),
      opened_(services_.clock.monotonic_now()),
      agreement_({services_.rules.network, tip_.height() + 1, tip_.block->hash, tip_.committee, self_,
                  &services_.checks},
                 options, services_.key, services_.executor, *this, std::move(memory)) {}

Height::~Height() {
  end();
}

void Height::end() {
  if (std::exchange(ended_, true)) return;
  lifetime_.end();
  services_.relay.drop_range(outbox_key::first_of_height, outbox_key::last_of_height);
}

void Height::advance() {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (!agreement_.started() && block_is_due()) {
    services_.mempool.drop_late(tip_, time_of_block());
    if (block_is_due()) {
      services_.presence.block_is_due(now);
      agreement_.start();
    }
  }
  if (!stalled_ && services_.presence.is_stalled(now, services_.content.deadline())) {
    stalled_ = true;
    agreement_.stall();
  }
}

// A round's section, or a change of a voter's presence, at once. Everything else after `block_time`.
bool Height::block_is_due() const {
  return services_.content.is_due(tip_) || is_due_without_content();
}

bool Height::is_due_without_content() const {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (services_.mempool.changes_voters(tip_) || !services_.presence.silent(now).empty()) return true;
  return !services_.mempool.empty() && now - opened_ >= services_.rules.block_time;
}

Verdict Height::on_item(std::size_t from, const AgreementItem& item) {
  const Verdict verdict = agreement_.on_item(from, item);
  const bool heard = verdict == Verdict::Taken || verdict == Verdict::Known;
  if (heard)
    services_.presence.heard(tip_.committee->members()[from].number, services_.clock.monotonic_now());
  // The lock of a leader that collects the votes shows who voted.
  if (const auto* locked = std::get_if<Locked>(&item); locked != nullptr && verdict == Verdict::Taken)
    for (const auto& signature : locked->prepares.signatures)
      services_.presence.heard(signature.voter, services_.clock.monotonic_now());
  // Another member found that a block is due.
  if (heard && agreement_.started()) services_.presence.block_is_due(services_.clock.monotonic_now());
  return verdict;
}

std::vector<Evidence> Height::contradictions(const Certificate& certificate) const {
  std::vector<Evidence> found = agreement_.votes().contradictions(certificate.commits);
  if (!certificate.lock) return found;
  for (Evidence& evidence : agreement_.votes().contradictions(*certificate.lock))
    found.push_back(std::move(evidence));
  return found;
}

void Height::send(const AgreementItem& item, std::optional<std::size_t> to) {
  if (ended_) return;
  const HeightItem kind = kind_of(item);
  if (to)
    services_.outbox.put(outbox_key::of_height(kind, *to), chain_item(item),
                         {tip_.committee->members()[*to].id});
  else
    services_.relay.to_all(outbox_key::of_height(kind), chain_item(item));
  services_.outbox.pump();
}

void Height::remember(const AgreementMemory& memory, std::function<void()> then) {
  Bytes record = services_.cache != nullptr && memory.lock
                     ? encode_agreement_memory_with(memory, services_.cache->write(*memory.block))
                     : encode_agreement_memory(memory);
  services_.durable.save_votes(std::move(record), [life = lifetime_.token(), then = std::move(then)] {
    if (life.alive()) then();
  });
}

// Checks what the block itself shows before anything is computed: its time, and the voters that it marks. Of a locked
// block a quorum has believed both.
bool Height::is_plausible(const Block& block, Demand demand) const {
  if (demand == Demand::Nothing) return true;
  const auto wall = static_cast<std::uint64_t>(to_unix_ms(services_.clock.wall_now()));
  return is_plausible_time(block.header.time_ms, tip_.block->header.time_ms, wall) &&
         services_.presence.agrees_with(block.body.silent, services_.clock.monotonic_now());
}

bool Height::applies(const BlockPtr& block) const {
  if (services_.cache != nullptr && services_.cache->find(block->hash)) return true;
  auto registry = apply_block(services_.rules, *tip_.registry, tip_.block->hash, *block, services_.checks);
  if (registry.ok() && services_.cache != nullptr)
    services_.cache->put(History::tip_of(services_.rules, &tip_, block, *std::move(registry)));
  return registry.ok();
}

void Height::judge(const BlockPtr& block, Demand demand) {
  const auto answer = [this, life = lifetime_.token(), block, demand](bool right) {
    static_cast<void>(services_.executor.post([this, life, block, demand, right] {
      if (life.alive()) agreement_.judged(block->hash, demand, right);
    }));
  };
  if (!is_plausible(*block, demand)) return answer(false);
  auto known = valid_.find(block->hash);
  if (known == valid_.end()) known = valid_.emplace(block->hash, applies(block)).first;
  const BlockBody& body = block->body;
  const bool accuses = std::any_of(body.evidence.begin(), body.evidence.end(), is_accusation);
  if (!known->second || (!body.close && !body.result && !accuses)) return answer(known->second);
  services_.content.judge(tip_, block, demand == Demand::Everything, answer);
}

// All but the content's sections.
BlockBody Height::common_sections(bool presence_only) {
  const MonotonicTime now = services_.clock.monotonic_now();
  BlockBody body;
  body.silent = services_.presence.silent(now);
  body.statements =
      presence_only ? services_.mempool.presence_changes(tip_) : services_.mempool.statements(tip_);
  if (!presence_only && !tip_.registry->is_restricted()) body.evidence = services_.mempool.evidence(tip_);
  // A node that says how it is needs no mark.
  const auto speaks = [&](std::uint32_t number) {
    const MemberRecord* member = tip_.registry->find(number);
    return std::any_of(body.statements.begin(), body.statements.end(),
                       [&](const Statement& statement) { return statement.node == member->key; });
  };
  body.silent.erase(std::remove_if(body.silent.begin(), body.silent.end(), speaks), body.silent.end());
  if (stalled_) body.silent = stall_marks_.next(body.silent);
  return body;
}

void Height::make_block(bool presence_only) {
  // A change of presence does not wait for the round.
  if (presence_only || (is_due_without_content() && !services_.content.is_due(tip_)))
    return propose(common_sections(presence_only));
  services_.content.make(tip_, [this, life = lifetime_.token()](Sections sections) {
    if (!life.alive()) return;
    BlockBody body = common_sections(false);
    body.close = std::move(sections.close);
    body.result = std::move(sections.result);
    propose(std::move(body));
  });
}

std::uint64_t Height::time_of_block() const {
  const auto wall = static_cast<std::uint64_t>(to_unix_ms(services_.clock.wall_now()));
  return std::max(wall, tip_.block->header.time_ms + 1);
}

void Height::propose(BlockBody body) {
  const std::uint64_t time = time_of_block();
  // One statement that was right at the tip's time and is over now would keep all others out.
  services_.mempool.drop_late(tip_, time);
  body = applicable(services_.rules, *tip_.registry, tip_.block->hash, time, body);
  if (body.empty()) return agreement_.propose(nullptr);
  auto applied = apply_body(services_.rules, *tip_.registry, tip_.block->hash, time, body, services_.checks);
  // The parts need not apply together: evidence expels members, and statements of theirs may wait. So the block goes
  // without the statements, then without the evidence. The rest waits for a later block.
  for (const bool with_evidence : {true, false}) {
    if (applied.ok()) break;
    body.statements.clear();
    if (!with_evidence) body.evidence.clear();
    if (body.empty()) break;
    applied = apply_body(services_.rules, *tip_.registry, tip_.block->hash, time, body, services_.checks);
  }
  if (!applied.ok()) return agreement_.propose(nullptr);
  led_view_ = agreement_.view();
  agreement_.propose(
      chain::make_block(std::move(applied->header), std::move(body), tip_.opening, services_.rules.network));
}

bool Height::is_byzantine(std::size_t position) const {
  const MemberRecord* member = tip_.registry->find(tip_.committee->members()[position].number);
  return member != nullptr && services_.mempool.has_evidence(member->key);
}

void Height::found_evidence(const Evidence& evidence) {
  on_evidence_(evidence);
}

void Height::certified(const BlockPtr& block, const Certificate& certificate) {
  if (!ended_) on_certified_(make_certified(block, certificate));
}

}  // namespace neuroshard::chain
