// The release notes of each version. The one source is the AppStream file (resources/desktop), which software centres
// read too; it is built into the program.
#pragma once

#include <QByteArray>
#include <QDate>
#include <QString>
#include <vector>

#include "core/base/version.h"

namespace neuroshard::ui {

struct ReleaseNote {
  struct Block {
    QString text;
    bool item = false;  // of a list
  };
  Version version;
  QDate date;
  std::vector<Block> blocks;
};

// Newest first. The blocks in this language ("de") where the file has some, else those without a language. A release
// without a version or without blocks is left out.
std::vector<ReleaseNote> read_release_notes(const QByteArray& metainfo, const QString& language);

// Of this program.
std::vector<ReleaseNote> own_release_notes(const QString& language);

// Of the versions after `before` up to `until`.
std::vector<ReleaseNote> notes_between(const std::vector<ReleaseNote>& all, const Version& before,
                                       const Version& until);

}  // namespace neuroshard::ui
