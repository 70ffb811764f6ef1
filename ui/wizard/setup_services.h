// The services of the machine and of neuroshardd for the set-up assistant. Implemented by the app, and by
// fakes in tests. Nothing blocks; answers come later on the UI thread, and never after `context` is
// destroyed.
#pragma once

#include <QByteArray>
#include <QObject>
#include <QString>
#include <QStringList>
#include <cstdint>
#include <functional>

namespace neuroshard::ui {

struct FolderInfo {
  bool usable = false;           // can be made, or is there and may be written to
  QString problem;               // why not
  std::uint64_t free_bytes = 0;  // of the disk it is on or will be on
  bool has_data = false;         // NeuroShard's data is in it
  bool has_other_files = false;  // files of something else
  QString wallet_id;             // of the wallet in it; empty = none
  bool in_use = false;           // its node has text, checkpoints or a network, and joins no other one
};

struct MachineInfo {
  unsigned threads = 1;
  std::uint64_t memory_bytes = 0;
};

// The outcome of a run of neuroshardd.
struct CommandOutcome {
  int code = 0;  // exit code; its --help has the table
  QByteArray out, err;
  bool ok() const { return code == 0; }
};

class SetupServices {
 public:
  virtual ~SetupServices() = default;
  virtual QString default_folder() const = 0;
  // A folder of text that is installed with the program; empty = none.
  virtual QString sample_text() const = 0;
  virtual MachineInfo machine() const = 0;
  virtual void look_at(QObject* context, const QString& folder,
                       std::function<void(const FolderInfo&)> then) = 0;
  // `input` goes to standard input: secrets are never arguments.
  virtual void run(QObject* context, const QStringList& arguments, const QByteArray& input,
                   std::function<void(CommandOutcome)> then) = 0;
};

}  // namespace neuroshard::ui
