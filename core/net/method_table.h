// The methods that a node answers. Each part of the node registers a handler for its own methods, with
// limits; an incoming call goes straight to the handler of its method.
//
// A call passes these checks, in this order. The first that fails answers it, and the handler does not run.
//   check                          answer                 fault of the caller
//   the method is registered       Unsupported            none: a later version may know more
//   calls and bytes, by a limiter  Exhausted              Flood, if the caller's own limit is exceeded
//   size of the request            InvalidArgument        none
//   MethodLimits::admit            what admit() returns   none
//   the handler                    what it replies        what it replies
// The limiter counts the bytes of the answer, too. If a stranger's address group exceeds its limit, the flood counts
// for the address and the group, and not for the caller: its neighbours may be the cause.
//
// A stream passes the same checks when it is opened, and then belongs to its handler. A method is served as calls or as
// streams, never as both. The transport bounds the number of open streams.
//
// Nothing is queued here: a call is answered or handed on at once. The transport bounds the number of open
// calls, and the bytes that they hold, before they reach the table.
//
// Threads: the executor's, all members; a Registration ends there, too. Errors: registering a method twice is
// a bug and aborts. Ownership: the table keeps the handlers; whatever a handler refers to outlives its
// Registration.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/net/conduct.h"
#include "core/net/peer_channel.h"
#include "core/net/request_limiter.h"

namespace neuroshard::net {

// A handler's reply: the answer, which travels to the caller, and the fault that the call proves, which
// only Conduct gets.
struct Answer {
  Answer(Bytes bytes) : with(std::move(bytes)) {}
  Answer(Expected<Bytes> answer) : with(std::move(answer)) {}
  Answer(Error error) : with(std::move(error)) {}
  Answer(Expected<Bytes> answer, std::optional<Fault> proven) : with(std::move(answer)), fault(proven) {}
  // The answer alone: a Respond may stand for a Reply where nobody counts faults.
  operator Expected<Bytes>() && { return std::move(with); }

  Expected<Bytes> with;
  std::optional<Fault> fault;  // nothing: an honest program may send such a call
};

// Replies to one call, at once or later, exactly once. Converts to Respond, for handlers that find no faults.
using Reply = std::function<void(Answer)>;

struct MethodLimits {
  // No method is without a limiter; null aborts.
  explicit MethodLimits(std::shared_ptr<RequestLimiter> limiter,
                        std::size_t most_request_bytes = max_message_bytes);

  // How often one caller may call, and its bytes; methods that are given the same limiter share it.
  std::shared_ptr<RequestLimiter> calls;
  // The limiter of callers that are strangers; the same one unless it is set.
  std::shared_ptr<RequestLimiter> of_strangers;
  std::size_t request_bytes;
  // Checks the caller: an error refuses the call. Null: every caller may call.
  std::function<Expected<void>(const Caller&)> admit = nullptr;
};

class MethodTable final : public PeerService {
 public:
  // `request` is valid until the handler returns.
  using Handler =
      std::function<void(const Caller& from, Method method, ByteSpan request, const Reply& reply)>;

  using StreamHandler = std::function<void(const Caller& from, std::shared_ptr<PeerStream> stream)>;

  class Registration;

  // All outlive the table. conduct: null where nobody counts faults. ranks: null where all callers are
  // strangers.
  MethodTable(const Clock& clock, Conduct* conduct, const PeerRanks* ranks = nullptr);

  // The methods are answered until the Registration ends. A handler may end its own while it runs.
  [[nodiscard]] Registration add(const std::vector<Method>& methods, MethodLimits limits, Handler handler);

  [[nodiscard]] Registration add_stream(Method method, MethodLimits limits, StreamHandler handler);

  void on_call(const Caller& from, Method method, Bytes request, Respond respond) override;
  void on_stream(const Caller& from, Method method, std::shared_ptr<PeerStream> stream) override;

 private:
  struct Entry {
    MethodLimits limits;
    Handler handler;               // null: the method is served as streams
    StreamHandler stream_handler;  // null: as calls
  };
  using Entries = std::unordered_map<Method, std::shared_ptr<const Entry>>;
  Registration add_entry(const std::vector<Method>& methods, Entry entry);
  // Admits the request, or counts the flood.
  bool admit(RequestLimiter& limiter, const Caller& from, std::size_t bytes, PeerRank rank);

  const Clock& clock_;
  Conduct* const conduct_;
  const PeerRanks* const ranks_;
  const std::shared_ptr<Entries> entries_ = std::make_shared<Entries>();
};

// Keeps the methods of one add() registered. It may end after the table.
class MethodTable::Registration {
 public:
  Registration() = default;
  ~Registration() { end(); }
  Registration(Registration&& other) noexcept = default;
  Registration& operator=(Registration&& other) noexcept;

  void end();

 private:
  friend class MethodTable;
  Registration(std::weak_ptr<Entries> entries, std::vector<Method> methods)
      : entries_(std::move(entries)), methods_(std::move(methods)) {}

  std::weak_ptr<Entries> entries_;
  std::vector<Method> methods_;
};

}  // namespace neuroshard::net
