#include "core/rendezvous/mdns_message.h"

#include <algorithm>
#include <map>

#include "core/base/check.h"

namespace neuroshard::rendezvous {
namespace {

constexpr std::uint16_t type_a = 1, type_ptr = 12, type_txt = 16, type_srv = 33, type_any = 255;
constexpr std::uint16_t class_in = 1, unique = 0x8000;      // RFC 6762 §10.2: the cache-flush bit
constexpr std::uint16_t flags_answer = 0x8400;              // a response, authoritative
constexpr std::size_t head_bytes = 12, longest_name = 255;  // RFC 1035 §2.3.4
constexpr int most_jumps = 16, most_records = 128;
constexpr std::string_view network_key = "network=";

using Name = std::vector<std::string>;

const Name& service_name() {
  static const Name name{"_neuroshard", "_tcp", "local"};
  return name;
}

class Writer {
 public:
  void u8(std::size_t value) { bytes.push_back(static_cast<std::uint8_t>(value)); }
  void u16(std::size_t value) {
    u8(value >> 8);
    u8(value & 0xff);
  }
  void u32(std::uint32_t value) {
    u16(value >> 16);
    u16(value & 0xffff);
  }
  void text(std::string_view value) {
    NS_CHECK(!value.empty() && value.size() < 256);
    u8(value.size());
    bytes.insert(bytes.end(), value.begin(), value.end());
  }
  void name(const Name& labels) {
    for (const std::string& label : labels) text(label);
    u8(0);
  }
  void record(const Name& owner, std::uint16_t type, std::uint16_t record_class, std::uint32_t ttl,
              const Writer& data) {
    name(owner);
    u16(type);
    u16(record_class);
    u32(ttl);
    u16(data.bytes.size());
    bytes.insert(bytes.end(), data.bytes.begin(), data.bytes.end());
  }
  Bytes bytes;
};

class Reader {
 public:
  explicit Reader(ByteSpan all, std::size_t at = 0) : all_(all), at_(at) {}
  std::size_t at() const { return at_; }
  bool good() const { return good_; }
  std::uint8_t u8() {
    if (at_ >= all_.size()) {
      good_ = false;
      return 0;
    }
    return all_[at_++];
  }
  std::uint16_t u16() {
    const std::uint16_t high = u8();
    return static_cast<std::uint16_t>(high << 8 | u8());
  }
  std::uint32_t u32() {
    const std::uint32_t high = u16();
    return high << 16 | u16();
  }
  void skip(std::size_t count) {
    if (count > all_.size() - at_) good_ = false;
    if (good_) at_ += count;
  }
  // In lower case: names of DNS are the same in both (RFC 1035 §2.3.3).
  Name name() {
    Name labels;
    std::size_t from = at_, size = 0;
    bool jumped = false;
    for (int jumps = 0; good_;) {
      if (from >= all_.size()) return fail();
      const std::size_t length = all_[from];
      if (length == 0) {
        if (!jumped) at_ = from + 1;
        return labels;
      }
      if (length >= 0xc0) {
        if (from + 1 >= all_.size() || ++jumps > most_jumps) return fail();
        if (!jumped) at_ = from + 2;
        jumped = true;
        from = (length & 0x3f) << 8 | all_[from + 1];
        continue;
      }
      size += length + 1;
      if (length > 63 || size > longest_name || length > all_.size() - from - 1) return fail();
      std::string label(as_text(all_.subspan(from + 1, length)));
      for (char& c : label)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
      labels.push_back(std::move(label));
      from += length + 1;
    }
    return fail();
  }

 private:
  Name fail() {
    good_ = false;
    return {};
  }
  ByteSpan all_;
  std::size_t at_;
  bool good_ = true;
};

bool is_instance(const Name& name) {
  return name.size() == 1 + service_name().size() &&
         std::equal(name.begin() + 1, name.end(), service_name().begin());
}

// The known parts of one instance while its records are read.
struct Parts {
  std::uint16_t port = 0;
  std::optional<Hash256> network_id;
};

// A list of texts, each after its length.
std::optional<Hash256> read_txt(ByteSpan data) {
  while (!data.empty()) {
    const std::size_t length = data[0];
    if (length > data.size() - 1) return std::nullopt;
    const std::string_view text = as_text(data.subspan(1, length));
    if (text.substr(0, network_key.size()) == network_key) {
      const auto id = hash_from_hex(text.substr(network_key.size()));
      return id.ok() ? std::optional<Hash256>(*id) : std::nullopt;
    }
    data = data.subspan(1 + length);
  }
  return std::nullopt;
}

}  // namespace

Bytes encode_mdns_question() {
  Writer out;
  for (const std::size_t value : {0, 0, 1, 0, 0, 0}) out.u16(value);
  out.name(service_name());
  out.u16(type_ptr);
  out.u16(class_in);
  return out.bytes;
}

Bytes encode_mdns_answer(const MdnsService& service, std::uint32_t ttl) {
  NS_CHECK(!service.instance.empty() && service.instance.size() <= 63 && service.port != 0);
  Name instance = service_name();
  instance.insert(instance.begin(), service.instance);
  const Name host{"neuroshard-" + service.instance.substr(0, 40), "local"};
  Writer out;
  const bool has_address = service.address.is_v4();
  for (const std::size_t value : {std::size_t{0}, std::size_t{flags_answer}, std::size_t{0},
                                  std::size_t{has_address ? 4u : 3u}, std::size_t{0}, std::size_t{0}})
    out.u16(value);
  Writer pointer, place, text, address;
  pointer.name(instance);
  out.record(service_name(), type_ptr, class_in, ttl, pointer);
  for (const std::size_t value : {std::size_t{0}, std::size_t{0}, std::size_t{service.port}})
    place.u16(value);
  place.name(host);
  out.record(instance, type_srv, class_in | unique, ttl, place);
  text.text(std::string(network_key) + to_hex(service.network_id));
  out.record(instance, type_txt, class_in | unique, ttl, text);
  if (has_address) {
    for (std::size_t i = 12; i < 16; ++i) address.u8(service.address.bytes[i]);
    out.record(host, type_a, class_in | unique, ttl, address);
  }
  NS_CHECK(out.bytes.size() <= max_mdns_bytes);
  return out.bytes;
}

Expected<MdnsMessage> decode_mdns(ByteSpan bytes) {
  const auto corrupt = [] {
    return make_error(ErrorCode::Corrupt, "this is not a message of multicast DNS");
  };
  if (bytes.size() < head_bytes) return corrupt();
  Reader in(bytes);
  in.u16();  // the id says nothing here
  const std::uint16_t flags = in.u16();
  const int questions = in.u16();
  const int records = in.u16() + in.u16() + in.u16();
  if (questions > most_records || records > most_records) return corrupt();
  MdnsMessage message;
  for (int i = 0; i < questions; ++i) {
    const Name name = in.name();
    const std::uint16_t type = in.u16();
    in.u16();
    if (!in.good()) return corrupt();
    message.question |=
        (flags & 0x8000) == 0 && name == service_name() && (type == type_ptr || type == type_any);
  }
  std::map<std::string, Parts> found;
  for (int i = 0; i < records; ++i) {
    const Name owner = in.name();
    const std::uint16_t type = in.u16();
    in.u16();
    const std::uint32_t ttl = in.u32();
    const std::size_t size = in.u16();
    const std::size_t begin = in.at();
    in.skip(size);
    if (!in.good()) return corrupt();
    if (!is_instance(owner) || ttl == 0 || (flags & 0x8000) == 0) continue;
    if (found.size() >= max_mdns_services && found.count(owner[0]) == 0) continue;
    if (type == type_srv && size > 6) {
      Reader data(bytes, begin + 4);
      found[owner[0]].port = data.u16();
    } else if (type == type_txt) {
      found[owner[0]].network_id = read_txt(bytes.subspan(begin, size));
    }
  }
  for (const auto& [instance, parts] : found)
    if (parts.port != 0 && parts.network_id)
      message.services.push_back({instance, *parts.network_id, parts.port, {}});
  return message;
}

}  // namespace neuroshard::rendezvous
