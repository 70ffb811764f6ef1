// Gets one file that is known by its SHA-256 from several nodes that hold it, at once.
//
// A hash of the whole file does not verify a piece. So each holder first gives a list of the hashes of its
// pieces, and holders with the same list form a group. Pieces come from the largest group. Each piece is
// checked against its own sender's list: a holder that sends another one has contradicted itself. If all
// pieces are here and the whole does not have the right hash, the list was wrong, and all holders that gave
// it are at fault. The fetch keeps the part at the file's beginning that the next group's list shares. A
// holder that gives two different lists is at fault, too: one of them is false. No other holder is: not one
// that is slow, absent or busy, or holds nothing.
//
// A group that gives nothing or little for some seconds is set aside where another one could give; one that
// gives nothing, also where more holders are known than can be asked at the same time. Each time that
// happens, it is left alone for longer, and groups that were left for less time are tried first. Once no
// piece has come for half of the patience, groups that gave some before are tried first.
//
// Faster holders give more pieces: each holder has a few requests in flight, more the faster it answers, and
// gets a request for the next piece when it has answered one. Towards the end, and where one piece delays the others, a free
// holder is asked for it, too.
//
// The file grows from its beginning in "<path>.part", like that of a download (data/downloader.h), so each
// continues where the other was interrupted, and a restart loses only pieces ahead of the beginning. It gets
// its final name when size and hash are right.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/base/log.h"
#include "core/exchange/messages.h"
#include "core/net/conduct.h"
#include "core/net/mailbox.h"
#include "core/storage/file_env.h"

namespace neuroshard::exchange {

struct FetchOptions {
  Duration allowed = std::chrono::seconds(5);        // for the holder's work and the latency; bytes add to it
  Duration gather = std::chrono::milliseconds(500);  // the wait for lists before one is chosen
  Duration tick = std::chrono::milliseconds(250);
  Duration search_again = std::chrono::seconds(5);  // for further holders
  Duration patience = std::chrono::seconds(60);     // without a single piece; then the fetch fails
  std::size_t patient_groups = 8;                   // that begin with the whole patience
  Duration silence = std::chrono::seconds(10);      // without a piece, until a group is set aside
  // Less than that is as bad as silence: 1 Mbit/s, by which the deadlines of calls are made. It is halved for
  // a group that was set aside for it: the own line may be the slow one.
  double least_per_second = 125'000;
  bool wait_for_holders = true;  // false: fails once all that were asked have said they don't hold it
  Duration busy_pause = std::chrono::seconds(1);  // the pause after a holder was busy
  Duration least_wait = std::chrono::seconds(1);  // before a piece is asked for a second time
  std::size_t holders = 16;                       // asked at the same time
  std::size_t most_holders = 256;                 // of one fetch in total
  std::uint32_t in_flight = 4;                    // pieces of one holder
  std::uint32_t window = 64;                      // pieces ahead of what is on the disk: 16 MiB of memory
  std::uint32_t failures = 3;                     // in a row, until a holder is given up
};

struct FetchServices {  // all outlive the fetch
  net::PeerCaller& caller;
  Executor& executor;  // of the peers
  Executor& disk;      // where the file is written; ends before the executor does
  const Clock& clock;
  storage::FileEnv& files;
  Logger& logger;
  net::Conduct* conduct = nullptr;  // counts faults of holders; may be null
  // Finds possible holders; called again while the fetch lasts. It may call `found` several times, or never.
  std::function<void(std::function<void(std::vector<net::Contact>)> found)> find;
};

struct FetchRequest {
  Hash256 hash{};
  // Exactly, from a signed source: who lists another size is at fault. Not known: at most max_bytes.
  std::optional<std::uint64_t> size;
  std::uint64_t max_bytes = max_content_bytes;
  std::string path;  // of the finished file; its folder exists
};

struct FetchReport {
  std::uint64_t received_bytes = 0;  // good pieces, including those received twice
  std::uint64_t resumed_bytes = 0;   // that were on the disk already
  std::size_t holders = 0;           // that gave pieces
  std::size_t liars = 0;
  std::size_t asked_twice = 0;  // pieces
};

class ContentFetch {
 public:
  using Done = std::function<void(Expected<FetchReport>)>;
  // Begins at once; `done` is called once, later, unless the fetch is destroyed first. The bytes on the disk
  // then stay for the next fetch. No two fetches have one path at the same time.
  // Errors: Unavailable (no holder was found; the message says how many were asked), those of the disk.
  // Threads: the executor's, all members.
  ContentFetch(FetchServices services, FetchRequest request, FetchOptions options, Done done);
  ~ContentFetch();

  std::uint64_t bytes_here() const;  // on the disk
  // The holders that have contradicted themselves so far.
  const std::vector<net::NodeId>& liars() const { return liars_; }

 private:
  enum class State : std::uint8_t { Asking, Ready, Left };
  static constexpr std::size_t no_group = ~std::size_t{0};
  struct Holder {
    net::Contact contact;
    State state = State::Asking;
    std::shared_ptr<PieceList> list;  // grows while its parts arrive
    std::size_t group = no_group;     // once the list is whole
    std::size_t former = no_group;    // of the list that it gave before it was asked again
    std::uint32_t in_flight = 0, allowed = 1, failures = 0;
    bool has_nothing = false;  // its last answer: no such file, or a larger one; the state is Left
    std::uint64_t given = 0;
    Duration piece_time{};  // smoothed
    MonotonicTime not_before{};
  };
  struct Group {
    std::shared_ptr<const PieceList> list;
    bool refuted = false;
    Duration pause{0};           // how long it was set aside at last; 0: it gave enough since
    MonotonicTime not_before{};  // the end of that
    int slow = 0;                // how often it was set aside for giving little
    bool gave = false;           // a piece, at some time
  };
  struct Asked {
    std::size_t holder = 0;
    MonotonicTime since{};
  };
  enum class Phase : std::uint8_t { Choosing, Keeping, Fetching, Checking, Over };

  void search();
  void add(const std::vector<net::Contact>& contacts);
  void ask_next();
  void ask_list(std::size_t holder);
  void got_list(std::size_t holder, std::uint32_t first, Expected<Bytes> answer);
  void join_group(std::size_t holder);
  // Of those that were set aside for the shortest time, the one of most holders; `except`: not that one.
  // After a long time without a piece, one that gave some comes first.
  std::optional<std::size_t> best_group(std::optional<std::size_t> except) const;
  void choose();
  void leave_silent_group();
  // Whether the present group has given too little for so long.
  bool gives_little(Duration window);
  void judge_from(MonotonicTime when);
  void set_aside(std::size_t group);
  bool would_lose(const PieceList& next) const;
  void begin_group(std::size_t group, Expected<std::uint32_t> kept);
  void schedule();
  bool give_work(std::size_t holder);
  std::optional<std::uint32_t> next_piece(std::size_t holder) const;
  void ask_piece(std::size_t holder, std::uint32_t piece);
  void got_piece(std::size_t holder, std::uint32_t piece, MonotonicTime since, Expected<Bytes> answer);
  void take_piece(std::uint32_t piece, Bytes bytes);
  void write();
  void check_whole();
  void checked(Expected<bool> right);
  void record_fault(std::size_t holder, const char* what);
  void failed(std::size_t holder, const Error& error);
  void tick();
  bool nobody_holds_it() const;
  void end(Expected<FetchReport> outcome);
  void on_disk(std::function<void()> work, std::function<void()> then);
  std::uint32_t pieces() const { return static_cast<std::uint32_t>(groups_[group_].list->hashes.size()); }
  std::string part() const { return request_.path + ".part"; }

  FetchServices services_;
  const FetchRequest request_;
  const FetchOptions options_;
  Done done_;
  Phase phase_ = Phase::Choosing;
  std::vector<Holder> holders_;
  std::vector<Group> groups_;
  std::size_t group_ = 0;  // the group of the present list, unless choosing
  std::uint32_t written_ = 0;
  bool writing_ = false;
  std::map<std::uint32_t, Bytes> arrived_;  // not on the disk yet
  std::multimap<std::uint32_t, Asked> asked_;
  std::optional<MonotonicTime> first_list_;
  MonotonicTime gained_{}, searched_{};
  MonotonicTime heard_{};           // when the present group gave its last piece, or began
  MonotonicTime judged_{};          // since when its bytes are counted
  std::uint64_t given_ = 0;         // by it, since then
  std::size_t patient_groups_ = 0;  // that have begun
  FetchReport report_;
  std::vector<net::NodeId> liars_;
  std::unique_ptr<TimerHandle> timer_;
  const std::shared_ptr<net::Mailbox> results_;  // of the disk; none may get lost
  Lifetime lifetime_;
};

}  // namespace neuroshard::exchange
