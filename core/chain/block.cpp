#include "core/chain/block.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "core/chain/ascending.h"
#include "core/chain/detail/close_bytes.h"
#include "core/chain/detail/formats.h"
#include "core/crypto/merkle.h"

namespace neuroshard::chain {
namespace {

constexpr std::string_view magic = "NSBK";
constexpr std::uint16_t version = 1;

// In this order; an empty section has no bytes.
enum Section {
  Genesis,
  Succession,
  Close,
  Result,
  Silent,
  Statements,
  Evidences,
  Plan,
  Receipts,
  Transfers,
  Count_
};
constexpr std::size_t least_statement_bytes = 32 + reference_bytes + 1 + 64;
constexpr std::size_t least_evidence_bytes = 32 + 1 + 32 + 8 + 4 + 64;  // and some more of each kind

auto header_fields(auto& header) {
  return std::tie(header.height, header.previous, header.time_ms, header.body, header.registry);
}

// A count u32 and the items, each behind its length.
template <class Item>
Bytes parts_bytes(const std::vector<Item>& items, Bytes (*encode)(const Item&)) {
  Bytes bytes;
  append_le(bytes, static_cast<std::uint32_t>(items.size()));
  for (const Item& item : items) append_part(bytes, encode(item));
  return bytes;
}
template <class Item>
Expected<std::vector<Item>> read_parts(ByteReader& in, std::size_t least_bytes, std::size_t most,
                                       Expected<Item> (*decode)(ByteSpan)) {
  std::vector<Item> items;
  const std::size_t count = in.count(4 + least_bytes, most);
  for (std::size_t i = 0; in.good() && i < count; ++i) {
    NS_ASSIGN_OR_RETURN(Item item, decode(in.part()));
    items.push_back(std::move(item));
  }
  return items;
}

Bytes genesis_bytes(const GenesisSection& genesis) {
  Bytes bytes = parts_bytes(genesis.founders, encode_statement);
  append_le(bytes, static_cast<std::uint32_t>(genesis.anchors.size()));
  for (const Hash256& anchor : genesis.anchors) append_array(bytes, anchor);
  append_array(bytes, genesis.tokenizer);
  return bytes;
}

Bytes result_bytes(const ResultSection& result) {
  Bytes bytes;
  append_le(bytes, result.round);
  append_results(bytes, result.rows);
  return bytes;
}

Bytes numbers_bytes(const std::vector<std::uint32_t>& numbers) {
  Bytes bytes;
  append_numbers(bytes, numbers);
  return bytes;
}

std::array<Bytes, Count_> sections_of(const BlockBody& body) {
  std::array<Bytes, Count_> sections;
  if (body.genesis) sections[Genesis] = genesis_bytes(*body.genesis);
  if (body.succession) sections[Succession] = numbers_bytes(body.succession->continuing);
  if (body.close) sections[Close] = encode_close(*body.close);
  if (body.result) sections[Result] = result_bytes(*body.result);
  if (!body.silent.empty()) sections[Silent] = numbers_bytes(body.silent);
  if (!body.statements.empty()) sections[Statements] = parts_bytes(body.statements, encode_statement);
  if (!body.evidence.empty()) sections[Evidences] = parts_bytes(body.evidence, encode_evidence);
  return sections;
}

template <class Sections>
Hash256 root_of(const Sections& sections, const Hash256& opening) {
  std::vector<Hash256> leaves = {crypto::merkle_leaf(opening)};
  for (const auto& section : sections) leaves.push_back(crypto::merkle_leaf(section));
  return crypto::merkle_root(leaves);
}

bool is_founder(const Statement& statement) {
  return std::holds_alternative<Register>(statement.what) && statement.reference == BlockReference{};
}

Expected<GenesisSection> read_genesis(ByteSpan bytes) {
  ByteReader in(bytes);
  GenesisSection genesis;
  NS_ASSIGN_OR_RETURN(genesis.founders,
                      read_parts(in, least_statement_bytes, max_block_statements, decode_statement));
  const bool are_founders = std::all_of(genesis.founders.begin(), genesis.founders.end(), is_founder);
  if (!are_founders || !is_ascending(genesis.founders, &Statement::node)) in.fail();
  genesis.anchors.resize(in.count(sizeof(Hash256), max_rows));
  for (Hash256& anchor : genesis.anchors) anchor = in.array<Hash256>();
  genesis.tokenizer = in.array<Hash256>();
  if (!in.at_end()) return corrupt("a genesis can't be read");
  return genesis;
}

Expected<ResultSection> read_result(ByteSpan bytes) {
  ByteReader in(bytes);
  ResultSection result;
  result.round = in.number<std::uint64_t>();
  result.rows = read_results(in, max_rows);
  if (!in.at_end() || !is_ascending(result.rows, &RowResult::row))
    return corrupt("a round's result can't be read");
  return result;
}

Expected<std::vector<std::uint32_t>> read_only_numbers(ByteSpan bytes, std::size_t most) {
  ByteReader in(bytes);
  std::vector<std::uint32_t> numbers = read_numbers(in, most);
  if (!in.at_end()) return corrupt("a block's list of members can't be read");
  return numbers;
}

Expected<std::vector<Statement>> read_statements(ByteSpan bytes) {
  ByteReader in(bytes);
  NS_ASSIGN_OR_RETURN(std::vector<Statement> statements,
                      read_parts(in, least_statement_bytes, max_block_statements, decode_statement));
  std::set<crypto::PublicKey> nodes;
  for (const Statement& statement : statements)
    if (!nodes.insert(statement.node).second) in.fail();
  if (!in.at_end() || statements.empty()) return corrupt("a block's statements can't be read");
  return statements;
}

Expected<std::vector<Evidence>> read_evidence(ByteSpan bytes) {
  ByteReader in(bytes);
  NS_ASSIGN_OR_RETURN(std::vector<Evidence> all,
                      read_parts(in, least_evidence_bytes, max_block_evidence, decode_evidence));
  if (!in.at_end() || all.empty() || !is_ascending(all, &Evidence::node))
    return corrupt("a block's evidence can't be read");
  return all;
}

Expected<std::array<ByteSpan, Count_>> split(ByteSpan bytes) {
  if (bytes.size() > max_body_bytes) return corrupt("a block's body is too large");
  ByteReader in(bytes);
  std::array<ByteSpan, Count_> sections;
  for (ByteSpan& section : sections) section = in.part();
  if (!in.at_end()) return corrupt("a block's body can't be read");
  for (const Section reserved : {Plan, Receipts, Transfers}) {
    if (!sections[reserved].empty())
      return make_error(ErrorCode::Unsupported,
                        "a block has a section that this program does not know; update it");
  }
  return sections;
}

// Genesis and succession stand alone; a close ends what only a later block can have the result of.
bool fits_together(const std::array<ByteSpan, Count_>& sections) {
  const auto used = std::count_if(sections.begin(), sections.end(),
                                  [](const ByteSpan& section) { return !section.empty(); });
  const bool alone = !sections[Genesis].empty() || !sections[Succession].empty();
  return (!alone || used == 1) && (sections[Close].empty() || sections[Result].empty());
}

Expected<BlockBody> read_body(const std::array<ByteSpan, Count_>& sections, const Hash256& opening) {
  if (!fits_together(sections)) return corrupt("a block has sections that exclude each other");
  BlockBody body;
  if (!sections[Genesis].empty()) {
    NS_ASSIGN_OR_RETURN(body.genesis, read_genesis(sections[Genesis]));
  }
  if (!sections[Succession].empty()) {
    body.succession.emplace();
    NS_ASSIGN_OR_RETURN(body.succession->continuing, read_only_numbers(sections[Succession], max_committee));
  }
  if (!sections[Close].empty()) {
    NS_ASSIGN_OR_RETURN(body.close, decode_close(sections[Close], opening));
  }
  if (!sections[Result].empty()) {
    NS_ASSIGN_OR_RETURN(body.result, read_result(sections[Result]));
  }
  if (!sections[Silent].empty()) {
    NS_ASSIGN_OR_RETURN(body.silent, read_only_numbers(sections[Silent], max_committee));
    if (body.silent.empty()) return corrupt("a block has an empty list of silent voters");
  }
  if (!sections[Statements].empty()) {
    NS_ASSIGN_OR_RETURN(body.statements, read_statements(sections[Statements]));
  }
  if (!sections[Evidences].empty()) {
    NS_ASSIGN_OR_RETURN(body.evidence, read_evidence(sections[Evidences]));
  }
  return body;
}

bool is_presence(const Statement& statement) {
  return std::holds_alternative<Away>(statement.what) || std::holds_alternative<Back>(statement.what);
}

}  // namespace

Bytes encode_header(const BlockHeader& header) {
  Bytes bytes(magic.begin(), magic.end());
  bytes.reserve(header_bytes);
  append_le(bytes, version);
  append_record(bytes, header_fields(header));
  return bytes;
}

Expected<BlockHeader> decode_header(ByteSpan bytes) {
  if (bytes.size() < magic.size() + sizeof version || as_text(bytes.first(magic.size())) != magic)
    return corrupt("this is not a block");
  ByteReader in(bytes.subspan(magic.size()));
  const auto its_version = in.number<std::uint16_t>();
  if (its_version > version)
    return make_error(ErrorCode::Unsupported, "a block has a newer version; update this program");
  BlockHeader header;
  in.read(header_fields(header));
  const bool is_genesis = header.height == 0;
  if (!in.at_end() || its_version != version || is_genesis != (header.previous == Hash256{}))
    return corrupt("a block's header can't be read");
  return header;
}

Hash256 block_hash(const BlockHeader& header, const Hash256& network) {
  Bytes bytes(network.begin(), network.end());
  append_array(bytes, encode_header(header));
  return tagged_hash("neuroshard/chain/block/1", bytes);
}

bool BlockBody::is_presence_only() const {
  return !empty() && !genesis && !succession && !close && !result && evidence.empty() &&
         std::all_of(statements.begin(), statements.end(), is_presence);
}

bool BlockBody::empty() const {
  return !genesis && !succession && !close && !result && silent.empty() && statements.empty() &&
         evidence.empty();
}

Bytes encode_body(const BlockBody& body) {
  Bytes bytes;
  for (const Bytes& section : sections_of(body)) append_part(bytes, section);
  return bytes;
}

Expected<BlockBody> decode_body(ByteSpan bytes, const Hash256& opening) {
  NS_ASSIGN_OR_RETURN(const auto sections, split(bytes));
  return read_body(sections, opening);
}

Hash256 body_root(const BlockBody& body, const Hash256& opening) {
  return root_of(sections_of(body), opening);
}

BlockPtr make_block(BlockHeader header, BlockBody body, const Hash256& opening, const Hash256& network) {
  const Hash256 hash = block_hash(header, network);
  return std::make_shared<const Block>(Block{header, std::move(body), hash, opening});
}

Bytes encode_block(const Block& block) {
  Bytes bytes = encode_header(block.header);
  append_array(bytes, block.opening);
  append_array(bytes, encode_body(block.body));
  return bytes;
}

Expected<BlockPtr> decode_block(ByteSpan bytes, const Hash256& network) {
  if (bytes.size() > max_block_bytes) return corrupt("a block is too large");
  ByteReader in(bytes);
  const ByteSpan head = in.bytes(header_bytes);
  const auto opening = in.array<Hash256>();
  const ByteSpan rest = in.rest();
  if (!in.good()) return corrupt("a block can't be read");
  NS_ASSIGN_OR_RETURN(const BlockHeader header, decode_header(head));
  if ((header.height == 0) != (opening == Hash256{})) return corrupt("a block names a wrong opening block");
  NS_ASSIGN_OR_RETURN(const auto sections, split(rest));
  if (root_of(sections, opening) != header.body) return corrupt("a block's body is not its header's");
  NS_ASSIGN_OR_RETURN(BlockBody body, read_body(sections, opening));
  return make_block(header, std::move(body), opening, network);
}

}  // namespace neuroshard::chain
