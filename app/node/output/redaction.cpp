#include "app/node/output/redaction.h"

#include <algorithm>
#include <utility>

#include "core/control/control_file.h"
#include "core/crypto/mnemonic.h"
#include "core/platform/file/paths.h"
#include "core/platform/process/account.h"

namespace neuroshard::app {
namespace {

bool is_wallet_word(std::string_view word) {
  const auto words = crypto::mnemonic_words();
  return std::binary_search(words.begin(), words.end(), word);
}

}  // namespace

Redactor log_redactor() {
  Redactor::Options options;
  options.is_wallet_word = is_wallet_word;
  options.personal = false;
  return Redactor(std::move(options));
}

Redactor sharing_redactor(const std::string& data_directory) {
  const platform::Account account = platform::current_account();
  Redactor redactor({is_wallet_word, true, account.home, account.user, account.host});
  const auto control =
      control::find_core(platform::runtime_directory(platform::process_environment()), data_directory);
  if (control.ok()) redactor.add_secret(control->cookie);
  return redactor;
}

}  // namespace neuroshard::app
