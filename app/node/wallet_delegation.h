// D/delegation: the wallet's word that this node works for it in its network (core/crypto/delegation.h). Made
// once and kept, because running must not need the wallet's secret; the node's record carries it.
#pragma once

#include <optional>

#include "app/node/command.h"
#include "core/config/data_directory.h"
#include "core/crypto/delegation.h"

namespace neuroshard::app {

std::string delegation_path(const std::string& data_directory);

// Signed with the wallet's secret, written, returned. Valid for a year.
Expected<crypto::Delegation> sign_delegation(CommandContext& context, const config::DataDirectory& directory,
                                             const crypto::KeyPair& wallet);

// The one that is kept, when it holds: for this node, this network and the wallet that is here now. Else a
// new one, when the wallet opens without asking anybody (no protection, or the passphrase's file is named by
// NEUROSHARD_PASSPHRASE_FILE). Else nothing, and the log says what to do. One that ends within three months
// is replaced in the same way. A keychain is not opened here, because the desktop may ask for it to be
// unlocked.
std::optional<crypto::Delegation> find_delegation(CommandContext& context,
                                                  const config::DataDirectory& directory, Logger& logger);

}  // namespace neuroshard::app
