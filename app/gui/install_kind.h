// How this program came onto the computer: the notice of a new version says accordingly what to do.
#pragma once

#include <QString>

#include "ui/text/release_text.h"

namespace neuroshard::gui {

// `program`: the path of neuroshard. `package_list`: what dpkg keeps of an installed package. Threads: any; reads the
// disk.
ui::InstallKind install_kind(const QString& program, const QString& package_list = QStringLiteral(
                                                         "/var/lib/dpkg/info/neuroshard.list"));

}  // namespace neuroshard::gui
