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
  // Called for each record, never with an empty one. The owner may destroy the link in this call; the record
  // stays valid until the call returns.
  virtual void on_record(std::string_view record) = 0;
  // Called once, when the link has ended by itself. `timeout`: nothing has arrived for as long as the lease.
  // `peer_lost`: the connection has ended. `protocol_error`: what arrived is not a record. The owner may
  // destroy the link in this call.
  virtual void on_end(const Status& why) = 0;

 protected:
  ~LinkEvents() = default;
};

struct LinkOptions {
  std::chrono::nanoseconds lease = std::chrono::seconds(30);
  std::size_t longest_record = 0;  // that the other side may send, in bytes
};

// A `Link` carries records between the launcher and an agent, over a connection whose ends have proved that
// they belong together. It does not know what the records mean. Unless something else was sent, the link
// sends an empty frame every fifth of the lease. So each end notices when the other has fallen silent.
//
// A frame is the length of a record as four bytes, the least significant first, and the record. An empty
// frame has the length zero.
class Link final : private DescriptorHandler, private Timer {
 public:
  // `connection` has passed its guard. No function of the link calls `events`; only the loop does.
  Link(EventLoop& loop, meeting::Connection connection, LinkEvents& events, const LinkOptions& options);
  ~Link() override;

  // Sends a record, in the order of the calls. Never blocks: what the connection does not take now is kept.
  // After the link has ended, nothing happens. The record must not be empty.
  void send(const google::protobuf::MessageLite& record);
  // Returns the number of bytes that are kept.
  std::size_t backlog() const { return outgoing_.size() - sent_; }
  // Changes how long the link may be silent. Outside of the loop's handlers, a shorter lease counts from the
  // next empty frame on.
  void set_lease(std::chrono::nanoseconds lease);
  // Ends the link without a call of `on_end`, after it has tried once to send what is kept.
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
  Status watched_;        // the link ends at once if its connection cannot be watched
  bool writing_ = false;  // waits until the connection takes more bytes
  std::string outgoing_;
  std::size_t sent_ = 0;  // bytes at the front of `outgoing_`
  std::string incoming_;
  Clock::time_point heard_ = Clock::now();
  Clock::time_point said_ = heard_;
  // False once the link has ended or was destroyed. The copy of a function that calls the owner outlives the
  // link.
  const std::shared_ptr<bool> open_ = std::make_shared<bool>(true);
};

}  // namespace tutti::tools
