// Finds the text below a path and decides, once, how each file is used: which bytes train and which are held
// out.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/expected.h"
#include "core/data/manifest.h"
#include "core/data/text_import.h"
#include "core/data/word_counts.h"
#include "core/storage/file_env.h"

namespace neuroshard::data::detail {

inline constexpr std::uint32_t max_folder_depth = 32;  // links may form loops
inline constexpr std::uint64_t max_corpus_files = 4'000'000;
inline constexpr std::uint64_t max_corpus_folders = 1'000'000;  // loops of links can branch
inline constexpr std::size_t max_skipped_examples = 8;
inline constexpr std::size_t max_sample_bytes = 300;
inline constexpr std::size_t read_chunk_bytes = 1u << 20;

// Files shorter than this are not recognised when they have grown.
inline constexpr std::size_t head_bytes = 1024;

// A folder with files of both names is a data directory of a node, with its keys, settings and logs.
inline constexpr std::array<std::string_view, 2> data_directory_files = {"FORMAT", "node.key"};

// One file of text. [start, cut) trains, [cut, bytes) is held out: the last 10 % or a little more, so that
// the cut falls behind a line break where one is near, else between two characters.
struct Document {
  std::string path;
  std::uint64_t bytes = 0;
  std::uint64_t start = 0;  // what lies before is in another document, or was imported before
  std::uint64_t cut = 0;
  Hash256 content{};  // SHA-256 of the file
  std::string head;   // hexadecimal hash of its first head_bytes; empty if it is shorter

  std::uint64_t begin(Split split) const { return split == Split::Train ? start : cut; }
  std::uint64_t end(Split split) const { return split == Split::Train ? cut : bytes; }
};

struct Corpus {
  // Each content once. Ordered by content hash, so that a shard mixes text from everywhere and the order does
  // not depend on where the files lie.
  std::vector<Document> documents;
  TextSummary summary;
  std::string root;  // the path that was scanned

  std::uint64_t bytes(Split split) const;
  // The documents at these places can't be read any more: they go, and count as unreadable.
  void leave_out(const std::set<std::uint64_t>& places);
};

// Documents that are gone or became shorter since the scan, which says nothing about others. Where the scanned
// folder lists nothing any more, its disk may be away for a while, with all of the text. The folder may have very
// many files, so it is listed once for many losses.
class Losses {
 public:
  Losses(storage::FileEnv& env, const Corpus& corpus) : env_(env), root_(corpus.root) {}
  // Reading a document failed so. Gives the error back if it means more than this document.
  Expected<void> note(const Error& error);
  // The documents noted since the last call are lost. Else their first error: the folder lists nothing.
  Expected<void> check();

 private:
  storage::FileEnv& env_;
  const std::string root_;
  std::optional<Error> first_;  // not checked yet
};

// Reads every file below `path` once. Text is UTF-8 without NUL; up to one bad byte in a thousand is
// forgiven, since tokens are bytes and one slip should not cost a book. Names that begin with a dot are left
// out, and so are data directories of nodes. NotFound: no such path. InvalidArgument: no text in it, or it
// is a data directory. on_file: files seen so far.
Expected<Corpus> scan_corpus(storage::FileEnv& env, const std::string& path,
                             const std::function<void(std::uint64_t)>& on_file, const CancelToken& cancel);

// Texts by how they begin: head -> lengths. The hashes of the whole texts are `contents`.
struct KnownTexts {
  std::map<std::string, std::set<std::uint64_t>> lengths;
  std::set<std::string> contents;

  void add(const Document& document);
};

// A text that continues a known one (a file that has grown, or lies beside an older copy) gives only what is
// new: its known part has its held-out end already, which must not become text to train on. Lost documents
// are left out.
Expected<void> leave_out_known_beginnings(storage::FileEnv& env, const KnownTexts& known, Corpus* corpus,
                                          const CancelToken& cancel);

// The train part of a corpus as pieces of text to learn merges from, until `limit` bytes. A lost document
// ends early; every other error ends the text, and so does a stop.
class CorpusText final : public TextSource {
 public:
  // The corpus outlives it.
  CorpusText(storage::FileEnv& env, std::string name, const Corpus& corpus, std::uint64_t limit,
             CancelToken cancel)
      : env_(env),
        name_(std::move(name)),
        corpus_(corpus),
        left_(limit),
        cancel_(std::move(cancel)),
        losses_(env, corpus) {}
  std::string name() const override { return name_; }
  Expected<bool> next(Bytes* text) override;

 private:
  storage::FileEnv& env_;
  const std::string name_;
  const Corpus& corpus_;
  std::uint64_t left_;
  const CancelToken cancel_;
  Losses losses_;
  std::uint64_t unchecked_bytes_ = 0;  // read since the losses were checked
  std::size_t document_ = 0;
  std::uint64_t offset_ = 0;
};

// Replaces *piece by the text of `document` from `offset` on, at most `limit` bytes and not beyond `end`, cut
// so that the words of the pieces are the words of the whole. offset < end. Corrupt when the file has become
// shorter; what was appended since is not looked at.
Expected<void> read_piece(storage::FileEnv& env, const Document& document, std::uint64_t offset,
                          std::uint64_t end, std::size_t limit, Bytes* piece);

}  // namespace neuroshard::data::detail
