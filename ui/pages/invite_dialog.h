// An invitation to the node's network: the link to send, and its QR code to scan.
#pragma once

#include <QDialog>

class QCheckBox;
class QLabel;
class QLineEdit;
class QPushButton;

namespace neuroshard::node {
struct Invitation;
}

namespace neuroshard::ui {

class QrCode;

// Threads: ui.
class InviteDialog final : public QDialog {
  Q_OBJECT
 public:
  struct Content {
    QString link;     // of the core (node/network_view.h), not empty; it gives no vote
    QString network;  // its name
    bool can_let_vote = false, votes_by_invitation = false;  // as in node/network_view.h
  };
  explicit InviteDialog(Content content, QWidget* parent = nullptr);
  // Asks for a link with a vote, if votes are given by invitation only. Once, after vote_requested is connected.
  void begin();
  // The answer to vote_requested.
  void show_vote(const node::Invitation& made);
  void show_problem(const QString& problem);

 Q_SIGNALS:
  // A link that lets one wallet vote is wanted. Each dialog wants at most one.
  void vote_requested();

 private:
  void choose_vote(bool vote);
  void show_link();
  void save_code();

  const Content content_;
  QString vote_link_;  // empty: none was made
  bool asked_ = false;
  QLabel* explanation_;
  QLabel* note_;
  QCheckBox* vote_;
  QrCode* code_;
  QLineEdit* line_;
  QPushButton* copy_;
};

}  // namespace neuroshard::ui
