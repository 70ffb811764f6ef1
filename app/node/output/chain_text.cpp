#include "app/node/output/chain_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/crypto/keys.h"

namespace neuroshard::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t short_id = 12;

std::string node_of(const crypto::PublicKey& key) {
  return to_hex(crypto::node_id(key));
}

const char* kind_of(const chain::BlockBody& body) {
  if (body.genesis) return "genesis";
  if (body.succession) return "succession";
  if (body.close) return "close";
  if (body.result) return "result";
  return "members";
}

const char* kind_of(const chain::Statement& statement) {
  constexpr const char* names[] = {"register", "vouch",  "away", "back", "leave",
                                   "commit",   "revoke", "move", "offer"};
  static_assert(std::size(names) == std::variant_size_v<decltype(statement.what)>);
  return names[statement.what.index()];
}

Json statement_json(const chain::Statement& statement) {
  Json json{{"kind", kind_of(statement)}, {"node", node_of(statement.node)}};
  if (const auto* offer = std::get_if<chain::Offer>(&statement.what)) {
    json["memory_tiers"] = offer->memory_tiers;
    if (offer->speed != 0) json["million_flops"] = offer->speed;
  }
  const auto* move = std::get_if<chain::Move>(&statement.what);
  if (move == nullptr) return json;
  json["rows"] = Json::array();
  for (std::uint32_t row = 0; row < move->rows.end(); ++row)
    if (move->rows.has(row)) json["rows"].push_back(row);
  return json;
}

const char* standing_of(const chain::Registry& registry, const chain::MemberRecord& member) {
  if (member.presence != chain::Presence::Active) return "away";
  return registry.is_voter(member) ? "voter" : "candidate";
}

std::vector<const chain::MemberRecord*> members_of(const chain::Registry& registry,
                                                   const crypto::PublicKey& wallet) {
  std::vector<const chain::MemberRecord*> members;
  for (const chain::MemberRecord& member : registry.members())
    if (registry.wallet(member.wallet)->key == wallet) members.push_back(&member);
  return members;
}

std::vector<const chain::RevocationRecord*> revoked_by(const chain::Registry& registry,
                                                       const crypto::PublicKey& wallet) {
  std::vector<const chain::RevocationRecord*> revoked;
  for (const chain::RevocationRecord& one : registry.revocations())
    if (one.wallet == wallet) revoked.push_back(&one);
  return revoked;
}

Json signers_of(const chain::Certificate& certificate) {
  Json signers = Json::array();
  for (const chain::VoterSignature& one : certificate.commits.signatures) signers.push_back(one.voter);
  return signers;
}

Json close_json(const chain::CloseSection& close) {
  Json contributions = Json::array(), voters = Json::array();
  for (const chain::ContributionEntry& one : close.contributions)
    contributions.push_back({{"member", one.member}, {"tokens", one.tokens}});
  for (const chain::Vector& vector : close.vectors) voters.push_back(vector.voter);
  return {{"round", close.round}, {"contributions", contributions}, {"vectors_of", voters}};
}

Json result_json(const chain::ResultSection& result) {
  Json rows = Json::array();
  for (const chain::RowResult& row : result.rows) {
    double norm = 0;
    std::memcpy(&norm, &row.norm_bits, sizeof norm);
    rows.push_back({{"row", row.row},
                    {"carried", row.carried},
                    {"anchor", row.carried ? Json() : Json(to_hex(row.anchor))},
                    {"median_norm", row.carried ? Json() : Json(norm)}});
  }
  return {{"round", result.round}, {"rows", rows}};
}

Json genesis_json(const chain::GenesisSection& genesis) {
  Json founders = Json::array(), anchors = Json::array();
  for (const chain::Statement& founder : genesis.founders) founders.push_back(node_of(founder.node));
  for (const Hash256& anchor : genesis.anchors) anchors.push_back(to_hex(anchor));
  return {{"founders", founders}, {"anchors", anchors}, {"tokenizer", to_hex(genesis.tokenizer)}};
}

std::string plural(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

Json block_json(const chain::CertifiedBlock& certified) {
  const chain::Block& block = *certified.block;
  const chain::BlockBody& body = block.body;
  Json json{{"height", block.header.height},
            {"hash", to_hex(block.hash)},
            {"previous", to_hex(block.header.previous)},
            {"time_ms", block.header.time_ms},
            {"registry", to_hex(block.header.registry)},
            {"kind", kind_of(body)},
            {"signers", signers_of(*certified.certificate)},
            {"view", certified.certificate->commits.view}};
  if (body.genesis) json["genesis"] = genesis_json(*body.genesis);
  if (body.succession) json["continuing"] = body.succession->continuing;
  if (body.close) json["close"] = close_json(*body.close);
  if (body.result) json["result"] = result_json(*body.result);
  json["silent"] = body.silent;
  json["statements"] = Json::array();
  for (const chain::Statement& one : body.statements) json["statements"].push_back(statement_json(one));
  json["evidence"] = Json::array();
  for (const chain::Evidence& one : body.evidence) json["evidence"].push_back(node_of(one.node));
  return json;
}

std::vector<std::string> block_lines(const chain::CertifiedBlock& certified) {
  const chain::Block& block = *certified.block;
  const chain::BlockBody& body = block.body;
  std::vector<std::string> lines;
  lines.push_back(fmt::format("Block {} ({}), signed by {}", block.header.height, kind_of(body),
                              plural(certified.certificate->commits.signatures.size(), "node")));
  lines.push_back(fmt::format("  hash      {}", to_hex(block.hash)));
  lines.push_back(fmt::format("  previous  {}", to_hex(block.header.previous)));
  lines.push_back(fmt::format("  time      {} ms", block.header.time_ms));
  if (body.genesis)
    for (const chain::Statement& founder : body.genesis->founders)
      lines.push_back("  founder   " + node_of(founder.node));
  if (body.close)
    lines.push_back(fmt::format("  closes round {}: {}, {}", body.close->round,
                                plural(body.close->contributions.size(), "contribution"),
                                plural(body.close->vectors.size(), "vector")));
  if (body.result)
    for (const chain::RowResult& row : body.result->rows)
      lines.push_back(fmt::format("  round {}, row {}: {}", body.result->round, row.row,
                                  row.carried ? "carried" : "anchor " + to_hex(row.anchor)));
  if (body.succession)
    lines.push_back(fmt::format("  {} members go on without the others", body.succession->continuing.size()));
  for (const std::uint32_t member : body.silent)
    lines.push_back(fmt::format("  silent    member {}", member));
  for (const chain::Statement& one : body.statements)
    lines.push_back(fmt::format("  {:<9} {}", kind_of(one), node_of(one.node)));
  for (const chain::Evidence& one : body.evidence) lines.push_back("  evidence against " + node_of(one.node));
  return lines;
}

Json tip_json(const chain::History& history) {
  const chain::ChainTip& tip = history.tip();
  const chain::Registry& registry = *tip.registry;
  Json json{{"genesis", to_hex(history.genesis())},
            {"first_height", history.first_height()},
            {"height", tip.height()},
            {"hash", to_hex(tip.block->hash)},
            {"time_ms", registry.time_ms()},
            {"round", registry.round()},
            {"voters", registry.voter_count()},
            {"members", Json::array()},
            {"committee", Json::array()},
            {"revocations", Json::array()},
            {"rows", Json::array()}};
  for (const chain::MemberRecord& member : registry.members())
    json["members"].push_back({{"number", member.number},
                               {"id", to_hex(member.id)},
                               {"wallet", member.wallet},
                               {"standing", standing_of(registry, member)},
                               {"contributions", member.contributions}});
  for (const chain::CommitteeMember& member : tip.committee->members())
    json["committee"].push_back({{"number", member.number}, {"units", member.units}});
  for (const chain::RevocationRecord& one : registry.revocations())
    json["revocations"].push_back(
        {{"node", node_of(one.node)}, {"wallet_key", to_hex(one.wallet)}, {"height", one.height}});
  for (const chain::RowRecord& row : registry.rows())
    json["rows"].push_back({{"anchor", to_hex(row.anchor)}, {"changed_round", row.changed_round}});
  return json;
}

std::vector<std::string> tip_lines(const chain::History& history) {
  const chain::ChainTip& tip = history.tip();
  const chain::Registry& registry = *tip.registry;
  std::vector<std::string> lines;
  lines.push_back(fmt::format("Block {}, round {}", tip.height(), registry.round()));
  lines.push_back("  hash       " + to_hex(tip.block->hash));
  lines.push_back("  genesis    " + to_hex(history.genesis()));
  lines.push_back(fmt::format("  committee  {}, {} units", plural(tip.committee->size(), "node"),
                              tip.committee->units()));
  lines.push_back(fmt::format("  voters     {}", plural(registry.voter_count(), "wallet")));
  for (const chain::MemberRecord& member : registry.members())
    lines.push_back(fmt::format("  {:<9}  {}  {} of {} units, {}", standing_of(registry, member),
                                to_hex(member.id), tip.committee->units_of(member.number),
                                tip.committee->units(), plural(member.contributions, "contribution")));
  for (const chain::RevocationRecord& one : registry.revocations())
    lines.push_back(fmt::format("  {:<9}  {}  in block {}", "revoked", node_of(one.node), one.height));
  return lines;
}

Json wallet_nodes_json(const chain::History& history, const crypto::PublicKey& wallet) {
  const chain::ChainTip& tip = history.tip();
  const chain::Registry& registry = *tip.registry;
  Json json = {{"height", tip.height()}, {"nodes", Json::array()}, {"revoked", Json::array()}};
  for (const chain::MemberRecord* member : members_of(registry, wallet))
    json["nodes"].push_back({{"id", to_hex(member->id)},
                             {"standing", standing_of(registry, *member)},
                             {"contributions", member->contributions},
                             {"last_round", member->last_round == 0 ? Json() : Json(member->last_round)},
                             {"units", tip.committee->units_of(member->number)}});
  for (const chain::RevocationRecord* one : revoked_by(registry, wallet))
    json["revoked"].push_back({{"id", node_of(one->node)}, {"block", one->height}});
  return json;
}

std::vector<std::string> wallet_nodes_lines(const chain::History& history, const crypto::PublicKey& wallet) {
  const chain::ChainTip& tip = history.tip();
  const chain::Registry& registry = *tip.registry;
  std::vector<std::string> lines;
  for (const chain::MemberRecord* member : members_of(registry, wallet)) {
    const std::string last =
        member->last_round == 0 ? "" : fmt::format(", the last in round {}", member->last_round);
    lines.push_back(fmt::format("{:<9}  {}  {}{}", standing_of(registry, *member), to_hex(member->id),
                                plural(member->contributions, "contribution"), last));
  }
  for (const chain::RevocationRecord* one : revoked_by(registry, wallet))
    lines.push_back(fmt::format("{:<9}  {}  in block {}", "revoked", node_of(one->node), one->height));
  if (lines.empty())
    lines.push_back(
        fmt::format("No node works for this wallet, as of block {}. One begins to with "
                    "\"neuroshardd run\" in a network.",
                    tip.height()));
  return lines;
}

Json chain_view_json(const node::ChainView& chain) {
  if (chain.genesis.empty()) return nullptr;
  Json others = Json::array();
  for (const node::OtherHistory& other : chain.others)
    others.push_back({{"genesis", other.genesis}, {"peers", other.peers}});
  return {{"genesis", chain.genesis},
          {"height", chain.height},
          {"block_age_seconds", chain.block_age},
          {"block_due", chain.block_due},
          {"stalled", chain.stalled},
          {"voters_mode", chain.voters_mode},
          {"voters", chain.voters},
          {"committee", chain.committee},
          {"candidates", chain.candidates},
          {"active_units", chain.active_units},
          {"heard_units", chain.heard_units},
          {"missing_count", chain.missing_count},
          {"missing", chain.missing},
          {"standing", chain.standing.empty() ? Json() : Json(chain.standing)},
          {"contributions", chain.contributions},
          {"contributions_needed", chain.contributions_needed},
          {"needs_voucher", chain.needs_voucher},
          {"outlook", chain.outlook},
          {"person_needed_seconds", chain.person_needed_seconds},
          {"asks_succession", chain.asks_succession.empty() ? Json() : Json(chain.asks_succession)},
          {"other_histories", others}};
}

std::string standing_text(const node::ChainView& chain) {
  if (chain.standing == "voter") return "this node votes";
  if (chain.standing == "away") return "this node is away";
  if (chain.standing == "revoked") return "the wallet of this node has revoked it";
  if (chain.standing != "candidate") return "this node is no member yet";
  std::string text = fmt::format("this node is a candidate with {} of {} contributions", chain.contributions,
                                 chain.contributions_needed);
  if (chain.needs_voucher) text += ", and needs a voucher from a voter";
  return text;
}

std::string chain_view_text(const node::ChainView& chain) {
  if (chain.genesis.empty()) return "";
  std::string text = fmt::format("block {}, {:.0f} s old{}; {} of {} units heard, committee of {}, {}; {}",
                                 chain.height, chain.block_age,
                                 chain.stalled     ? ", the next one stands still"
                                 : chain.block_due ? ", the next one is due"
                                                   : "",
                                 chain.heard_units, chain.active_units, plural(chain.committee, "node"),
                                 plural(chain.candidates, "candidate"), standing_text(chain));
  for (std::size_t i = 0; i < chain.missing.size(); ++i)
    text += (i == 0 ? "; not heard: " : ", ") + chain.missing[i].substr(0, short_id) + "…";
  if (chain.missing_count > chain.missing.size())
    text += fmt::format(" and {} more", chain.missing_count - chain.missing.size());
  if (chain.outlook == "needs_a_person") {
    text += "; too few voters are left: start the missing ones";
    if (chain.standing == "voter" || chain.standing == "away")
      text +=
          ", or go on without them if they never return "
          "(\"neuroshardd network continue --without NODE\")";
  }
  if (!chain.asks_succession.empty())
    text +=
        "; other members go on without some, and this node goes on with them once you agree "
        "(\"neuroshardd network continue --agree\")";
  for (const node::OtherHistory& other : chain.others)
    text += fmt::format("; {} with another history {}…", plural(other.peers, "node"),
                        other.genesis.substr(0, short_id));
  return text;
}

}  // namespace neuroshard::app
