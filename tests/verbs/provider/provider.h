#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/verbs/provider/machine.h"
#include "tests/verbs/provider/record.h"
#include "tests/verbs/provider/settings.h"
#include "transport/verbs/library.h"

namespace tutti::provider {

// A `Provider` is a libibverbs whose devices exist only in this process, with a network that connects them
// all. It keeps the rules of reliable connected queue pairs, does what tests ask for (failed requests, cut
// links, ports that go down), and records mistakes. Only one provider can exist at a time. Any thread may
// call these functions.
class Provider {
 public:
  explicit Provider(const std::vector<DeviceSettings>& devices);
  ~Provider();
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;

  // Returns the functions that take the place of those of libibverbs. The functions may be called only while
  // the provider exists.
  static const verbs::Functions& functions();

  // Changes the state of a port. All contexts of the device get an event.
  void set_port(const std::string& device, int port, ibv_port_state state);
  // Takes a device away. From then on, the device is not listed, all of its queue pairs are broken, and its
  // descriptors are ready for ever.
  void remove(const std::string& device);
  // These two functions move one queue pair, or all queue pairs of a device, to the error state. They report
  // an event for each queue pair, as a broken card does.
  void break_pair(std::uint32_t number);
  void break_pairs(const std::string& device);
  // Blocks all traffic between these two GIDs.
  void cut(const Gid& one, const Gid& other);
  // Pulls the cable of a device once `requests` more of its requests have been carried out. From then on, all
  // packets from the device and to it vanish, so requests from the device and to it fail. If `answer_lost` is
  // true, the last of the `requests` requests also fails: it is carried out, but its answer is lost.
  void unplug_after(const std::string& device, int requests, bool answer_lost);
  // These functions make posted requests wait until `release`, as in a slow network. `hold` makes all
  // requests wait. `hold_writes` makes writes wait, and all later requests of the same queue pair.
  void hold();
  void hold_writes();
  // Holds requests that invalidate memory windows, and all later requests of the same queue pair.
  void hold_invalidations();
  void release();
  // Posts a write of some bytes to a queue pair, as if the program had posted it. This is what a hostile
  // program can do. The write reports no completion, unless it fails.
  void write_as(const Write& write, const std::vector<std::byte>& bytes);
  // Returns whether a queue pair is in the error state, or was destroyed.
  bool is_broken(std::uint32_t pair);
  // Makes the next `count` send requests that are carried out fail with `status`.
  void fail_sends(int count, ibv_wc_status status);
  // Returns the counts and mistakes so far.
  Record record();

 private:
  Device& device(const std::string& name);
  void break_down(QueuePair& pair);

  Machine machine_;
};

}  // namespace tutti::provider
