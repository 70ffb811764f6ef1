// neuroshardd network create | show (invite: invite_command.cpp, continue: continue_command.cpp)
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/node/command.h"
#include "app/node/commands/continue_command.h"
#include "app/node/commands/invite_command.h"
#include "app/node/commands/key_file.h"
#include "app/node/commands/network_sizes.h"
#include "app/node/commands/network_voters.h"
#include "app/node/output/rounds_text.h"
#include "core/compute/slot.h"
#include "core/config/model_part.h"
#include "core/config/network_profile.h"

namespace neuroshard::app {
namespace {

struct CreateFlags {
  std::string from = "solo";
  std::string name;
  std::map<std::string, std::string> numbers;  // by the key of the consensus field
  std::vector<std::string> bootstrap, trackers, founders, grow_to;
  std::string genesis;
  std::string manifest_url;
  std::string sync, codec;
  std::uint64_t p2p_port = 0;
  std::optional<std::uint64_t> sequence_number;
  std::string publisher_key;
  std::string out;
  bool force = false;
};

constexpr std::string_view nano_suffix = "_nano";

bool is_nano(std::string_view key) {
  return key.size() > nano_suffix.size() && key.substr(key.size() - nano_suffix.size()) == nano_suffix;
}

// "--peak-learning-rate,--peak-lr": dashes instead of underscores, no unit, and the short names people use.
std::string flag_of(std::string_view key) {
  static const std::map<std::string_view, const char*> short_names{
      {"peak_learning_rate_nano", "--peak-lr"},
      {"warmup_steps", "--warmup"},
      {"inner_steps", "--h"},
      {"outer_learning_rate_nano", "--outer-lr"}};
  std::string flag(is_nano(key) ? key.substr(0, key.size() - nano_suffix.size()) : key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  flag.insert(0, "--");
  const auto short_name = short_names.find(key);
  return short_name == short_names.end() ? flag : std::string(short_name->second) + "," + flag;
}

std::string shown(const config::ConsensusField& field, std::uint64_t value) {
  return is_nano(field.key) ? fmt::format("{}", config::from_nano(value)) : config::text_of(field, value);
}

Expected<std::uint64_t> parse_number(const config::ConsensusField& field, const std::string& text) {
  if (field.words != nullptr) {
    const auto value = config::value_of_word(field, text);
    if (value.ok()) return *value;
    return make_error(ErrorCode::InvalidArgument, fmt::format("{} can't be '{}'; it {}", flag_of(field.key),
                                                              text, value.error().message));
  }
  const auto wrong = [&] {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("{} can't be '{}'; it must be a {} between {} and {}", flag_of(field.key), text,
                    is_nano(field.key) ? "number with at most 9 decimals" : "whole number",
                    shown(field, field.least), shown(field, field.most)));
  };
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end) * (is_nano(field.key) ? 1e9 : 1.0);
  if (text.empty() || end != text.c_str() + text.size() || !std::isfinite(value) || value < 0 ||
      value > 1e18) {
    return wrong();
  }
  const double whole = std::round(value);
  if (std::abs(value - whole) > 1e-3) return wrong();
  const auto number = static_cast<std::uint64_t>(whole);
  if (number < field.least || number > field.most) return wrong();
  return number;
}

// The rates of the outer step, unless the flags name others.
void take_outer_rates(const CreateFlags& flags, std::uint64_t learning_rate_nano, std::uint64_t momentum_nano,
                      config::ConsensusPart& consensus) {
  if (flags.numbers.find("outer_learning_rate_nano") == flags.numbers.end())
    consensus.outer_learning_rate_nano = learning_rate_nano;
  if (flags.numbers.find("outer_momentum_nano") == flags.numbers.end())
    consensus.outer_momentum_nano = momentum_nano;
}

// A network with an outer loop requires its rules, and a network without one must have none.
void fit_outer_loop(const CreateFlags& flags, config::ConsensusPart& consensus) {
  if (consensus.inner_steps == 0) {
    consensus.sync = consensus.codec = "none";
    consensus.outer_learning_rate_nano = consensus.outer_momentum_nano = 0;
  } else if (consensus.sync == "none") {
    consensus.sync = "plain";
    consensus.codec = "int8";
    take_outer_rates(flags, 700'000'000, 900'000'000, consensus);
  }
}

// The sparse codec has its own outer step.
void take_codec(const CreateFlags& flags, config::ConsensusPart& consensus) {
  if (flags.codec.empty()) return;
  consensus.codec = flags.codec;
  if (config::is_sparse(consensus)) take_outer_rates(flags, 1'000'000'000, 0, consensus);
}

// The owner of this file may publish data and addresses for the network.
Expected<crypto::KeyPair> publisher_key(CommandContext& context, const std::string& path) {
  NS_ASSIGN_OR_RETURN(KeyFromFile file, read_or_make_key(context, path));
  if (file.made)
    context.output.note("Created a publisher key in " + path + ": keep it secret and back it up.");
  return std::move(file.key);
}

// Nodes take the addresses with the highest number: the next one after those that are replaced, of the same network.
Expected<std::uint64_t> next_sequence(const CreateFlags& flags, const config::NetworkProfile& made,
                                      bool continues, CommandContext& context) {
  if (flags.sequence_number) return *flags.sequence_number;
  std::uint64_t last = continues ? made.directory.sequence : 0;
  if (!flags.out.empty() && context.files.exists(flags.out)) {
    const auto replaced = config::load_network_profile(context.files, flags.out);
    if (replaced.ok() && config::network_id(replaced->consensus) == config::network_id(made.consensus))
      last = std::max(last, replaced->directory.sequence);
  }
  if (last == std::numeric_limits<std::uint64_t>::max())
    return make_error(ErrorCode::InvalidArgument,
                      "the addresses have the highest number there is; give them another with "
                      "--sequence-number");
  return last + 1;
}

// The addresses and what else may change.
Expected<void> take_directory(const CreateFlags& flags, std::uint64_t sequence,
                              config::DirectoryPart& directory) {
  directory.sequence = sequence;
  directory.signature.reset();
  if (!flags.bootstrap.empty()) directory.bootstrap = flags.bootstrap;
  if (!flags.trackers.empty()) directory.trackers = flags.trackers;
  if (!flags.manifest_url.empty()) directory.manifest_url = flags.manifest_url;
  if (flags.p2p_port != 0) directory.p2p_port = flags.p2p_port;
  if (!flags.genesis.empty()) {
    NS_ASSIGN_OR_RETURN(directory.genesis, hash_from_hex(flags.genesis));
  }
  return validate(directory);
}

// Drops what leads to the network that the values came from: its first block, and the addresses of a built-in one.
// Those of a file are its owner's, who may serve both networks from them.
void leave_network(const CreateFlags& flags, config::DirectoryPart& directory) {
  directory.genesis.reset();
  if (!config::builtin_profile(flags.from).ok()) return;
  directory.bootstrap.clear();
  directory.trackers.clear();
}

// All that makes it another network, but the publisher.
Expected<void> take_constants(const CreateFlags& flags, CommandContext& context,
                              config::ConsensusPart& consensus) {
  consensus.name = flags.name;
  if (!flags.founders.empty()) {
    NS_ASSIGN_OR_RETURN(consensus.founders, parse_founders(flags.founders, context));
  }
  for (const config::ConsensusField& field : config::consensus_fields()) {
    const auto given = flags.numbers.find(field.key);
    if (given == flags.numbers.end()) continue;
    NS_ASSIGN_OR_RETURN(consensus.*field.member, parse_number(field, given->second));
  }
  fit_outer_loop(flags, consensus);
  if (!flags.sync.empty()) consensus.sync = flags.sync;
  take_codec(flags, consensus);
  consensus.publisher_key = "none";
  if (flags.grow_to.empty()) return validate(consensus);
  if (const auto grows = flags.numbers.find("grows"); grows != flags.numbers.end() && consensus.grows == 0)
    return make_error(ErrorCode::InvalidArgument,
                      "--grow-to is for a network whose model grows; leave out --grows 0");
  return take_sizes(flags.grow_to, consensus);
}

Expected<void> create_network(const CreateFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(config::NetworkProfile profile,
                      config::load_network_profile(context.files, flags.from));
  config::ConsensusPart& consensus = profile.consensus;
  const Hash256 from = config::network_id(consensus);
  NS_RETURN_IF_ERROR(take_constants(flags, context, consensus));
  if (!flags.out.empty() && !flags.force && context.files.exists(flags.out)) {
    return make_error(
        ErrorCode::AlreadyExists,
        fmt::format("{} already exists; choose another --out, or replace it with --force", flags.out));
  }
  std::optional<crypto::KeyPair> publisher;
  if (!flags.publisher_key.empty()) {
    NS_ASSIGN_OR_RETURN(publisher, publisher_key(context, flags.publisher_key));
    consensus.publisher_key = to_hex(publisher->public_key());
  }
  const bool continues = config::network_id(consensus) == from;
  if (!continues) leave_network(flags, profile.directory);
  NS_ASSIGN_OR_RETURN(const std::uint64_t sequence, next_sequence(flags, profile, continues, context));
  NS_RETURN_IF_ERROR(take_directory(flags, sequence, profile.directory));
  if (publisher) config::sign_directory(profile, *publisher);
  const std::string text = config::format_network_profile(profile);
  // The written profile must be readable: reserved names and bounds.
  NS_RETURN_IF_ERROR(config::parse_network_profile(as_bytes(text)));
  if (flags.out.empty()) {
    context.output.raw(context.json ? nlohmann::ordered_json::parse(text, nullptr, false).dump() + '\n'
                                    : text);
    explain_voters(consensus, context);
    return {};
  }
  NS_RETURN_IF_ERROR(
      storage::write_file_atomic(context.files, flags.out, as_bytes(text), /*world_readable=*/true));
  const std::string id = to_hex(config::network_id(consensus));
  context.output.line(fmt::format("Created the network '{}', {}\nOther nodes join it with --profile {}",
                                  consensus.name, id, flags.out));
  context.output.json_line({{"name", consensus.name}, {"network_id", id}, {"file", flags.out}});
  explain_voters(consensus, context);
  return {};
}

// Of a network whose members hold parts of the model.
void show_parts(const config::ConsensusPart& consensus, Output& out, nlohmann::ordered_json& document) {
  const compute::ModelShape shape = config::model_shape(consensus);
  std::size_t number = 0;
  for (const compute::StageRange& range : config::model_parts(consensus)) {
    const std::uint64_t parameters = compute::values_of(shape, range).count;
    if (number == 0) out.line("Parts, of which a member holds one (the network chooses it, or --part does):");
    out.line(fmt::format("  {:<28} {:<14} {} parameters", to_text(range), ++number, human_count(parameters)));
    document["parts"].push_back({{"part", number}, {"holds", to_text(range)}, {"parameters", parameters}});
  }
  if (number > 0) out.line("");
}

void show_profile(const config::NetworkProfile& profile, CommandContext& context) {
  const config::ConsensusPart& c = profile.consensus;
  const config::DirectoryPart& d = profile.directory;
  const compute::ModelShape shape = config::model_shape(c);
  const std::uint64_t parameters = compute::model_parameter_count(shape);
  const std::uint64_t active = compute::active_parameter_count(shape);
  auto document = nlohmann::ordered_json::parse(config::format_network_profile(profile), nullptr, false);
  document["parameters"] = parameters;
  document["active_parameters"] = active;
  document["round"] = round_traffic_json(c);
  document["notice"] = config::network_notice(profile);

  Output& out = context.output;
  const auto row = [&out](std::string_view key, const std::string& value, std::string_view help = {}) {
    out.line(fmt::format("  {:<28} {:<14} {}", key, value, help));
  };
  out.line(fmt::format("Network {}\n  id {}\n  {} parameters, {} of them for each token\n", c.name,
                       to_hex(config::network_id(c)), human_count(parameters), human_count(active)));
  if (const std::string round = round_traffic_text(c); !round.empty()) out.line("  " + round + "\n");
  show_parts(c, out, document);
  show_sizes(c, out, document);
  context.output.json_line(document);
  out.line("Fixed for everyone:");
  for (const config::ConsensusField& field : config::consensus_fields()) {
    std::string_view key = field.key;
    std::string help = field.help;
    if (is_nano(key)) {
      key.remove_suffix(nano_suffix.size());
      help = help.substr(0, help.find(", in 1e-9"));
    }
    row(key, shown(field, c.*field.member), help);
  }
  row("sync", c.sync);
  row("codec", c.codec);
  row("publisher_key", c.publisher_key);
  for (const std::string& founder : c.founders) row("founder", founder);
  out.line("\nMay change:");
  row("p2p_port", fmt::format("{}", d.p2p_port), "0 = none");
  row("tracker_port", fmt::format("{}", d.tracker_port), "0 = none");
  row("http_port", fmt::format("{}", d.http_port));
  row("checkpoint_min_interval", fmt::format("{}", d.checkpoint_min_interval), "seconds");
  for (const std::string& peer : d.bootstrap) row("bootstrap", peer);
  for (const std::string& tracker : d.trackers) row("tracker", tracker);
  if (!d.manifest_url.empty()) row("manifest_url", d.manifest_url);
  if (d.genesis) row("genesis", to_hex(*d.genesis), "first block of the chain");
  for (const std::string& notice : {config::network_notice(profile), config::addresses_notice(profile)})
    if (!notice.empty()) out.line("\n" + notice);
}

Expected<void> show_network(const std::string& named, CommandContext& context) {
  const std::string& name = named.empty() ? context.profile : named;
  if (!name.empty()) {
    NS_ASSIGN_OR_RETURN(const config::NetworkProfile profile,
                        config::load_network_profile(context.files, name));
    show_profile(profile, context);
    return {};
  }
  for (const char* builtin : config::builtin_profile_names()) {
    NS_ASSIGN_OR_RETURN(const config::NetworkProfile profile, config::builtin_profile(builtin));
    const std::string id = to_hex(config::network_id(profile.consensus));
    context.output.line(
        fmt::format("{:<8}  {}  {:>14} parameters", builtin, id,
                    human_count(compute::model_parameter_count(config::model_shape(profile.consensus)))));
    context.output.json_line({{"name", builtin}, {"network_id", id}});
  }
  return {};
}

void add_create(CLI::App& network, CommandContext& context) {
  auto flags = std::make_shared<CreateFlags>();
  CLI::App& create = add_command(
      network, "create", "Create the profile of a new network",
      {"neuroshardd network create --name village --layers 4 --hidden 128 --out village.json",
       "neuroshardd network create --from devnet --name village --founder mine --out village.json",
       "neuroshardd network create --from devnet --name tower --sync parts=2 --grow-to 6x128 "
       "--grow-to 8x256@4GB --out tower.json",
       "neuroshardd network create --from devnet --name club --publisher-key club.key "
       "--bootstrap host:29000 --out "
       "club.json",
       "neuroshardd train --profile village.json --text ~/books --steps 100"});
  create.add_option("--name", flags->name, "name of the network, a-z 0-9 and '-'")->required();
  create.add_option("--from", flags->from, "profile to start from (default solo)")->type_name("NAME|FILE");
  create.add_option("--out", flags->out, "file to write (default: print the profile)")->type_name("FILE");
  create.add_flag("--force", flags->force, "replace an existing file");
  create
      .add_option("--publisher-key", flags->publisher_key,
                  "key file of the publisher, created if missing; without it, the network has no publisher")
      ->type_name("FILE");
  create.add_option("--bootstrap", flags->bootstrap, "bootstrap peer; may be repeated")
      ->type_name("HOST:PORT");
  create.add_option("--tracker", flags->trackers, "tracker; may be repeated")->type_name("HOST:PORT");
  create
      .add_option("--founder", flags->founders,
                  "wallet that may begin the network, and votes if it is there then: its public key "
                  "(\"neuroshardd wallet "
                  "show\"), or \"mine\" for that of --data-dir; may be repeated")
      ->type_name("WALLET");
  create
      .add_option("--genesis", flags->genesis,
                  "first block of the network's chain, once there is one: new nodes follow no other chain")
      ->type_name("HASH");
  create.add_option("--manifest-url", flags->manifest_url, "where the genesis dataset is published")
      ->type_name("URL");
  create
      .add_option(
          "--sync", flags->sync,
          "plain: each round starts from the anchor of the previous one; delayed-1: training "
          "continues during the agreement; fragments=P: delayed-1 in P fragments of the model (2 to 16), "
          "which "
          "spreads the traffic over the round; parts=P: each member holds one of P parts of the model (2 to "
          "64), and they train it through a pipeline")
      ->type_name("NAME");
  create
      .add_option(
          "--codec", flags->codec,
          "delta codec: fp32, fp16, int8 (default), int4, or topk, the smallest, with its own outer step "
          "(rate 1, no momentum, error feedback)")
      ->type_name("NAME");
  create
      .add_option("--grow-to", flags->grow_to,
                  "size that the model may grow to, the smallest first; may be repeated. MEMORY is what each "
                  "member has to offer then, and after the slash what all have to offer together (default: "
                  "what they need). \"all\": every size of the rules")
      ->type_name("LAYERSxWIDTH[@MEMORY[/MEMORY]]|all");
  create.add_option("--p2p-port", flags->p2p_port, "default port for peers")->type_name("PORT");
  create
      .add_option(
          "--sequence-number", flags->sequence_number,
          "revision of the addresses; the highest one wins (default: the next one after --from and the "
          "replaced file, of the same network)")
      ->type_name("N");
  for (const config::ConsensusField& field : config::consensus_fields()) {
    std::string help = field.help;
    help = help.substr(0, help.find(", in 1e-9"));
    create
        .add_option_function<std::string>(
            flag_of(field.key),
            [flags, key = field.key](const std::string& text) { flags->numbers[key] = text; }, help)
        ->type_name(field.words != nullptr ? "MODE"
                    : is_nano(field.key)   ? "X"
                                           : "N");
  }
  set_body(create, context, [flags, &context] { return create_network(*flags, context); });
}

}  // namespace

void add_network_command(CLI::App& root, CommandContext& context) {
  CLI::App& network =
      add_command(root, "network", "Network profiles: the parameters that all nodes of a network share",
                  {"neuroshardd network show mainnet"});
  add_create(network, context);
  add_invite_command(network, context);
  add_continue_command(network, context);
  auto name = std::make_shared<std::string>();
  CLI::App& show = add_command(network, "show", "Show a profile; without a name, list the built-in ones",
                               {"neuroshardd network show", "neuroshardd network show solo --json"});
  show.add_option("profile_name", *name, "a built-in name, a file or an invitation")
      ->type_name("NAME|FILE|LINK");
  set_body(show, context, [name, &context] { return show_network(*name, context); });
}

}  // namespace neuroshard::app
