#include "core/engine/detail/checkpoint_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/checkpoint/compare.h"
#include "core/checkpoint/retention.h"
#include "core/checkpoint/writer.h"
#include "core/engine/checkpoint_import.h"
#include "core/engine/checkpoint_tokenizer.h"
#include "core/engine/detail/history_queries.h"

namespace neuroshard::engine::detail {
namespace {

constexpr std::size_t max_name = 256, max_path = 4096;

checkpoint::PruneRules rules_of(const node::PrunePolicy& policy) {
  return {policy.keep_newest, policy.keep_every_steps, policy.keep_best};
}

node::CheckpointEntry checkpoint_entry(const checkpoint::Entry& from) {
  node::CheckpointEntry entry;
  entry.name = from.name;
  entry.step = from.manifest.step;
  entry.at = from.manifest.saved_at;
  entry.bytes = from.bytes;
  entry.loss = from.manifest.losses.training;
  entry.held_out_loss = from.manifest.losses.held_out;
  entry.pinned = from.pinned;
  entry.complete = from.complete();
  entry.parent = from.manifest.parent;
  if (from.complete()) entry.hash = to_hex(from.manifest_hash);
  if (from.verdict) {
    entry.verified_at = from.verdict->at;
    entry.intact = from.verdict->intact;
  }
  return entry;
}

}  // namespace

Expected<void> check_path(const std::string& path) {
  if (path.size() <= max_path && std::filesystem::path(path).is_absolute()) return {};
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("'{}' is not an absolute path on the machine of this node", path.substr(0, 200)));
}

Expected<void> check_checkpoint_name(const std::string& name) {
  if (!name.empty() && name.size() <= max_name) return {};
  return make_error(ErrorCode::InvalidArgument, "give the name of a checkpoint");
}

Expected<void> check_checkpoint_network(const checkpoint::Entry& entry, const Hash256& network) {
  if (!entry.complete()) {
    return make_error(ErrorCode::Corrupt,
                      fmt::format("the checkpoint {} is damaged: {}", entry.name, entry.damage));
  }
  if (entry.manifest.network_id == network) return {};
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("the checkpoint {} belongs to another network than this data directory", entry.name));
}

CheckpointCommands::CheckpointCommands(const EngineContext& context, FileJobs& files, DiskReader& reader)
    : context_(context), files_(files), reader_(reader) {
  checkpoint::Writer::remove_unfinished_import(context_.services.files, context_.catalogue().root());
}

// ---- any thread ----

Expected<node::CommandId> CheckpointCommands::verify(const std::string& name) {
  NS_RETURN_IF_ERROR(check_checkpoint_name(name));
  return files_.accept("verifying " + name,
                       [this, name](const FileJobs::Tools& tools) { return do_verify(name, tools); });
}

Expected<node::CommandId> CheckpointCommands::compare(const std::string& first, const std::string& second) {
  NS_RETURN_IF_ERROR(check_checkpoint_name(first));
  NS_RETURN_IF_ERROR(check_checkpoint_name(second));
  return files_.accept("comparing", [this, first, second](const FileJobs::Tools& tools) {
    return do_compare(first, second, tools);
  });
}

Expected<node::CommandId> CheckpointCommands::pin(const std::string& name, bool pinned) {
  NS_RETURN_IF_ERROR(check_checkpoint_name(name));
  return files_.accept(pinned ? "pinning" : "unpinning",
                       [this, name, pinned](const FileJobs::Tools&) { return do_pin(name, pinned); });
}

Expected<node::CommandId> CheckpointCommands::remove(const std::string& name) {
  NS_RETURN_IF_ERROR(check_checkpoint_name(name));
  return files_.accept("deleting " + name, [this, name](const FileJobs::Tools&) { return do_remove(name); });
}

Expected<node::CommandId> CheckpointCommands::prune(const node::PrunePolicy& policy) {
  return files_.accept("deleting",
                       [this, policy](const FileJobs::Tools& tools) { return do_prune(policy, tools); });
}

Expected<node::CommandId> CheckpointCommands::export_to(const std::string& name, const std::string& format,
                                                        const std::string& path) {
  NS_RETURN_IF_ERROR(check_checkpoint_name(name));
  NS_RETURN_IF_ERROR(check_path(path));
  NS_ASSIGN_OR_RETURN(const exporting::ExportFormat parsed, exporting::parse_export_format(format));
  return files_.accept("exporting " + name, [this, name, parsed, path](const FileJobs::Tools& tools) {
    return do_export(name, parsed, path, tools);
  });
}

Expected<node::CommandId> CheckpointCommands::import_from(const std::string& path) {
  NS_RETURN_IF_ERROR(check_path(path));
  return files_.accept("importing",
                       [this, path](const FileJobs::Tools& tools) { return do_import(path, tools); });
}

// ---- the files thread ----

Expected<node::CommandResult> CheckpointCommands::do_verify(const std::string& name,
                                                            const FileJobs::Tools& tools) {
  checkpoint::Catalogue all = context_.catalogue();
  NS_ASSIGN_OR_RETURN(const checkpoint::Entry entry, all.find(name));
  const Expected<void> good =
      checkpoint::verify(context_.services.files, entry, tools.progress, tools.cancel);
  if (!good.ok() && good.error().code == ErrorCode::Cancelled) return good.error();
  // The reply does not depend on whether the result can be saved on the disk.
  static_cast<void>(all.note_verdict(entry.name, {context_.services.clock.wall_now(), good.ok()}).ok());
  report_change();
  return node::CommandResult(node::VerifyResult{
      entry.name, good.ok(), good.ok() ? std::string() : good.error().describe(), entry.bytes});
}

Expected<node::CommandResult> CheckpointCommands::do_compare(const std::string& first,
                                                             const std::string& second,
                                                             const FileJobs::Tools& tools) {
  const checkpoint::Catalogue all = context_.catalogue();
  NS_ASSIGN_OR_RETURN(const checkpoint::Entry a, all.find(first));
  NS_ASSIGN_OR_RETURN(const checkpoint::Entry b, all.find(second));
  NS_ASSIGN_OR_RETURN(const checkpoint::Comparison found,
                      checkpoint::compare(context_.services.files, a, b, tools.progress, tools.cancel));
  node::CheckpointComparison result{
      checkpoint_entry(a), checkpoint_entry(b), {}, found.all.distance, found.all.relative};
  for (const checkpoint::SlotComparison& slot : found.slots) {
    if (result.slots.size() >= node::max_page) break;
    result.slots.push_back({compute::to_string(slot.slot), slot.distance.distance, slot.distance.relative,
                            slot.distance.cosine});
  }
  return node::CommandResult(std::move(result));
}

Expected<node::CommandResult> CheckpointCommands::do_pin(const std::string& name, bool pinned) {
  checkpoint::Catalogue all = context_.catalogue();
  NS_ASSIGN_OR_RETURN(const checkpoint::Entry entry, all.find(name));
  NS_RETURN_IF_ERROR(pinned ? all.pin(entry.name) : all.unpin(entry.name));
  report_change();
  return node::CommandResult();
}

Expected<node::CommandResult> CheckpointCommands::do_remove(const std::string& name) {
  checkpoint::Catalogue all = context_.catalogue();
  NS_ASSIGN_OR_RETURN(const checkpoint::Entry entry, all.find(name));
  NS_ASSIGN_OR_RETURN(const auto current, all.current());
  if (current && current->name == entry.name) {
    return make_error(ErrorCode::Denied,
                      fmt::format("{} is the newest checkpoint, from which training continues after a "
                                  "restart; restore another one first",
                                  entry.name));
  }
  NS_RETURN_IF_ERROR(all.remove(entry.name));
  if (entry.undo) {
    NS_RETURN_IF_ERROR(all.keep_for_undo({}));
    context_.arrivals.put([this] {
      context_.publisher.draft().undo = {};
      context_.publisher.publish();
    });
  }
  report_change();
  return node::CommandResult();
}

Expected<node::CommandResult> CheckpointCommands::do_prune(const node::PrunePolicy& policy,
                                                           const FileJobs::Tools& tools) {
  checkpoint::Catalogue all = context_.catalogue();
  NS_ASSIGN_OR_RETURN(const auto entries, all.list());
  const auto doomed = checkpoint::plan_prune(entries, rules_of(policy));
  std::uint64_t count = 0;
  for (const std::string& name : doomed) {
    if (tools.cancel.cancelled()) {
      report_change();
      return make_error(ErrorCode::Cancelled, fmt::format("stopped after {} of {}", count, doomed.size()));
    }
    NS_RETURN_IF_ERROR(all.remove(name));
    tools.progress(++count, doomed.size());
  }
  report_change();
  return node::CommandResult();
}

Expected<node::CommandResult> CheckpointCommands::do_export(const std::string& name,
                                                            exporting::ExportFormat format,
                                                            const std::string& path,
                                                            const FileJobs::Tools& tools) {
  storage::FileEnv& files = context_.services.files;
  NS_ASSIGN_OR_RETURN(const checkpoint::Entry entry, context_.catalogue().find(name));
  if (files.exists(path))
    return make_error(ErrorCode::AlreadyExists, path + " exists already; choose another name");
  std::optional<data::Tokenizer> tokenizer;
  if (exporting::needs_tokenizer(format.format)) {
    NS_ASSIGN_OR_RETURN(tokenizer, checkpoint_tokenizer(files, entry, context_.directory.data_path()));
  }
  const exporting::ExportRequest request{entry, format, tokenizer ? &*tokenizer : nullptr, path};
  NS_RETURN_IF_ERROR(exporting::export_model(files, request, tools.progress, tools.cancel));
  return node::CommandResult();
}

Expected<node::CommandResult> CheckpointCommands::do_import(const std::string& path,
                                                            const FileJobs::Tools& tools) {
  storage::FileEnv& files = context_.services.files;
  const std::string root = context_.catalogue().root();
  NS_RETURN_IF_ERROR(checkpoint::Writer::make_root(files, root, context_.directory.format_path()));
  auto writer = checkpoint::Writer::beside(files, context_.directory.node_key(), root);
  const FolderImport from{files, context_.services.clock, context_.directory, path};
  NS_ASSIGN_OR_RETURN(const checkpoint::SaveResult saved,
                      import_folder(from, writer, tools.progress, tools.cancel));
  report_change();
  return node::CommandResult(node::ImportResult{saved.name});
}

void CheckpointCommands::report_change() {
  context_.arrivals.put([this] { context_.publisher.emit(node::CheckpointsChanged{}); });
}

// ---- queries ----

Expected<void> CheckpointCommands::preview_prune(const node::PrunePolicy& policy,
                                                 node::Reply<node::PrunePreview> reply) {
  return reader_.ask(
      [this, policy, reply = std::move(reply)] { reader_.answer(reply, read_preview(policy)); });
}

Expected<node::PrunePreview> CheckpointCommands::read_preview(const node::PrunePolicy& policy) {
  NS_ASSIGN_OR_RETURN(const auto entries, context_.catalogue().list());
  node::PrunePreview preview;
  preview.remove = checkpoint::plan_prune(entries, rules_of(policy));
  preview.kept = static_cast<std::uint32_t>(entries.size() - preview.remove.size());
  for (const checkpoint::Entry& entry : entries)
    if (std::find(preview.remove.begin(), preview.remove.end(), entry.name) != preview.remove.end())
      preview.bytes += entry.bytes;
  if (preview.remove.size() > node::max_page) preview.remove.resize(node::max_page);
  return preview;
}

Expected<void> CheckpointCommands::query(const node::CheckpointQuery& query,
                                         node::Reply<node::CheckpointPage> reply) {
  NS_RETURN_IF_ERROR(check_limit(query.limit, node::max_page));
  return reader_.ask([this, query, reply = std::move(reply)] { reader_.answer(reply, read_page(query)); });
}

Expected<node::CheckpointPage> CheckpointCommands::read_page(const node::CheckpointQuery& query) {
  NS_ASSIGN_OR_RETURN(const auto entries, context_.catalogue().list());
  auto at = entries.begin();
  if (!query.after.empty()) {
    at = std::find_if(entries.begin(), entries.end(),
                      [&query](const auto& entry) { return entry.name == query.after; });
    if (at != entries.end()) ++at;
  }
  node::CheckpointPage page;
  for (; at != entries.end() && page.entries.size() < query.limit; ++at) {
    page.entries.push_back(checkpoint_entry(*at));
  }
  page.more = at != entries.end();
  return page;
}

}  // namespace neuroshard::engine::detail
