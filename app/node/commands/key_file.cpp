#include "app/node/commands/key_file.h"

#include "core/crypto/node_key.h"

namespace neuroshard::app {

Expected<KeyFromFile> read_or_make_key(CommandContext& context, const std::string& path) {
  NS_ASSIGN_OR_RETURN(const bool present, context.files.has_name(path));
  if (present) {
    NS_ASSIGN_OR_RETURN(Bytes bytes, storage::read_file(context.files, path, crypto::node_key_file_bytes));
    auto key = crypto::decode_node_key(bytes);
    crypto::wipe(bytes);
    if (!key.ok()) return std::move(key).error().with_context(path);
    return KeyFromFile{std::move(*key), false};
  }
  crypto::KeyPair key = crypto::KeyPair::generate(context.entropy);
  const crypto::Secret file = crypto::encode_node_key(key);
  NS_RETURN_IF_ERROR(storage::write_file_atomic(context.files, path, file.bytes()));
  return KeyFromFile{std::move(key), true};
}

}  // namespace neuroshard::app
