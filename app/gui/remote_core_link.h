// The connection over the control service. The service is loaded, connected and ended on a thread of its own.
#pragma once

#include <memory>
#include <string>

#include "app/gui/background.h"
#include "app/gui/core_link.h"

namespace neuroshard::gui {

struct RemoteCoreLinkOptions {
  QString runtime_directory;
  QString program;  // for the core's log
  QString build;
};

class RemoteCoreLink final : public CoreLink {
  Q_OBJECT
 public:
  explicit RemoteCoreLink(RemoteCoreLinkOptions options, QObject* parent = nullptr);
  ~RemoteCoreLink() override;

  void open(const QString& data_directory) override;
  void open_file(const QString& control_file) override;
  void close() override;
  void ask_to_end(const platform::ProcessIdentity& process) override;

 private:
  class Session;
  void start(const QString& data_directory, const QString& control_file);

  RemoteCoreLinkOptions options_;
  std::string data_directory_;  // of the session; empty with a control file
  Background background_;
  std::shared_ptr<Session> session_;
  quint64 generation_ = 0;  // reports of an earlier session are not passed on
};

}  // namespace neuroshard::gui
