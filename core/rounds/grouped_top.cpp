// GroupedNode: the agreement of all members on a body of certified sub-groups. Votes go up through the
// speakers of the sub-groups, what the leader says comes down through them.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/rounds/detail/grouped_level.h"

namespace neuroshard::rounds {
namespace {

constexpr std::size_t sources_of_an_aggregate = 6;
constexpr int failures_to_give_up = 3;

std::uint64_t tokens_of(const std::vector<GroupResult>& groups) {
  std::uint64_t sum = 0;
  for (const GroupResult& result : groups) sum += result.certificate.body.tokens;
  return sum;
}

}  // namespace

void GroupedNode::top_broadcast(const RoundItem& item) {
  if (const auto* post = std::get_if<ProposalPost>(&item)) {
    const auto content = contents_.find(post->body.anchor);
    // A lock whose content this node never saw: another leader has it.
    if (content == contents_.end()) return;
    proposal_ = GroupedProposal{true, post->view, {}, *content->second.bytes, post->justification};
  } else if (const auto* post = std::get_if<VotePost>(&item)) {
    send_vote(*post);
  } else if (const auto* post = std::get_if<NewViewPost>(&item)) {
    const net::NodeId leader = roster().members[deal_->leader(post->view)].id;
    spoke_in_.reset();
    if (leader != self_)
      outbox_.put(top_new_view_key, std::make_shared<const Bytes>(encode_grouped_post(*post)), {leader});
  }
}

void GroupedNode::send_vote(const VotePost& post) {
  const std::uint32_t view = post.vote.view;
  if (deal_->leader(view) == index_) {
    // Its own prepare is what shows that a proposal is this leader's.
    if (post.vote.step == VoteStep::Prepare && proposal_ && proposal_->view == view) {
      proposal_->leader = post.signature.signature;
      GroupedProposal proposal = std::move(*proposal_);
      proposal_.reset();
      spread(top_proposal_key, std::move(proposal));
    }
    return;  // the agreement counts its own vote itself
  }
  std::vector<net::NodeId> speakers;
  for (std::size_t which = 0; which < Deal::speakers_at_once; ++which) {
    const std::uint16_t speaker = deal_->speaker(group_, view, which);
    if (speaker == index_)
      bundles_[{post.vote.step, view}][post.vote.body].signatures.emplace(post.signature.member,
                                                                          post.signature.signature);
    else
      speakers.push_back(roster().members[speaker].id);
  }
  const std::uint32_t key = own_vote_key + static_cast<std::uint32_t>(post.vote.step);
  outbox_.put(key,
              std::make_shared<const Bytes>(encode_grouped_post(CollectedVotes{post.vote, {post.signature}})),
              speakers);
  pump_bundles(false);
}

// As a speaker: the votes of its sub-group to the leader, at once when all are there, else with the ticks.
void GroupedNode::pump_bundles(bool incomplete) {
  for (auto& [at, bodies] : bundles_) {
    const auto& [step, view] = at;
    for (auto& [body, bundle] : bodies) {
      const std::size_t there = bundle.signatures.size();
      if (bundle.sent == there || (there < group().size() && !incomplete)) continue;
      bundle.sent = there;
      // A key for each body, so that a liar's vote takes no other's place on the way.
      if (!bundle.place)
        bundle.place = std::count_if(bodies.begin(), bodies.end(),
                                     [](const auto& other) { return other.second.place.has_value(); });
      CollectedVotes votes{{step, options_.rules.slot, round_, view, body}, {}};
      for (const auto& [member, signature] : bundle.signatures)
        votes.signatures.push_back({member, signature});
      outbox_.put(
          bundle_key + static_cast<std::uint32_t>(step) + 2 * static_cast<std::uint32_t>(*bundle.place),
          std::make_shared<const Bytes>(encode_grouped_post(votes)),
          {roster().members[deal_->leader(view)].id});
    }
  }
}

// To all members: to the speakers of each sub-group, who pass it on.
void GroupedNode::spread(std::uint32_t key, GroupedPost post) {
  const std::uint32_t view = top_level_->agreement ? top_level_->agreement->view() : 0;
  std::vector<net::NodeId> speakers;
  for (std::size_t g = 0; g < deal_->groups.size(); ++g)
    for (std::size_t which = 0; which < Deal::speakers_at_once; ++which) {
      const std::uint16_t speaker = deal_->speaker(g, view, which);
      if (g != group_ && speaker != index_) speakers.push_back(roster().members[speaker].id);
    }
  outbox_.put(key, commons_.keep(encode_grouped_post(post)), speakers);
  pass_on(key, std::move(post));
}

void GroupedNode::pass_on(std::uint32_t key, GroupedPost post) {
  std::visit(
      [](auto& p) {
        if constexpr (requires { p.relay; }) p.relay = false;
      },
      post);
  outbox_.put(key + pass_on_key, commons_.keep(encode_grouped_post(post)), others());
}

// As a speaker: the sub-group's result to the leader of this view.
void GroupedNode::speak() {
  const std::uint32_t view = top_level_->agreement->view();
  if (!own_result_ || spoke_in_ == view || !deal_->speaks(static_cast<std::uint16_t>(index_), view)) return;
  spoke_in_ = view;
  GroupResult result{group_, *own_result_};
  if (deal_->leader(view) == index_) {
    on_result(std::move(result));
    return;
  }
  outbox_.put(top_result_key, std::make_shared<const Bytes>(encode_grouped_post(std::move(result))),
              {roster().members[deal_->leader(view)].id});
}

Verdict GroupedNode::on_result(GroupResult result) {
  if (results_.count(result.group) != 0) return Verdict::Known;
  if (!check_group_result(result, *deal_, commons_.network()).ok()) return Verdict::BadCertificate;
  if (results_.empty()) first_result_at_ = services_.clock.monotonic_now();
  results_[result.group] = std::move(result.certificate);
  static_cast<void>(services_.executor.post(guarded([this] { advance(); })));
  return Verdict::Taken;
}

// Of the sub-groups that answered, with their aggregates here: when all have, or after a wait.
void GroupedNode::try_top_body() {
  if (!want_top_body_ || making_top_body_ || !state_checked_ || state_round_ + 1 != round_) return;
  if (own_result_ && results_.count(group_) == 0) on_result({group_, *own_result_});
  const std::size_t all = deal_->groups.size();
  // Sub-groups end their training by a share of the round apart; for most of them that is waited for.
  Duration patience = options_.group_wait;
  // One whose first leader says nothing has its result a view later, and so much work is worth that.
  if (10 * results_.size() < 9 * all) patience = std::max(patience, options_.group.first_view * 3 / 2);
  if (results_.size() < quorum_size(all) && !durations_.empty())
    patience = std::max(patience, deadline() / 5);
  const bool late = !results_.empty() && services_.clock.monotonic_now() - first_result_at_ >= patience;
  std::size_t reachable = 0, here = 0;
  for (const auto& [group, certificate] : results_) {
    if (unreachable_.count(group) != 0) continue;
    ++reachable;
    if (aggregates_.count(certificate.body.anchor) != 0)
      ++here;
    else
      fetch_aggregate(group, certificate);
  }
  if (reachable == 0 || (!late && reachable < all) || here < reachable || 3 * reachable < all) return;
  std::vector<GroupResult> groups;
  for (const auto& [group, certificate] : results_)
    if (unreachable_.count(group) == 0) groups.push_back({group, certificate});
  propose(std::move(groups), changes_for_body(max_grouped_changes));
}

void GroupedNode::propose(std::vector<GroupResult> groups, std::vector<RoundChange> changes) {
  making_top_body_ = true;
  GroupedBody body;
  body.slot = options_.rules.slot;
  body.round = round_;
  body.previous = chain_->tip_hash();
  body.roster = roster().hash;
  body.tokens = chain_->tip().tokens + tokens_of(groups);
  body.groups = std::move(groups);
  body.changes = std::move(changes);
  anchor_of(body, [this, body](const SharedStep& step) mutable {
    if (body.round != round_) return;
    making_top_body_ = false;
    if (!step->ok()) {
      services_.logger.warning("rounds", step->error().describe());
      return;
    }
    want_top_body_ = false;
    body.anchor = (*step)->hash;
    Bytes bytes = encode_grouped_body(body);
    const Hash256 content = commons_.hash(bytes);
    const RoundBody name = grouped_name(body, content);
    keep_content(content, std::move(bytes), std::make_shared<const GroupedBody>(std::move(body)));
    top_level_->agreement->propose(name);
  });
}

Verdict GroupedNode::on_proposal(GroupedProposal post) {
  if (!top_level_->agreement) return Verdict::Busy;
  RoundAgreement& agreement = *top_level_->agreement;
  const Hash256 content = commons_.hash(post.content);
  const auto known = contents_.find(content);
  if (known == contents_.end()) {
    const auto body = commons_.body(post.content, *deal_);
    if (!body.ok())
      return body.error().code == ErrorCode::Denied ? Verdict::BadCertificate : Verdict::Malformed;
    const RoundBody name = grouped_name(**body, content);
    const RoundMember& leader = roster().members[agreement.leader(post.view)];
    if (!vote_holds({VoteStep::Prepare, name.slot, name.round, post.view, body_hash(name)}, leader.key,
                    post.leader, commons_.network()))
      return Verdict::BadSignature;
    keep_content(content, std::move(post.content), *body);
    const Verdict verdict = agreement.on_proposal(leader.id, {post.view, name, post.justification});
    if (verdict != Verdict::Taken && verdict != Verdict::Known) contents_.erase(content);
    return verdict;
  }
  const RoundBody name = grouped_name(*known->second.body, content);
  const RoundMember& leader = roster().members[agreement.leader(post.view)];
  if (!vote_holds({VoteStep::Prepare, name.slot, name.round, post.view, body_hash(name)}, leader.key,
                  post.leader, commons_.network()))
    return Verdict::BadSignature;
  return agreement.on_proposal(leader.id, {post.view, name, post.justification});
}

// What is signed was checked when it came. A leader leaves out what it could not get, but not most of it, and
// not this sub-group when that had its result in time: so who leaves out sub-groups that have one loses the
// votes of their members, as long as no quorum has prepared it.
bool GroupedNode::body_is_fair(const Content& content, bool locked) const {
  if (!content.tokens_right) return false;
  if (locked) return true;
  if (3 * content.body->groups.size() < deal_->groups.size()) return false;
  return content.has_own_group || !own_result_ || content.came - own_result_at_ < 2 * options_.group_wait;
}

const GroupedNode::Content& GroupedNode::keep_content(const Hash256& hash, Bytes bytes,
                                                      std::shared_ptr<const GroupedBody> body) {
  const std::vector<GroupResult>& groups = body->groups;
  Content content{commons_.keep(std::move(bytes)), body, services_.clock.monotonic_now(), false, false, {}};
  content.tokens_right = body->tokens == chain_->tip().tokens + tokens_of(groups) &&
                         std::all_of(groups.begin(), groups.end(), [this](const GroupResult& result) {
                           const RoundBody& group = result.certificate.body;
                           return group.tokens == counted_tokens(group.contributors);
                         });
  content.has_own_group = std::any_of(groups.begin(), groups.end(),
                                      [this](const GroupResult& result) { return result.group == group_; });
  return contents_[hash] = std::move(content);
}

void GroupedNode::review_top() {
  Level& level = *top_level_;
  std::vector<Hash256> wrong;
  for (auto& [hash, judging] : level.judging) {
    const auto content = contents_.find(judging.body.anchor);
    if (judging.computing || content == contents_.end() || !state_checked_ || state_round_ + 1 != round_)
      continue;
    const GroupedBody& body = *content->second.body;
    if (!body_is_fair(content->second, level.agreement->is_locked(judging.body))) {
      wrong.push_back(hash);
      continue;
    }
    if (!fetch_aggregates(body, &content->second.gathering)) continue;
    judging.computing = true;
    anchor_of(body, [this, hash = hash, round = round_, anchor = body.anchor](const SharedStep& step) {
      if (round != round_ || top_level_->judging.erase(hash) == 0) return;
      const bool right = step->ok() && (*step)->hash == anchor;
      if (!right) check_own_state([] {});
      if (top_level_->agreement) top_level_->agreement->judged(hash, right);
    });
  }
  for (const Hash256& hash : wrong) {
    level.judging.erase(hash);
    level.agreement->judged(hash, false);
  }
}

// Whether all aggregates of a body are here; those that are not are asked for, some at a time.
bool GroupedNode::fetch_aggregates(const GroupedBody& body, Gathering* gathering) {
  const auto& groups = body.groups;
  Gathering& g = *gathering;
  while (g.here < groups.size() && aggregates_.count(groups[g.here].certificate.body.anchor) != 0) ++g.here;
  if (std::exchange(g.failures, failures_) != failures_) g.asked = 0;
  for (g.asked = std::max(g.asked, g.here); g.asked < groups.size() && fetching_ < options_.fetches;
       ++g.asked)
    if (aggregates_.count(groups[g.asked].certificate.body.anchor) == 0)
      fetch_aggregate(groups[g.asked].group, groups[g.asked].certificate);
  return g.here == groups.size();
}

void GroupedNode::fetch_aggregate(std::uint16_t number, const RoundQuorum& certificate) {
  const RoundBody& group = certificate.body;
  if (fetching_ >= options_.fetches || !asked_.insert(group.anchor).second) return;
  ++fetching_;
  const std::uint64_t bytes = outer::max_payload_bytes(aggregate_codec, options_.rules.values);
  // Any member that signed has it; who has it already, fellows too.
  std::vector<net::NodeId> sources;
  sources.reserve(certificate.signatures.size());
  for (const MemberSignature& s : certificate.signatures)
    if (group.members[s.member].id != self_) sources.push_back(group.members[s.member].id);
  for (std::size_t i = sources.size(); i > 1; --i) std::swap(sources[i - 1], sources[rng_.below(i)]);
  if (sources.size() > sources_of_an_aggregate) sources.resize(sources_of_an_aggregate);
  fetcher_.payload(
      options_.rules.slot, group.anchor, bytes, std::move(sources),
      guarded([this, round = round_, number, of = group.round, hash = group.anchor](Expected<Bytes> got) {
        --fetching_;
        if (got.ok()) aggregates_[hash] = {of, commons_.keep(std::move(*got))};
        if (round != round_) return settle_state();
        asked_.erase(hash);
        if (!got.ok()) ++failures_;
        if (!got.ok() && ++failed_[hash] >= failures_to_give_up && of == round_) unreachable_.insert(number);
        // Not after each: there may be hundreds.
        if (!got.ok() || 2 * fetching_ <= options_.fetches) advance();
      }));
}

// The aggregates are here.
void GroupedNode::anchor_of(const GroupedBody& body, std::function<void(const SharedStep&)> done) {
  Bytes key;
  append_le(key, body.round);
  key.insert(key.end(), state_hash_.begin(), state_hash_.end());
  std::vector<GroupInput> inputs;
  for (const GroupResult& result : body.groups) {
    const RoundBody& group = result.certificate.body;
    append_le(key, result.group);
    append_le(key, group.tokens);
    append_le(key, static_cast<std::uint64_t>(group.contributors.size()));
    key.insert(key.end(), group.anchor.begin(), group.anchor.end());
    inputs.push_back(
        {result.group, group.tokens, group.contributors.size(), aggregates_.at(group.anchor).payload});
  }
  const Hash256 hash = crypto::sha256(key);
  top_work_.run(
      hash, services_.work, services_.executor,
      [commons = &commons_, hash, inputs = std::move(inputs), rules = options_.outer, before = state_,
       identity = identity(body.round), most = options_.rules.most_tokens] {
        return commons->step(hash, [&] { return make_top_step(rules, identity, *before, inputs, most); });
      },
      std::move(done));
}

Verdict GroupedNode::on_votes(const net::NodeId& from, const CollectedVotes& post) {
  if (!top_level_->agreement) return Verdict::Busy;
  if (deal_->leader(post.vote.view) == index_) {
    Verdict verdict = Verdict::Known;
    for (const MemberSignature& s : post.signatures) {
      const Verdict one = top_level_->agreement->on_vote({post.vote, s});
      if (one != Verdict::Known) verdict = one;
    }
    return verdict;
  }
  // A fellow's own, for the bundle: whether it is signed is for the leader to see.
  const MemberSignature& s = post.signatures.front();
  const auto& members = roster().members;
  if (post.signatures.size() != 1 || s.member >= members.size() || members[s.member].id != from ||
      deal_->group_of[s.member] != group_)
    return Verdict::NotMember;
  constexpr std::uint32_t views_ahead = 8;
  const std::uint32_t view = top_level_->agreement->view();
  if (post.vote.view + 1 < view || post.vote.view > view + views_ahead) return Verdict::OtherView;
  auto& bodies = bundles_[{post.vote.step, post.vote.view}];
  // One vote each, or who votes for many bodies before anybody else would leave no room for the others'.
  const auto voted = [&](const auto& other) {
    return other.first != post.vote.body && other.second.signatures.count(s.member) != 0;
  };
  if (std::any_of(bodies.begin(), bodies.end(), voted)) return Verdict::TwoPayloads;
  Bundle& bundle = bodies[post.vote.body];
  if (!bundle.signatures.emplace(s.member, s.signature).second) return Verdict::Known;
  if (bundle.signatures.size() == group().size()) pump_bundles(false);
  return Verdict::Taken;
}

}  // namespace neuroshard::rounds
