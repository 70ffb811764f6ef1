#include "core/checkpoint/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/checkpoint/detail/layout.h"
#include "core/checkpoint/slot_index.h"
#include "core/crypto/hash.h"

namespace neuroshard::checkpoint {
namespace {

constexpr std::uint64_t progress_step = 16u << 20;

struct Destination {
  tensor::Dims dims;
  Span<float> values;  // empty: checked, not kept
};
using Destinations = std::unordered_map<std::string, Destination>;

class ProgressMeter {
 public:
  ProgressMeter(const Progress& report, const CancelToken& cancel, std::uint64_t total)
      : report_(report), cancel_(cancel), total_(total) {}
  Expected<void> add(std::uint64_t bytes) {
    if (cancel_.cancelled()) return make_error(ErrorCode::Cancelled, "stopped before the end was read");
    done_ += bytes;
    if (!report_ || (done_ - reported_ < progress_step && done_ != total_)) return {};
    reported_ = done_;
    report_(done_, total_);
    return {};
  }

 private:
  const Progress& report_;
  const CancelToken& cancel_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  std::uint64_t reported_ = 0;
};

Error corrupt(std::string message) {
  return make_error(ErrorCode::Corrupt, std::move(message));
}

// One pass over one file, in file order.
class FileReader {
 public:
  static Expected<FileReader> open(storage::FileEnv& env, const Entry& entry, const char* name,
                                   ProgressMeter& meter) {
    const FileRecord* record = entry.manifest.file(name);
    if (record == nullptr) return corrupt(fmt::format("{} is missing", name));
    NS_ASSIGN_OR_RETURN(auto file, env.open_read(entry.path + "/" + name));
    FileReader reader(std::make_unique<detail::FileSource>(std::move(file)), *record, meter);
    if (reader.source_->size() != record->bytes) return corrupt(fmt::format("{} has the wrong size", name));
    auto header = tensor::read_safetensors_header(*reader.source_);
    if (!header.ok()) {
      // A bound or a type that our own writer never reaches is damage here, whatever it is elsewhere.
      Error error = std::move(header).error();
      if (error.code != ErrorCode::Io) error.code = ErrorCode::Corrupt;
      return std::move(error).with_context(name);
    }
    reader.header_ = std::move(header).value();
    return reader;
  }

  // extra: for tensors that are in no slot; null refuses them.
  Expected<void> read(const Destinations& destinations,
                      const std::function<Expected<void>(const ExtraTensor&)>* extra) {
    NS_RETURN_IF_ERROR(pass_over(0, header_.data_offset));
    std::size_t found = 0;
    for (const tensor::TensorEntry& item : header_.tensors) {
      const auto at = destinations.find(item.spec.name);
      if (at == destinations.end()) {
        NS_RETURN_IF_ERROR(read_extra(item, extra));
        continue;
      }
      ++found;
      NS_RETURN_IF_ERROR(read_into(item, at->second));
    }
    if (found != destinations.size()) {
      return corrupt(fmt::format("{} lacks {} tensors", record_.name, destinations.size() - found));
    }
    if (hash_->finish() != record_.sha256)
      return corrupt(fmt::format("the content of {} is damaged", record_.name));
    return {};
  }

 private:
  FileReader(std::unique_ptr<detail::FileSource> source, const FileRecord& record, ProgressMeter& meter)
      : source_(std::move(source)),
        record_(record),
        meter_(&meter),
        hash_(std::make_unique<crypto::Sha256>()),
        scratch_(detail::chunk_bytes) {}

  Expected<void> take(std::uint64_t offset, MutableByteSpan target) {
    while (!target.empty()) {
      const MutableByteSpan chunk = target.first(std::min(target.size(), detail::chunk_bytes));
      NS_RETURN_IF_ERROR(source_->read_at(offset, chunk));
      hash_->update(ByteSpan(chunk.data(), chunk.size()));
      NS_RETURN_IF_ERROR(meter_->add(chunk.size()));
      offset += chunk.size();
      target = target.subspan(chunk.size());
    }
    return {};
  }

  Expected<void> pass_over(std::uint64_t offset, std::uint64_t bytes) {
    while (bytes > 0) {
      const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, scratch_.size()));
      NS_RETURN_IF_ERROR(take(offset, MutableByteSpan(scratch_.data(), now)));
      offset += now;
      bytes -= now;
    }
    return {};
  }

  Expected<void> read_into(const tensor::TensorEntry& item, const Destination& destination) {
    if (item.spec.type != tensor::DType::F32 || item.spec.dims != destination.dims) {
      return corrupt(fmt::format("the tensor {} has shape {} and type {}", item.spec.name,
                                 tensor::to_string(item.spec.dims), tensor::to_string(item.spec.type)));
    }
    const std::uint64_t offset = header_.data_offset + item.begin;
    if (destination.values.empty()) return pass_over(offset, item.bytes);
    return take(offset, {reinterpret_cast<std::uint8_t*>(destination.values.data()),
                         destination.values.size_bytes()});
  }

  Expected<void> read_extra(const tensor::TensorEntry& item,
                            const std::function<Expected<void>(const ExtraTensor&)>* extra) {
    const std::string prefix = detail::extra_prefix;
    if (extra == nullptr || item.spec.name.rfind(prefix, 0) != 0 || item.spec.type != tensor::DType::F32) {
      return corrupt(fmt::format("the tensor {} does not belong in {}", item.spec.name, record_.name));
    }
    extra_bytes_ += item.bytes;
    if (item.bytes > max_extra_bytes || extra_bytes_ > max_extra_bytes) {
      return corrupt("the checkpoint's extra tensors are too large");
    }
    std::vector<float> values(static_cast<std::size_t>(item.bytes / sizeof(float)));
    NS_RETURN_IF_ERROR(take(header_.data_offset + item.begin,
                            {reinterpret_cast<std::uint8_t*>(values.data()), values.size() * sizeof(float)}));
    if (!*extra) return {};
    return (*extra)({item.spec.name.substr(prefix.size()), item.spec.dims, values});
  }

  std::unique_ptr<detail::FileSource> source_;
  FileRecord record_;
  ProgressMeter* meter_;
  std::unique_ptr<crypto::Sha256> hash_;
  Bytes scratch_;
  tensor::SafetensorsHeader header_;
  std::uint64_t extra_bytes_ = 0;
};

void add(Destinations& to, const std::vector<compute::ParameterInfo>& parameters, const char* suffix,
         Span<float> values) {
  for (const compute::ParameterInfo& info : parameters) {
    Span<float> part;
    if (!values.empty()) {
      part = values.subspan(static_cast<std::size_t>(info.offset), static_cast<std::size_t>(info.count));
    }
    to.emplace(info.name + suffix, Destination{info.dims, part});
  }
}

Expected<SlotTarget> target_of(const LoadRequest& request, compute::SlotId slot) {
  if (std::find(request.slots.begin(), request.slots.end(), slot) == request.slots.end()) return SlotTarget{};
  NS_ASSIGN_OR_RETURN(const SlotTarget target, request.target(slot));
  const std::uint64_t count = compute::slot_parameter_count(request.shape, slot);
  for (const Span<float> values : {target.parameters, target.moment1, target.moment2}) {
    if (!values.empty() && values.size() != count) {
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("the buffers of slot {} have the wrong size", compute::to_string(slot)));
    }
  }
  return target;
}

Expected<void> check_request(const Entry& entry, const LoadRequest& request) {
  if (!entry.complete()) return corrupt(entry.damage);
  if (!same_shape(entry.manifest.architecture, request.shape)) {
    const auto& a = entry.manifest.architecture;
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("the checkpoint {} holds a different model ({} layers × {}, {} experts, vocabulary {}, "
                    "sequence {}) than this network's; use another data directory for it",
                    entry.name, a.layers, a.hidden, a.experts, a.vocab, a.sequence));
  }
  for (const compute::SlotId slot : request.slots) {
    const auto& have = entry.manifest.slots;
    if (std::find(have.begin(), have.end(), slot) == have.end()) {
      return make_error(ErrorCode::InvalidArgument, fmt::format("the checkpoint {} does not hold {}",
                                                                entry.name, compute::to_string(slot)));
    }
  }
  return {};
}

// Of the files beside the tensors'.
Expected<void> verify_slot_index(storage::FileEnv& env, const Entry& entry) {
  const FileRecord* const record = entry.manifest.file(slot_index_file);
  if (record == nullptr) return {};  // of an earlier version
  if (record->bytes > max_slot_index_bytes)
    return corrupt(fmt::format("{} is too large for an index", slot_index_file));
  NS_ASSIGN_OR_RETURN(const Bytes bytes,
                      storage::read_file(env, entry.path + "/" + slot_index_file, max_slot_index_bytes));
  if (crypto::sha256(bytes) != record->sha256)
    return corrupt(fmt::format("the content of {} is damaged", slot_index_file));
  NS_RETURN_IF_ERROR(decode_slot_index(bytes, entry.manifest));
  return {};
}

}  // namespace

bool same_shape(const compute::ModelShape& a, const compute::ModelShape& b) {
  return a.layers == b.layers && a.hidden == b.hidden && a.head_dim == b.head_dim && a.heads == b.heads &&
         a.kv_heads == b.kv_heads && a.ffn == b.ffn && a.experts == b.experts &&
         a.experts_per_token == b.experts_per_token && a.vocab == b.vocab && a.sequence == b.sequence &&
         a.rope_theta == b.rope_theta && a.rms_epsilon == b.rms_epsilon;
}

Expected<void> load(storage::FileEnv& env, const Entry& entry, const LoadRequest& request,
                    const Progress& progress, const CancelToken& cancel) {
  NS_RETURN_IF_ERROR(check_request(entry, request));
  Destinations weights;
  Destinations moments;
  for (const compute::SlotId slot : entry.manifest.slots) {
    NS_ASSIGN_OR_RETURN(const SlotTarget target, target_of(request, slot));
    const auto parameters = compute::slot_parameters(request.shape, slot);
    add(weights, parameters, "", target.parameters);
    add(moments, parameters, detail::moment1_suffix, target.moment1);
    add(moments, parameters, detail::moment2_suffix, target.moment2);
  }
  std::uint64_t total = entry.manifest.file(detail::weights_file)->bytes;
  if (request.optimizer) total += entry.manifest.file(detail::optimizer_file)->bytes;
  ProgressMeter meter(progress, cancel, total);
  {
    NS_ASSIGN_OR_RETURN(FileReader file, FileReader::open(env, entry, detail::weights_file, meter));
    NS_RETURN_IF_ERROR(file.read(weights, nullptr));
  }
  if (!request.optimizer) return {};
  NS_ASSIGN_OR_RETURN(FileReader file, FileReader::open(env, entry, detail::optimizer_file, meter));
  return file.read(moments, &request.extra);
}

Expected<Loaded> load_current(storage::FileEnv& env, const Catalogue& catalogue, const LoadRequest& request,
                              const Progress& progress) {
  NS_ASSIGN_OR_RETURN(std::vector<Entry> candidates, catalogue.candidates());
  NS_ASSIGN_OR_RETURN(const std::vector<Entry> all, catalogue.list());
  Loaded loaded;
  for (const Entry& entry : all) {
    if (!entry.complete()) loaded.passed_over.push_back(fmt::format("{}: {}", entry.name, entry.damage));
  }
  for (Entry& entry : candidates) {
    const Expected<void> result = load(env, entry, request, progress);
    if (result.ok()) {
      loaded.entry = std::move(entry);
      return loaded;
    }
    const ErrorCode code = result.error().code;
    if (code != ErrorCode::Corrupt && code != ErrorCode::NotFound && code != ErrorCode::Io)
      return result.error();
    loaded.passed_over.push_back(fmt::format("{}: {}", entry.name, result.error().message));
  }
  if (loaded.passed_over.empty()) return make_error(ErrorCode::NotFound, "there is no checkpoint yet");
  return corrupt(fmt::format("none of {} checkpoints in {} can be loaded; the newest failed because: {}",
                             loaded.passed_over.size(), catalogue.root(), loaded.passed_over.front()));
}

Expected<void> verify(storage::FileEnv& env, const Entry& entry, const Progress& progress,
                      const CancelToken& cancel) {
  if (!entry.complete()) return corrupt(entry.damage);
  NS_RETURN_IF_ERROR(verify_signature(entry.manifest));
  NS_RETURN_IF_ERROR(verify_slot_index(env, entry));
  LoadRequest nothing;
  nothing.shape = entry.manifest.architecture;
  return load(env, entry, nothing, progress, cancel);
}

}  // namespace neuroshard::checkpoint
