#include "app/gui/remote_core_link.h"

#include <QFile>
#include <algorithm>
#include <mutex>

#include "core/base/bytes.h"
#include "core/control/control_file.h"
#include "core/control/service.h"
#include "core/network_module/network_module.h"
#include "core/platform/file/private_directory.h"
#include "core/platform/process/process_control.h"
#include "core/storage/file_env.h"

namespace neuroshard::gui {
namespace {

// The screen should notice a new core at once: looking for control.json costs next to nothing.
constexpr std::chrono::milliseconds first_retry{100};
constexpr std::chrono::milliseconds last_retry{1000};

CoreAbsence refused(Error error, platform::ProcessIdentity process = {}) {
  return {CoreAbsence::Kind::Refused, std::move(error), process};
}

}  // namespace

// One directory's connection. Lives on the background thread; the node that it gives away shares it.
class RemoteCoreLink::Session : public std::enable_shared_from_this<Session> {
 public:
  using Report = std::function<void(CorePresence, CoreAbsence)>;  // a presence without a node: absent

  Session(control::ConnectOptions options, Report report)
      : options_(std::move(options)), report_(std::move(report)) {}

  // Background thread.
  void start(const std::string& control_file) {
    if (!control_file.empty()) {
      if (auto taken = take_in(control_file); !taken.ok())
        return report_({}, refused(std::move(taken).error()));
    }
    auto network = network_module::load_network_module();
    if (!network.ok()) return report_({}, refused(std::move(network).error()));
    node_ = network->connect(options_);
    watch_ = node_->watch_link([this] { look(); });
    look();
  }
  void end() {
    watch_.reset();
    node_.reset();
  }

 private:
  // An invitation to another computer's core (control/remote_access.h): kept in a private folder, wherever
  // the user has the file.
  Expected<void> take_in(const std::string& control_file) {
    const auto files = storage::make_posix_file_env();
    NS_ASSIGN_OR_RETURN(const Bytes bytes,
                        storage::read_file(*files, control_file, control::max_control_file_bytes));
    NS_ASSIGN_OR_RETURN(const control::ControlFile file,
                        control::parse_control_file(std::string(as_text(bytes))));
    const std::string folder = options_.runtime_directory + "/imported";
    NS_RETURN_IF_ERROR(platform::make_private_directory(options_.runtime_directory));
    NS_RETURN_IF_ERROR(platform::make_private_directory(folder));
    options_.control_file = control::control_file_path(folder, file.address);
    return storage::write_file_atomic(*files, options_.control_file,
                                      as_bytes(control::format_control_file(file)));
  }

  // Background thread and the node's: only values are read and passed on. One after another, so that what is
  // reported last is what was seen last.
  void look() {
    std::lock_guard lock(looking_);
    const control::LinkView view = node_->link();
    if (view.state == control::LinkState::Connecting) return;
    if (!options_.control_file.empty()) return look_elsewhere(view);
    const auto file = control::find_core(options_.runtime_directory, options_.data_directory);
    if (view.state == control::LinkState::Connected) {
      last_ = file.ok() ? file->process : platform::ProcessIdentity{};
      return report_({node_, last_}, {});
    }
    CoreAbsence why;
    why.error = view.error.value_or(make_error(ErrorCode::Unavailable, "the core does not answer"));
    if (view.state == control::LinkState::Refused) {
      why.kind = CoreAbsence::Kind::Refused;
      if (file.ok()) why.process = file->process;
    } else if (file.ok()) {
      why.kind = CoreAbsence::Kind::Silent;
      why.process = file->process;
    } else if (file.error().code == ErrorCode::Unavailable) {
      why.kind = CoreAbsence::Kind::Killed;
    } else if (platform::may_live(last_)) {
      why.kind = CoreAbsence::Kind::Silent;  // it serves no longer and still writes: the data is not free yet
      why.process = last_;
    }
    report_({}, std::move(why));
  }

  // No process of this computer.
  void look_elsewhere(const control::LinkView& view) {
    if (view.state == control::LinkState::Connected) {
      const bool may_steer = std::find(view.capabilities.begin(), view.capabilities.end(),
                                       control::steer_capability) != view.capabilities.end();
      return report_({node_, {}, may_steer}, {});
    }
    CoreAbsence why;
    why.error = view.error.value_or(make_error(ErrorCode::Unavailable, "the core does not answer"));
    why.kind =
        view.state == control::LinkState::Refused ? CoreAbsence::Kind::Refused : CoreAbsence::Kind::Silent;
    report_({}, std::move(why));
  }

  control::ConnectOptions options_;  // set before the node is made
  const Report report_;
  std::mutex looking_;
  platform::ProcessIdentity last_;  // of the core that answered last
  std::shared_ptr<control::RemoteNode> node_;
  std::unique_ptr<node::Subscription> watch_;
};

RemoteCoreLink::RemoteCoreLink(RemoteCoreLinkOptions options, QObject* parent)
    : CoreLink(parent), options_(std::move(options)), background_("ns-core-link") {
  qRegisterMetaType<CorePresence>();
  qRegisterMetaType<CoreAbsence>();
}

RemoteCoreLink::~RemoteCoreLink() {
  close();
}

void RemoteCoreLink::open(const QString& data_directory) {
  start(data_directory, {});
}

void RemoteCoreLink::open_file(const QString& control_file) {
  start({}, control_file);
}

void RemoteCoreLink::start(const QString& data_directory, const QString& control_file) {
  close();
  data_directory_ = data_directory.toStdString();
  control::ConnectOptions options;
  options.data_directory = data_directory_;
  options.runtime_directory = options_.runtime_directory.toStdString();
  options.program = options_.program.toStdString();
  options.build = options_.build.toStdString();
  options.first_retry = first_retry;
  options.last_retry = last_retry;
  const quint64 generation = ++generation_;
  auto report = [this, generation](CorePresence core, CoreAbsence why) {
    QMetaObject::invokeMethod(
        this,
        [this, generation, core = std::move(core), why = std::move(why)] {
          if (generation != generation_) return;
          if (core.node) {
            Q_EMIT present(core);
          } else {
            Q_EMIT absent(why);
          }
        },
        Qt::QueuedConnection);
  };
  session_ = std::make_shared<Session>(std::move(options), std::move(report));
  background_.run([session = session_, file = control_file.toStdString()] { session->start(file); });
}

void RemoteCoreLink::close() {
  ++generation_;
  if (!session_) return;
  // The end waits for calls under way: not here.
  background_.run([session = std::move(session_)] { session->end(); });
  session_.reset();
}

void RemoteCoreLink::ask_to_end(const platform::ProcessIdentity& process) {
  background_.run([process, directory = data_directory_] {
    static_cast<void>(platform::ask_to_end(process, directory).ok());
  });
}

}  // namespace neuroshard::gui
