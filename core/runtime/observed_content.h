// A chain's content with an observer, which sees each block before the content does.
#pragma once

#include <functional>
#include <optional>

#include "core/chain/content.h"

namespace neuroshard::runtime {

class ObservedContent final : public chain::BlockContent {
 public:
  struct Observer {
    // before: nothing of a block whose previous one was not seen.
    std::function<void(const std::optional<chain::ChainTip>& before, const chain::ChainTip& tip,
                       const chain::BlockPtr& block, bool live)>
        on_block;
    std::function<void(const chain::ChainTip& tip)> on_history;
  };
  // inner outlives it.  Threads: those of the content.
  ObservedContent(chain::BlockContent& inner, Observer observer)
      : inner_(inner), observer_(std::move(observer)) {}

  bool is_due(const chain::ChainTip& tip) override { return inner_.is_due(tip); }
  void make(const chain::ChainTip& tip, std::function<void(chain::Sections)> done) override {
    inner_.make(tip, std::move(done));
  }
  void judge(const chain::ChainTip& tip, const chain::BlockPtr& block, bool binding,
             std::function<void(bool)> done) override {
    inner_.judge(tip, block, binding, std::move(done));
  }
  void on_block(const chain::ChainTip& tip, const chain::CertifiedBlock& block, bool live) override {
    observer_.on_block(before_, tip, block.block, live);
    before_ = tip;
    inner_.on_block(tip, block, live);
  }
  void on_history(const chain::ChainTip& tip) override {
    before_ = tip;
    observer_.on_history(tip);
    inner_.on_history(tip);
  }
  chain::Verdict on_post(const net::NodeId& from, const chain::RoundsPost& post,
                         const chain::ChainTip& tip) override {
    return inner_.on_post(from, post, tip);
  }
  chain::Verdict on_accusation(const net::NodeId& from, const chain::Evidence& evidence,
                               const chain::ChainTip& tip) override {
    return inner_.on_accusation(from, evidence, tip);
  }
  chain::SignedByMember signed_by(const net::NodeId& member) const override {
    return inner_.signed_by(member);
  }
  Duration deadline() const override { return inner_.deadline(); }

 private:
  chain::BlockContent& inner_;
  const Observer observer_;
  std::optional<chain::ChainTip> before_;
};

}  // namespace neuroshard::runtime
