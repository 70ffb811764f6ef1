// How this program came onto the computer: the notice of a new version says accordingly what to do.
#pragma once

#include <QString>

#include "core/platform/file/paths.h"
#include "ui/text/release_text.h"

namespace neuroshard::gui {

// `program`: the path of neuroshard. `package_list`: what dpkg keeps of an installed package. Threads: any; reads the
// disk.
ui::InstallKind install_kind(const QString& program, const QString& package_list = QStringLiteral(
                                                         "/var/lib/dpkg/info/neuroshard.list"));

// The path that starts this program another time. An AppImage mounts its content at a new place each time, so
// that is the path of its file; else `program`.
QString lasting_program(const platform::Environment& environment, const QString& program);

}  // namespace neuroshard::gui
