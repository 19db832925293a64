#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <google/protobuf/message_lite.h>
#include <tools/run/link.pb.h>

#include "transport/meeting/connection.h"

namespace tutti::test {

// A `LinkPeer` imitates one end of the link between the launcher and an agent. Its calls block. It sends no
// signs of life, so the other end treats it as lost if the test sends nothing for the time
// `LinkOptions::lease`.
class LinkPeer {
 public:
  LinkPeer() = default;
  // `connection` must have passed its guard, if it has one.
  explicit LinkPeer(meeting::Connection connection) : connection_(std::move(connection)) {}

  void send(const google::protobuf::MessageLite& record) { send_frame(record.SerializeAsString()); }
  // Sends any bytes as a frame.
  void send_frame(std::string_view bytes);
  void close() { connection_.close(); }

 protected:
  // Returns the next frame that is not empty. Returns nothing if the connection has ended, or if no frame
  // arrives for a long time.
  std::optional<std::string> receive_frame();

 private:
  meeting::Connection connection_;
  std::string incoming_;
};

// A `PlayedEnd` imitates an end that receives records of type `Record`.
template <class Record>
class PlayedEnd : public LinkPeer {
 public:
  using LinkPeer::LinkPeer;

  // Returns the next record, or nothing if the connection has ended or the frame is not a record.
  std::optional<Record> receive() {
    const std::optional<std::string> bytes = receive_frame();
    Record record;
    if (!bytes || !record.ParseFromString(*bytes)) return std::nullopt;
    return record;
  }
};
using PlayedLauncher = PlayedEnd<tools::record::FromAgent>;
using PlayedAgent = PlayedEnd<tools::record::FromLauncher>;

}  // namespace tutti::test
