#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tools/run/link.pb.h>

#include "transport/meeting/connection.h"

namespace tutti::test {

// A `LinkPeer` plays the launcher for an agent, over the launcher's end of their link. It blocks. It sends
// nothing by itself, so an agent that hears nothing else finds it silent once the lease has passed.
class LinkPeer {
 public:
  LinkPeer() = default;
  // `connection` has passed its guard, if it has one.
  explicit LinkPeer(meeting::Connection connection) : connection_(std::move(connection)) {}

  void send(const tools::record::FromLauncher& record);
  // Sends these bytes as a frame, whatever they are.
  void send_frame(std::string_view bytes);
  // Returns the next record, or nothing if the connection has ended. Gives up after a long time.
  std::optional<tools::record::FromAgent> receive();
  void close() { connection_.close(); }

 private:
  meeting::Connection connection_;
  std::string incoming_;
};

}  // namespace tutti::test
