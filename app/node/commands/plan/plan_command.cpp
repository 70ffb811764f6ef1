// neuroshardd plan --peers FILE [--what-if memory=8GiB]; plan --what-if memory=8GiB | leave (network_what_if.h)
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/node/command.h"
#include "app/node/commands/plan/boundary_bytes.h"
#include "app/node/commands/plan/network_what_if.h"
#include "app/node/commands/plan/plan_input.h"
#include "app/node/output/quantity.h"
#include "core/base/utf8.h"
#include "core/compute/slot.h"
#include "core/config/network_profile.h"
#include "core/plan/architecture.h"
#include "core/plan/placeable.h"
#include "core/runtime/growth_rules.h"

namespace neuroshard::app {
namespace {

using nlohmann::ordered_json;

struct PlanFlags {
  std::string peers, what_if, beacon;
  std::string wire = "int8", precision = "fp32";
  plan::PlanOptions options;
};

struct NetworkPlan {
  plan::Architecture architecture;
  plan::PlaceableShape placeable;
  std::optional<plan::Chain> chain;
  plan::Plan plan;
};

// Both of one ladder, so depth and width tell them apart.
bool same(const compute::ModelShape& a, const compute::ModelShape& b) {
  return a.layers == b.layers && a.hidden == b.hidden;
}

std::string describe(const compute::ModelShape& shape) {
  return fmt::format("{} layers of width {}, {:.4g} million parameters", shape.layers, shape.hidden,
                     static_cast<double>(compute::model_parameter_count(shape)) / 1e6);
}

class PlanRun {
 public:
  PlanRun(const PlanFlags& flags, plan::GrowthRules rules, Hash256 beacon, std::vector<plan::Holding> present)
      : flags_(flags), rules_(std::move(rules)), beacon_(beacon), present_(std::move(present)) {}

  Expected<NetworkPlan> make(const std::vector<plan::PlanPeer>& peers) const {
    NetworkPlan result;
    std::vector<std::uint64_t> memory;
    for (const plan::PlanPeer& peer : peers) memory.push_back(peer.memory);
    result.architecture = plan::choose_architecture(rules_, memory);
    if (result.architecture.state == plan::NetworkState::TooSmall) {
      return make_error(
          ErrorCode::Exhausted,
          fmt::format(
              "the nodes contribute {} in whole tiers of 500 MB; one copy of the smallest model needs "
              "{} more",
              gigabytes(result.architecture.contributed_bytes),
              gigabytes(result.architecture.missing_bytes)));
    }
    const auto chain_of = [&](const compute::ModelShape& shape) {
      return plan::Chain::of_shape(rules_, shape, boundary_bytes(flags_.wire, shape));
    };
    result.placeable = plan::placeable_shape(rules_, peers, flags_.options, chain_of);
    NS_ASSIGN_OR_RETURN(result.chain, chain_of(result.placeable.shape));
    plan::PlanRequest request;
    request.chain = &*result.chain;
    request.peers = peers;
    request.beacon = beacon_;
    request.options = flags_.options;
    if (!present_shape_ || same(*present_shape_, result.placeable.shape)) request.present = present_;
    NS_ASSIGN_OR_RETURN(result.plan, plan::make_plan(request));
    return result;
  }

  // Later plans of the same shape start from this one.
  void hold(const NetworkPlan& plan) {
    present_shape_ = plan.placeable.shape;
    present_.clear();
    for (const plan::PlacedPeer& peer : plan.plan.peers)
      present_.push_back({peer.id, peer.range, peer.dealt});
  }

 private:
  const PlanFlags& flags_;
  plan::GrowthRules rules_;
  Hash256 beacon_;
  std::vector<plan::Holding> present_;
  std::optional<compute::ModelShape> present_shape_;  // none: of the first plan
};

std::string why(const plan::PlacedPeer& peer) {
  switch (peer.reason) {
    case plan::Reason::Kept: return peer.dealt ? "keeps its range, chosen by the beacon" : "keeps its range";
    case plan::Reason::Joined: return "joins where its speed serves most";
    case plan::Reason::Moved: return "moves: the plan before is slower, or misses owners";
    case plan::Reason::Dealt: return "chosen by the beacon";
    case plan::Reason::TooSmall: return "its memory fits no slot";
  }
  return "";
}

// The conditions of the next shape that are not met.
std::string needs(const NetworkPlan& result, double useful_share) {
  const plan::NextShape& next = *result.placeable.next;
  std::vector<std::string> needed;
  if (next.rung.required_bytes > result.architecture.contributed_bytes)
    needed.push_back(gigabytes(next.rung.required_bytes) + " of memory");
  if (next.copies < result.placeable.needed_copies)
    needed.push_back(fmt::format("nodes that hold {:.1f} copies in whole layers, now {:.1f}",
                                 result.placeable.needed_copies, next.copies));
  if (next.useful_share < useful_share)
    needed.push_back(fmt::format("{:.0f} % of the nodes with room for a layer, now {:.0f} %",
                                 100 * useful_share, 100 * next.useful_share));
  return fmt::format("{}", fmt::join(needed, "; "));
}

void print_shape(const NetworkPlan& result, double useful_share, Output& output) {
  const plan::Architecture& architecture = result.architecture;
  output.line(
      fmt::format("memory      {} in whole tiers of 500 MB", gigabytes(architecture.contributed_bytes)));
  std::string state(plan::to_string(architecture.state));
  if (architecture.state == plan::NetworkState::Forming)
    state += fmt::format(": one copy, unreplicated; {} more for the second",
                         gigabytes(architecture.missing_bytes));
  output.line(fmt::format("state       {}", state));
  const auto next_tier = plan::next_tier_bytes(architecture.tier);
  output.line(fmt::format("tier        {}{}", plan::to_string(architecture.tier),
                          next_tier ? fmt::format(", the next one from {}", gigabytes(*next_tier)) : ""));
  output.line(fmt::format("model       {}", describe(result.placeable.shape)));
  if (result.placeable.next)
    output.line(fmt::format("next        {}; needs {}", describe(result.placeable.next->rung.shape),
                            needs(result, useful_share)));
}

// Ids are those of a file, and may hold anything.
void print_plan(const NetworkPlan& result, Output& output) {
  const plan::Plan& plan = result.plan;
  const plan::Chain& chain = *result.chain;
  output.line(fmt::format("throughput  {:.1f} tokens/s, {:.1f} % of the bound of {:.1f}", plan.throughput,
                          100 * plan.throughput / plan.bound.throughput, plan.bound.throughput));
  output.line(fmt::format("bottleneck  {}", chain.unit(plan.bottleneck).name));
  output.line(fmt::format("owners      at least {} per slot", plan.least_owners));
  for (const plan::UnitRange range : plan.short_ranges)
    output.line(fmt::format("            Fewer than {}: {}", plan::least_replicas, chain.describe(range)));
  output.line(fmt::format("{:<20} {:<24} {:>9} {:>10} {:>7}  {}", "node", "holds", "memory", "tokens/s",
                          "in use", "why"));
  for (const plan::PlacedPeer& peer : plan.peers) {
    output.line(fmt::format("{:<20} {:<24} {:>9} {:>10.1f} {:>5.0f} %  {}", one_line(peer.id),
                            chain.describe(peer.range), gigabytes(peer.memory_bytes), peer.rate,
                            peer.used_percent, why(peer)));
  }
  if (plan.boundaries.empty()) return;
  output.line("boundary before        tokens/s that the lines carry");
  for (const plan::BoundaryLimit& boundary : plan.boundaries)
    output.line(fmt::format("{:<20} {:>11.1f}", chain.unit(boundary.unit).name, boundary.tokens_per_second));
}

ordered_json shape_json(const compute::ModelShape& shape) {
  return {{"layers", shape.layers},
          {"hidden", shape.hidden},
          {"parameters", compute::model_parameter_count(shape)}};
}

ordered_json to_json(const NetworkPlan& result) {
  const plan::Architecture& architecture = result.architecture;
  const plan::Plan& plan = result.plan;
  const plan::Chain& chain = *result.chain;
  ordered_json peers = ordered_json::array(), boundaries = ordered_json::array(),
               single = ordered_json::array();
  for (const plan::PlacedPeer& peer : plan.peers) {
    ordered_json range = nullptr;
    if (!peer.range.empty()) range = {peer.range.first, peer.range.end};
    peers.push_back({{"id", peer.id},
                     {"range", std::move(range)},
                     {"holds", chain.describe(peer.range)},
                     {"reason", plan::to_string(peer.reason)},
                     {"dealt", peer.dealt},
                     {"tokens_per_second", peer.rate},
                     {"used_percent", peer.used_percent},
                     {"memory_bytes", peer.memory_bytes},
                     {"fetch_bytes", peer.fetch_bytes}});
  }
  for (const plan::BoundaryLimit& boundary : plan.boundaries)
    boundaries.push_back(
        {{"before", chain.unit(boundary.unit).name}, {"tokens_per_second", boundary.tokens_per_second}});
  for (const plan::UnitRange range : plan.short_ranges) single.push_back({range.first, range.end});
  ordered_json next_tier = nullptr, next = nullptr;
  if (const auto bytes = plan::next_tier_bytes(architecture.tier)) next_tier = *bytes;
  if (result.placeable.next) {
    const plan::NextShape& larger = *result.placeable.next;
    next = shape_json(larger.rung.shape);
    next["memory_bytes"] = larger.rung.required_bytes;
    next["copies"] = larger.copies;
    next["needed_copies"] = result.placeable.needed_copies;
    next["useful_share"] = larger.useful_share;
  }
  return {{"state", plan::to_string(architecture.state)},
          {"tier", plan::to_string(architecture.tier)},
          {"next_tier_bytes", std::move(next_tier)},
          {"contributed_bytes", architecture.contributed_bytes},
          {"missing_bytes", architecture.missing_bytes},
          {"shape", shape_json(result.placeable.shape)},
          {"shape_by_memory", shape_json(architecture.shape)},
          {"next_shape", std::move(next)},
          {"throughput", plan.throughput},
          {"bound", plan.bound.throughput},
          {"bottleneck", chain.unit(plan.bottleneck).name},
          {"least_owners", plan.least_owners},
          {"short_ranges", std::move(single)},
          {"moved_bytes", plan.moved_bytes},
          {"joined_bytes", plan.joined_bytes},
          {"peers", std::move(peers)},
          {"boundaries", std::move(boundaries)}};
}

// Apart from the newcomer, which is in the table of the plan.
void print_change(const NetworkPlan& before, const NetworkPlan& after, const std::string& what,
                  Output& output) {
  output.line("");
  output.line(fmt::format("With {}:", one_line(what)));
  const auto row = [&](const char* name, const std::string& from, const std::string& to) {
    output.line(fmt::format("{:<11} {}", name, from == to ? from + " (as before)" : from + " -> " + to));
  };
  row("state", std::string(plan::to_string(before.architecture.state)),
      std::string(plan::to_string(after.architecture.state)));
  row("tier", std::string(plan::to_string(before.architecture.tier)),
      std::string(plan::to_string(after.architecture.tier)));
  row("model", describe(before.placeable.shape), describe(after.placeable.shape));
  row("throughput", fmt::format("{:.1f} tokens/s", before.plan.throughput),
      fmt::format("{:.1f} tokens/s", after.plan.throughput));
  row("owners", fmt::format("at least {}", before.plan.least_owners),
      fmt::format("at least {}", after.plan.least_owners));
  const bool same_shape = same(after.placeable.shape, before.placeable.shape);
  output.line(same_shape
                  ? fmt::format("{:<11} {} by present nodes, {} by new ones", "to fetch",
                                gigabytes(after.plan.moved_bytes), gigabytes(after.plan.joined_bytes))
                  : fmt::format("{:<11} all ranges are of another shape: {} if each node fetches its own",
                                "to fetch", gigabytes(after.plan.joined_bytes)));
  for (const plan::PlacedPeer& peer : after.plan.peers) {
    const auto& peers = before.plan.peers;
    const auto found = std::find_if(peers.begin(), peers.end(),
                                    [&](const plan::PlacedPeer& other) { return other.id == peer.id; });
    const std::string to = after.chain->describe(peer.range);
    const std::string from = found == peers.end() ? "new" : before.chain->describe(found->range);
    if (from != to) output.line(fmt::format("  {:<20} {} -> {}", one_line(peer.id), from, to));
  }
}

Expected<void> plan_peers(const PlanFlags& flags, CommandContext& context) {
  NS_RETURN_IF_ERROR(refuse_control_file(context, "plan with --peers"));
  NS_ASSIGN_OR_RETURN(
      const config::NetworkProfile profile,
      config::load_network_profile(context.files, context.profile.empty() ? "mainnet" : context.profile));
  const plan::GrowthRules rules = runtime::growth_rules(
      profile.consensus, flags.precision == "bf16" ? compute::Precision::Bf16 : compute::Precision::Fp32);
  NS_RETURN_IF_ERROR(plan::validate(rules));
  NS_ASSIGN_OR_RETURN(const plan::Chain smallest,
                      plan::Chain::of_shape(rules, rules.minimum, boundary_bytes(flags.wire, rules.minimum)));
  Hash256 beacon{};
  if (!flags.beacon.empty()) {
    auto read = hash_from_hex(flags.beacon);
    if (!read.ok()) return std::move(read).error().with_context("--beacon");
    beacon = *read;
  }
  NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(context.files, flags.peers, max_plan_file_bytes));
  auto file = parse_plan_file(bytes, smallest.work({1, 2}));
  if (!file.ok()) return std::move(file).error().with_context(flags.peers);
  PlanChange change;
  if (!flags.what_if.empty()) {
    NS_ASSIGN_OR_RETURN(change, parse_plan_change(flags.what_if, file->peers));
  }
  PlanRun run(flags, rules, beacon, file->present);
  NS_ASSIGN_OR_RETURN(const NetworkPlan before, run.make(file->peers));
  ordered_json json = to_json(before);
  print_shape(before, flags.options.useful_share, context.output);
  print_plan(before, context.output);
  if (!flags.what_if.empty()) {
    run.hold(before);
    std::vector<plan::PlanPeer> peers;
    for (const plan::PlanPeer& peer : file->peers) {
      if (peer.id != change.leaves) peers.push_back(peer);
    }
    if (change.joins) peers.push_back(*change.joins);
    auto after = run.make(peers);
    if (!after.ok()) return std::move(after).error().with_context("--what-if " + flags.what_if);
    print_change(before, *after, flags.what_if, context.output);
    json["what_if"] = to_json(*after);
  }
  context.output.json_line(json);
  return {};
}

Expected<void> run_plan(const PlanFlags& flags, CommandContext& context) {
  if (!flags.peers.empty()) return plan_peers(flags, context);
  if (!flags.what_if.empty()) return ask_network_what_if(flags.what_if, context);
  return make_error(
      ErrorCode::InvalidArgument,
      "name the nodes with --peers FILE, or ask the running node about its network with --what-if "
      "memory=8GiB or --what-if leave");
}

}  // namespace

void add_plan_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App& plan = add_command(
      root, "plan", "Plan which model a network's nodes can train, and which slots each of them holds",
      {"neuroshardd plan --what-if memory=8GiB", "neuroshardd plan --what-if leave",
       "neuroshardd plan --peers peers.json",
       "neuroshardd plan --peers peers.json --what-if memory=8GiB,speed=2T",
       "neuroshardd plan --peers peers.json --what-if leave=node7 --json", "",
       "Without --peers the running node answers about its own network: with memory=, what would change if "
       "it "
       "offered",
       "so much; with leave, if it left. Nothing is changed by that.", "",
       "Peers are [{\"id\": \"a\", \"owner\": \"wallet\", \"memory\": \"16GiB\", \"speed\": \"1.2T\", "
       "\"up\": \"5MB\",",
       "\"down\": \"20MB\"}, ...]. The speed is in operations/s (FLOP/s). \"seconds_per_layer\" may replace "
       "it: the time",
       "of one token, forward and backward, in a layer of the smallest model. \"measured\": [...] lists "
       "speeds",
       "that other nodes measured. \"range\": [first, end] is what the node holds now; 0 is the embedding.",
       "The command only computes: networks do not use plans yet."});
  CLI::Option* const peers =
      plan.add_option("--peers", flags->peers,
                      "file with the nodes (JSON); without it: the running node's network")
          ->type_name("FILE");
  plan.add_option(
          "--what-if", flags->what_if,
          "of the running node's network: memory=8GiB or leave; of a file: also show the plan after a "
          "node joined (memory=8GiB, optionally speed, up, down, owner) or left (leave=ID)")
      ->type_name("CHANGE");
  plan.add_option("--beacon", flags->beacon, "deals one holder per stage (default: zeros)")
      ->type_name("HEX")
      ->needs(peers);
  plan.add_option("--wire", flags->wire, "format of activations between nodes")
      ->check(CLI::IsMember({"int8", "bf16", "fp32"}))
      ->default_str("int8")
      ->needs(peers);
  plan.add_option("--replicas", flags->options.replicas,
                  "owners that each slot should have; it has two at least")
      ->check(CLI::Range(2, 16))
      ->capture_default_str()
      ->needs(peers);
  plan.add_option("--precision", flags->precision, "of training: bf16 takes more memory for packed copies")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->default_str("fp32")
      ->needs(peers);
  set_body(
      plan, context, [flags, &context] { return run_plan(*flags, context); }, WorksWith::AnyComputer);
}

}  // namespace neuroshard::app
