#include "core/engine/checkpoint_import.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "core/compute/growth.h"
#include "core/config/network_profile.h"
#include "core/data/manifest.h"
#include "core/engine/initial_weights.h"
#include "core/engine/training_checkpoints.h"
#include "core/export/model_import.h"

namespace neuroshard::engine {
namespace {

std::string describe(const compute::ModelShape& s) {
  return fmt::format(
      "{} layers, width {}, {} heads of {} ({} for keys), feed-forward {}, {} experts ({} a token), "
      "vocabulary {}, context {}",
      s.layers, s.hidden, s.heads, s.head_dim, s.kv_heads, s.ffn, s.experts, s.experts_per_token, s.vocab,
      s.sequence);
}

// The flags that make a network of this shape.
Error other_shape(const compute::ModelShape& theirs, const compute::ModelShape& ours,
                  const std::string& why) {
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("the model in the folder has {}; rotation base {}, norm epsilon {}. The model of this "
                  "data directory has {}; rotation base {}, norm epsilon {}. It does not grow to that: {}. "
                  "Use a data directory whose profile has the shape of the folder, or one to which it can "
                  "grow (neuroshardd network create --help)",
                  describe(theirs), theirs.rope_theta, theirs.rms_epsilon, describe(ours), ours.rope_theta,
                  ours.rms_epsilon, why));
}

Expected<void> check_network(const checkpoint::Entry& source, const FolderImport& from) {
  if (!source.complete()) return make_error(ErrorCode::Corrupt, source.damage);
  if (source.manifest.network_id == from.directory.network_id()) return {};
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("the checkpoint in {} and this data directory belong to different networks", from.path));
}

bool same_merges(const data::Tokenizer& a, const data::Tokenizer& b) {
  return a.is_prefix_of(b) && b.is_prefix_of(a);
}

// The directory's tokenizer as the engine names it: sources of its text are part of the hash. Nothing: it has none.
Expected<std::optional<Hash256>> matching_tokenizer(const FolderImport& from, const data::Tokenizer& theirs) {
  const std::string folder = from.directory.data_path();
  bool any = false;
  for (const char* const place : {"/published/", "/"}) {
    const std::string path = folder + place + data::tokenizer_file_name;
    if (!from.files.exists(path)) continue;
    any = true;
    NS_ASSIGN_OR_RETURN(const Bytes file,
                        storage::read_file(from.files, path, data::max_tokenizer_file_bytes));
    NS_ASSIGN_OR_RETURN(const data::Tokenizer ours, data::parse_tokenizer(file));
    if (same_merges(theirs, ours)) return std::optional<Hash256>(ours.hash());
  }
  if (any)
    return make_error(
        ErrorCode::InvalidArgument,
        "the model in the folder has another tokenizer than this data directory; import it into a new "
        "data directory (--data-dir)");
  return std::optional<Hash256>();
}

// For a directory that had no tokenizer when the import began. Training may have made one meanwhile.
Expected<void> keep_tokenizer(const FolderImport& from, const data::Tokenizer& theirs) {
  NS_ASSIGN_OR_RETURN(const std::optional<Hash256> present, matching_tokenizer(from, theirs));
  if (present == theirs.hash()) return {};
  if (present)
    return make_error(ErrorCode::Busy, "the data directory got a tokenizer meanwhile; import again");
  const std::string folder = from.directory.data_path();
  NS_RETURN_IF_ERROR(from.files.create_directories(folder));
  return storage::write_file_atomic(from.files, folder + "/" + data::tokenizer_file_name, theirs.to_json(),
                                    true);
}

Expected<checkpoint::SaveResult> import_hugging_face(const FolderImport& from, checkpoint::Writer& writer,
                                                     const checkpoint::Progress& progress,
                                                     const CancelToken& cancel) {
  NS_ASSIGN_OR_RETURN(exporting::ImportSource source,
                      exporting::open_hugging_face_folder(from.files, from.path));
  const compute::ModelShape ours = config::model_shape(from.directory.profile().consensus);
  const compute::ModelShape& theirs = source.model.shape();
  if (const auto may_grow = compute::check_growth(theirs, ours); !may_grow.ok())
    return other_shape(theirs, ours, may_grow.error().message);
  TrainerState state;
  NS_ASSIGN_OR_RETURN(const std::optional<Hash256> present, matching_tokenizer(from, source.tokenizer));
  state.tokenizer_hash = present.value_or(source.tokenizer.hash());
  checkpoint::Manifest manifest;
  manifest.wallet = from.directory.wallet_id();
  manifest.network_id = from.directory.network_id();
  manifest.architecture_version = first_architecture_version;
  manifest.trainer_state = encode_trainer_state(state);
  manifest.saved_at = from.clock.wall_now();
  manifest.architecture = ours;
  manifest.origin =
      "Hugging Face folder " + std::filesystem::path(from.path).lexically_normal().filename().string();
  if (!checkpoint::same_shape(theirs, ours))
    manifest.origin += fmt::format(", grown from {} layers of width {}", theirs.layers, theirs.hidden);
  if (manifest.origin.size() > 200) manifest.origin = "Hugging Face folder";
  const Hash256 seed = initial_seed(from.directory.network_id(), first_architecture_version);
  NS_ASSIGN_OR_RETURN(checkpoint::SaveResult saved,
                      exporting::import_model(writer, source, std::move(manifest), seed, progress, cancel));
  if (present) return saved;
  // Last: a tokenizer without its model would keep other models and texts out of the directory.
  if (auto kept = keep_tokenizer(from, source.tokenizer); !kept.ok()) {
    static_cast<void>(from.files.remove_tree(writer.root() + "/" + saved.name));
    return std::move(kept).error();
  }
  return saved;
}

}  // namespace

Expected<checkpoint::SaveResult> import_folder(const FolderImport& from, checkpoint::Writer& writer,
                                               const checkpoint::Progress& progress,
                                               const CancelToken& cancel) {
  if (exporting::is_hugging_face_folder(from.files, from.path))
    return import_hugging_face(from, writer, progress, cancel);
  NS_ASSIGN_OR_RETURN(const checkpoint::Entry source, checkpoint::open_folder(from.files, from.path));
  NS_RETURN_IF_ERROR(check_network(source, from));
  return writer.adopt(source, progress, cancel);
}

}  // namespace neuroshard::engine
