// Safetensors files to and from the page cache, beside memcpy.
#include <string>

#include "app/node/commands/bench/bench_row.h"
#include "core/tensor/safetensors.h"

namespace neuroshard::app {
namespace {

constexpr std::uint64_t tensor_count = 4;
constexpr std::uint64_t tensor_floats = 4u << 20;  // 16 MiB each
constexpr std::uint64_t tensor_bytes = tensor_floats * sizeof(float);

class FileSource final : public tensor::ByteSource {
 public:
  explicit FileSource(storage::ReadableFile& file) : file_(file) {}
  std::uint64_t size() const override { return file_.size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) override {
    return file_.read_at(offset, target);
  }

 private:
  storage::ReadableFile& file_;
};

Expected<double> write_file(storage::FileEnv& files, const std::string& path,
                            const std::vector<tensor::TensorSpec>& specs, const std::vector<float>& values) {
  NS_ASSIGN_OR_RETURN(auto writer, tensor::SafetensorsWriter::plan({specs.data(), specs.size()}, {}));
  NS_ASSIGN_OR_RETURN(auto file,
                      files.open_write_large(path, {.bytes = writer.file_bytes(), .read_soon = true}));
  const auto sink = [&](ByteSpan bytes) { return file->append(bytes); };
  NS_RETURN_IF_ERROR(writer.begin(sink));
  const ByteSpan bytes = as_bytes(Span<const float>(values.data(), values.size()));
  for (std::size_t i = 0; i < specs.size(); ++i) {
    NS_RETURN_IF_ERROR(writer.append(bytes.subspan(i * tensor_bytes, tensor_bytes), sink));
  }
  NS_RETURN_IF_ERROR(writer.finish());
  NS_RETURN_IF_ERROR(file->close());
  return static_cast<double>(tensor_count * tensor_bytes);
}

// Writes the same bytes into a new file without any format: the limit of the system.
Expected<double> write_plain(storage::FileEnv& files, const std::string& path,
                             const std::vector<float>& values) {
  NS_ASSIGN_OR_RETURN(auto file, files.open_write(path));
  NS_RETURN_IF_ERROR(file->append(as_bytes(Span<const float>(values.data(), values.size()))));
  NS_RETURN_IF_ERROR(file->close());
  return static_cast<double>(tensor_count * tensor_bytes);
}

Expected<double> read_file(storage::FileEnv& files, const std::string& path, std::vector<float>* values) {
  NS_ASSIGN_OR_RETURN(const auto file, files.open_read(path));
  FileSource source(*file);
  NS_ASSIGN_OR_RETURN(const auto header, tensor::read_safetensors_header(source));
  for (const auto& entry : header.tensors) {
    NS_RETURN_IF_ERROR(
        tensor::read_tensor(source, header, entry,
                            {reinterpret_cast<std::uint8_t*>(values->data()) + entry.begin, tensor_bytes}));
  }
  return static_cast<double>(tensor_count * tensor_bytes);
}

}  // namespace

Expected<BenchReport> bench_safetensors(BenchContext& context) {
  const std::string path = context.scratch + "/bench.safetensors";
  std::vector<tensor::TensorSpec> specs;
  for (std::uint64_t i = 0; i < tensor_count; ++i) {
    specs.push_back({"tensor." + std::to_string(i), tensor::DType::F32, {tensor_floats}});
  }
  const std::vector<float> values(tensor_count * tensor_floats, 1.5f);
  std::vector<float> read(tensor_count * tensor_floats);
  // A new file each time. Freeing the pages of the old one is not part of writing a file and is not timed.
  const auto without = [&context](const std::string& old) {
    return [&context, old]() -> Expected<void> {
      if (!context.files.exists(old)) return {};
      return context.files.remove_file(old);
    };
  };
  const std::string plain = path + ".plain";
  const std::vector<Contender> contenders = {
      {"write", [&] { return write_file(context.files, path, specs, values); }, without(path)},
      {"plain write", [&] { return write_plain(context.files, plain, values); }, without(plain)},
      {"read", [&] { return read_file(context.files, path, &read); }}};
  // The file must exist before the first read, because a round may begin with either contender.
  NS_RETURN_IF_ERROR(write_file(context.files, path, specs, values));
  BenchReport report;
  report.unit = {"GB/s", 1e9};
  report.yardstick_unit = {"GB/s", 1e9};
  NS_ASSIGN_OR_RETURN(report.result, run_interleaved(context.clock, memcpy_yardstick(), contenders,
                                                     context.rounds, context.stop));
  report.targets = {{"write", true, 0.5, 0.8}, {"read", true, 0.5, 0.8}};
  report.notes = {{"file_bytes", std::to_string(tensor_count * tensor_bytes)},
                  {"directory", context.scratch}};
  return report;
}

}  // namespace neuroshard::app
