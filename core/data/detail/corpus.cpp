#include "core/data/detail/corpus.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/crypto/hash.h"
#include "core/data/detail/utf8_check.h"
#include "core/data/pretokenizer.h"

namespace neuroshard::data::detail {
namespace {

constexpr std::uint64_t forgiven_bytes_per_error = 1000;
constexpr std::size_t head_hash_bytes = 8;
// Known texts with one head that are compared with a new one, longest first: many files share a licence.
constexpr std::size_t max_beginnings = 16;
// How far before the 90 % mark a line break is looked for: at most a twentieth of the file.
constexpr std::uint64_t max_line_search = 4096;
// Text to learn from between two looks whether the disk is there.
constexpr std::uint64_t checked_bytes = 8u << 20;

Error cancelled() {
  return make_error(ErrorCode::Cancelled, "reading the text was stopped");
}

void note_skipped(TextSummary* summary, std::uint64_t* counter, const std::string& path) {
  ++*counter;
  if (summary->skipped_examples.size() < max_skipped_examples) summary->skipped_examples.push_back(path);
}

bool is_data_directory(const std::vector<storage::DirectoryEntry>& entries) {
  return std::all_of(data_directory_files.begin(), data_directory_files.end(), [&](std::string_view name) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const auto& entry) { return entry.name == name && !entry.is_directory; });
  });
}

Expected<std::uint64_t> find_cut(storage::ReadableFile& file, std::uint64_t start, std::uint64_t size) {
  const std::uint64_t length = size - start;
  const std::uint64_t mark = size - (length + 9) / 10;
  const std::uint64_t reach =
      std::min({max_line_search, std::max<std::uint64_t>(length / 20, 4), mark - start});
  Bytes text(static_cast<std::size_t>(reach) + 1);
  NS_RETURN_IF_ERROR(file.read_at(mark - reach, text));
  for (std::size_t i = text.size() - 1; i-- > 0;) {
    if (text[i] == '\n') return mark - reach + i + 1;
  }
  return mark - reach + character_start(text, text.size() - 1);
}

Expected<Hash256> hash_of_beginning(storage::ReadableFile& file, std::uint64_t length,
                                    const CancelToken& cancel) {
  crypto::Sha256 hash;
  Bytes buffer;
  for (std::uint64_t at = 0; at < length; at += buffer.size()) {
    if (cancel.cancelled()) return cancelled();
    buffer.resize(static_cast<std::size_t>(std::min<std::uint64_t>(read_chunk_bytes, length - at)));
    NS_RETURN_IF_ERROR(file.read_at(at, buffer));
    hash.update(buffer);
  }
  return hash.finish();
}

// The length of the longest known text that the document begins with; 0: none.
Expected<std::uint64_t> known_beginning(storage::ReadableFile& file, const KnownTexts& known,
                                        const Document& document, const CancelToken& cancel) {
  const auto found = known.lengths.find(document.head);
  if (document.head.empty() || found == known.lengths.end()) return std::uint64_t{0};
  auto length = found->second.lower_bound(document.bytes);
  for (std::size_t tried = 0; tried < max_beginnings && length != found->second.begin(); ++tried) {
    --length;
    NS_ASSIGN_OR_RETURN(const Hash256 hash, hash_of_beginning(file, *length, cancel));
    if (known.contents.count(to_hex(hash)) != 0) return *length;
  }
  return std::uint64_t{0};
}

class Scanner {
 public:
  Scanner(storage::FileEnv& env, const std::function<void(std::uint64_t)>& on_file, const CancelToken& cancel)
      : env_(env), on_file_(on_file), cancel_(cancel), buffer_(read_chunk_bytes) {}

  Expected<void> folder(const std::string& path, std::uint32_t depth) {
    if (cancel_.cancelled()) return cancelled();
    if (++folders_ > max_corpus_folders) {
      return make_error(
          ErrorCode::Exhausted,
          fmt::format(
              "there are more than {} folders (a loop of links counts repeatedly); choose a smaller folder",
              max_corpus_folders));
    }
    auto entries = env_.list(path);
    if (!entries.ok()) {
      if (depth == 0) return std::move(entries).error();
      skip(&corpus.summary.skipped_unreadable, path);
      return {};
    }
    if (is_data_directory(*entries)) {
      if (depth > 0) return {};
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("{} is the data directory of a node, with its private files; choose a "
                                    "folder of text",
                                    path));
    }
    for (const storage::DirectoryEntry& entry : *entries) {
      if (entry.name.empty() || entry.name.front() == '.') continue;
      const std::string below = path + "/" + entry.name;
      if (!entry.is_directory) {
        NS_RETURN_IF_ERROR(file(below));
      } else if (depth < max_folder_depth) {
        NS_RETURN_IF_ERROR(folder(below, depth + 1));
      } else {
        skip(&corpus.summary.skipped_unreadable, below);
      }
    }
    return {};
  }

  Expected<void> file(const std::string& path) {
    if (cancel_.cancelled()) return cancelled();
    if (++seen_ > max_corpus_files) {
      return make_error(
          ErrorCode::Exhausted,
          fmt::format("there are more than {} files; choose a smaller folder", max_corpus_files));
    }
    if (on_file_ && seen_ % 64 == 0) on_file_(seen_);
    auto opened = env_.open_read(path);
    if (!opened.ok()) {
      skip(&corpus.summary.skipped_unreadable, path);
      return {};
    }
    return examine(path, **opened);
  }

  Corpus corpus;

 private:
  void skip(std::uint64_t* counter, const std::string& path) { note_skipped(&corpus.summary, counter, path); }

  Expected<void> examine(const std::string& path, storage::ReadableFile& file) {
    Document document;
    document.path = path;
    document.bytes = file.size();
    if (document.bytes == 0) {
      skip(&corpus.summary.skipped_empty, path);
      return {};
    }
    Utf8Check check;
    crypto::Sha256 hash;
    for (std::uint64_t at = 0; at < document.bytes; at += read_chunk_bytes) {
      if (cancel_.cancelled()) return cancelled();
      const MutableByteSpan chunk(buffer_.data(), static_cast<std::size_t>(std::min<std::uint64_t>(
                                                      read_chunk_bytes, document.bytes - at)));
      if (!file.read_at(at, chunk).ok()) {
        skip(&corpus.summary.skipped_unreadable, path);
        return {};
      }
      const ByteSpan bytes(chunk.data(), chunk.size());
      check.add(bytes);
      hash.update(bytes);
      if (check.nul_bytes() > 0) break;
      if (at == 0 && bytes.size() >= head_bytes) {
        document.head = to_hex(ByteSpan(crypto::sha256(bytes.first(head_bytes))).first(head_hash_bytes));
      }
      if (at == 0 && corpus.summary.sample.empty())
        candidate_.assign(bytes.begin(), bytes.begin() + sample_end(bytes));
    }
    check.finish();
    if (check.nul_bytes() > 0 || check.errors() * forgiven_bytes_per_error > document.bytes) {
      candidate_.clear();
      skip(&corpus.summary.skipped_binary, path);
      return {};
    }
    if (corpus.summary.sample.empty()) corpus.summary.sample.assign(candidate_.begin(), candidate_.end());
    document.content = hash.finish();
    auto cut = find_cut(file, 0, document.bytes);
    if (!cut.ok()) {
      skip(&corpus.summary.skipped_unreadable, path);
      return {};
    }
    document.cut = *cut;
    ++corpus.summary.files;
    corpus.summary.bytes += document.bytes;
    corpus.documents.push_back(std::move(document));
    return {};
  }

  static std::ptrdiff_t sample_end(ByteSpan bytes) {
    const std::size_t end =
        bytes.size() <= max_sample_bytes ? bytes.size() : character_start(bytes, max_sample_bytes);
    return static_cast<std::ptrdiff_t>(end);
  }

  storage::FileEnv& env_;
  const std::function<void(std::uint64_t)>& on_file_;
  const CancelToken& cancel_;
  Bytes buffer_;
  Bytes candidate_;
  std::uint64_t seen_ = 0;
  std::uint64_t folders_ = 0;
};

}  // namespace

std::uint64_t Corpus::bytes(Split split) const {
  std::uint64_t sum = 0;
  for (const Document& document : documents) sum += document.end(split) - document.begin(split);
  return sum;
}

void Corpus::leave_out(const std::set<std::uint64_t>& places) {
  std::vector<Document> kept;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (places.count(i) == 0) {
      kept.push_back(std::move(documents[i]));
      continue;
    }
    --summary.files;
    summary.bytes -= documents[i].bytes;
    note_skipped(&summary, &summary.skipped_unreadable, documents[i].path);
  }
  documents = std::move(kept);
}

Expected<void> Losses::note(const Error& error) {
  if (error.code != ErrorCode::NotFound && error.code != ErrorCode::Corrupt) return error;
  if (!first_) first_ = error;
  return {};
}

Expected<void> Losses::check() {
  if (!first_) return {};
  // A disk that is not mounted leaves an empty folder.
  const auto entries = env_.list(root_);
  if (!entries.ok() || entries->empty()) return *first_;
  first_.reset();
  return {};
}

Expected<Corpus> scan_corpus(storage::FileEnv& env, const std::string& path,
                             const std::function<void(std::uint64_t)>& on_file, const CancelToken& cancel) {
  if (!env.exists(path)) {
    return make_error(ErrorCode::NotFound, fmt::format("file or folder {} not found", path));
  }
  Scanner scanner(env, on_file, cancel);
  if (env.list(path).ok()) {
    NS_RETURN_IF_ERROR(scanner.folder(path, 0));
  } else {
    auto readable = env.open_read(path);
    if (!readable.ok()) return std::move(readable).error();
    NS_RETURN_IF_ERROR(scanner.file(path));
  }
  Corpus corpus = std::move(scanner.corpus);
  corpus.root = path;
  const TextSummary& summary = corpus.summary;
  if (corpus.documents.empty()) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("there is no text in {}: {} files are not UTF-8 text, {} are empty, {} can't be read",
                    path, summary.skipped_binary, summary.skipped_empty, summary.skipped_unreadable));
  }
  std::sort(corpus.documents.begin(), corpus.documents.end(), [](const Document& a, const Document& b) {
    return a.content != b.content ? a.content < b.content : a.path < b.path;
  });
  corpus.documents.erase(
      std::unique(corpus.documents.begin(), corpus.documents.end(),
                  [](const Document& a, const Document& b) { return a.content == b.content; }),
      corpus.documents.end());
  return corpus;
}

void KnownTexts::add(const Document& document) {
  contents.insert(to_hex(document.content));
  if (!document.head.empty()) lengths[document.head].insert(document.bytes);
}

namespace {

Expected<void> leave_out_known_beginning(storage::FileEnv& env, const KnownTexts& known, Document* document,
                                         const CancelToken& cancel) {
  NS_ASSIGN_OR_RETURN(const auto file, env.open_read(document->path));
  NS_ASSIGN_OR_RETURN(document->start, known_beginning(*file, known, *document, cancel));
  if (document->start == 0) return {};
  NS_ASSIGN_OR_RETURN(document->cut, find_cut(*file, document->start, document->bytes));
  return {};
}

}  // namespace

Expected<void> leave_out_known_beginnings(storage::FileEnv& env, const KnownTexts& known, Corpus* corpus,
                                          const CancelToken& cancel) {
  std::set<std::uint64_t> lost;
  Losses losses(env, *corpus);
  for (std::size_t i = 0; i < corpus->documents.size(); ++i) {
    if (cancel.cancelled()) return cancelled();
    Document& document = corpus->documents[i];
    if (known.lengths.count(document.head) == 0) continue;
    const auto found = leave_out_known_beginning(env, known, &document, cancel);
    if (found.ok()) continue;
    NS_RETURN_IF_ERROR(losses.note(found.error()));
    lost.insert(i);
  }
  NS_RETURN_IF_ERROR(losses.check());
  if (!lost.empty()) corpus->leave_out(lost);
  return {};
}

Expected<void> read_piece(storage::FileEnv& env, const Document& document, std::uint64_t offset,
                          std::uint64_t end, std::size_t limit, Bytes* piece) {
  NS_CHECK(offset < end && limit > 0);
  NS_ASSIGN_OR_RETURN(const auto file, env.open_read(document.path));
  if (file->size() < document.bytes) {
    return make_error(
        ErrorCode::Corrupt,
        fmt::format("{} became shorter while it was being read; run the command again", document.path));
  }
  const std::uint64_t left = end - offset;
  piece->resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, limit)));
  NS_RETURN_IF_ERROR(file->read_at(offset, *piece));
  if (piece->size() < left) {
    const std::size_t cut = find_word_cut(*piece, piece->size() - 1);
    if (cut > 0) piece->resize(cut);
  }
  return {};
}

Expected<bool> CorpusText::next(Bytes* text) {
  while (document_ < corpus_.documents.size() && left_ > 0) {
    if (cancel_.cancelled()) return cancelled();
    const Document& document = corpus_.documents[document_];
    const std::uint64_t end = document.end(Split::Train);
    offset_ = std::max(offset_, document.begin(Split::Train));
    if (offset_ >= end) {
      ++document_;
      offset_ = 0;
      continue;
    }
    const auto read = read_piece(env_, document, offset_, end, read_chunk_bytes, text);
    if (!read.ok()) {
      NS_RETURN_IF_ERROR(losses_.note(read.error()));
      offset_ = end;
      continue;
    }
    offset_ += text->size();
    left_ -= std::min<std::uint64_t>(left_, text->size());
    unchecked_bytes_ += text->size();
    if (unchecked_bytes_ < checked_bytes) return true;
    unchecked_bytes_ = 0;
    NS_RETURN_IF_ERROR(losses_.check());
    return true;
  }
  NS_RETURN_IF_ERROR(losses_.check());
  return false;
}

}  // namespace neuroshard::data::detail
