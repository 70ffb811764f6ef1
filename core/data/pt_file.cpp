#include "core/data/pt_file.h"

#include <fmt/format.h>
#include <zip.h>

#include <limits>
#include <memory>
#include <string_view>

#include "core/data/detail/pickle_tensor.h"

namespace neuroshard::data {
namespace {

// A `.pt` file of one tensor has three to six entries; more means something else.
constexpr zip_int64_t max_entries = 32;
// 1980-01-01, the zip format's own zero: equal tokens give equal files.
constexpr zip_uint16_t dos_epoch_date = 0x21;

struct ArchiveCloser {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, ArchiveCloser>;
struct SourceFreer {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using Source = std::unique_ptr<zip_source_t, SourceFreer>;
struct EntryCloser {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

Error corrupt(std::string_view what) {
  return make_error(ErrorCode::Corrupt, fmt::format("not a torch tensor file: {}", what));
}
Error writing_failed() {
  return make_error(ErrorCode::Internal, "the .pt archive could not be created");
}

Expected<void> add_entry(zip_t* archive, const char* name, ByteSpan content) {
  zip_source_t* source = zip_source_buffer(archive, content.data(), content.size(), 0);
  if (source == nullptr) return writing_failed();
  const zip_int64_t index = zip_file_add(archive, name, source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return writing_failed();
  }
  const auto entry = static_cast<zip_uint64_t>(index);
  if (zip_set_file_compression(archive, entry, ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_dostime(archive, entry, 0, dos_epoch_date, 0) != 0) {
    return writing_failed();
  }
  return {};
}

Expected<Bytes> read_source(zip_source_t* source) {
  zip_stat_t stat;
  if (zip_source_stat(source, &stat) != 0 || zip_source_open(source) != 0) return writing_failed();
  Bytes bytes(static_cast<std::size_t>(stat.size));
  const zip_int64_t got = zip_source_read(source, bytes.data(), bytes.size());
  zip_source_close(source);
  if (got < 0 || static_cast<std::size_t>(got) != bytes.size()) return writing_failed();
  return bytes;
}

Expected<Archive> open_archive(ByteSpan file) {
  zip_error_t error;
  zip_error_init(&error);
  Source source(zip_source_buffer_create(file.data(), file.size(), 0, &error));
  if (!source) return make_error(ErrorCode::Exhausted, "no memory to open a shard");
  Archive archive(zip_open_from_source(source.get(), ZIP_RDONLY, &error));
  zip_error_fini(&error);
  if (!archive) {
    return corrupt("it is not a zip archive (torch.save writes one unless its old format is selected)");
  }
  source.release();  // the archive owns it now
  return archive;
}

// Reads an entry whose size must be exactly `expected`, if given.
Expected<Bytes> read_entry(zip_t* archive, const std::string& name, std::uint64_t limit,
                           const std::uint64_t* expected) {
  zip_stat_t stat;
  zip_stat_init(&stat);
  if (zip_stat(archive, name.c_str(), 0, &stat) != 0 || (stat.valid & ZIP_STAT_SIZE) == 0) {
    return corrupt(fmt::format("the entry {} is missing", name));
  }
  if (expected != nullptr && stat.size != *expected) {
    return corrupt(fmt::format("the entry {} has {} bytes instead of {}", name, stat.size, *expected));
  }
  if (stat.size > limit) return corrupt(fmt::format("the entry {} is too large", name));
  // torch stores without compression. So must we insist: then no entry is larger than the file it came in.
  if ((stat.valid & ZIP_STAT_COMP_METHOD) == 0 || stat.comp_method != ZIP_CM_STORE ||
      stat.comp_size != stat.size) {
    return make_error(
        ErrorCode::Unsupported,
        fmt::format("the entry {} is compressed or encrypted; torch.save stores it plainly", name));
  }
  const std::unique_ptr<zip_file_t, EntryCloser> entry(zip_fopen(archive, name.c_str(), 0));
  if (!entry) return corrupt(fmt::format("the entry {} can't be read", name));
  Bytes bytes(static_cast<std::size_t>(stat.size));
  std::size_t have = 0;
  while (have < bytes.size()) {
    const zip_int64_t got = zip_fread(entry.get(), bytes.data() + have, bytes.size() - have);
    if (got <= 0) return corrupt(fmt::format("the entry {} is damaged", name));
    have += static_cast<std::size_t>(got);
  }
  // One read beyond the end makes libzip compare the checksum.
  std::uint8_t beyond = 0;
  if (zip_fread(entry.get(), &beyond, 1) != 0) return corrupt(fmt::format("the entry {} is damaged", name));
  return bytes;
}

// "archive/" of "archive/data.pkl": torch names the folder after the file.
Expected<std::string> find_folder(zip_t* archive) {
  const zip_int64_t entries = zip_get_num_entries(archive, 0);
  if (entries > max_entries) {
    return make_error(ErrorCode::Unsupported,
                      "the file holds more than one tensor; a shard is one tensor of int64");
  }
  constexpr std::string_view suffix = "/data.pkl";
  for (zip_int64_t i = 0; i < entries; ++i) {
    const char* raw = zip_get_name(archive, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
    const std::string_view name = raw == nullptr ? std::string_view() : std::string_view(raw);
    if (name.ends_with(suffix) && name.find('/') == name.size() - suffix.size()) {
      return std::string(name.substr(0, name.size() - suffix.size() + 1));
    }
  }
  return corrupt("it has no data.pkl");
}

template <class T>
Expected<std::vector<std::int32_t>> to_tokens(const Bytes& storage, const detail::PickledTensor& tensor) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(tensor.items));
  const std::uint8_t* from = storage.data() + tensor.first_item * sizeof(T);
  for (std::size_t i = 0; i < tokens.size(); ++i, from += sizeof(T)) {
    const T value = load_le<T>(from);
    if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) {
      return make_error(ErrorCode::Corrupt, fmt::format("token {} is {}, which no vocabulary has", i, value));
    }
    tokens[i] = static_cast<std::int32_t>(value);
  }
  return tokens;
}

}  // namespace

Expected<Bytes> encode_pt(Span<const std::int32_t> tokens) {
  if (tokens.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    return make_error(ErrorCode::InvalidArgument, "a shard has at most 2^31 - 1 tokens");
  }
  const Bytes pickle = detail::write_tensor_pickle(tokens.size());
  Bytes values(tokens.size() * 8);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    store_le(values.data() + 8 * i, static_cast<std::int64_t>(tokens[i]));
  }
  zip_error_t error;
  zip_error_init(&error);
  const Source target(zip_source_buffer_create(nullptr, 0, 0, &error));
  if (!target) return writing_failed();
  Archive archive(zip_open_from_source(target.get(), ZIP_CREATE | ZIP_TRUNCATE, &error));
  zip_error_fini(&error);
  if (!archive) return writing_failed();
  zip_source_keep(target.get());  // closing the archive gives up its own reference
  NS_RETURN_IF_ERROR(add_entry(archive.get(), "archive/data.pkl", pickle));
  NS_RETURN_IF_ERROR(add_entry(archive.get(), "archive/byteorder", as_bytes(std::string_view("little"))));
  NS_RETURN_IF_ERROR(add_entry(archive.get(), "archive/data/0", values));
  NS_RETURN_IF_ERROR(add_entry(archive.get(), "archive/version", as_bytes(std::string_view("3\n"))));
  if (zip_close(archive.get()) != 0) return writing_failed();
  archive.release();
  return read_source(target.get());
}

Expected<std::vector<std::int32_t>> decode_pt(ByteSpan file, std::uint64_t max_tokens) {
  NS_ASSIGN_OR_RETURN(const Archive archive, open_archive(file));
  NS_ASSIGN_OR_RETURN(const std::string folder, find_folder(archive.get()));
  NS_ASSIGN_OR_RETURN(const Bytes pickle,
                      read_entry(archive.get(), folder + "data.pkl", detail::max_pickle_bytes, nullptr));
  NS_ASSIGN_OR_RETURN(const detail::PickledTensor tensor, detail::read_tensor_pickle(pickle));
  if (tensor.storage_items > max_tokens) {
    return make_error(ErrorCode::Exhausted, fmt::format("the shard has {} tokens; at most {} are accepted",
                                                        tensor.storage_items, max_tokens));
  }
  const std::uint64_t bytes = tensor.storage_items * tensor.item_size;
  NS_ASSIGN_OR_RETURN(const Bytes storage,
                      read_entry(archive.get(), folder + "data/" + tensor.storage_key, bytes, &bytes));
  return tensor.item_size == 8 ? to_tokens<std::int64_t>(storage, tensor)
                               : to_tokens<std::int32_t>(storage, tensor);
}

}  // namespace neuroshard::data
