#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "transport/verbs/library.h"

namespace tutti::test {

// An `End` is one end of a plain connection over verbs: a device, a queue pair, a completion queue, and
// registered memory. It is what a small program without tutti would have. Functions throw std::runtime_error
// if a call fails.
class End {
 public:
  struct Options {
    std::uint8_t retries = 7;
    std::uint8_t retries_not_ready = 7;  // 7 means for ever
    std::uint8_t timeout = 18;           // 4.096 us times two to this power
    std::uint32_t room = 16;             // of each queue
  };
  End(const verbs::Functions& functions, const std::string& device, Options options);
  End(const verbs::Functions& functions, const std::string& device) : End(functions, device, Options{}) {}
  ~End();
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  // A `Mate` is the queue pair to which an end is connected.
  struct Mate {
    std::uint32_t pair;
    ibv_gid gid;
    std::uint32_t sequence;  // the number of the first packet that it sends
    ibv_mtu mtu;
  };
  // Connects both ends.
  static void join(End& one, End& other);
  void connect(const Mate& mate) const;
  // Returns this end, as the other side needs it.
  Mate mate() const;
  // Destroys the queue pair, as if the program had ended.
  void destroy_pair();

  std::vector<std::byte>& memory() { return memory_; }
  ibv_qp* pair() const { return pair_; }
  ibv_cq* queue() const { return queue_; }
  ibv_comp_channel* channel() const { return channel_; }
  ibv_context* context() const { return context_; }
  const ibv_gid_entry& gid() const { return gid_; }
  std::uint32_t remote_key() const { return region_->rkey; }
  ibv_mr* region() const { return region_; }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(memory_.data()); }

  int modify(ibv_qp_attr attributes, int mask) const;
  // These functions post requests, and return zero or an errno. A request covers the first `bytes` of the
  // memory.
  int post_receive(std::uint64_t id, std::size_t bytes) const;
  int post_send(std::uint64_t id, std::size_t bytes, unsigned flags = IBV_SEND_SIGNALED) const;
  int post_send_with_immediate(std::uint64_t id, std::size_t bytes, std::uint32_t immediate) const;
  int post_write(std::uint64_t id, std::size_t bytes, const End& to, std::uint32_t key,
                 unsigned flags = IBV_SEND_SIGNALED) const;
  // Writes the first `bytes` of the memory into the peer's memory, `offset` bytes from its beginning.
  int post_write_at(std::uint64_t id, std::size_t bytes, const End& to, std::uint64_t offset,
                    std::uint32_t key) const;
  // Lets the peer write into a part of the memory, with a new key of `window`.
  int post_bind(std::uint64_t id, ibv_mw* window, std::uint64_t offset, std::size_t bytes,
                std::uint32_t key) const;
  // Invalidates the window with this key.
  int post_invalidate(std::uint64_t id, std::uint32_t key) const;
  int post_write_with_immediate(std::uint64_t id, std::size_t bytes, const End& to,
                                std::uint32_t immediate) const;
  // Waits for the next completion.
  ibv_wc wait() const;
  // Takes a completion without waiting. Returns false if there is none.
  bool poll(ibv_wc& completion) const { return ibv_poll_cq(queue_, 1, &completion) == 1; }

 private:
  void open(const std::string& device);
  void find_gid();
  void make_pair();
  int post(ibv_send_wr request, std::size_t bytes) const;
  int post_local(ibv_send_wr request) const;

  const verbs::Functions& functions_;
  Options options_;
  std::vector<std::byte> memory_;
  ibv_context* context_ = nullptr;
  ibv_port_attr port_{};
  ibv_gid_entry gid_{};
  ibv_pd* domain_ = nullptr;
  ibv_mr* region_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
  ibv_qp* pair_ = nullptr;
};

}  // namespace tutti::test
