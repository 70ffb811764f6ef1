// Shared by the tests of the real app: how long they wait, where their files are, and what they say when
// they fail.
#pragma once

#include <QDeadlineTimer>
#include <QDir>
#include <QFile>
#include <QProcessEnvironment>
#include <QString>
#include <QStringList>
#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

namespace neuroshard::test {

// ctest ends a program after its time without a word: its own waiting ends before, so that it can say what it
// waited for. One for a program, however many waits there are.
class Patience {
 public:
  explicit Patience(int whole_ms = 52'000) : end_(whole_ms) {}  // of ctest's minute
  int left_ms() const { return static_cast<int>(std::max<qint64>(least_ms, end_.remainingTime())); }

 private:
  static constexpr int least_ms = 500;
  QDeadlineTimer end_;
};

// The variables that name a user's folders, all below this one.
inline std::vector<std::pair<const char*, QString>> private_folders(const QString& root) {
  return {{"HOME", root + "/user"},
          {"XDG_RUNTIME_DIR", root + "/runtime"},
          {"XDG_CONFIG_HOME", root + "/config"},
          {"XDG_DATA_HOME", root + "/user/data"},
          {"XDG_STATE_HOME", root + "/user/state"},
          {"XDG_CACHE_HOME", root + "/user/cache"}};
}

// Makes them and names them to a program of its own.
inline bool give_private_folders(const QString& root, QProcessEnvironment* environment) {
  for (const auto& [name, folder] : private_folders(root)) {
    if (!QDir().mkpath(folder)) return false;
    environment->insert(name, folder);
  }
  return QFile::setPermissions(root + "/runtime", QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
}

inline void tell_lines(const QStringList& lines) {
  std::fprintf(stderr, "%s\n", lines.join('\n').toUtf8().constData());
}

inline void tell_end_of(const QString& path) {
  constexpr qint64 shown = 4000;
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return;
  file.seek(std::max<qint64>(0, file.size() - shown));
  tell_lines({"--- the end of " + path.section('/', -1), QString::fromUtf8(file.readAll())});
}

}  // namespace neuroshard::test
