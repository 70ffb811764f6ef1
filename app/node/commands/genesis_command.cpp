// neuroshardd genesis build | verify | serve
//
// Datasets for networks: made from folders of text, checked, and served to the nodes that train on them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "app/node/command.h"
#include "app/node/commands/key_file.h"
#include "app/node/commands/open_directory.h"
#include "app/node/output/progress.h"
#include "core/data/publisher.h"
#include "core/data/remote_dataset.h"
#include "core/serve/http_file_server.h"

namespace neuroshard::app {
namespace {

constexpr auto stop_check = std::chrono::milliseconds(100);
constexpr std::uint64_t verify_cache_bytes = 1ull << 30;

struct BuildFlags {
  std::vector<std::string> texts;
  std::string out;
  std::string key;
  std::string source = "text";
  std::string network;
  std::uint32_t vocabulary = 32'768;
  std::uint64_t shard_tokens = 2'500'000;
  std::uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
};

struct VerifyFlags {
  std::string dataset;
  std::string publisher;
  std::string network;
  std::string cache;
};

struct ServeFlags {
  std::string directory;
  std::uint16_t port = 8000;
  std::string bind = "127.0.0.1";
};

Expected<Bytes> parse_network(const std::string& text) {
  if (text.empty()) return Bytes();
  auto id = hash_from_hex(text);
  if (!id.ok()) {
    return make_error(ErrorCode::InvalidArgument,
                      "--network requires a network id: 64 hexadecimal characters");
  }
  return Bytes(id->begin(), id->end());
}

Expected<crypto::KeyPair> open_publisher_key(CommandContext& context, const std::string& path) {
  NS_ASSIGN_OR_RETURN(KeyFromFile file, read_or_make_key(context, path));
  if (file.made) {
    context.output.note(
        fmt::format("Created the publisher key {}. Keep it: only its owner can update this dataset.", path));
  }
  return std::move(file.key);
}

// "NAME=PATH", or a path under the name given by --source.
std::vector<data::TextInput> parse_inputs(const BuildFlags& flags, storage::FileEnv& files) {
  std::vector<data::TextInput> inputs;
  for (std::size_t i = 0; i < flags.texts.size(); ++i) {
    const std::string& text = flags.texts[i];
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos && equals > 0 && !files.exists(text)) {
      inputs.push_back({text.substr(0, equals), text.substr(equals + 1)});
    } else {
      inputs.push_back({inputs.empty() ? flags.source : fmt::format("{}-{}", flags.source, i + 1), text});
    }
  }
  return inputs;
}

// `genesis serve` publishes every file of the dataset's folder.
Expected<void> check_key_is_apart(const BuildFlags& flags) {
  std::error_code failed;
  const auto key = std::filesystem::weakly_canonical(std::filesystem::absolute(flags.key), failed);
  const auto out = std::filesystem::weakly_canonical(std::filesystem::absolute(flags.out) / "", failed);
  const std::string folder = out.string().back() == '/' ? out.string() : out.string() + '/';
  if (!key.string().starts_with(folder)) return {};
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("--key {} is in --out {}, whose files are public; keep the key elsewhere",
                                flags.key, flags.out));
}

Expected<void> build(const BuildFlags& flags, CommandContext& context) {
  NS_RETURN_IF_ERROR(check_key_is_apart(flags));
  data::PublishOptions options;
  NS_ASSIGN_OR_RETURN(options.network_id, parse_network(flags.network));
  NS_ASSIGN_OR_RETURN(const crypto::KeyPair key, open_publisher_key(context, flags.key));
  options.inputs = parse_inputs(flags, context.files);
  options.output_directory = flags.out;
  options.vocabulary = flags.vocabulary;
  options.shard_tokens = flags.shard_tokens;
  options.threads = flags.threads;
  options.cancel = context.stop;
  Output& output = context.output;
  ProgressLine line(output, context.clock, "genesis build");
  std::uint64_t shards_told = 0;
  options.on_progress = [&](const data::PublishProgress& progress) {
    const std::string phase(to_string(progress.phase));
    line.update(progress.done, progress.total, fmt::format("{}, {} shards", phase, progress.shards));
    if (progress.shards == shards_told) return;
    shards_told = progress.shards;
    output.json_line({{"event", "progress"},
                      {"phase", phase},
                      {"done", progress.done},
                      {"total", progress.total},
                      {"shards", progress.shards},
                      {"tokens", progress.tokens}});
  };
  NS_ASSIGN_OR_RETURN(const data::PublishResult result,
                      data::build_dataset(context.files, context.clock, key, options));
  line.clear();
  output.line(
      fmt::format("dataset     {}{}", flags.out, result.already_complete ? " (already complete)" : ""));
  if (!result.already_complete) {
    output.line(fmt::format("text        {} files, {}; {} skipped", result.files, format_bytes(result.bytes),
                            result.files_skipped));
  }
  output.line(
      fmt::format("shards      {}{}", result.shards,
                  result.shards_kept > 0 ? fmt::format(", {} of them reused", result.shards_kept) : ""));
  output.line(
      fmt::format("tokens      {} to train, {} held out", result.train_tokens, result.held_out_tokens));
  output.line(fmt::format("vocabulary  {}", result.vocabulary));
  output.line(fmt::format("publisher   {}", to_hex(key.public_key())));
  output.json_line({{"event", "built"},
                    {"directory", flags.out},
                    {"files", result.files},
                    {"files_skipped", result.files_skipped},
                    {"bytes", result.bytes},
                    {"shards", result.shards},
                    {"shards_kept", result.shards_kept},
                    {"train_tokens", result.train_tokens},
                    {"held_out_tokens", result.held_out_tokens},
                    {"vocabulary", result.vocabulary},
                    {"publisher", to_hex(key.public_key())},
                    {"already_complete", result.already_complete}});
  return {};
}

Expected<std::unique_ptr<data::Dataset>> open_dataset(const VerifyFlags& flags,
                                                      const data::ManifestTrust& trust,
                                                      CommandContext& context) {
  const bool remote = flags.dataset.starts_with("http://") || flags.dataset.starts_with("https://");
  if (!remote) return data::open_local_dataset(context.files, flags.dataset, trust);
  data::RemoteDatasetOptions options;
  options.manifest_url =
      flags.dataset.ends_with(".json") ? flags.dataset : flags.dataset + "/" + data::manifest_file_name;
  options.trust = trust;
  options.cache_bytes = verify_cache_bytes;
  options.cache_directory = flags.cache;
  if (options.cache_directory.empty()) {
    NS_ASSIGN_OR_RETURN(const std::string directory, data_directory_path(context));
    options.cache_directory = directory + "/data/verify";
  }
  return data::open_remote_dataset(context.files, context.clock, context.logger, options, context.stop);
}

Expected<void> verify(const VerifyFlags& flags, CommandContext& context) {
  data::ManifestTrust trust;
  if (!flags.publisher.empty()) {
    auto key = hash_from_hex(flags.publisher);
    if (!key.ok()) {
      return make_error(ErrorCode::InvalidArgument,
                        "--publisher requires a public key: 64 hexadecimal characters");
    }
    trust.publisher = *key;
  }
  if (!flags.network.empty()) {
    NS_ASSIGN_OR_RETURN(trust.network_id, parse_network(flags.network));
  }
  NS_ASSIGN_OR_RETURN(const auto dataset, open_dataset(flags, trust, context));
  Output& output = context.output;
  ProgressLine line(output, context.clock, "genesis verify");
  NS_ASSIGN_OR_RETURN(
      const data::VerifyReport report,
      data::verify_shards(*dataset, context.stop, [&](std::uint64_t done, std::uint64_t total) {
        line.update(done, total, "shards");
      }));
  line.clear();
  const bool good = report.bad_shards == 0;
  for (const std::string& problem : report.problems) output.line("bad         " + problem);
  output.line(fmt::format("{}  {} shards, {} tokens, {}{}", good ? "verified  " : "INVALID   ", report.shards,
                          report.tokens, format_bytes(report.bytes),
                          good ? "" : fmt::format("; {} shards are invalid", report.bad_shards)));
  if (flags.publisher.empty()) {
    output.note("The signature matches the key in the dataset; use --publisher to require a specific key.");
  }
  output.json_line({{"event", "verified"},
                    {"good", good},
                    {"shards", report.shards},
                    {"bad_shards", report.bad_shards},
                    {"tokens", report.tokens},
                    {"bytes", report.bytes},
                    {"problems", report.problems}});
  if (!good) context.exit_code = ExitCode::Failure;
  return {};
}

Expected<void> serve_dataset(const ServeFlags& flags, CommandContext& context) {
  serve::HttpFileServerOptions options;
  options.directory = flags.directory;
  options.bind = flags.bind;
  options.port = flags.port;
  std::mutex mutex;  // requests end on the server's threads
  NS_ASSIGN_OR_RETURN(
      const auto server,
      serve::HttpFileServer::start(context.files, options, [&](const serve::ServedRequest& request) {
        const std::lock_guard<std::mutex> lock(mutex);
        context.output.line(fmt::format("{} {} {} {}", request.status, request.method, request.path,
                                        format_bytes(request.bytes)));
        context.output.json_line({{"event", "request"},
                                  {"method", request.method},
                                  {"path", request.path},
                                  {"status", request.status},
                                  {"bytes", request.bytes}});
      }));
  {
    const std::lock_guard<std::mutex> lock(mutex);
    context.output.line(fmt::format("serving {} at {}/{} (Ctrl-C ends)", flags.directory, server->url(),
                                    data::manifest_file_name));
    context.output.json_line({{"event", "serving"},
                              {"directory", flags.directory},
                              {"url", server->url()},
                              {"port", server->port()}});
  }
  std::unique_lock<std::mutex> lock(mutex);
  std::condition_variable never;
  while (!context.stop.cancelled()) never.wait_for(lock, stop_check);
  return {};
}

void add_build(CLI::App& genesis, CommandContext& context) {
  auto flags = std::make_shared<BuildFlags>();
  CLI::App& command = add_command(
      genesis, "build",
      "Create a signed token dataset from text; the same command resumes an interrupted build",
      {"neuroshardd genesis build ~/books --out dataset --key publisher.key",
       "neuroshardd genesis build wiki=/data/wiki news=/data/news --out dataset --key publisher.key "
       "--vocabulary 8192"});
  command.add_option("text", flags->texts, "files or folders of UTF-8 text, or NAME=PATH to name the source")
      ->required();
  command.add_option("--out", flags->out, "folder of the dataset")->required();
  command.add_option("--key", flags->key, "file of the publisher's signing key; created if missing")
      ->required();
  command.add_option("--source", flags->source, "name of a source given without NAME=")
      ->capture_default_str();
  command.add_option("--network", flags->network,
                     "id of the network that the dataset is for (64 hexadecimal characters)");
  command.add_option("--vocabulary", flags->vocabulary, "number of tokens in the vocabulary to learn")
      ->check(CLI::Range(266u, data::max_vocabulary))
      ->capture_default_str();
  command.add_option("--shard-tokens", flags->shard_tokens, "tokens per shard")
      ->check(CLI::Range(std::uint64_t{1000}, data::max_shard_tokens))
      ->capture_default_str();
  command.add_option("--threads", flags->threads, "number of encoder threads")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  set_body(command, context, [flags, &context] { return build(*flags, context); });
}

void add_verify(CLI::App& genesis, CommandContext& context) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App& command =
      add_command(genesis, "verify", "Check a dataset: signature, totals, and every shard's hash and tokens",
                  {"neuroshardd genesis verify dataset", "neuroshardd genesis verify http://127.0.0.1:8000"});
  command.add_option("dataset", flags->dataset, "folder, or address of a served dataset")->required();
  command.add_option("--publisher", flags->publisher, "require the signature of this public key");
  command.add_option("--network", flags->network, "require this network id");
  command.add_option("--cache", flags->cache, "folder for downloads");
  set_body(command, context, [flags, &context] { return verify(*flags, context); });
}

void add_serve(CLI::App& genesis, CommandContext& context) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App& command = add_command(genesis, "serve", "Serve a dataset over HTTP, read-only",
                                  {"neuroshardd genesis serve dataset --port 8000 --bind 0.0.0.0"});
  command.add_option("directory", flags->directory, "folder of the dataset")->required();
  command.add_option("--port", flags->port, "port to listen on; 0 = any free port")->capture_default_str();
  command.add_option("--bind", flags->bind, "address to listen on")->capture_default_str();
  set_body(command, context, [flags, &context] { return serve_dataset(*flags, context); });
}

}  // namespace

void add_genesis_command(CLI::App& root, CommandContext& context) {
  CLI::App& genesis = add_command(root, "genesis", "Datasets for networks: build, verify and serve them");
  add_build(genesis, context);
  add_verify(genesis, context);
  add_serve(genesis, context);
}

}  // namespace neuroshard::app
