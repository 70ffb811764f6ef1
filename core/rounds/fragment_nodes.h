// The rounds of a whole model at one node, however they are cut: one node of rounds for each fragment
// (fragments.h), with one network side before them; a model that is not cut is one fragment. From outside
// they look like one node that is where the slowest fragment is: its round is the newest one that all
// fragments have certified.
//
// The fragments' histories are independent: each has members, certificates and votes of its own, and a node
// joins and leaves each by itself, so for moments it is a member of some and not of others. It asks to join
// when it holds a state of each, and trains from then on, whichever it is a member of: members wait for it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/rounds/fragments.h"
#include "core/rounds/joint_anchors.h"
#include "core/rounds/level_node.h"

namespace neuroshard::rounds {

// What is a fragment's own; all else its nodes share. What is pointed to outlives them.
struct FragmentPart {
  RoundLearner* learner = nullptr;
  RoundStore* store = nullptr;
  KnownState known;
  std::optional<RoundBody> genesis{};  // ParticipantOptions::genesis
};
struct FragmentServices {  // as RoundServices
  const crypto::KeyPair& key;
  net::PeerCaller& caller;
  RoundPeers& peers;
  Executor& executor;
  const Clock& clock;
  RoundWork& work;
  Logger& logger;
};
using FragmentCertified = std::function<void(std::size_t fragment, const RoundChain& chain,
                                             const Anchor& state, const StepResult* step)>;

class FragmentNodes {
 public:
  // options: of the whole model; slot, values and the first round's steps are filled in for each fragment,
  // and where there are several their rounds overlap. As many parts as fragments.
  // Threads: the executor's, all members.
  FragmentNodes(FragmentServices services, const LevelOptions& options, std::vector<Fragment> fragments,
                std::vector<FragmentPart> parts, std::uint64_t seed, FragmentCertified certified);
  ~FragmentNodes();
  static bool handles(net::Method method) { return LevelNode::handles(method); }

  void start();
  void progressed();
  // As RoundParticipant's and RoundNode's: of all fragments, and of any.
  void leave();
  void rejoin();
  bool left() const;
  bool needed() const;
  // To the fragment's node that the request names; one that names none of this network's is refused.
  void on_call(const net::Caller& from, net::Method method, ByteSpan request, const net::Respond& respond);

  std::size_t count() const { return nodes_.size(); }
  const Fragment& fragment(std::size_t which) const { return fragments_.at(which); }
  const RoundEndpoint& node(std::size_t which) const { return *nodes_.at(which); }
  // All fragments have a history.
  bool begun() const;
  // All in one: counters are sums; round is the newest that all have certified, with the joint anchor of it
  // (zeros: not known, because this node was not there for a fragment's); members: the fewest of a fragment;
  // member: of all; phase: the one that holds the training up most; tokens: the most of a fragment, each of
  // which counts all tokens.
  RoundView view() const;
  // Each fragment's own anchor is the newest certified one.
  bool agrees() const;
  // The newest round of which, or of a later one, this node holds each fragment's state; and the joint anchor
  // as it computed it. Nothing: it was not there for a fragment's.
  std::uint64_t held_round() const;
  std::optional<Hash256> own_anchor(std::uint64_t round) const;
  // Certified ones.
  const JointAnchors& anchors() const { return anchors_; }

 private:
  bool holds_all() const;  // a state of each fragment

  const std::vector<Fragment> fragments_;
  JointAnchors anchors_;
  std::vector<std::unique_ptr<LevelNode>> nodes_;
};

}  // namespace neuroshard::rounds
