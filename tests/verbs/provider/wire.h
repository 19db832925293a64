#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tests/verbs/provider/queue_pair.h"
#include "tests/verbs/provider/record.h"
#include "tests/verbs/provider/regions.h"

namespace tutti::provider {

// A `Wire` carries out the send requests of all queue pairs, as the cards and the network between them do.
// The thread that calls `advance` copies the payloads. A request whose peer is not ready is tried again
// whenever `advance` is called.
class Wire {
 public:
  Wire(Regions& regions, Record& record) : regions_(regions), record_(record) {}

  void add(QueuePair& pair) { pairs_[pair.qp_num] = &pair; }
  void remove(const QueuePair& pair) { pairs_.erase(pair.qp_num); }
  // Returns the queue pair with this number, or null.
  QueuePair* find(std::uint32_t number) const;
  // Calls `visit` for every queue pair.
  void each(const std::function<void(QueuePair&)>& visit) const;

  // Carries out all requests that need not wait.
  void advance();

  // Held requests are not carried out. Requests that were posted to the same queue pair later wait behind
  // them.
  enum class Held { nothing, writes, invalidations, all };
  void hold(Held held) { held_ = held; }
  // Fails the next `count` requests with `status`, instead of carrying them out.
  void fail_next(int count, ibv_wc_status status) { failing_ = {count, status}; }
  // Drops all later packets between these two GIDs.
  void cut(const ibv_gid& one, const ibv_gid& other) { cuts_.emplace_back(one, other); }
  // Makes the packets of a card vanish once `requests` more of its requests have been carried out. If
  // `answer_lost` is true, the last of these requests fails although it was carried out.
  void unplug_after(const Device& card, int requests, bool answer_lost) {
    unplugged_[&card] = {requests, answer_lost};
  }
  // `report` is called when a queue pair gets an event because its peer has broken a rule.
  std::function<void(QueuePair&, ibv_event_type)> report = [](QueuePair&, ibv_event_type) {};

 private:
  enum class Outcome { done, waits };
  enum class Reach { now, later, never };

  bool is_held(const SendRequest& request) const;
  bool advance(QueuePair& from);
  Outcome carry_out(QueuePair& from, const SendRequest& request);
  Outcome end(QueuePair& from, ibv_wc_status status);
  bool is_unplugged(const QueuePair& pair) const;
  bool change_window(const QueuePair& from, const SendRequest& request);
  Reach reach(const QueuePair& from, QueuePair*& to) const;
  bool is_cut(const ibv_gid& one, const ibv_gid& other) const;
  Outcome wait_for_receive(QueuePair& from);
  std::optional<std::vector<std::byte>> payload_of(const QueuePair& from, const SendRequest& request) const;
  bool write(const QueuePair& to, const SendRequest& request, const std::vector<std::byte>& payload) const;
  bool deliver(QueuePair& to, const SendRequest& request, const std::vector<std::byte>& payload) const;
  bool scatter(const QueuePair& to, const ReceiveRequest& receive,
               const std::vector<std::byte>& payload) const;

  Regions& regions_;
  Record& record_;
  std::map<std::uint32_t, QueuePair*> pairs_;
  std::vector<std::pair<ibv_gid, ibv_gid>> cuts_;
  std::pair<int, ibv_wc_status> failing_{0, IBV_WC_SUCCESS};
  struct Unplugged {
    int left = 0;  // requests that are still carried out
    bool answer_lost = false;
  };
  std::map<const Device*, Unplugged> unplugged_;
  Held held_ = Held::nothing;
};

}  // namespace tutti::provider
