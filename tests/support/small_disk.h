// A small disk for a test: a tmpfs that can become read-only or full. Needs root. Header only; needs Qt.
#pragma once

#include <sys/mount.h>

#include <QByteArray>
#include <QDir>
#include <QString>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace neuroshard::test {

// A tmpfs of its own, gone with the object.
class SmallDisk {
 public:
  SmallDisk(const QString& path, int megabytes) : path_(path.toUtf8()) {
    QDir().mkpath(path);
    const QByteArray options = "mode=0700," + size_option(qint64{megabytes} << 20);
    mounted_ = mount("tmpfs", path_.constData(), "tmpfs", MS_NOSUID | MS_NODEV, options.constData()) == 0;
    error_ = errno;
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.constData(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  QByteArray problem() const {
    return QByteArray("can't mount a tmpfs (needs root): ") + std::strerror(error_);
  }
  bool remount(bool read_only) { return remount(read_only ? MS_RDONLY : 0, {}); }
  // Not smaller than what it holds.
  bool resize(qint64 bytes) { return remount(0, size_option(bytes)); }
  // As small as it can be: only pages that are there already can be written.
  bool fill() {
    const auto space = std::filesystem::space(path_.toStdString());
    return resize(static_cast<qint64>(space.capacity - space.free));
  }

 private:
  static QByteArray size_option(qint64 bytes) { return "size=" + QByteArray::number(bytes); }
  bool remount(unsigned long flags, const QByteArray& options) {
    return mount("tmpfs", path_.constData(), nullptr, MS_REMOUNT | MS_NOSUID | MS_NODEV | flags,
                 options.isEmpty() ? nullptr : options.constData()) == 0;
  }

  QByteArray path_;
  bool mounted_ = false;
  int error_ = 0;
};

}  // namespace neuroshard::test
