// "plan --what-if" without a file of peers: the running node answers about its own network.
#pragma once

#include <string>

#include "app/node/command.h"
#include "core/node/what_if.h"

namespace neuroshard::app {

// "memory=8GiB" or "leave". InvalidArgument says what else can be asked, and how.
Expected<node::WhatIfQuery> parse_network_change(const std::string& text);

Expected<void> ask_network_what_if(const std::string& text, CommandContext& context);

}  // namespace neuroshard::app
