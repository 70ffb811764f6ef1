// The files of tests/golden/make_script_models.py, as the tests of TorchScript models read it.
#pragma once

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <cstring>
#include <vector>

#include "core/base/clock.h"
#include "core/compute/script.h"

namespace neuroshard::model_test {

class MemoryHost final : public compute::ScriptHost {
 public:
  MemoryHost(const void* data, std::size_t size)
      : bytes_(static_cast<const char*>(data), static_cast<qsizetype>(size)) {}
  ~MemoryHost() = default;
  std::uint64_t file_bytes() const override { return static_cast<std::uint64_t>(bytes_.size()); }
  compute::Status read(std::uint64_t offset, void* target, std::uint64_t bytes) const override {
    std::memcpy(target, bytes_.constData() + offset, bytes);
    return {};
  }
  std::int64_t monotonic_nanoseconds() const override {
    return clock_.monotonic_now().time_since_epoch().count();
  }

 private:
  QByteArray bytes_;
  SystemClock clock_;
};

// A model of the folder with the values that Python used.
struct Golden {
  QByteArray file, in, out;
  QJsonObject description;
  std::vector<compute::ScriptSample> samples;
};

inline std::size_t width_of(const QString& dtype) {
  return dtype == "int64" ? 8 : 4;
}

inline qint64 elements(const QJsonObject& tensor) {
  qint64 count = 1;
  for (const QJsonValue& size : tensor["sizes"].toArray()) count *= size.toInteger();
  return count;
}

inline Golden read_golden(const QDir& folder, const QString& name) {
  const auto bytes_of = [&](const QString& file_name) {
    QFile file(folder.filePath(file_name));
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
  };
  Golden model{bytes_of(name + ".pt"),
               bytes_of(name + ".in"),
               bytes_of(name + ".out"),
               QJsonDocument::fromJson(bytes_of(name + ".json")).object(),
               {}};
  qsizetype at = 0;
  for (const QJsonValue& input : model.description["inputs"].toArray()) {
    compute::ScriptSample sample;
    const QString dtype = input["dtype"].toString();
    sample.type = dtype == "int64" ? compute::ScriptType::I64 : compute::ScriptType::F32;
    sample.below = 100;
    for (const QJsonValue& size : input["sizes"].toArray()) sample.sizes[sample.dims++] = size.toInteger();
    sample.data = model.in.constData() + at;
    at += elements(input.toObject()) * static_cast<qint64>(width_of(dtype));
    model.samples.push_back(sample);
  }
  return model;
}

}  // namespace neuroshard::model_test
