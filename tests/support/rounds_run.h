// Nodes of one small network with outer rounds, as real processes on the loopback interface, with a tracker.
// Header only; needs Qt.
#pragma once

#include <QDeadlineTimer>
#include <QDir>
#include <QJsonDocument>
#include <QMap>
#include <QSet>
#include <QTemporaryDir>
#include <QTest>
#include <memory>

#include "tests/support/network_run.h"
#include "tests/support/training_run.h"

namespace neuroshard::test {

// "round 7 is certified with anchor 0123…: 2 of 3 members contributed", of a node's log.
struct CertifiedRound {
  QString anchor;
  int contributors = 0, members = 0;
};

inline QString text_of(const QJsonObject& object) {
  return QJsonDocument(object).toJson(QJsonDocument::Compact);
}

class RoundsRun {
 public:
  // Of two layers, for networks whose members hold one each.
  static QStringList model_of_two_layers() {
    return {"--layers",  "2", "--hidden",   "32", "--head-dim",     "16", "--vocab", "300",
            "--experts", "2", "--sequence", "32", "--batch-tokens", "512"};
  }
  static constexpr int patience_ms = 100'000;  // a busy machine; a quiet one needs seconds
  int together_ms = patience_ms;               // set before what is to be waited longer for

  QString hidden = "32";  // of the model; set before make()
  // The model of the profile "solo" instead of one that trains at once; set before make().
  bool solo = false;
  // The whole shape in words of `network create`, instead of either; set before make().
  QStringList model;
  bool grows = false;  // the model may; set before make()
  // The node whose wallet is the network's founder; set before make(). It starts first, and the others come by its
  // invitations, with a vote. Empty: whoever starts makes the network, and everybody asks around for some seconds before
  // it takes part.
  QString founder;
  // Where nodes listen. At another address than this one nobody dials them: the tracker sees 127.0.0.1.
  QString address = "127.0.0.1";
  QString tracker_address = "127.0.0.1";  // set before make()
  QString eval_interval = "0";            // steps; of the nodes that are launched from now on
  QString name_space;                     // network namespace of the nodes that are launched from now on
  QStringList node_words;                 // of every node beside its own; set before it is launched
  QStringList environment;                // NAME=value, of the nodes that are launched from now on

  // Text, profile and tracker. Empty: it all stands; else what went wrong.
  QByteArray make(const QString& network, const QString& inner_steps, const QStringList& more = {}) {
    if (!folder_.isValid()) return "no folder for the test";
    if (!write_text("text", made_up_text(7, 60'000))) return "no room for the text";
    QStringList words = more;
    if (!founder.isEmpty()) {
      const ProcessResult wallet = run_node({"wallet", "create", "--data-dir", path(founder)});
      if (!wallet.ok()) return wallet.text();
      words += {"--voters", "invited", "--founder", "mine", "--data-dir", path(founder)};
    }
    const ProcessResult made = create(network, inner_steps, words);
    if (!made.ok()) return made.text();
    tracker_ = std::make_unique<NodeProcess>(QStringList{
        "tracker", "--json", "--profile", profile(), "--address", tracker_address, "--port", "0", "--lan"});
    const QJsonObject ready = wait_for_object(*tracker_, "ready");
    if (ready.isEmpty()) return tracker_->errors_so_far();
    tracker_at_ = ready["id"].toString() + "@" + ready["address"].toString();
    return {};
  }
  // The profile only.
  ProcessResult create(const QString& network, const QString& inner_steps, const QStringList& more) const {
    return run_node(QStringList{"network", "create", "--from", "devnet", "--name", network, "--out",
                                profile(), "--h", inner_steps, "--grows", grows ? "1" : "0"} +
                    shape() + more);
  }
  QString path(const QString& name) const { return folder_.filePath(name); }
  QString profile() const { return path("profile.json"); }
  QString tracker_at() const { return tracker_at_; }
  // Stops the tracker. A node started from now on begins with nobody, or with that node; false: it is at no
  // port.
  void lose_tracker() { tracker_.reset(); }
  bool begin_with(const QString& name) {
    QFile port(path(name) + "/peers.port");
    if (!port.open(QIODevice::ReadOnly)) return false;
    tracker_at_ = "127.0.0.1:" + QString::fromLatin1(port.readAll().trimmed().split(' ').last());
    return true;
  }
  NodeProcess& node(const QString& name) { return *nodes_[name]; }

  // Empty: it has joined; else what it says.
  QByteArray start(const QString& name, const QString& text = "text") {
    launch(name, text);
    return joined(name);
  }
  // attack: an honest node has none; else what lying_node takes before the node's own words, and it is that
  // program that is started.
  void launch(const QString& name, const QString& text = "text", const QStringList& liar = {}) {
    const bool is_guest = !founder.isEmpty() && name != founder && !nodes_.contains(name);
    const QStringList words =
        run_words(name, text) + (is_guest ? QStringList{"--join", invitation(), "--yes"}
                                          : QStringList{"--profile", profile(), "--tracker", tracker_at_});
    const QString program = liar.isEmpty() ? node_program() : program_named("lying_node");
    spaces_[name] = name_space;
    nodes_[name] = start_in(name_space, program, liar + words);
  }
  // A link of the founder's.
  QString invitation() const {
    const ProcessResult made = run_node({"network", "invite", "--json", "--data-dir", path(founder)});
    return json_lines(made.out).value(0)["link"].toString();
  }
  // A node that knows the network from the link only.
  void launch_invited(const QString& name, const QString& link, const QString& text = "text") {
    nodes_[name] = std::make_shared<NodeProcess>(run_words(name, text) + QStringList{"--join", link, "--yes"},
                                                 environment);
  }
  // A text for launch().
  bool write_text(const QString& name, const QByteArray& content) const {
    QFile text(path(name));
    return text.open(QIODevice::WriteOnly) && text.write(content) == content.size();
  }
  QByteArray joined(const QString& name) const {
    NodeProcess& node = *nodes_.value(name);
    return wait_for_object(node, "peers").isEmpty() ? node.errors_so_far() : QByteArray();
  }
  // The first honest one begins, and all others join it at once. The attackers among them use this attack.
  QByteArray start_all(const QStringList& honest, const QStringList& liars = {}, const QString& attack = {}) {
    if (!QDir().mkpath(path("lies"))) return "no folder for the lies";
    const QByteArray begun = start(honest.first());
    if (!begun.isEmpty()) return begun;
    for (const QDeadlineTimer deadline(patience_ms); round(honest.first()) < 1;) {
      if (deadline.hasExpired()) return "the first node makes no round";
      QTest::qWait(100);
    }
    const QStringList others = honest.mid(1) + liars;
    for (const QString& name : others) {
      const QStringList liar{attack, QString::number(liars.size()), QString::number(honest.size()),
                             path("lies"), name};
      launch(name, "text", liars.contains(name) ? liar : QStringList{});
    }
    for (const QString& name : others)
      if (const QByteArray trouble = joined(name); !trouble.isEmpty()) return trouble;
    return {};
  }
  void kill_all() {
    for (const auto& node : nodes_) node->kill_now();
    nodes_.clear();
  }
  QJsonObject status(const QString& name) const {
    const QStringList words{"status", "--json", "--data-dir", path(name)};
    const ProcessResult result = start_in(spaces_.value(name), node_program(), words)->finish();
    return json_lines(result.out).value(0);
  }
  QJsonObject rounds(const QString& name) const { return status(name)["rounds"].toObject(); }
  int round(const QString& name) const { return rounds(name)["round"].toInt(); }
  // The largest resident size of its process so far, in bytes; 0: the process has ended.
  qint64 peak_resident(const QString& name) const {
    return neuroshard::test::peak_resident(nodes_.value(name)->pid());
  }
  // Until these are the members, all of them contributed to a round after `after`, and hold its anchor.
  bool together(const QStringList& names, int after = 0) const {
    const QDeadlineTimer deadline(together_ms);
    QSet<QString> there;
    while (!deadline.hasExpired()) {
      for (const QString& name : names) {
        if (there.contains(name)) continue;
        const QJsonObject seen = rounds(name);
        if (seen["members"].toInt() == names.size() && seen["contributors"].toInt() == names.size() &&
            seen["round"].toInt() > after && seen["agrees"].toBool() && seen["member"].toBool())
          there.insert(name);
      }
      if (there.size() == names.size()) return true;
      QTest::qWait(200);  // each question is a process of its own
    }
    for (const QString& name : names) {
      NodeProcess& node = *nodes_.value(name);
      qWarning().noquote() << name << (node.running() ? "runs" : "has ended") << node.errors_so_far()
                           << QJsonDocument(rounds(name)).toJson(QJsonDocument::Compact) << crashes(name)
                           << log_tail(name);
    }
    return false;
  }
  QByteArray log_tail(const QString& name) const {
    constexpr qint64 tail_bytes = 6'000;
    QFile log(path(name) + "/logs/neuroshardd.log");
    if (!log.open(QIODevice::ReadOnly)) return "no log";
    log.seek(std::max<qint64>(0, log.size() - tail_bytes));
    return log.readAll();
  }
  // The notes of its crashes.
  QByteArray crashes(const QString& name) const {
    QByteArray notes;
    const QDir folder(path(name) + "/crash");
    for (const QString& file : folder.entryList(QDir::Files)) {
      QFile note(folder.filePath(file));
      if (note.open(QIODevice::ReadOnly)) notes += note.readAll() + '\n';
    }
    return notes;
  }
  QByteArray log(const QString& name) const {
    QFile log(path(name) + "/logs/neuroshardd.log");
    return log.open(QIODevice::ReadOnly) ? log.readAll() : QByteArray();
  }
  // By round; of that fragment or part, where the network trains in such, from 1 on.
  QMap<int, CertifiedRound> certified(const QString& name, int fragment = 0) const {
    const QRegularExpression line(
        (fragment == 0 ? QString() : QString("(?:fragment|part) %1 of \\d+: ").arg(fragment)) +
        "round (\\d+) is certified with anchor ([0-9a-f]+): (\\d+) of (\\d+) members");
    QMap<int, CertifiedRound> found;
    QFile log(path(name) + "/logs/neuroshardd.log");
    if (!log.open(QIODevice::ReadOnly)) return found;
    for (auto at = line.globalMatch(QString::fromUtf8(log.readAll())); at.hasNext();) {
      const QRegularExpressionMatch match = at.next();
      const int number = match.captured(1).toInt();
      // Whatever a node says of a round a second time, after a restart, has to be the same.
      const CertifiedRound said{match.captured(2), match.captured(3).toInt(), match.captured(4).toInt()};
      if (found.contains(number) && found[number].anchor != said.anchor)
        qFatal("%s has two anchors of round %d", qPrintable(name), number);
      found[number] = said;
    }
    return found;
  }

 private:
  // A command reaches the node of its own namespace only.
  std::shared_ptr<NodeProcess> start_in(const QString& space, const QString& program,
                                        const QStringList& words) const {
    if (space.isEmpty())
      return std::make_shared<NodeProcess>(words, environment, QString(), QByteArray(), program);
    // ip becomes the program, which has its process number then.
    return std::make_shared<NodeProcess>(QStringList{"netns", "exec", space, program} + words, environment,
                                         QString(), QByteArray(), "ip");
  }
  // text: empty for the network's published data.
  QStringList run_words(const QString& name, const QString& text) const {
    return QStringList{"run", "--json", "--data-dir", path(name)} +
           (text.isEmpty() ? QStringList{} : QStringList{"--text", path(text)}) +
           QStringList{"--lan",       "--p2p-port",
                       "0",           "--p2p-address",
                       address,       "--cpu-threads",
                       "1",           "--eval-interval-steps",
                       eval_interval, "--checkpoint-min-interval",
                       "1d"} +
           node_words;
  }
  QStringList shape() const {
    if (!model.isEmpty()) return model;
    if (solo)
      return {"--layers",      "6",   "--hidden",       "256", "--head-dim",     "64",
              "--vocab",       "512", "--experts",      "8",   "--sequence",     "64",
              "--ffn-percent", "200", "--vocab-growth", "0",   "--batch-tokens", "256"};
    return {"--layers",  "1", "--hidden",   hidden, "--head-dim",     "16", "--vocab", "300",
            "--experts", "2", "--sequence", "32",   "--batch-tokens", "512"};
  }
  QTemporaryDir folder_;
  QMap<QString, std::shared_ptr<NodeProcess>> nodes_;
  QMap<QString, QString> spaces_;  // network namespaces of the nodes
  std::unique_ptr<NodeProcess> tracker_;
  QString tracker_at_;
};

}  // namespace neuroshard::test
