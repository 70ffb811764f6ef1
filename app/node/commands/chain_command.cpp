// neuroshardd chain show | verify | export. They read D/chain without its lock, so also while a node runs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "app/node/commands/chain_replay.h"
#include "app/node/output/chain_text.h"
#include "core/engine/block_reader.h"

namespace neuroshard::app {
namespace {

// A node writes a block in two parts; a tail that stays for longer is damage.
constexpr int tail_looks = 10;
constexpr auto tail_pause = std::chrono::milliseconds(200);

void print(const nlohmann::ordered_json& json, const std::vector<std::string>& lines,
           CommandContext& context) {
  context.output.json_line(json);
  for (const std::string& line : lines) context.output.line(line);
}

Error at_height(Error error, std::uint64_t height) {
  return std::move(error).with_context(fmt::format("block {}", height));
}

Expected<void> show_block(const ChainPlace& place, std::uint64_t height, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(auto reader, engine::BlockReader::open(context.files, place.log()));
  while (true) {
    const std::uint64_t at = reader.next_height();
    NS_ASSIGN_OR_RETURN(const auto bytes, reader.next());
    if (!bytes || at > height)
      return make_error(ErrorCode::NotFound, fmt::format("{} has no block {}", place.log(), height));
    if (at < height) continue;
    NS_ASSIGN_OR_RETURN(const auto block, chain::decode_certified(*bytes, place.rules.network));
    print(block_json(block), block_lines(block), context);
    return {};
  }
}

Expected<void> show(const std::optional<std::uint64_t>& height, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const ChainPlace place, chain_place(context));
  if (height) return show_block(place, *height, context);
  ChainReplay replay(place, ChainReplay::Checks::NoSignatures, context);
  if (auto ran = replay.run([](const auto&) { return true; }); !ran.ok())
    return at_height(ran.error(), replay.next_height());
  if (!replay.history()) return make_error(ErrorCode::NotFound, place.log() + " has no block yet");
  print(tip_json(*replay.history()), tip_lines(*replay.history()), context);
  return {};
}

// Whether the log has a tail that no node completes.
Expected<std::uint64_t> lasting_tail(const ChainPlace& place, std::uint64_t tail, CommandContext& context) {
  for (int look = 0; tail > 0 && look < tail_looks; ++look) {
    if (context.stop_signal->wait_for(tail_pause))
      return make_error(ErrorCode::Cancelled, "stopped before the end");
    NS_ASSIGN_OR_RETURN(auto reader, engine::BlockReader::open(context.files, place.log()));
    while (true) {
      NS_ASSIGN_OR_RETURN(const auto bytes, reader.next());
      if (!bytes) break;
    }
    tail = reader.tail_bytes();
  }
  return tail;
}

Expected<void> check(ChainReplay* replay, const ChainPlace& place, CommandContext& context) {
  NS_RETURN_IF_ERROR(replay->run([](const auto&) { return true; }));
  NS_ASSIGN_OR_RETURN(const std::uint64_t tail, lasting_tail(place, replay->tail_bytes(), context));
  if (tail > 0)
    return make_error(ErrorCode::Corrupt,
                      fmt::format("the log ends with {} bytes that are no whole block", tail));
  if (!replay->history()) return make_error(ErrorCode::NotFound, place.log() + " has no block yet");
  return {};
}

Expected<void> verify(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const ChainPlace place, chain_place(context));
  ChainReplay replay(place, ChainReplay::Checks::All, context);
  const Expected<void> checked = check(&replay, place, context);
  if (!checked.ok()) {
    if (checked.error().code == ErrorCode::Cancelled) return checked;
    context.exit_code = ExitCode::Failure;
    context.output.json_line(
        {{"ok", false}, {"height", replay.next_height()}, {"reason", checked.error().describe()}});
    context.output.line(
        fmt::format("Block {} does not hold: {}", replay.next_height(), checked.error().describe()));
    return {};
  }
  const chain::History& history = *replay.history();
  const std::uint64_t count = replay.next_height() - history.first_height();
  context.output.json_line({{"ok", true},
                            {"blocks", count},
                            {"first_height", history.first_height()},
                            {"height", history.tip().height()},
                            {"hash", to_hex(history.tip().block->hash)}});
  context.output.line(fmt::format("{} block{} hold{}, up to block {}: {}", count, count == 1 ? "" : "s",
                                  count == 1 ? "s" : "", history.tip().height(),
                                  to_hex(history.tip().block->hash)));
  return {};
}

struct ExportFlags {
  std::string file;
  bool force = false;
};

Expected<void> export_blocks(const ExportFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const ChainPlace place, chain_place(context));
  if (!flags.force && context.files.exists(flags.file))
    return make_error(
        ErrorCode::AlreadyExists,
        fmt::format("{} already exists; choose another file, or replace it with --force", flags.file));
  NS_ASSIGN_OR_RETURN(auto reader, engine::BlockReader::open(context.files, place.log()));
  NS_ASSIGN_OR_RETURN(const auto file, context.files.open_write(flags.file));
  std::uint64_t count = 0;
  while (!context.stop.cancelled()) {
    const std::uint64_t height = reader.next_height();
    auto bytes = reader.next();
    if (!bytes.ok()) return at_height(bytes.error(), height);
    if (!*bytes) break;
    const auto block = chain::decode_certified(**bytes, place.rules.network);
    if (!block.ok()) return at_height(block.error(), height);
    const std::string line = block_json(*block).dump() + "\n";
    NS_RETURN_IF_ERROR(file->append(as_bytes(line)));
    ++count;
  }
  NS_RETURN_IF_ERROR(file->close());
  if (context.stop.cancelled()) return make_error(ErrorCode::Cancelled, "stopped before the end");
  context.output.json_line({{"file", flags.file}, {"blocks", count}});
  context.output.line(fmt::format("Wrote {} block{} to {}", count, count == 1 ? "" : "s", flags.file));
  return {};
}

}  // namespace

void add_chain_command(CLI::App& root, CommandContext& context) {
  CLI::App& chain = add_command(
      root, "chain", "The chain of this node's network, from this node's disk",
      {"neuroshardd chain show", "neuroshardd chain verify", "neuroshardd chain export blocks.jsonl"});
  auto height = std::make_shared<std::optional<std::uint64_t>>();
  CLI::App& one =
      add_command(chain, "show", "Show the newest block with members, voters and committee, or one block",
                  {"neuroshardd chain show", "neuroshardd chain show 12 --json"});
  one.add_option("height", *height, "height of a block (default: the newest state)")->type_name("HEIGHT");
  set_body(one, context, [height, &context] { return show(*height, context); });
  CLI::App& all = add_command(chain, "verify", "Check every block on the disk, with all signatures",
                              {"neuroshardd chain verify", "neuroshardd chain verify --json"});
  set_body(all, context, [&context] { return verify(context); });
  auto flags = std::make_shared<ExportFlags>();
  CLI::App& out = add_command(chain, "export", "Write the blocks as JSON Lines, one block a line",
                              {"neuroshardd chain export blocks.jsonl"});
  out.add_option("file", flags->file, "file to write")->required()->type_name("FILE");
  out.add_flag("--force", flags->force, "replace an existing file");
  set_body(out, context, [flags, &context] { return export_blocks(*flags, context); });
}

}  // namespace neuroshard::app
