#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "transport/driver/event_loop.h"
#include "transport/verbs/domain.h"

namespace tutti::verbs {

// A `QueueUser` owns a queue pair and is told of its completions, on the driving thread.
class QueueUser {
 public:
  virtual ~QueueUser() = default;
  virtual void on_completion(const ibv_wc& completion) = 0;
  // The queue pair or the whole device has failed, or the device has been removed.
  virtual void on_queue_error(const std::string& why) = 0;
};

// A `Rail` is a port of this rank, with all that the connections over the port share: a protection domain,
// and a completion queue with the descriptor that reports completions while the driver sleeps. It also
// watches the device's events. Only the driving thread may call a rail. Any thread may call the functions
// that return constants.
class Rail {
 public:
  static Result<std::unique_ptr<Rail>> create(const Functions& functions, DevicePort port);
  ~Rail();
  Rail(const Rail&) = delete;
  Rail& operator=(const Rail&) = delete;

  const Functions& functions() const { return domain_->functions(); }
  const DevicePort& port() const { return port_; }
  const SharedDomain& domain() const { return domain_; }

  // Makes the completion queue, with room for `entries` completions if the device permits that many, and
  // starts to watch the device.
  Status start(EventLoop& loop, std::uint64_t entries);
  // Stops watching the device. From then on, no queue pair can be made.
  void stop();

  // Makes a queue pair that uses the completion queue. If that is not possible, returns null and sets
  // `errno`. On entry, `attributes` says what the queue pair must be able to do. On return, it says what the
  // queue pair can do.
  ibv_qp* create_queue_pair(ibv_qp_init_attr& attributes, QueueUser& user);
  // Destroys a queue pair. From then on, the device touches no memory for the queue pair's work requests, and
  // the user is told of no further completion.
  void destroy_queue_pair(ibv_qp* queue_pair);

  // Returns whether there is any queue pair.
  bool in_use() const { return !users_.empty(); }
  // Handles one batch of the completions that have arrived. Returns whether there were any.
  bool poll();
  // Handles the completions that have arrived until now. This function ends even if more completions keep
  // arriving.
  void drain();
  // Makes the next completion wake the driver. If completions have arrived before that, handles a batch of
  // them and returns true.
  bool arm();

 private:
  struct Completions;
  struct Events;
  struct User {
    QueueUser* user;
    std::uint64_t need;  // entries of the completion queue
  };

  Rail(DevicePort port, SharedDomain domain);
  Status watch(EventLoop& loop);
  std::size_t take();
  void on_event(const ibv_async_event& event);
  void on_lost_link();
  // A descriptor was reported as ready for these events, but there is nothing to read.
  void on_no_event(std::uint32_t events);
  void fail_all(const std::string& why);

  const DevicePort port_;
  const SharedDomain domain_;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
  std::uint64_t entries_ = 0;  // of the completion queue
  std::uint64_t room_ = 0;     // entries of the completion queue that no queue pair needs yet
  bool armed_ = false;
  EventLoop* loop_ = nullptr;                      // set while the device is watched
  std::unordered_map<std::uint32_t, User> users_;  // by the number of the queue pair
  std::unique_ptr<Completions> completions_;
  std::unique_ptr<Events> events_;
};

}  // namespace tutti::verbs
