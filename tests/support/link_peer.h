#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <google/protobuf/message_lite.h>
#include <tools/run/link.pb.h>

#include "transport/meeting/connection.h"

namespace tutti::test {

// A `LinkPeer` plays one end of the link between the launcher and an agent. It blocks. It sends nothing by
// itself, so the other end finds it silent once the lease has passed.
class LinkPeer {
 public:
  LinkPeer() = default;
  // `connection` has passed its guard, if it has one.
  explicit LinkPeer(meeting::Connection connection) : connection_(std::move(connection)) {}

  void send(const google::protobuf::MessageLite& record) { send_frame(record.SerializeAsString()); }
  // Sends these bytes as a frame, whatever they are.
  void send_frame(std::string_view bytes);
  void close() { connection_.close(); }

 protected:
  // Returns the next frame that is not empty, or nothing if the connection has ended. Gives up after a long
  // time.
  std::optional<std::string> receive_frame();

 private:
  meeting::Connection connection_;
  std::string incoming_;
};

// These play an end that receives records of this type.
template <class Record>
class PlayedEnd : public LinkPeer {
 public:
  using LinkPeer::LinkPeer;

  // Returns the next record, or nothing if the connection has ended or what arrives is no record.
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
