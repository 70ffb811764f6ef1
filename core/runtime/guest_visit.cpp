#include "core/runtime/guest_visit.h"

#include <condition_variable>
#include <mutex>

namespace neuroshard::runtime {
namespace {

constexpr std::size_t guest_disk_queue = 256;
constexpr Duration name_patience = std::chrono::seconds(5);
constexpr Duration progress_period = std::chrono::milliseconds(100);

}  // namespace

struct GuestVisit::Outcome {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Expected<exchange::FetchReport>> report;
};

Expected<std::unique_ptr<GuestVisit>> GuestVisit::begin(const FetchSession& session) {
  std::unique_ptr<GuestVisit> visit(new GuestVisit(session));
  const NoteFunction& note = session.observer.note;
  NS_ASSIGN_OR_RETURN(const GuestNetwork network, guest_network(session.guest, session.services.files));
  visit->network_ = network.id;
  NS_ASSIGN_OR_RETURN(visit->host_, start_guest(network, session.guest, session.services));
  NS_ASSIGN_OR_RETURN(const Acquaintance known, get_acquainted(*visit->host_, network, note));
  visit->paths_ = std::make_unique<GuestPaths>(*visit->host_, network, session.guest, known);
  // Without the hash table, only the nodes that the source knows are asked.
  auto table = GuestTable::open(*visit->host_, network, session.guest, known, *visit->paths_);
  if (table.ok())
    visit->table_ = std::move(*table);
  else if (note)
    note(table.error().describe());
  visit->disk_ = make_thread_executor("ns-fetch", guest_disk_queue);
  return visit;
}

GuestVisit::~GuestVisit() = default;

std::vector<exchange::Claim> GuestVisit::named(const char* name) {
  return wait_for<std::vector<exchange::Claim>>(*host_, [&](auto done) {
    exchange::ask_names(paths_->caller(), paths_->contacts(), name, name_patience, nullptr, std::move(done));
  });
}

Expected<void> GuestVisit::fetch(const exchange::FetchRequest& request, const std::string& name,
                                 const exchange::FetchOptions& options) {
  if (files().exists(request.path)) return {};
  Outcome outcome;
  std::unique_ptr<exchange::ContentFetch> fetch;
  host_->run([&] { fetch = start_fetch(request, options, outcome); });
  wait_until_done(request, name, *fetch, outcome);
  FetchObserver::File file{name, {}, 0};
  host_->run([&] {
    file.relayed = paths_->relayed();
    fetch.reset();
  });
  const FetchObserver& observer = session_.observer;
  if (observer.ended) observer.ended(name);
  if (!outcome.report) return make_error(ErrorCode::Cancelled, "stopped; the parts that arrived are kept");
  if (!outcome.report->ok()) return outcome.report->error();
  file.report = **outcome.report;
  if (observer.fetched) observer.fetched(file);
  return {};
}

std::unique_ptr<exchange::ContentFetch> GuestVisit::start_fetch(const exchange::FetchRequest& request,
                                                                const exchange::FetchOptions& options,
                                                                Outcome& outcome) {
  exchange::FetchServices services{paths_->caller(),
                                   host_->executor(),
                                   *disk_,
                                   host_->clock(),
                                   files(),
                                   session_.services.logger,
                                   &host_->conduct(),
                                   [this](const auto& found) { find(found); }};
  return std::make_unique<exchange::ContentFetch>(std::move(services), request, options,
                                                  [&outcome](Expected<exchange::FetchReport> report) {
                                                    const std::lock_guard lock(outcome.mutex);
                                                    outcome.report = std::move(report);
                                                    outcome.changed.notify_all();
                                                  });
}

void GuestVisit::wait_until_done(const exchange::FetchRequest& request, const std::string& name,
                                 exchange::ContentFetch& fetch, Outcome& outcome) {
  std::unique_lock lock(outcome.mutex);
  while (!outcome.report && !session_.stop.cancelled()) {
    outcome.changed.wait_for(lock, progress_period);
    if (outcome.report) break;
    lock.unlock();
    std::uint64_t here = 0;
    host_->run([&] { here = fetch.bytes_here(); });
    if (session_.observer.progress) session_.observer.progress(name, here, request.size.value_or(0));
    lock.lock();
  }
}

void GuestVisit::find(const std::function<void(std::vector<net::Contact>)>& found) {
  found(paths_->contacts());
  if (table_ && !path_.empty()) table_->find_publishers(path_, found);
}

}  // namespace neuroshard::runtime
