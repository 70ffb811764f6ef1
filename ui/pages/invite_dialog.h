// An invitation to the node's network: the link to send, and its QR code to scan.
#pragma once

#include <QDialog>

namespace neuroshard::ui {

// Threads: ui.
class InviteDialog final : public QDialog {
  Q_OBJECT
 public:
  // link: of the core (node/network_view.h), not empty. network: its name.
  InviteDialog(const QString& link, const QString& network, QWidget* parent = nullptr);
};

}  // namespace neuroshard::ui
