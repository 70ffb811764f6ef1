// Keeps what a process has in its memory (keys, texts, words of a wallet) from other programs of the user and
// from the disk.
#pragma once

namespace neuroshard::platform {

// No core dump of this process or of those that it starts: neither a file nor one that a program such as
// systemd-coredump receives. Best effort.
void forbid_core_dumps();

// Debuggers of the same user can't attach, and the user's other programs can't read the memory, the open files
// and the environment of this process in /proc; root still can. A program that this process starts is readable
// again. Linux; elsewhere it does nothing.
void forbid_inspection();

}  // namespace neuroshard::platform
