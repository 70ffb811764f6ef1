// neuroshardd http: where the local HTTP server of the running core listens, and its key.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/commands/core_client.h"
#include "core/node/http_key.h"

namespace neuroshard::app {
namespace {

struct HttpFlags {
  bool show = false, renew = false, remove = false;
};

node::HttpKeyAction action_of(const HttpFlags& flags) {
  if (flags.renew) return node::HttpKeyAction::Renew;
  return flags.remove ? node::HttpKeyAction::Remove : node::HttpKeyAction::Show;
}

Expected<void> show_http(const HttpFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::attach(context));
  NS_ASSIGN_OR_RETURN(const node::HttpKey key,
                      client->ask<node::HttpKey>([&](node::Node& node, node::Reply<node::HttpKey> reply) {
                        return node.http_key(action_of(flags), std::move(reply));
                      }));
  const auto view = client->node().snapshot();
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  nlohmann::ordered_json object = {{"address", or_null(view->http.address)},
                                   {"trouble", or_null(view->http.trouble)},
                                   {"key_file", key.file},
                                   {"has_key", !key.key.empty()}};
  if (flags.show || flags.renew) object["key"] = or_null(key.key);
  context.output.json_line(object);
  if (!view->http.address.empty())
    context.output.line("Listens at " + view->http.address);
  else
    context.output.line(view->http.trouble.empty() ? "Off; switch it on with \"neuroshardd set http on\""
                                                   : view->http.trouble);
  context.output.line(key.key.empty() ? "No key yet: one is made when the server is switched on"
                                      : "Key in " + key.file);
  if ((flags.show || flags.renew) && !key.key.empty()) context.output.line(key.key);
  return {};
}

}  // namespace

void add_http_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<HttpFlags>();
  CLI::App& command =
      add_command(root, "http", "Show where the local HTTP server listens, and show, renew or remove its key",
                  {"neuroshardd http --show-key", "neuroshardd http --new-key"});
  auto* show = command.add_flag("--show-key", flags->show, "print the key");
  auto* renew =
      command.add_flag("--new-key", flags->renew,
                       "replace the key and print the new one; programs with the old one are refused");
  auto* remove = command.add_flag("--remove-key", flags->remove, "delete the key; the server must be off");
  renew->excludes(show)->excludes(remove);
  remove->excludes(show);
  set_body(
      command, context, [flags, &context] { return show_http(*flags, context); }, WorksWith::AnyComputer);
}

}  // namespace neuroshard::app
