#include "core/runtime/block_notices.h"

#include <fmt/format.h>

#include <utility>

#include "core/chain/registry.h"
#include "core/crypto/keys.h"

namespace neuroshard::runtime {
namespace {

std::string short_id(const net::NodeId& node) {
  return to_hex(node).substr(0, 12) + "…";
}

}  // namespace

BlockNotices::BlockNotices(Logger& logger, const net::NodeId& self, NameOf name_of)
    : logger_(logger), self_(self), name_of_(std::move(name_of)) {}

std::string BlockNotices::begin(std::uint32_t row) const {
  const std::string name = name_of_(row);
  return name.empty() ? name : name + ": ";
}

void BlockNotices::tell_of_rows(const chain::Registry& before, const chain::Registry& after,
                                const chain::BlockBody& body) {
  if (body.result && !before.size().changing)
    for (const chain::RowResult& row : body.result->rows)
      if (row.carried)
        logger_.info("rounds",
                     fmt::format("{}round {} leaves the anchor as it is: its work goes into the next one",
                                 begin(row.row), body.result->round));
  for (std::uint32_t row = 0; row < after.rows().size(); ++row) {
    const std::uint64_t round = after.rows()[row].changed_round;
    if (round >= before.rows()[row].changed_round) continue;
    logger_.warning("rounds",
                    fmt::format("{}the anchor of round {} is the newest again, because {}", begin(row), round,
                                body.close ? "the holders of a later result do not give all that it was made "
                                             "of to those that check it"
                                           : "a later result was wrong"));
  }
}

void BlockNotices::tell_of_size(const chain::Registry& before, const chain::Registry& after) {
  const chain::SizeRecord &was = before.size(), &is = after.size();
  const char* larger = (is.changing ? is.next > is.size : was.next > was.size) ? "larger" : "smaller";
  if (is.changing && !was.changing)
    logger_.info("rounds", fmt::format("the members' memory asks for a {} model: its weights are made of the "
                                       "present ones, and nobody trains meanwhile",
                                       larger));
  if (was.changing && !is.changing && is.size == was.size)
    logger_.warning("rounds",
                    fmt::format("the {} model was not made, or not agreed on, in time: the network goes "
                                "on with the present one, and tries again later",
                                larger));
}

void BlockNotices::tell_of_evidence(const std::vector<chain::Evidence>& proven) {
  for (const chain::Evidence& evidence : proven) {
    const net::NodeId node = crypto::node_id(evidence.node);
    if (const auto* result = std::get_if<chain::FalseResult>(&evidence.what))
      tell_of(*result, node);
    else if (node != self_)
      logger_.warning("rounds", short_id(node) +
                                    " signed two statements that exclude each other: its wallet is "
                                    "expelled, and the node is banned for a while");
  }
}

void BlockNotices::tell_of(const chain::FalseResult& result, const net::NodeId& node) {
  const chain::AttestedRow& attested = result.attested;
  const std::string what = fmt::format("a wrong result of {} in round {}, and the network has the proof",
                                       name_of_(attested.result.row), attested.round);
  logger_.warning("rounds",
                  node == self_
                      ? fmt::format("This node attested {}. Its memory or its processor may be faulty: test "
                                    "them. A second wrong result within {} rounds expels its wallet.",
                                    what, chain::strike_rounds)
                      : fmt::format("{} attested {}", short_id(node), what));
}

}  // namespace neuroshard::runtime
