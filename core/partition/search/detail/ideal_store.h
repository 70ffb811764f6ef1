// The ideals that a search has reached, each with the devices used and the ideal before it. One hash table.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace neuroshard::partition::detail {

class IdealStore {
 public:
  // Starts with the empty ideal, root().
  explicit IdealStore(std::size_t words) : words_(words), table_(1024, empty) {
    const std::vector<std::uint64_t> none(words);
    insert(none.data(), 0, 0, 0);
  }

  std::uint32_t root() const { return 0; }
  const std::uint64_t* bits(std::uint32_t state) const { return bits_.data() + state * words_; }
  std::uint64_t used(std::uint32_t state) const { return entries_[state].used; }
  std::uint32_t parent(std::uint32_t state) const { return entries_[state].parent; }
  std::uint32_t kind(std::uint32_t state) const { return entries_[state].kind; }
  double score(std::uint32_t state) const { return entries_[state].score; }
  void set_score(std::uint32_t state, double score) { entries_[state].score = score; }
  std::size_t size() const { return entries_.size(); }
  std::size_t bytes() const { return size() * (words_ * sizeof(std::uint64_t) + sizeof(Entry) + 8); }

  // False when the same ideal was reached before with a set of devices that leaves as much: the same code, or
  // with one kind of device (codes are counts then) a smaller one.
  std::pair<std::uint32_t, bool> insert(const std::uint64_t* bits, std::uint64_t used, std::uint32_t parent,
                                        std::uint32_t kind, bool one_kind = false) {
    if (2 * (entries_.size() + 1) > table_.size()) grow();
    std::size_t slot = hash(bits, one_kind ? 0 : used) & (table_.size() - 1);
    for (; table_[slot] != empty; slot = (slot + 1) & (table_.size() - 1)) {
      const std::uint32_t known = table_[slot];
      if ((one_kind || entries_[known].used == used) &&
          std::memcmp(this->bits(known), bits, words_ * sizeof(std::uint64_t)) == 0) {
        return {known, false};
      }
    }
    const auto state = static_cast<std::uint32_t>(entries_.size());
    table_[slot] = state;
    entries_.push_back({used, 0, parent, kind, one_kind});
    bits_.insert(bits_.end(), bits, bits + words_);
    return {state, true};
  }

 private:
  struct Entry {
    std::uint64_t used;
    double score;
    std::uint32_t parent, kind;
    bool one_kind;
  };
  static constexpr std::uint32_t empty = ~std::uint32_t{0};

  std::uint64_t hash(const std::uint64_t* bits, std::uint64_t used) const {
    std::uint64_t h = used * 0x9e3779b97f4a7c15u;
    for (std::size_t w = 0; w < words_; ++w) {
      h = (h ^ bits[w]) * 0xff51afd7ed558ccdu;
      h ^= h >> 32;
    }
    return h;
  }
  void grow() {
    std::vector<std::uint32_t> bigger(table_.size() * 2, empty);
    for (std::uint32_t state = 0; state < entries_.size(); ++state) {
      const std::uint64_t used = entries_[state].one_kind ? 0 : entries_[state].used;
      std::size_t slot = hash(bits(state), used) & (bigger.size() - 1);
      while (bigger[slot] != empty) slot = (slot + 1) & (bigger.size() - 1);
      bigger[slot] = state;
    }
    table_ = std::move(bigger);
  }

  std::size_t words_;
  std::vector<std::uint32_t> table_;
  std::vector<Entry> entries_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace neuroshard::partition::detail
