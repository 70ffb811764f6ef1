#include "tests/unit/chain/agreement_bus.h"

#include <algorithm>

#include "core/crypto/hash.h"

namespace neuroshard::test {
using namespace chain;
namespace {

const Hash256 network{};

template <class Item>
const Item* get(const ChainItem& item) {
  return std::get_if<Item>(&item);
}

std::size_t kind_of(const ChainItem& item) {
  if (const auto* vote = get<SignedVote>(item))
    return vote->vote.step == VoteStep::Prepare ? Bus::PrepareKind : Bus::CommitKind;
  if (get<Proposal>(item) != nullptr) return Bus::ProposalKind;
  return get<NewView>(item) != nullptr ? Bus::NewViewKind : Bus::LockedKind;
}

ChainItem to_chain(const AgreementItem& item) {
  return std::visit([](const auto& each) { return ChainItem(each); }, item);
}

CommitteePtr committee_of(const std::vector<std::unique_ptr<Bus::Member>>& members, const BusOptions& options,
                          std::optional<int> part) {
  std::vector<CommitteeMember> rows;
  for (const auto& member : members) {
    if (part && member->part != *part) continue;
    const crypto::PublicKey key = member->key.public_key();
    rows.push_back({static_cast<std::uint32_t>(10 * member->index + 3), options.units[member->index], key,
                    crypto::node_id(key)});
  }
  Hash256 beacon{};
  beacon[0] = static_cast<std::uint8_t>(options.seed);
  beacon[1] = static_cast<std::uint8_t>(options.seed >> 8);
  return std::make_shared<const Committee>(std::move(rows), options.mode, beacon, bus_height);
}

}  // namespace

crypto::KeyPair bus_key(std::uint64_t seed, std::size_t number) {
  Bytes bytes;
  append_le(bytes, seed);
  append_le(bytes, static_cast<std::uint64_t>(number));
  return crypto::KeyPair::from_seed(crypto::sha256(bytes));
}

std::vector<std::uint32_t> equal_units(std::size_t members) {
  return std::vector<std::uint32_t>(members, 12);
}

std::string seed_text(std::uint64_t seed) {
  return "seed " + std::to_string(seed);
}

BlockPtr bus_block(std::uint64_t mark, bool presence_only) {
  BlockBody body;
  if (presence_only) {
    body.silent = {3};
  } else {
    RowResult row;
    row.carried = true;
    body.result = ResultSection{1, {row}};
  }
  BlockHeader header;
  header.height = bus_height;
  header.previous = bus_previous;
  header.time_ms = 2 * mark + (presence_only ? 1 : 0);
  header.body = body_root(body, bus_previous);
  return chain::make_block(header, std::move(body), bus_previous, network);
}

bool RememberedChecks::vote(const SignedVote& vote, const crypto::PublicKey& node, const Hash256& of) {
  const auto [at, first] = known_.try_emplace({encode_vote(vote), node}, false);
  if (first) at->second = vote_holds(vote, node, of);
  return at->second;
}

Bus::Bus(BusOptions options) : options_(std::move(options)), rng_(options_.seed) {
  for (std::size_t i = 0; i < options_.units.size(); ++i)
    members.push_back(std::make_unique<Member>(*this, i));
  committee = committee_of(members, options_, std::nullopt);
  for (auto& member : members) member->power_on();
  repeat();
}

void Bus::Member::power_on() {
  executor = std::make_unique<sim::HostExecutor>(bus.world);
  AgreementMemory memory;
  if (!disk.empty()) memory = *decode_agreement_memory(disk, network);
  ++life;
  Agreement::Setup setup;
  setup.network = network;
  setup.height = bus_height;
  setup.previous = bus_previous;
  setup.committee = bus.options_.local_views ? committee_of(bus.members, bus.options_, part) : bus.committee;
  setup.self = *setup.committee->position(static_cast<std::uint32_t>(10 * index + 3));
  setup.checks = &bus.checks;
  agreement.emplace(setup, AgreementOptions{4 * second, 30 * second}, key, *executor, *this, memory);
  static_cast<void>(executor->post([this] {
    if (!agreement) return;
    agreement->start();
    if (bus.stalled_) agreement->stall();
  }));
}

void Bus::Member::power_off() {
  executor->stop();
  agreement.reset();
  outbox.clear();
  ++life;
}

BlockPtr Bus::Member::block(bool presence_only, std::uint64_t variant) const {
  return bus_block(1'000'000 * (index + 1) + 1000 * variant + life, presence_only);
}

void Bus::Member::send(const AgreementItem& item, std::optional<std::size_t> to) {
  const ChainItem whole = to_chain(item);
  const std::size_t kind = kind_of(whole);
  auto read = decode_item(encode_item(whole), network);
  NS_CHECK(read.ok());
  const Sent sent{std::make_shared<const ChainItem>(std::move(*read)), to};
  outbox.insert_or_assign({kind, to.has_value()}, sent);
  ++bus.sent[{index, kind}];
  if (!is_byzantine()) bus.note(*this, *sent.item);
  bus.deliver(*this, sent);
  if (bus.dies_after && bus.dies_after(*this, kind)) bus.dying_.insert(index);
}

void Bus::Member::remember(const AgreementMemory& memory, std::function<void()> then) {
  bus.world.after(std::chrono::milliseconds(1),
                  [this, now = life, bytes = encode_agreement_memory(memory), then = std::move(then)] {
                    if (now != life) return;
                    disk = bytes;
                    then();
                  });
}

void Bus::Member::judge(const BlockPtr& block, Demand demand) {
  questions.emplace_back(block->hash, demand);
  bus.world.after(std::chrono::milliseconds(20), [this, now = life, block, demand] {
    if (now != life || !agreement) return;
    agreement->judged(block->hash, demand, !bus.finds_right || bus.finds_right(*this, *block, demand));
  });
}

void Bus::Member::make_block(bool presence_only) {
  asked_for.push_back(presence_only);
  bus.world.after(std::chrono::milliseconds(50), [this, now = life, presence_only] {
    if (now == life && agreement)
      agreement->propose(bus.makes ? bus.makes(*this, presence_only) : block(presence_only));
  });
}

void Bus::Member::certified(const BlockPtr& block, const Certificate& found) {
  if (!bus.options_.local_views &&
      !check_certificate(found, *block, *bus.committee, network, bus.checks).ok())
    ++bus.bad_certificates;
  // Of collected votes its own was not sent.
  const Quorum& commits = found.commits;
  for (const VoterSignature& each : commits.signatures) {
    const std::size_t voter = *bus.committee->position(each.voter);
    bus.signed_[{VoteStep::Commit, commits.view, commits.block}].units[voter] = bus.options_.units[voter];
  }
  if (result) return;
  result = block;
  certificate = found;
}

void Bus::note(const Member& from, const ChainItem& item) {
  if (const auto* proposal = get<Proposal>(item))
    presence_only_[proposal->block->hash] = proposal->block->body.is_presence_only();
  if (const auto* vote = get<SignedVote>(item))
    signed_[{vote->vote.step, vote->vote.view, vote->vote.block}].units[from.index] =
        options_.units[from.index];
}

std::uint64_t Bus::signed_units(const VoteKey& key) const {
  std::uint64_t units = 0;
  for (std::size_t i = 0; i < options_.byzantine; ++i) units += options_.units[i];
  if (const auto at = signed_.find(key); at != signed_.end())
    for (const auto& [member, its] : at->second.units) units += its;
  return units;
}

std::size_t Bus::certifiable() const {
  std::set<Hash256> blocks;
  for (const auto& [key, votes] : signed_) {
    const auto& [step, view, block] = key;
    if (step != VoteStep::Commit) continue;
    const std::uint64_t units = signed_units(key);
    bool passes = committee->is_quorum(units);
    if (!passes && committee->is_stall_quorum(units)) {
      const auto kind = presence_only_.find(block);
      passes = kind != presence_only_.end() && kind->second;
      for (std::uint32_t before = 0; !passes && before <= view; ++before)
        passes = committee->is_quorum(signed_units({VoteStep::Prepare, before, block}));
    }
    if (passes) blocks.insert(block);
  }
  return blocks.size();
}

// The same, about another block.
ChainItem Bus::other_story(const Member& from, const ChainItem& item) const {
  if (const auto* proposal = get<Proposal>(item); proposal && !proposal->justification) {
    Proposal other = *proposal;
    other.block = from.block(proposal->block->body.is_presence_only(), 1);
    return other;
  }
  if (const auto* vote = get<SignedVote>(item)) {
    Vote other = vote->vote;
    other.block = from.block(false, 1)->hash;
    return sign_vote(other, vote->voter, from.key, network);
  }
  return item;
}

void Bus::deliver(Member& from, const Member::Sent& sent) {
  std::shared_ptr<const ChainItem> other;
  for (auto& to : members) {
    if (to.get() == &from || (sent.to && *sent.to != to->index)) continue;
    if (from.part != to->part || rng_.uniform() < options_.loss) continue;
    if (passes && !passes(from, *to, *sent.item)) continue;
    std::shared_ptr<const ChainItem> item = sent.item;
    if (from.is_byzantine() && to->index % 2 == 1) {
      if (!other) other = std::make_shared<const ChainItem>(other_story(from, *item));
      item = other;
    }
    world.after(std::chrono::milliseconds(5 + static_cast<int>(rng_.below(300))),
                [this, &from, to = to.get(), item] {
                  if (!to->agreement || from.part != to->part) return;
                  std::visit(
                      [&](const auto& each) {
                        if constexpr (std::is_constructible_v<AgreementItem, decltype(each)>)
                          give(*to, from.index, AgreementItem(each));
                      },
                      *item);
                });
  }
}

void Bus::give(Member& to, std::size_t from, const AgreementItem& item) {
  if (to.agreement) to.agreement->on_item(from, item);
}

// Does what the outbox of a node does, and its polls of other nodes' status.
void Bus::repeat() {
  for (const std::size_t index : dying_) members[index]->power_off();
  dying_.clear();
  for (auto& member : members) {
    if (!member->agreement) continue;
    const auto outbox = member->outbox;
    for (const auto& [kind, sent] : outbox) deliver(*member, sent);
    Member& other = *members[rng_.below(members.size())];
    if (!other.agreement || other.part != member->part || other.is_byzantine()) continue;
    if (!options_.local_views) member->agreement->on_view(other.index, other.agreement->view());
    if (!member->result && other.result) {
      member->result = other.result;
      member->certificate = other.certificate;
    }
  }
  world.after(second, [this] { repeat(); });
}

void Bus::stall() {
  stalled_ = true;
  for (auto& member : members)
    if (member->agreement) member->agreement->stall();
}

bool Bus::all_decided() const {
  return std::all_of(members.begin(), members.end(), [](const auto& member) {
    return member->is_byzantine() || !member->agreement || member->result;
  });
}

bool Bus::run_until_decided(Duration limit) {
  return world.run_until([this] { return all_decided(); }, world.now() + limit);
}

std::size_t Bus::different_results() const {
  std::set<Hash256> results;
  for (const auto& member : members)
    if (member->result && !member->is_byzantine()) results.insert(member->result->hash);
  return results.size();
}

}  // namespace neuroshard::test
