#include "app/node/commands/plan/network_what_if.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/node/commands/core_client.h"
#include "app/node/output/quantity.h"
#include "app/node/output/what_if_text.h"
#include "core/node/member_decisions.h"

namespace neuroshard::app {

Expected<node::WhatIfQuery> parse_network_change(const std::string& text) {
  constexpr std::string_view memory = "memory=";
  constexpr std::size_t most_shown = 100;
  if (text == "leave") return node::WhatIfQuery{};
  if (text.rfind(memory, 0) != 0 || text.find(',') != std::string::npos)
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format(
            "the running node knows --what-if memory=8GiB and --what-if leave, not '{}'; other changes "
            "need a file of nodes: --peers FILE",
            text.substr(0, most_shown)));
  NS_ASSIGN_OR_RETURN(const double bytes, parse_bytes("--what-if memory", text.substr(memory.size())));
  return node::WhatIfQuery{static_cast<std::uint64_t>(bytes)};
}

Expected<void> ask_network_what_if(const std::string& text, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const node::WhatIfQuery query, parse_network_change(text));
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::attach(context));
  NS_ASSIGN_OR_RETURN(const node::WhatIf answer,
                      client->ask<node::WhatIf>([&query](node::Node& node, node::Reply<node::WhatIf> reply) {
                        return node.decisions().query_what_if(query, std::move(reply));
                      }));
  for (const std::string& line : what_if_lines(query, answer)) context.output.line(line);
  context.output.json_line(what_if_json(query, answer));
  return {};
}

}  // namespace neuroshard::app
