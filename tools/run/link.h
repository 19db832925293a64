#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <google/protobuf/message_lite.h>

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "transport/driver/event_loop.h"
#include "transport/meeting/connection.h"

namespace tutti::tools {

// `LinkEvents` is the interface through which a link reports to its owner.
class LinkEvents {
 public:
  // Called for each record. A record is never empty. The owner may destroy the link in this call; the record
  // stays valid until the call returns.
  virtual void on_record(std::string_view record) = 0;
  // Called once, when the link has ended by itself. `timeout` means that no byte has arrived during
  // the lease. `peer_lost` means that the connection has ended. `protocol_error` means that the
  // received bytes are not a record. The owner may destroy the link in this call.
  virtual void on_end(const Status& why) = 0;

 protected:
  ~LinkEvents() = default;
};

struct LinkOptions {
  std::chrono::nanoseconds lease = std::chrono::seconds(30);
  std::size_t longest_record = 0;  // the limit in bytes for records from the other side
};

// A `Link` carries records between the launcher and an agent, over a connection whose ends have
// proved that they know the same secret. The link does not know what the records mean. The lease is
// the time after which a silent end counts as lost. A link that has nothing to send sends five
// empty frames in that time.
//
// A frame is the length of a record in four bytes, the least significant first, followed by the record. An
// empty frame has the length zero and no record.
class Link final : private DescriptorHandler, private Timer {
 public:
  // The ends of `connection` must have proved the secret. The link calls `events` only in handlers of
  // the loop, and never inside a public function.
  Link(EventLoop& loop, meeting::Connection connection, LinkEvents& events, const LinkOptions& options);
  ~Link() override;

  // Sends a record, in the order of the calls. Never blocks: the link keeps the bytes that the
  // connection does not take now. The call has no effect after the link has ended. The record must
  // not be empty.
  void send(const google::protobuf::MessageLite& record);
  // Returns the number of bytes that are kept.
  std::size_t backlog() const { return outgoing_.size() - sent_; }
  // Changes how long the link may be silent. A shorter lease that is set outside of the loop's
  // handlers takes effect at the next empty frame.
  void set_lease(std::chrono::nanoseconds lease);
  // Tries once to send the kept bytes, and then ends the link without a call of `on_end`.
  void close();

 private:
  using Clock = Deadline::Clock;

  void on_ready(std::uint32_t events) override;
  void on_timer() override;

  // Each of these may call the owner, and the owner may have destroyed the link when they return.
  void receive();
  void deliver();
  void end(const Status& why);

  // Writes at most `most` of the bytes that are kept.
  void flush(std::size_t most);
  void stop();
  void set_timer();
  bool is_silent() const { return Clock::now() >= Deadline::after(options_.lease, heard_).when(); }

  EventLoop& loop_;
  meeting::Connection connection_;
  LinkEvents& events_;
  LinkOptions options_;
  Status watched_;        // an error if the connection cannot be watched; the link then ends at once
  bool writing_ = false;  // the link waits until the connection takes more bytes
  std::string outgoing_;
  std::size_t sent_ = 0;  // bytes at the front of `outgoing_`
  std::string incoming_;
  Clock::time_point heard_ = Clock::now();
  Clock::time_point said_ = heard_;
  // This becomes false when the link ends or is destroyed. A function that calls the owner keeps a
  // copy, which outlives the link.
  const std::shared_ptr<bool> open_ = std::make_shared<bool>(true);
};

}  // namespace tutti::tools
