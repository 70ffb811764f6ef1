// D/delegation: the wallet's signed statement that this node works for it in its network
// (core/crypto/delegation.h). It is made once and kept, so that a running node does not need the wallet's
// secret. The node's record carries it.  Threads: any one at a time.
#pragma once

#include <optional>
#include <string>

#include "core/config/data_directory.h"
#include "core/crypto/delegation.h"
#include "core/runtime/join_options.h"
#include "core/runtime/runtime_services.h"

namespace neuroshard::runtime {

std::string delegation_path(const std::string& data_directory);

// Signs a delegation for a year with the wallet's key, writes it and returns it.
Expected<crypto::Delegation> sign_delegation(const RuntimeServices& services,
                                             const config::DataDirectory& directory,
                                             const crypto::KeyPair& wallet);

// The kept delegation, when it is valid for this node, this network and the wallet of the data directory.
// Else, or when it ends within three months, a new one, if the wallet opens without a person: it has no
// protection, or `passphrase` gives its passphrase. Else the kept one while it lasts, or nothing, and the log
// says what to do. The keychain is not opened here, because the desktop may ask the user to unlock it.
std::optional<crypto::Delegation> find_delegation(const RuntimeServices& services,
                                                  const config::DataDirectory& directory,
                                                  const PassphraseSource& passphrase);

// A running node should start anew, so that find_delegation() renews this one: it ends within a month, and was not due at the start.
// One that could not be renewed then is not due again.
bool renewal_is_due(const crypto::Delegation& delegation, WallTime started, WallTime now);

// Tells the owner how to renew this delegation, from four weeks before its end on; empty: no need yet. A wallet
// that opens without a person is renewed before that.
std::string delegation_notice(const crypto::Delegation& delegation, const std::string& data_directory,
                              WallTime now);

}  // namespace neuroshard::runtime
