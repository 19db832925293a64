#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "rendezvous/store/memory/key_table.h"

namespace tutti::wire {
class StoreRequest;
class StoreResponse;
}  // namespace tutti::wire

namespace tutti::store_wire {

// A `Frame` is an encoded response, including its length. It is shared, since thousands of clients may get
// the same table at once.
using Frame = std::shared_ptr<const std::string>;

// `StoreService` carries out the requests of clients. It knows nothing of sockets and time limits. Only the
// server's thread uses it.
class StoreService {
 public:
  // A `Will` is what the service writes if a client's connection ends: `value`, under each of the `keys` that
  // is still missing.
  struct Will {
    std::vector<std::string> keys;  // empty if there is no will
    std::string value;
    bool operator==(const Will& other) const = default;
    bool operator<(const Will& other) const {
      return std::tie(keys, value) < std::tie(other.keys, other.value);
    }
  };

  // `Parked` is the state of a connection: its GET or WAIT that waits for missing keys, the prefix of
  // keys that it holds, and its will. The connection owns the `Parked`, and calls `leave` with it before
  // destroying it.
  struct Parked {
    std::vector<std::string> keys;
    bool wants_values = false;
    std::function<void(Frame)> answer;

    std::size_t next = 0;  // the index of the key that the request waits for
    std::multimap<std::string, Parked*, std::less<>>::iterator position;
    bool is_parked = false;
    std::string held;  // the prefix that is held; empty if there is none
    Will will;
  };

  explicit StoreService(std::size_t max_bytes) : table_(max_bytes) {}

  // Returns the response, or null if the request has been parked in `parked`. In that case `parked.answer` is
  // called once all keys are there.
  Frame handle(const wire::StoreRequest& request, Parked& parked);
  // Removes from the queue a request that has timed out, and returns the response to that request.
  Frame expire(Parked& parked);
  void forget(Parked& parked);
  void leave(Parked& parked);
  // Cancels all wills. After this call, connections end because the server ends, and not because clients have
  // died.
  void stop() { wills_.clear(); }

  // Returns the total size in bytes of all responses that are still in memory.
  std::size_t frame_bytes() const { return *frame_bytes_; }

 private:
  Frame encode(const wire::StoreResponse& response) const;
  Frame encode(const Status& status) const;
  Frame encode_number(std::int64_t number) const;
  Frame handle_change(const wire::StoreRequest& request);
  Frame handle_hold(const wire::StoreRequest& request, Parked& parked);
  void let_go(Parked& parked);
  Frame handle_will(const wire::StoreRequest& request, Parked& parked);
  void execute_will(Parked& parked);
  Frame handle_wait(const wire::StoreRequest& request, Parked& parked);
  // Returns true if all keys are there. Otherwise parks the request on a missing key.
  bool advance(Parked& parked);
  Frame values_of(const std::vector<std::string>& keys);
  void key_changed(const std::string& key);

  KeyTable table_;
  const std::shared_ptr<std::size_t> frame_bytes_ = std::make_shared<std::size_t>(0);
  std::multimap<std::string, Parked*, std::less<>> waiting_;
  std::map<std::string, std::size_t> holders_;  // how many connections hold each prefix
  std::map<Will, std::size_t> wills_;           // how many connections have each will
  // This is the latest response to a GET of a single key. It is kept until that key changes, since all ranks
  // ask for the same few keys.
  std::string cached_key_;
  Frame cached_;
};

// Returns null if the text is not an acceptable request.
std::unique_ptr<wire::StoreRequest> parse_request(const std::string& text);

}  // namespace tutti::store_wire
