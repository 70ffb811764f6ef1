// neuroshardd audit batch: rebuilds the batches behind contributions of other nodes, from the chain on this disk, the
// published text and the contributors' signed lists.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "app/node/commands/audit_sources.h"
#include "app/node/commands/chain_replay.h"
#include "core/base/rng.h"
#include "core/data/batch_audit.h"
#include "core/runtime/batch_lists.h"

namespace neuroshard::app {
namespace {

struct AuditFlags {
  GuestFlags guest;
  std::string node;
  std::optional<std::uint64_t> round, batch;
  std::uint64_t random = 0;
  std::vector<std::string> lists;
};

struct Counts {
  std::uint64_t same = 0, wrong = 0, own = 0, unknown = 0, lists_missing = 0;
};

class Audit {
 public:
  Audit(CommandContext& context, const AuditChain& chain, AuditFiles& files)
      : context_(context), chain_(chain), files_(files) {}

  const Counts& counts() const { return counts_; }

  // Its list, each only once. A list that can't be had or is wrong is counted and shown, and is nothing.
  const data::BatchList* list_of(const AuditedContribution& one) {
    const auto known = lists_.find(one.claim.hash);
    if (known != lists_.end()) return known->second ? &*known->second : nullptr;
    auto& kept = lists_[one.claim.hash];
    auto list = files_.list(one.claim);
    if (list.ok()) {
      kept = std::move(*list);
      return &*kept;
    }
    const bool wrong = list.error().code == ErrorCode::Denied || list.error().code == ErrorCode::Corrupt;
    ++(wrong ? counts_.wrong : counts_.lists_missing);
    show(one, std::nullopt, wrong ? "wrong_list" : "no_list", list.error().describe());
    return nullptr;
  }

  Expected<void> batch(const AuditedContribution& one, const data::BatchList& list, std::uint64_t number) {
    if (context_.stop.cancelled()) return make_error(ErrorCode::Cancelled, "stopped before the end");
    std::uint64_t before = 0;
    std::size_t at = 0;
    while (number >= before + list.work.runs[at].count) before += list.work.runs[at++].count;
    auto known = runs_.find({one.claim.hash, at});
    if (known == runs_.end()) {
      NS_ASSIGN_OR_RETURN(auto finding,
                          data::audit_run(list, list.work.runs[at], files_.sources(chain_), context_.stop));
      known = runs_.emplace(std::pair{one.claim.hash, at}, std::move(finding)).first;
    }
    const data::RunFinding& found = known->second;
    switch (found.finding) {
      case data::BatchFinding::Same: ++counts_.same; break;
      case data::BatchFinding::OwnText: ++counts_.own; break;
      case data::BatchFinding::Unknown: ++counts_.unknown; break;
      default: ++counts_.wrong;
    }
    show(one, number, data::to_string(found.finding), found.reason);
    return {};
  }

 private:
  void show(const AuditedContribution& one, std::optional<std::uint64_t> batch, std::string_view result,
            const std::string& reason) {
    nlohmann::ordered_json json = {
        {"node", to_hex(one.id)}, {"member", one.member}, {"round", one.claim.round}};
    if (batch) json["batch"] = *batch;
    json["result"] = result;
    if (!reason.empty()) json["reason"] = reason;
    context_.output.json_line(json);
    context_.output.line(
        fmt::format("round {}, member {} ({}…){}: {}{}", one.claim.round, one.member,
                    to_hex(one.id).substr(0, 12), batch ? fmt::format(", batch {}", *batch) : "",
                    result == "same" ? "ok" : result, reason.empty() ? "" : fmt::format(" ({})", reason)));
  }

  CommandContext& context_;
  const AuditChain& chain_;
  AuditFiles& files_;
  Counts counts_;
  std::map<Hash256, std::optional<data::BatchList>> lists_;
  std::map<std::pair<Hash256, std::size_t>, data::RunFinding> runs_;
};

Expected<void> audit_named(const AuditFlags& flags, const std::vector<const AuditedContribution*>& chosen,
                           Audit& audit) {
  for (const AuditedContribution* one : chosen) {
    const data::BatchList* list = audit.list_of(*one);
    if (list == nullptr) continue;
    const std::uint64_t count = list->work.batches();
    if (flags.batch && *flags.batch >= count)
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("the contribution has batches 0 to {}", count - 1));
    for (std::uint64_t i = flags.batch.value_or(0); i < (flags.batch ? *flags.batch + 1 : count); ++i)
      NS_RETURN_IF_ERROR(audit.batch(*one, *list, i));
  }
  return {};
}

// Nodes keep their newest lists only.
Expected<void> leave_out_forgotten(const AuditChain& chain, const AuditFiles& files,
                                   std::vector<const AuditedContribution*>* chosen) {
  const std::uint64_t newest = chain.contributions.back().claim.round;
  const auto forgotten = [&](const AuditedContribution* one) { return !files.may_get(one->claim, newest); };
  chosen->erase(std::remove_if(chosen->begin(), chosen->end(), forgotten), chosen->end());
  if (!chosen->empty()) return {};
  return make_error(
      ErrorCode::Unavailable,
      fmt::format("nodes keep the lists of their newest {} contributions, and these are older; a kept "
                  "list can be given with --list",
                  runtime::kept_batch_lists));
}

// Each batch: a contribution by lot, then one of its batches. No batch twice while there are others.
Expected<void> audit_random(const AuditFlags& flags, std::vector<const AuditedContribution*> chosen,
                            Audit& audit, CommandContext& context) {
  Hash256 seed{};
  context.entropy.fill({seed.data(), seed.size()});
  Rng rng(seed);
  std::set<std::pair<Hash256, std::uint64_t>> done;
  std::map<Hash256, std::uint64_t> left;
  for (std::uint64_t i = 0; i < flags.random && !chosen.empty();) {
    const std::size_t at = rng.below(chosen.size());
    const AuditedContribution& one = *chosen[at];
    const data::BatchList* list = audit.list_of(one);
    const std::uint64_t count = list == nullptr ? 0 : list->work.batches();
    auto& remaining = left.try_emplace(one.claim.hash, count).first->second;
    if (remaining == 0) {
      chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    const std::uint64_t number = rng.below(count);
    if (!done.emplace(one.claim.hash, number).second) continue;
    --remaining;
    NS_RETURN_IF_ERROR(audit.batch(one, *list, number));
    ++i;
  }
  return {};
}

Expected<void> audit_batches(const AuditFlags& flags, CommandContext& context) {
  if (flags.random == 0 && (flags.node.empty() || !flags.round))
    return make_error(ErrorCode::InvalidArgument,
                      "name a contribution with --node and --round, or choose by lot with --random COUNT");
  if (flags.batch && flags.random > 0)
    return make_error(ErrorCode::InvalidArgument, "--batch and --random exclude each other");
  NS_ASSIGN_OR_RETURN(const ChainPlace place, chain_place(context));
  NS_ASSIGN_OR_RETURN(const AuditChain chain, read_audit_chain(place, context));
  NS_ASSIGN_OR_RETURN(const auto files, AuditFiles::open(place, flags.guest, flags.lists, context));
  NS_ASSIGN_OR_RETURN(auto chosen, chain.chosen(flags.node, flags.round, files->own()));
  if (flags.random > 0) NS_RETURN_IF_ERROR(leave_out_forgotten(chain, *files, &chosen));
  Audit audit(context, chain, *files);
  NS_RETURN_IF_ERROR(flags.random > 0 ? audit_random(flags, chosen, audit, context)
                                      : audit_named(flags, chosen, audit));
  const Counts& counts = audit.counts();
  context.output.json_line({{"batches", counts.same + counts.own + counts.unknown + counts.wrong},
                            {"same", counts.same},
                            {"wrong", counts.wrong},
                            {"own_text", counts.own},
                            {"unknown", counts.unknown},
                            {"lists_missing", counts.lists_missing}});
  context.output.line(
      fmt::format("{} batches are the same bit for bit, {} are wrong, {} are of a driver's own text, "
                  "{} can't be rebuilt here; {} lists are missing",
                  counts.same, counts.wrong, counts.own, counts.unknown, counts.lists_missing));
  if (counts.wrong > 0) context.exit_code = ExitCode::Failure;
  if (counts.wrong + counts.same + counts.own + counts.unknown == 0)
    return make_error(ErrorCode::Unavailable, "no list of batches could be had; their nodes may be away");
  return {};
}

}  // namespace

void add_audit_command(CLI::App& root, CommandContext& context) {
  CLI::App& audit = add_command(
      root, "audit", "Check the work of other nodes",
      {"neuroshardd audit batch --random 10", "neuroshardd audit batch --node 1a2b3c4d5e6f --round 12"});
  auto flags = std::make_shared<AuditFlags>();
  CLI::App& batch = add_command(audit, "batch", "Rebuild batches that other nodes trained on, and compare",
                                {"neuroshardd audit batch --random 10",
                                 "neuroshardd audit batch --node 3 --round 12 --batch 0 --json"});
  batch.add_option("--node", flags->node, "id of a member, its first 8 or more characters, or its number")
      ->type_name("NODE");
  batch.add_option("--round", flags->round, "round of the contribution")->type_name("ROUND");
  batch.add_option("--batch", flags->batch, "one batch of the contribution (default: all)")
      ->type_name("NUMBER");
  batch
      .add_option("--random", flags->random,
                  "so many batches by lot, of other nodes' newest 64 contributions")
      ->type_name("COUNT");
  batch
      .add_option("--list", flags->lists,
                  "a file with a list of batches, or a folder of them; may be repeated")
      ->type_name("PATH");
  add_guest_flags(batch, flags->guest);
  set_body(batch, context, [flags, &context] { return audit_batches(*flags, context); });
}

}  // namespace neuroshard::app
