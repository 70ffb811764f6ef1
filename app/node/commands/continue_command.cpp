#include "app/node/commands/continue_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/commands/consent.h"
#include "app/node/commands/core_client.h"
#include "core/node/member_decisions.h"

namespace neuroshard::app {
namespace {

struct ContinueFlags {
  std::vector<std::string> without;
  bool agree = false;
  bool yes = false;
};

std::string question_of(const node::ContinuationRequest& request) {
  if (request.without.empty())
    return "Other members go on without some that do not answer, or did so while this node was away.\n"
           "If you agree, this node goes on with them, and members that are left out have no vote until\n"
           "they return. If you do not agree, this node waits for the members that are left out.\n"
           "Agree? [y/N] ";
  std::string text = "Go on without these members:\n";
  for (const std::string& node : request.without) text += fmt::format("  {}\n", node);
  return text +
         "Each of them loses its vote until it returns. If they still run together elsewhere, the network\n"
         "splits in two, and the work of one half is lost later.\nGo on? [y/N] ";
}

Expected<void> go_on(const ContinueFlags& flags, CommandContext& context) {
  if (flags.without.empty() == !flags.agree)
    return make_error(ErrorCode::InvalidArgument,
                      "name the members that are gone with --without NODE, or agree with another member's "
                      "decision with --agree");
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::attach(context));
  node::ContinuationRequest request{flags.without, {}};
  if (flags.agree) {
    request.agree = client->node().snapshot()->rounds.chain.asks_succession;
    if (request.agree.empty())
      return make_error(
          ErrorCode::NotFound,
          "there is nothing to agree with: no other members have decided to go on without some");
  }
  if (!flags.yes) NS_RETURN_IF_ERROR(ask_consent(question_of(request), "going on"));
  NS_ASSIGN_OR_RETURN(const auto reply,
                      client->ask<node::ContinuationReply>(
                          [&request](node::Node& node, node::Reply<node::ContinuationReply> done) {
                            return node.decisions().continue_network(request, std::move(done));
                          }));
  context.output.json_line({{"without", reply.without}, {"agreed", flags.agree}});
  context.output.line(
      "The decision is on its way. This node goes on with the others, once all that are left have agreed: "
      "see \"neuroshardd status\".");
  return {};
}

}  // namespace

void add_continue_command(CLI::App& network, CommandContext& context) {
  auto flags = std::make_shared<ContinueFlags>();
  CLI::App& command = add_command(
      network, "continue", "Go on without members that are gone for good",
      {"neuroshardd network continue --without 1a2b3c4d5e6f", "neuroshardd network continue --agree --yes"});
  command
      .add_option("--without", flags->without,
                  "id of a member that is gone, or its first 8 or more characters; may be repeated")
      ->type_name("NODE");
  command.add_flag("--agree", flags->agree, "agree with the decision of another member's person");
  command.add_flag("--yes", flags->yes, "do not ask");
  set_body(
      command, context, [flags, &context] { return go_on(*flags, context); }, WorksWith::AnyComputer);
}

}  // namespace neuroshard::app
